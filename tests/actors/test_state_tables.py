"""Every transition in every state does what docs/reference/states.md says, cell by cell."""

from collections.abc import Callable
from uuid import UUID

import pytest
from msgspec.structs import replace

from sexton_actors.gate import transitions as gate_rules
from sexton_actors.lease.transitions import activity, approvals, reclaim, releases, renewals, reports
from sexton_actors.lease.transitions.state import LeaseState, fenced
from sexton_actors.protocol import lease as m
from sexton_actors.protocol.gate import Resolve
from sexton_actors.refusal import Refusal
from sexton_actors.runner import transitions as runner_rules
from sexton_actors.terms import LEASE_TERM_MS, MAX_ATTEMPTS
from sexton_actors.zombie import transitions as zombie_rules
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.records.leases import Lease, LeaseStatus, Rates
from sexton_storage.records.runners import AdminState, Runner
from sexton_storage.records.zombies import Zombie, ZombieStatus
from sexton_storage.writes import AppendFrames, EndLease, OpenGate, RenewLease, ResolveGate
from tests.worlds.states_page import cells

ME, OTHER, IT = UUID(int=1), UUID(int=2), UUID(int=3)
NOW = 1_000_000
Outcome = object


def told(outcome: Outcome) -> str:
    """An outcome in the words of the page."""
    match outcome:
        case None | zombie_rules.Unchanged():
            return "nothing"
        case Refusal(code=code):
            return f"`{code}`"
        case RenewLease():
            return "renewed"
        case EndLease(status=status, event=event):
            return f"{status}: {event.status}"
        case AppendFrames() | OpenGate():
            return "kept"
        case zombie_rules.Change(zombie=zombie):
            return str(zombie.status)
        case ResolveGate(status=status):
            return str(status)
        case Runner(admin_state=state):
            return str(state)
        case str():
            return outcome
        case _:
            raise AssertionError(outcome)


# --- agent --------------------------------------------------------------------------------------------------


def zombie(status: str) -> Zombie:
    return Zombie(
        id=IT,
        workspace_id=IT,
        tenant_id=IT,
        name="doctor",
        status=ZombieStatus(status),
        version=1,
        config_version_id=IT,
        config_revision=1,
        compiled={},
        required_tags=(),
        approval_token_hash=b"",
        url_secret_hashes={},
        created_at=0,
        updated_at=0,
    )


def ask_agent(row: str, agent: Zombie) -> Outcome:
    if row == "the platform's pause":
        return zombie_rules.pause(agent, "anomaly", NOW)
    if row == "new files":
        return zombie_rules.may_be_configured(agent) or "configured"
    if row == "delete":
        return zombie_rules.kill(agent, "user:1", NOW)
    if row == "webhook":
        return zombie_rules.may_be_delivered_to(agent, workspace_paused=False) or "kept"
    if row == "message":
        return zombie_rules.may_be_messaged(agent, "hello", workspace_paused=False) or "kept"
    return zombie_rules.change_status(agent, row.strip("`"), "user:1", NOW)


@pytest.mark.parametrize(("row", "column", "cell"), cells("Agent (zombie)"))
def test_an_agent_does_what_its_table_says(row: str, column: str, cell: str) -> None:
    outcome = ask_agent(row, zombie(column))
    assert told(outcome) == cell

    if isinstance(outcome, zombie_rules.Change):
        assert outcome.zombie.version == 2
        assert outcome.frames[0].data["previous"] == column


def test_an_active_agent_in_a_paused_workspace_takes_nothing_in() -> None:
    for refused in (
        zombie_rules.may_be_delivered_to(zombie("active"), workspace_paused=True),
        zombie_rules.may_be_messaged(zombie("active"), "hello", workspace_paused=True),
    ):
        assert told(refused) == "`UZ-WORKSPACE-002`"


# --- lease --------------------------------------------------------------------------------------------------


def lease(column: str) -> Lease:
    status = LeaseStatus(column.partition(",")[0])
    expires_at = NOW if column.endswith("term passed") else NOW + 1
    return Lease(
        id=IT,
        event_id=IT,
        zombie_id=IT,
        workspace_id=IT,
        tenant_id=IT,
        runner_id=ME,
        fencing_token=7,
        attempt=1,
        status=status,
        version=4,
        granted_at=0,
        expires_at=expires_at,
        ceiling_at=NOW + 5000,
        metered_at=NOW - 1000,
        rates=Rates(1000),
    )


