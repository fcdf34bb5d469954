"""Gates, cancellations, trials and proposals: what their transitions write, to the last field."""

from uuid import UUID

import pytest
from msgspec.structs import replace

from sexton_actors.canaries import transitions as trials
from sexton_actors.canaries.guard import Promote, Withdraw
from sexton_actors.canaries.record import Canary, CanaryStatus, Guard
from sexton_actors.canaries.transitions import Ending, Wish
from sexton_actors.gate import transitions as gates
from sexton_actors.manifest.model import Manifest
from sexton_actors.proposal import transitions as proposals
from sexton_actors.protocol.gate import Resolve
from sexton_actors.protocol.queue import Cancelling
from sexton_actors.queue import transitions as queue
from sexton_actors.refusal import Refusal
from sexton_actors.run_versions import RunVersion
from sexton_storage.records.canaries import Tallies, Tally
from sexton_storage.records.events import EventStatus
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.records.improvement import Proposal, ProposalStatus
from sexton_storage.records.zombies import Zombie, ZombieStatus
from sexton_storage.refusals import GONE, Lost
from sexton_storage.writes import CancelEvent, Cancelled, CancelOutcome, ResolveGate

IT, AGENT, EVENT, LEASE, ACTIVE, OTHER = (UUID(int=n) for n in range(1, 7))
NOW = 1_000_000
MANIFEST = Manifest("x", "x", "1.0.0", "", ())
ZOMBIE = Zombie(
    *(AGENT, IT, IT, "x", ZombieStatus.ACTIVE, 1, ACTIVE, 3, {}, (), b"", {}),
    created_at=1,
    updated_at=1,
)
CANDIDATE = RunVersion(OTHER, 4, MANIFEST)
TRIAL = Canary(OTHER, OTHER, 4, 3, 30, Guard(min_runs=2), 5, CanaryStatus.ON_TRIAL, NOW - 9, "user:1")
GATE = Gate(
    *(IT, AGENT, IT, IT, EVENT, LEASE, "deploy", GateStatus.PENDING),
    requested_at=NOW - 10,
    timeout_at=NOW + 10,
)


# --- trials -------------------------------------------------------------------------------------------------


def test_a_trial_begins_as_it_was_asked_for() -> None:
    wish = Wish(30, Guard(min_runs=2), 5)
    over = replace(TRIAL, status=CanaryStatus.WITHDRAWN)
    begun = [
        trials.begin(known, ZOMBIE, CANDIDATE, wish, canary_id=IT, by="user:1", now=NOW)
        for known in (None, over)
    ]

    assert begun == [replace(TRIAL, id=IT, started_at=NOW)] * 2


def test_a_second_trial_and_one_of_the_active_version_do_not_begin() -> None:
    wish = Wish(30)
    second = trials.begin(TRIAL, ZOMBIE, CANDIDATE, wish, canary_id=IT, by="user:1", now=NOW)
    active = replace(CANDIDATE, config_version_id=ACTIVE)
    same = trials.begin(None, ZOMBIE, active, wish, canary_id=IT, by="user:1", now=NOW)

    assert isinstance(second, Refusal)
    assert (second.code, second.facts) == ("UZ-REQ-009", {"current_state": "on_trial"})
    assert isinstance(same, Refusal)
    assert same.code == "UZ-HARNESS-003"


def test_a_trial_ends_with_all_that_is_said_of_it() -> None:
    tallies = Tallies(Tally(5, 1, 10, 5, 4.5), Tally(9))
    ending = Ending(CanaryStatus.PROMOTED, "user:2", "person", "good")
    never = trials.end(None, ending, None, NOW)

    assert trials.end(TRIAL, ending, tallies, NOW) == replace(
        TRIAL,
        status=CanaryStatus.PROMOTED,
        ended_at=NOW,
        ended_by="user:2",
        why="person",
        detail="good",
        tallies=tallies,
    )
    assert isinstance(never, Refusal)
    assert (never.code, never.facts) == ("UZ-REQ-009", {"current_state": "none"})


