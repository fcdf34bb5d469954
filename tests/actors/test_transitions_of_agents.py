"""Agents, bulk jobs and plans: what their transitions write, to the last field."""

from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from sexton_actors.chat.transitions import Keep, posted, updated
from sexton_actors.jobs import transitions as jobs
from sexton_actors.jobs.transitions import DONE, SKIPPED, Later, Refused
from sexton_actors.ledger import transitions as plans
from sexton_actors.manifest.model import Manifest
from sexton_actors.ports.chat import ChatFault, Shown, Trouble
from sexton_actors.protocol.jobs import Begin, Wish
from sexton_actors.refusal import Refusal
from sexton_actors.zombie import transitions as agents
from sexton_actors.zombie.compiled_version import Compiled
from sexton_actors.zombie.transitions import Change, Unchanged, WakeUp
from sexton_storage.records.audit import AuditEntry
from sexton_storage.records.chats import ChatPost, ChatWork
from sexton_storage.records.configs import ConfigStatus, ConfigVersion
from sexton_storage.records.crons import Firing
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.records.jobs import OVER, Candidate, Job, JobKind, JobStatus, Survey
from sexton_storage.records.plans import PlanStatus, first_plan
from sexton_storage.records.tenants import PlanTier, Tenant
from sexton_storage.records.zombies import Zombie, ZombieStatus
from sexton_storage.writes import AppendEvent

IT, AGENT, EVENT, PLACE, ACTIVE, OTHER = (UUID(int=n) for n in range(1, 7))
NOW = 1_000_000
MANIFEST = Manifest("new", "d", "1.0.0", "", (), required_tags=("gpu",), allow_unsandboxed=True)
ZOMBIE = Zombie(
    *(AGENT, PLACE, IT, "x", ZombieStatus.ACTIVE, 7, ACTIVE, 3, {}, (), b"hash", {}),
    created_at=1,
    updated_at=1,
    decides_by_token=False,
)


def changed(status: str, previous: str, by: str) -> Change:
    data = {"status": status, "previous": previous, "by": by}
    after = replace(ZOMBIE, status=ZombieStatus(status), version=8, updated_at=NOW)
    return Change(after, (NewFrame(AGENT, None, "status_changed", NOW, data),))


@pytest.mark.parametrize("previous", list(ZombieStatus))
@pytest.mark.parametrize("wanted", ["active", "stopped", "killed", "paused", "other"])
def test_a_person_changes_a_status(previous: ZombieStatus, wanted: str) -> None:
    found = agents.change_status(replace(ZOMBIE, status=previous), wanted, "user:1", NOW)
    if wanted in {"paused", "other"}:
        expected: object = "UZ-REQ-001"
    elif previous is ZombieStatus.KILLED or previous == wanted == "stopped":
        expected = ("UZ-ZMB-010", {"current_state": str(previous)})
    elif previous == wanted:
        expected = Unchanged()
    else:
        expected = changed(wanted, str(previous), "user:1")
    code = isinstance(found, Refusal) and (
        found.code if expected == "UZ-REQ-001" else (found.code, found.facts)
    )

    assert (code or found) == expected


def test_an_agent_is_paused_killed_and_given_another_token() -> None:
    token = replace(ZOMBIE, approval_token_hash=b"new", decides_by_token=True, version=8, updated_at=NOW)
    killed = replace(ZOMBIE, status=ZombieStatus.KILLED)
    late = agents.rotate_token(killed, b"new", NOW)

    assert agents.pause(ZOMBIE, "why", NOW) == changed("paused", "active", "system:why")
    assert agents.pause(replace(ZOMBIE, status=ZombieStatus.STOPPED), "why", NOW) == Unchanged()
    assert agents.kill(ZOMBIE, "user:1", NOW) == changed("killed", "active", "user:1")
    assert agents.kill(killed, "user:1", NOW) == Unchanged()
    assert agents.rotate_token(ZOMBIE, b"new", NOW) == Change(token, ())
    assert agents.rotate_token(ZOMBIE, b"hash", NOW) == Unchanged()
    assert isinstance(late, Refusal)
    assert (late.code, late.facts) == ("UZ-ZMB-010", {"current_state": "killed"})