def event(attempts: int = 1) -> Event:
    return Event(
        id=IT,
        zombie_id=IT,
        workspace_id=IT,
        tenant_id=IT,
        actor="webhook:github",
        event_type="push",
        status=EventStatus.RUNNING,
        request_json="{}",
        created_at=0,
        updated_at=0,
        attempts=attempts,
    )


def gate(status: GateStatus = GateStatus.PENDING, lease_id: UUID | None = IT) -> Gate:
    return Gate(IT, IT, IT, IT, IT, lease_id, "deploy-1", status, 0, NOW + 1)


def report(outcome: str, runner_id: UUID, token: int = 7) -> m.Report:
    return m.Report(runner_id, IT, token, outcome, None, None, None, 0, 0, 0, None, 0, None, b"digest")


Call = Callable[[LeaseState, UUID], Outcome]

CALLS: dict[str, Call] = {
    "renew": lambda s, me: renewals.renew(s, m.Renew(me, 0, 0, 0), NOW),
    "renew with another token": lambda s, me: renewals.renew(s, m.Renew(me, 0, 0, 0, None, 6), NOW),
    "renew at the ceiling": lambda s, me: renewals.renew(at_ceiling(s), m.Renew(me, 0, 0, 0), NOW),
    "report processed": lambda s, me: reports.report(s, report("processed", me), NOW),
    "report agent_error": lambda s, me: reports.report(s, report("agent_error", me), NOW),
    "report cancelled": lambda s, me: reports.report(s, report("cancelled", me), NOW),
    "report with another token": lambda s, me: reports.report(s, report("processed", me, 8), NOW),
    "release": lambda s, me: releases.release(s, m.Release(me, "drain"), NOW),
    "park": lambda s, me: releases.park(s, m.Park(me, IT, {}), gate(), NOW),
    "activity": lambda s, me: activity.activity(s, m.Activity(me, (m.FrameIn("chunk", None, {}),)), NOW),
    "ask approval": lambda s, me: (
        fenced(s.lease, me, None, NOW, "UZ-RUN-005") or approvals.open_gate(s, gate(), NOW)
    ),
    "the grant reached nobody": lambda s, _: releases.undelivered(s, NOW),
    "the run must not start": lambda s, _: reclaim.abort(s, m.Abort("secret_missing", ""), NOW),
    "reclaim": lambda s, _: reclaim.reclaim(s, event(), NOW, "expired"),
    "reclaim after the fifth attempt": lambda s, _: reclaim.reclaim(s, event(MAX_ATTEMPTS), NOW, "expired"),
    "reclaim at the ceiling": lambda s, _: reclaim.reclaim(at_ceiling(s), event(), NOW, "expired"),
    "the runner is revoked": lambda s, _: reclaim.reclaim(s, event(), NOW, "revoked"),
    "the runner has died": lambda s, _: reclaim.reclaim(s, event(), NOW, "died"),
}
AT_ONCE = ("the runner is revoked", "the runner has died")
BY_A_RUNNER = [name for name in CALLS if not name.startswith(("the ", "reclaim"))]


def at_ceiling(state: LeaseState) -> LeaseState:
    return LeaseState(replace(state.lease, ceiling_at=NOW))


@pytest.mark.parametrize(("row", "column", "cell"), cells("Lease"))
def test_a_lease_does_what_its_table_says(row: str, column: str, cell: str) -> None:
    held = lease(column)
    outcome = CALLS[row](LeaseState(held), ME)
    assert told(outcome) == cell

    if isinstance(outcome, RenewLease):
        assert outcome.lease.version == held.version + 1
        assert outcome.lease.expires_at == min(NOW + LEASE_TERM_MS, held.ceiling_at)
    elif isinstance(outcome, EndLease):
        assert outcome.version == held.version
        assert_frames_and_bill(outcome, row)


def assert_frames_and_bill(write: EndLease, row: str) -> None:
    kinds = [frame.kind for frame in write.frames]
    reclaimed = write.status is LeaseStatus.RECLAIMED
    back = write.event.status in {EventStatus.RECEIVED, EventStatus.WAITING_APPROVAL}
    assert ("event_complete" in kinds) == (not back), "an event that ends says so"
    vouched_for = not reclaimed and not row.startswith("the ")
    assert (write.slice is not None) == vouched_for, "billed is what a runner vouches for"
    assert write.require_expired == (reclaimed and row not in AT_ONCE)
    assert write.require_unexpired == (row in BY_A_RUNNER)
    assert write.event.give_attempt_back == (back and not reclaimed)


