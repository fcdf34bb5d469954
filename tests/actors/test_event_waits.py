"""Why an event waits, case by case."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from sexton_actors.event_waits import Outlook, WaitKind, outlook
from sexton_actors.manifest.model import Budget, Manifest, Runtime
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.records.insights import EventSituation, RunnerState
from sexton_storage.records.leases import Lease, LeaseStatus, Rates
from sexton_storage.records.runners import AdminState
from sexton_storage.records.zombies import Zombie, ZombieStatus
from sexton_storage.rules import BALANCE_EXHAUSTED

NOW = 1_732_060_800_000
EVENT, OTHER, AGENT, SPACE, TENANT = (UUID(int=number) for number in range(1, 6))
MANIFEST = Manifest("doctor", "", "1.0.0", "", ())
WAITING = Event(EVENT, AGENT, SPACE, TENANT, "steer:ann", "steer", EventStatus.RECEIVED, "{}", NOW, NOW)
DOCTOR = Zombie(
    id=AGENT,
    workspace_id=SPACE,
    tenant_id=TENANT,
    name="doctor",
    status=ZombieStatus.ACTIVE,
    version=1,
    config_version_id=UUID(int=6),
    config_revision=1,
    compiled={},
    required_tags=("gpu",),
    approval_token_hash=b"",
    url_secret_hashes={},
    created_at=NOW,
    updated_at=NOW,
)
RUNNER = RunnerState(UUID(int=7), ("gpu",), "bubblewrap", AdminState.ACTIVE, NOW, 2, 2, 0, NOW - 600_000)
TIMES = (NOW, NOW, NOW, NOW)
LEASE = Lease(
    UUID(int=8), OTHER, AGENT, SPACE, TENANT, RUNNER.id, 1, 1, LeaseStatus.ACTIVE, 1, *TIMES, Rates(1)
)
GATE = Gate(
    id=UUID(int=9),
    zombie_id=AGENT,
    workspace_id=SPACE,
    tenant_id=TENANT,
    event_id=EVENT,
    lease_id=None,
    action_id="a",
    status=GateStatus.PENDING,
    requested_at=NOW,
    timeout_at=NOW + 5,
    tool_name="deploy",
    action_name="web",
)
SITUATION = EventSituation(
    event=WAITING,
    agent=DOCTOR,
    at=NOW,
    workspace_paused=False,
    has_credit=True,
    spent_day=0,
    spent_month=0,
    running=None,
    ahead_of_agent=0,
    first_of_agent=EVENT,
    first_retry_at=None,
    ahead=0,
    gates=(),
    runners=(RUNNER,),
)
CASES: list[tuple[dict[str, Any], Sequence[str], str]] = [
    ({}, ["slot"], "All 2 slots of 1 runner that could take it are taken."),
    ({"runners": ()}, ["no_runner"], "No runner is enrolled"),
    ({"runners": (replace(RUNNER, abilities=("eu",)),)}, ["needs"], "No runner has gpu (1 enrolled)."),
    ({"runners": (replace(RUNNER, sandbox_tier="none"),)}, ["needs"], "No runner has a sandbox (1"),
    ({"runners": (replace(RUNNER, last_seen_at=NOW - 90_001),)}, ["runners_away"], "none is online"),
    (
        {"runners": (replace(RUNNER, admin_state=AdminState.CORDONED),)},
        ["runners_away"],
        "1 runner could take",
    ),
    ({"runners": (RUNNER, replace(RUNNER, held=1))}, ["turn"], "has room"),
    ({"has_credit": False}, ["balance"], "balance is used up"),
    ({"workspace_paused": True, "runners": ()}, ["workspace", "no_runner"], "workspace is paused"),
    ({"agent": replace(DOCTOR, status=ZombieStatus.PAUSED)}, ["agent"], "Its agent doctor is paused."),
    ({"spent_day": 10}, ["budget"], "budget for this day"),
    ({"spent_month": 99}, ["budget"], "budget for this month"),
    ({"running": LEASE}, ["earlier_event"], "Another event of its agent runs"),
    (
        {"first_of_agent": OTHER, "ahead_of_agent": 3},
        ["earlier_event"],
        "3 earlier events of its agent wait:",
    ),
    ({"first_retry_at": NOW + 9}, ["models"], "Every model was busy when it ran"),
    ({"first_retry_at": NOW}, ["slot"], "All 2 slots"),
    (
        {"first_retry_at": NOW + 9, "first_of_agent": OTHER, "ahead_of_agent": 1},
        ["earlier_event", "models"],
        "1 earlier event of its agent waits:",
    ),
    (
        {"gates": (GATE,), "event": replace(WAITING, status=EventStatus.WAITING_APPROVAL)},
        ["approval"],
        "approve or deny deploy web.",
    ),
    ({"gates": (GATE,), "event": replace(WAITING, status=EventStatus.RUNNING)}, ["approval"], "deploy web"),
    (
        {
            "has_credit": False,
            "event": replace(WAITING, status=EventStatus.GATE_BLOCKED, failure_label=BALANCE_EXHAUSTED),
        },
        ["balance"],
        "balance is used up",
    ),
]


@pytest.mark.parametrize(("changes", "kinds", "says"), CASES)
def test_each_thing_that_holds_an_event_is_named(
    changes: dict[str, Any], kinds: Sequence[str], says: str
) -> None:
    manifest = replace(MANIFEST, budget=Budget(10, 99))
    found = outlook(replace(SITUATION, **changes), manifest)

    assert [reason.kind for reason in found.reasons] == kinds
    assert says in found.reasons[0].says
    assert all(reason.advice for reason in found.reasons)


@pytest.mark.parametrize("status", [EventStatus.RUNNING, EventStatus.PROCESSED, EventStatus.GATE_BLOCKED])
def test_an_event_that_runs_or_is_over_waits_for_nothing(status: EventStatus) -> None:
    found = outlook(replace(SITUATION, event=replace(WAITING, status=status), runners=()), MANIFEST)

    assert found == Outlook()


def test_a_credential_that_is_not_granted_is_named() -> None:
    manifest = replace(MANIFEST, runtime=Runtime.AGENT, credentials=("github",))
    [reason] = outlook(SITUATION, manifest).reasons

    assert (reason.kind, reason.names) == (WaitKind.GRANT, ("github",))


def test_what_passes_by_itself_says_when() -> None:
    day = outlook(replace(SITUATION, spent_day=10), replace(MANIFEST, budget=Budget(10, None))).reasons[0]
    gated = replace(SITUATION, gates=(GATE,), event=replace(WAITING, status=EventStatus.WAITING_APPROVAL))
    gate = outlook(gated, MANIFEST).reasons[0]

    assert day.until == NOW + 86_400_000 - NOW % 86_400_000
    assert (gate.until, gate.gate_id) == (NOW + 5, GATE.id)


def test_a_start_is_foretold_only_from_what_was_seen() -> None:
    busy = replace(RUNNER, starts=6, starts_since=NOW - 600_000)

    def start(**changes: Any) -> int | None:
        return outlook(replace(SITUATION, **changes), MANIFEST).expected_start_at

    # Six in ten minutes: one in a hundred seconds; it is the third.
    assert start(runners=(busy,), ahead=2) == NOW + 300_000
    assert start(runners=(busy, busy), ahead=0) == NOW + 50_000
    assert start(runners=(replace(busy, starts=2),)) is None
    assert start(runners=(replace(busy, last_seen_at=None),)) is None
    assert start(runners=(busy,), workspace_paused=True) is None
    assert start(runners=(busy,), running=LEASE) is None

    place = outlook(replace(SITUATION, ahead=4, ahead_of_agent=2), MANIFEST)
    assert (place.place, place.place_of_agent) == (5, 3)