def test_another_version_becomes_active() -> None:
    config = ConfigVersion(OTHER, AGENT, 4, ConfigStatus.ACTIVE, "s", "t", {"a": 1}, 1)
    data = {"config_version_id": str(OTHER), "config_revision": 4, "by": "user:1"}
    after = replace(
        ZOMBIE,
        name="new",
        version=8,
        config_version_id=OTHER,
        config_revision=4,
        compiled={"a": 1},
        required_tags=("gpu",),
        url_secret_hashes={"doorbell": "h"},
        allows_unsandboxed=True,
        updated_at=NOW,
    )

    assert agents.reconfigure(ZOMBIE, Compiled(config, MANIFEST), {"doorbell": "h"}, "user:1", NOW) == Change(
        after, (NewFrame(AGENT, None, "config_updated", NOW, data),), config
    )


@pytest.mark.parametrize("status", list(ZombieStatus))
@pytest.mark.parametrize("paused", [False, True])
def test_only_an_active_agent_of_a_workspace_that_goes_on_takes_work(
    status: ZombieStatus, paused: bool
) -> None:
    agent = replace(ZOMBIE, status=status)
    done = Event(*(EVENT, AGENT, PLACE, IT, "a", "t", EventStatus.PROCESSED, "{}", 1, 1), completed_at=2)
    found = [
        agents.may_be_delivered_to(agent, workspace_paused=paused),
        agents.may_be_asked(agent, workspace_paused=paused),
        agents.may_be_messaged(agent, "hello", workspace_paused=paused),
        agents.may_be_replayed(agent, done, workspace_paused=paused),
    ]
    facts = {"current_state": str(status)}
    usual: list[tuple[str, dict[str, Any]] | None] = [("UZ-ZMB-012", facts)] * 3
    if status is ZombieStatus.ACTIVE:
        told: tuple[str, dict[str, Any]] | None = ("UZ-WORKSPACE-002", {}) if paused else None
        assert [one and (one.code, one.facts) for one in found] == [told] * 4
    else:
        assert [one and (one.code, one.facts) for one in found] == [("UZ-WH-003", facts), *usual]


def test_what_is_not_over_is_not_replayed_and_a_killed_agent_is_not_configured() -> None:
    runs = Event(*(EVENT, AGENT, PLACE, IT, "a", "t", EventStatus.RUNNING, "{}", 1, 1))
    refused = agents.may_be_replayed(ZOMBIE, runs, workspace_paused=False)
    killed = agents.may_be_configured(replace(ZOMBIE, status=ZombieStatus.KILLED))

    assert refused is not None
    assert (refused.code, refused.facts) == ("UZ-REQ-009", {"current_state": "running"})
    assert killed is not None
    assert (killed.code, killed.facts) == ("UZ-ZMB-010", {"current_state": "killed"})
    assert agents.may_be_configured(replace(ZOMBIE, status=ZombieStatus.PAUSED)) is None


@pytest.mark.parametrize(
    ("message", "is_taken"),
    [
        ("", False),
        ("x", True),
        ("x" * 8_192, True),
        ("x" * 8_193, False),
        ("ä" * 4_097, False),
        ("\ud800", True),
    ],
)
def test_a_message_has_its_size(message: str, is_taken: bool) -> None:
    found = agents.may_be_messaged(ZOMBIE, message, workspace_paused=False)

    assert (None if found is None else found.code) == (None if is_taken else "UZ-REQ-001")


# --- events -------------------------------------------------------------------------------------------------

BARE = WakeUp("steer:ann", "message", {"text": "hi"})
FULL = WakeUp(
    *("webhook:github", "push", {}, '{"n": 1.50}', b"key", b"body"),
    firing=Firing("* * * * *", "UTC", 1, 2),
    follow_up_id=OTHER,
    source_event_id="s",
    resumes_event_id=OTHER,
    audit=AuditEntry(IT, IT, "event.replay", "user:u", "ann", "::1", "r"),
    replayed_by="user:1",
    traceparent="t",
    asked_version=2,
    trial_id=IT,
    shadow_job=PLACE,
)
KEPT = Event(
    *(EVENT, AGENT, PLACE, IT, "steer:ann", "message", EventStatus.RECEIVED, '{"text":"hi"}', NOW, NOW)
)