@pytest.mark.parametrize("row", BY_A_RUNNER)
@pytest.mark.parametrize("column", sorted({column for _, column, _ in cells("Lease")}))
def test_another_runners_lease_reads_as_none_in_every_state(row: str, column: str) -> None:
    assert told(CALLS[row](LeaseState(lease(column)), OTHER)) == "`UZ-RUN-006`"


def test_every_call_stands_in_the_table() -> None:
    assert {row for row, _, _ in cells("Lease")} == set(CALLS)


def test_a_report_for_another_event_is_malformed() -> None:
    wrong = replace(report("processed", ME), event_id=OTHER)
    assert told(reports.report(LeaseState(lease("active")), wrong, NOW)) == "`UZ-REQ-001`"


def test_a_run_parks_only_at_a_gate_of_its_own_event() -> None:
    state, call = LeaseState(lease("active")), m.Park(ME, IT, {})

    assert told(releases.park(state, call, None, NOW)) == "`UZ-APPROVAL-002`"
    assert told(releases.park(state, call, replace(gate(), event_id=OTHER), NOW)) == "`UZ-APPROVAL-002`"


def test_a_runner_writes_only_its_own_kinds_of_frames_and_none_from_the_future() -> None:
    state = LeaseState(lease("active"))
    forged = m.Activity(ME, (m.FrameIn("chunk", None, {}), m.FrameIn("event_complete", None, {})))
    refused = activity.activity(state, forged, NOW)
    assert isinstance(refused, Refusal)
    assert refused.detail.startswith("/frames/1/kind")

    early = m.Activity(ME, (m.FrameIn("chunk", NOW + 99, {}), m.FrameIn("chunk", NOW - 5, {})))
    kept = activity.activity(state, early, NOW)
    assert isinstance(kept, AppendFrames)
    assert [frame.at_ms for frame in kept.frames] == [NOW, NOW - 5]


# --- gate ---------------------------------------------------------------------------------------------------

ANSWERS: dict[str, Callable[[Gate, int], Outcome]] = {
    "approve": lambda g, now: gate_rules.resolve(g, Resolve(approve=True, by="user:1"), now),
    "deny": lambda g, now: gate_rules.resolve(g, Resolve(approve=False, by="user:1"), now),
    "the time-out": gate_rules.expire,
    "the run ends": gate_rules.close,
}


@pytest.mark.parametrize("lease_id", [None, IT])
@pytest.mark.parametrize(("row", "column", "cell"), cells("Gate"))
def test_a_gate_does_what_its_table_says(row: str, column: str, cell: str, lease_id: UUID | None) -> None:
    asked = gate(GateStatus(column.partition(",")[0]), lease_id)
    outcome = ANSWERS[row](asked, asked.timeout_at if column.endswith("time is up") else NOW)
    assert told(outcome) == cell

    if isinstance(outcome, ResolveGate):
        goes_on = lease_id is not None or outcome.status is GateStatus.APPROVED
        assert outcome.event_status is (EventStatus.RECEIVED if goes_on else EventStatus.GATE_BLOCKED)
        assert (outcome.failure_label is None) == goes_on
        assert [frame.kind for frame in outcome.frames][1:] == ([] if goes_on else ["event_complete"])


# --- runner -------------------------------------------------------------------------------------------------


def ask_runner(row: str, runner: Runner) -> Outcome:
    held = 1 if row.endswith("a lease") else 0
    if row.startswith("a look"):
        return runner_rules.drain(runner, held)
    if row == "poll":
        return runner_rules.revoked(runner) or ("work" if runner_rules.may_take(runner) else None)
    if row == "heartbeat":
        return runner_rules.revoked(runner) or runner_rules.beat_status(runner)
    return runner_rules.set_admin_state(runner, row.partition(",")[0].strip("`"), held)


@pytest.mark.parametrize(("row", "column", "cell"), cells("Runner"))
def test_a_runner_does_what_its_table_says(row: str, column: str, cell: str) -> None:
    runner = Runner(ME, "host", "bubblewrap", (), 1, b"", AdminState(column), 1, 0)
    outcome = ask_runner(row, runner)
    assert told(outcome) == cell

    if isinstance(outcome, Runner):
        assert outcome.version == 2