def test_a_guard_promotes_or_withdraws() -> None:
    promoted = Ending(CanaryStatus.PROMOTED, "system:guard", "runs", "enough")
    withdrawn = Ending(CanaryStatus.WITHDRAWN, "system:guard", "cost", "dear")

    assert trials.by_verdict(Promote("enough")) == promoted
    assert trials.by_verdict(Withdraw("cost", "dear")) == withdrawn


def test_a_version_that_becomes_active_ends_the_trial() -> None:
    other = trials.after_activation(TRIAL, replace(CANDIDATE, config_version_id=IT, number=7), "user:2")
    over = replace(TRIAL, status=CanaryStatus.PROMOTED)

    assert trials.after_activation(TRIAL, CANDIDATE, "user:2") == Ending(
        CanaryStatus.PROMOTED, "user:2", "person"
    )
    assert other is not None
    assert (other.status, other.by, other.why) == (CanaryStatus.WITHDRAWN, "user:2", "other_version")
    assert "7" in other.detail
    assert trials.after_activation(None, CANDIDATE, "user:2") is None
    assert trials.after_activation(over, CANDIDATE, "user:2") is None


@pytest.mark.parametrize(("ended_by", "by"), [(None, "user:1"), ("system:guard", "system:guard")])
def test_the_stream_is_told_of_a_trial(ended_by: str | None, by: str) -> None:
    data = {
        "canary_id": str(OTHER),
        "status": "on_trial",
        "agent_version": 4,
        "base_version": 3,
        "share": 30,
        "by": by,
        "why": "cost",
        "detail": "dear",
    }
    trial = replace(TRIAL, ended_by=ended_by, why="cost", detail="dear")

    assert trials.changed_frame(AGENT, trial, NOW) == NewFrame(AGENT, None, "canary_changed", NOW, data)


# --- gates --------------------------------------------------------------------------------------------------


def closed(
    gate: Gate, status: str, by: str, detail: str, *, event: str = "received", label: str | None = None
) -> ResolveGate:
    """What closes it, with its frames."""
    data = {"gate_id": str(IT), "action_id": "deploy", "status": status, "resolved_by": by}
    frames = [NewFrame(AGENT, EVENT, "gate_resolved", NOW, data)]
    if event != "received":
        end = {"status": event, "failure_label": label}
        frames.append(NewFrame(AGENT, EVENT, "event_complete", NOW, end))
    return ResolveGate(IT, GateStatus(status), NOW, by, detail, EventStatus(event), label, tuple(frames))


def test_a_person_answers_in_time() -> None:
    yes, no = Resolve(approve=True, by="user:1", reason="fine"), Resolve(approve=False, by="user:1")
    bare = replace(GATE, lease_id=None)
    last = replace(GATE, timeout_at=NOW + 1)

    assert gates.resolve(last, yes, NOW) == closed(GATE, "approved", "user:1", "fine")
    assert gates.resolve(GATE, no, NOW) == closed(GATE, "denied", "user:1", "")
    assert gates.resolve(bare, yes, NOW) == closed(bare, "approved", "user:1", "fine")
    assert gates.resolve(bare, no, NOW) == closed(
        bare, "denied", "user:1", "", event="gate_blocked", label="approval_denied"
    )


def test_an_answer_in_the_last_millisecond_is_late() -> None:
    due = replace(GATE, timeout_at=NOW)
    bare = replace(due, lease_id=None)
    late = closed(due, "timed_out", "system:timeout", "")

    assert gates.resolve(due, Resolve(approve=True, by="user:1"), NOW) == late
    assert gates.expire(due, NOW) == late
    assert gates.expire(bare, NOW) == closed(
        bare, "timed_out", "system:timeout", "", event="gate_blocked", label="approval_expired"
    )
    assert gates.expire(due, NOW - 1) is None