def test_an_event_is_kept_as_it_came() -> None:
    data = {"actor": "steer:ann", "event_type": "message", "source_event_id": None}
    frame = NewFrame(AGENT, EVENT, "event_received", NOW, data)

    assert agents.append(ZOMBIE, BARE, EVENT, (5, 6), NOW) == AppendEvent(KEPT, None, 5, 6, (frame,))


def test_an_event_is_kept_with_all_that_was_said_of_it() -> None:
    data = {
        "actor": "webhook:github",
        "event_type": "push",
        "source_event_id": "s",
        "resumes_event_id": str(OTHER),
        "replayed_by": "user:1",
        "shadow_job_id": str(PLACE),
        "agent_version": 2,
    }
    event = replace(
        KEPT,
        actor="webhook:github",
        event_type="push",
        request_json='{"n": 1.50}',
        source_event_id="s",
        resumes_event_id=OTHER,
        traceparent="t",
        asked_version=2,
        trial_id=IT,
        shadow_job=PLACE,
    )

    assert agents.append(ZOMBIE, FULL, EVENT, (None, None), NOW) == AppendEvent(
        event,
        b"key",
        None,
        None,
        (NewFrame(AGENT, EVENT, "event_received", NOW, data),),
        body_key=b"body",
        firing=FULL.firing,
        follow_up_id=OTHER,
        audit=FULL.audit,
    )


ABOUT = {"gate_id": str(OTHER), "action_id": "act", "tool_name": "sh", "action_name": "run"}
GATE = Gate(
    *(OTHER, AGENT, PLACE, IT, EVENT, None, "act", GateStatus.PENDING, 5, 9),
    tool_name="sh",
    action_name="run",
    proposed_action="rm",
    resolved_by="policy",
)


@pytest.mark.parametrize(
    ("status", "event", "label", "fires"),
    [
        (GateStatus.PENDING, "waiting_approval", None, True),
        (GateStatus.DENIED, "gate_blocked", "approval_denied", True),
        (GateStatus.AUTO_KILLED, "gate_blocked", "policy_deny", False),
        (GateStatus.APPROVED, "received", None, True),
    ],
)
def test_an_event_is_stopped_at_a_gate(
    status: GateStatus, event: str, label: str | None, fires: bool
) -> None:
    write = agents.append(ZOMBIE, FULL, EVENT, (None, None), NOW)
    gate = replace(GATE, status=status)
    held = agents.held_at(write, gate)
    told = {"status": str(status), "resolved_by": "policy"}
    waits = {"proposed_action": "rm", "timeout_at": 9}
    pending = status is GateStatus.PENDING
    shown = NewFrame(
        *(AGENT, EVENT, "gate_pending" if pending else "gate_resolved", 5),
        ABOUT | (waits if pending else told),
    )
    over = NewFrame(AGENT, EVENT, "event_complete", 5, {"status": event, "failure_label": label})

    assert held == replace(
        write,
        event=replace(
            write.event,
            status=EventStatus(event),
            failure_label=label,
            completed_at=NOW if label else None,
        ),
        gate=gate,
        firing=FULL.firing if fires else None,
        frames=(*write.frames, shown, *((over,) if label else ())),
    )


# --- jobs ---------------------------------------------------------------------------------------------------

JOB = Job(IT, IT, PLACE, JobKind.REPLAY, JobStatus.RUNNING, 4, "f", "api:1", "k", 1, 1, 99, 4)
HELD = replace(JOB, holder=OTHER, held_until=9, waits_for="x", rate=7)


def test_a_job_begins_as_it_was_asked_for() -> None:
    asked = Begin(
        *(IT, PLACE, JobKind.SHADOW, "f", "api:1", "k"),
        failure_id=OTHER,
        request_json="{}",
        merges=True,
        asked_version=3,
        rate_limit=5,
        budget_nanos=6,
        events_limit=7,
    )

    assert jobs.begin(EVENT, asked, Survey(8, 9, ()), NOW) == Job(
        *(EVENT, IT, PLACE, JobKind.SHADOW, JobStatus.WAITING, 1, "f", "api:1", "k", NOW, NOW, 9, 8),
        failure_id=OTHER,
        request_json="{}",
        merges=True,
        asked_version=3,
        rate_limit=5,
        budget_nanos=6,
        events_limit=7,
    )


@pytest.mark.parametrize("wish", list(Wish))
@pytest.mark.parametrize("status", list(JobStatus))
def test_nobody_holds_a_job_that_a_person_has_changed(wish: Wish, status: JobStatus) -> None:
    found = jobs.change(replace(HELD, status=status), wish, NOW)
    to = {Wish.PAUSE: JobStatus.PAUSED, Wish.RESUME: JobStatus.WAITING, Wish.STOP: JobStatus.STOPPING}

    if isinstance(found, Job):
        assert found == replace(
            HELD,
            status=to[wish],
            version=5,
            updated_at=NOW,
            holder=None,
            held_until=0,
            waits_for=None,
            rate=0,
        )
    elif isinstance(found, Refusal):
        assert (found.code, found.facts) == ("UZ-REQ-009", {"current_state": str(status)})
        assert status in {*OVER, JobStatus.STOPPING}


def test_a_page_is_taken_in_hand() -> None:
    found = [Candidate(EVENT, AGENT, 5, 6, 2), Candidate(OTHER, IT, 7, 8, 2)]
    taken = jobs.take(JOB, found, IT, NOW)
    again = jobs.take(replace(taken, status=JobStatus.WAITING, started_at=3), found, IT, NOW)

    assert taken == replace(
        JOB,
        version=5,
        updated_at=NOW,
        holder=IT,
        held_until=NOW + 3_000,
        started_at=NOW,
        after_at=7,
        after_arrival=8,
        page=(EVENT, OTHER),
        page_agents=(AGENT, IT),
    )
    assert again == replace(taken, version=6, started_at=3)


@pytest.mark.parametrize(
    ("outcome", "status", "detail"),
    [
        ("over", "done", None),
        ("stopped", "stopped", None),
        ("failed", "failed", "why"),
        ("enough", "done", "why"),
    ],
)
def test_a_job_ends(outcome: str, status: str, detail: str | None) -> None:
    found = {
        "over": lambda: jobs.take(HELD, (), IT, NOW),
        "stopped": lambda: jobs.take(replace(HELD, status=JobStatus.STOPPING), (), IT, NOW),
        "failed": lambda: jobs.fail(HELD, "why", NOW),
        "enough": lambda: jobs.enough(HELD, "why", NOW),
    }[outcome]()

    assert found == replace(
        HELD,
        status=JobStatus(status),
        version=5,
        updated_at=NOW,
        ended_at=NOW,
        holder=None,
        held_until=0,
        waits_for=None,
        rate=0,
        detail=detail,
    )


@pytest.mark.parametrize("status", [JobStatus.RUNNING, JobStatus.STOPPING])
@pytest.mark.parametrize("holder", [OTHER, None])
def test_what_became_of_a_page_is_counted(status: JobStatus, holder: UUID | None) -> None:
    page = tuple(UUID(int=n) for n in range(20, 25))
    job = replace(
        JOB,
        status=status,
        page=page,
        page_agents=page,
        done=1,
        skipped=2,
        failed=3,
        refused={"A": 1},
        holder=holder,
        held_until=9,
    )
    outcomes: list[jobs.Outcome] = [DONE, DONE, SKIPPED, Refused("A"), Later("busy")]
    left = page[4:] if status is JobStatus.RUNNING else ()

    assert jobs.settle(job, page, outcomes, 500, NOW) == replace(
        job,
        version=5,
        updated_at=NOW,
        done=3,
        skipped=3,
        failed=4,
        refused={"A": 2},
        rate=8,
        page=left,
        page_agents=left,
        held_until=0 if holder is None else NOW + 3_000,
        waits_for="busy",
    )
    assert jobs.settle(job, page[:4], outcomes[:4], 500, NOW) is None