def test_a_gate_whose_run_is_over_is_denied_and_a_closed_one_stays_closed() -> None:
    found = gates.close(GATE, NOW)
    over = replace(GATE, status=GateStatus.DENIED, updated_at=NOW - 1, resolved_by="user:2", timeout_at=0)
    again = gates.resolve(over, Resolve(approve=True, by="user:1"), NOW)

    assert found is not None
    assert found == closed(GATE, "denied", "system:run_ended", found.detail)
    assert (gates.close(over, NOW), gates.expire(over, NOW)) == (None, None)
    assert isinstance(again, Refusal)
    assert again.code == "UZ-APPROVAL-002"
    assert again.facts == {"outcome": "denied", "resolved_at": NOW - 1, "resolved_by": "user:2"}


# --- cancellations ------------------------------------------------------------------------------------------


def test_a_cancellation_is_written_and_answered() -> None:
    data = {"status": "cancelled", "failure_label": "cancelled", "by": "user:1"}
    frame = NewFrame(AGENT, EVENT, "event_complete", NOW, data)
    gone = queue.answer(EVENT, Lost(GONE))
    over = queue.answer(EVENT, Cancelled(CancelOutcome.CLOSED, None, EventStatus.PROCESSED))
    ended = queue.answer(EVENT, Cancelled(CancelOutcome.ENDED, None, EventStatus.CANCELLED))
    marked = queue.answer(EVENT, Cancelled(CancelOutcome.CANCELLING, LEASE, EventStatus.RUNNING))

    assert queue.cancel(AGENT, EVENT, "user:1", NOW) == CancelEvent(AGENT, EVENT, NOW, (frame,))
    assert isinstance(gone, Refusal)
    assert gone.code == "UZ-EVENT-001"
    assert isinstance(over, Refusal)
    assert (over.code, over.facts) == ("UZ-REQ-009", {"current_state": "processed"})
    assert (ended, marked) == (Cancelling(EVENT, "cancelled"), Cancelling(EVENT, "cancelling"))


# --- proposals ----------------------------------------------------------------------------------------------


PENDING = Proposal(
    *(IT, AGENT, IT, IT, ProposalStatus.PENDING, "title", "why", "diff", ACTIVE, "run", 1),
)


def test_a_proposal_is_decided_with_all_that_is_said_of_it() -> None:
    told = replace(PENDING, decided_by="user:1", decided_at=NOW)
    long = proposals.not_compiled(PENDING, "x" * 5_000, "user:1", NOW)

    assert proposals.reject(PENDING, "no", "user:1", NOW) == replace(
        told, status=ProposalStatus.REJECTED, rejection_reason="no"
    )
    assert proposals.overtaken(PENDING, "user:1", NOW) == replace(told, status=ProposalStatus.CONFIG_CHANGED)
    assert proposals.not_compiled(PENDING, "line 3", "user:1", NOW) == replace(
        told, status=ProposalStatus.REJECTED, rejection_reason="COMPILE_FAILED: line 3"
    )
    assert proposals.apply(PENDING, OTHER, "user:1", NOW) == replace(
        told, status=ProposalStatus.APPLIED, config_version_id=OTHER
    )
    assert isinstance(long, Proposal)
    assert len(long.rejection_reason or "") == 4_096


@pytest.mark.parametrize("status", [s for s in ProposalStatus if s is not ProposalStatus.PENDING])
def test_a_proposal_that_was_decided_stays_so_and_says_by_whom(status: ProposalStatus) -> None:
    over = replace(PENDING, status=status, decided_at=NOW, decided_by="user:1")
    refused = Refusal(
        "UZ-AGENT-002",
        f"Proposal {IT} is {status} already.",
        {"outcome": str(status), "decided_at": NOW, "decided_by": "user:1"},
    )

    assert [
        proposals.reject(over, "no", "user:2", NOW),
        proposals.overtaken(over, "user:2", NOW),
        proposals.not_compiled(over, "no", "user:2", NOW),
        proposals.apply(over, OTHER, "user:2", NOW),
    ] == [refused] * 4