def test_a_page_is_as_long_as_it_may_be() -> None:
    half = [Candidate(EVENT, AGENT, 0, n, 4 * 1024 * 1024) for n in range(3)]
    slow = replace(JOB, rate_limit=1_000)

    assert len(jobs.within_bytes(half)) == 2
    assert (jobs.page_limit(JOB), jobs.page_limit(slow)) == (512, 512)
    assert jobs.page_limit(replace(JOB, kind=JobKind.SHADOW)) == 1
    assert jobs.shadow_is_over(replace(JOB, events_limit=3, done=1, failed=2), 0) is not None
    assert jobs.shadow_is_over(replace(JOB, events_limit=3, done=1, failed=1), 0) is None
    assert jobs.shadow_is_over(JOB, 10**12) is None
    assert len(jobs.within_bytes([replace(half[0], request_bytes=jobs.PAGE_BYTES + 1)])) == 1
    assert len(jobs.within_bytes([half[0], replace(half[0], request_bytes=4 * 1024 * 1024 + 1)])) == 1


def test_a_page_that_took_no_time_has_a_rate_and_outcomes_belong_to_its_events() -> None:
    job = replace(JOB, page=(EVENT, OTHER), page_agents=(AGENT, IT))
    quick, slow = (jobs.settle(job, job.page, ["done", "skipped"], took_ms, NOW) for took_ms in (0, 3_000))

    assert quick is not None
    assert slow is not None
    assert (quick.rate, slow.rate, quick.done, quick.skipped) == (2_000, 0, 1, 1)

    with pytest.raises(ValueError, match="zip"):
        jobs.settle(job, job.page, ["done"], 500, NOW)


# --- plans and chats ----------------------------------------------------------------------------------------

PLAN = replace(first_plan(Tenant(IT, "t", PlanTier.PRO, 0, None, 0, 0)), subscription_id="sub_abc")


def test_a_subscription_is_bought_once() -> None:
    late = replace(PLAN, status=PlanStatus.GRACE, grace_expires_at=NOW)
    bad = plans.subscribe(PLAN, "abc", "user:1", NOW)
    bought = replace(PLAN, version=PLAN.version + 1, reason="subscribed", changed_by="user:1", updated_at=NOW)

    assert plans.subscribe(PLAN, "sub_abc", "user:1", NOW) is PLAN
    assert plans.subscribe(late, "sub_abc", "user:1", NOW) == bought
    assert plans.subscribe(PLAN, "sub_new", "user:1", NOW) == replace(bought, subscription_id="sub_new")
    assert isinstance(bad, Refusal)
    assert (bad.code, bad.facts) == ("UZ-BILLING-001", {"pointer": "/subscription_id"})


def test_a_grace_ends_by_itself_and_only_where_there_is_one() -> None:
    late = replace(PLAN, status=PlanStatus.GRACE, grace_expires_at=NOW)
    over = plans.end_grace(late, NOW)

    assert over is not None
    assert (over.changed_by, over.lapsed_tier, over.tier) == ("system:grace", PlanTier.PRO, PlanTier.FREE)
    assert plans.end_grace(late, NOW - 1) is None
    assert plans.end_grace(replace(late, status=PlanStatus.ACTIVE), NOW) is None
    assert plans.end_grace(replace(late, grace_expires_at=None), NOW) is None


def test_a_message_in_a_chat_is_tried_again_within_a_quarter_of_an_hour() -> None:
    post = ChatPost(IT, IT, "C1", None, attempts=60, unsure=True, due_at=1, created_at=1)
    work = ChatWork(post, replace(GATE, status=GateStatus.PENDING))
    lost = ChatFault(Trouble.BUSY, "no answer", 0, heard=True)
    later = replace(post, due_at=NOW + 900_000)

    assert updated(work, lost, NOW) == Keep(replace(later, unsure=False))
    assert posted(work, "C1", lost, NOW) == Keep(later)
    assert posted(work, "C1", Shown("C2", "m"), NOW) == Keep(
        replace(post, channel_id="C2", message_id="m", unsure=False, due_at=NOW)
    )
