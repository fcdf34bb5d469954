"""Generates requests to a world: those that hold, and those that come too late or to nobody."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.decisions.sources import source_delivery, source_event, source_follow_up
from sexton_storage.postgres.journal.selection import Waiting, choose
from sexton_storage.records.crons import Firing
from sexton_storage.records.events import Asked, Event, EventStatus
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.records.leases import Lease, LeaseStatus, Rates
from sexton_storage.records.metering import Slice
from sexton_storage.records.sources import Source, SourceKind
from sexton_storage.records.zombies import Zombie, ZombieStatus
from sexton_storage.writes import (
    AppendEvent,
    CancelEvent,
    ClaimEvent,
    EndLease,
    EventEnd,
    OpenGate,
    RenewLease,
    ResolveGate,
    Write,
)
from tests.storage.row_odds import (
    agents_for,
    gates_for,
    gates_to_park_at,
    lease_of_gate,
    leases_for,
    runner_for,
)
from tests.storage.row_texts import document_of, request_of, text_of
from tests.storage.row_worlds import KEYS, SCHEDULE, TERM_MS, TRIAL, World

ENDS = (
    (LeaseStatus.REPORTED, EventStatus.PROCESSED),
    (LeaseStatus.REPORTED, EventStatus.AGENT_ERROR),
    (LeaseStatus.REPORTED, EventStatus.CANCELLED),
    (LeaseStatus.RELEASED, EventStatus.RECEIVED),
    (LeaseStatus.RECLAIMED, EventStatus.RECEIVED),
    (LeaseStatus.RECLAIMED, EventStatus.DEAD_LETTERED),
)


def claims(world: World) -> list[Write[Any]]:
    dice = world.dice
    now = world.now + dice.one(-40, 0, 40)
    agents = agents_for(world)
    return [
        ClaimEvent(
            zombie_id=zombie_id,
            lease_id=dice.id(),
            runner_id=runner_for(world, zombie_id),
            now=now,
            term_ms=TERM_MS,
            ceiling_ms=dice.one(1_000, 3_600_000),
            rates=Rates(100, 3, 2, 1),
            budget_daily_nanos=dice.one(None, None, None, 5, 100),
            budget_monthly_nanos=dice.one(None, None, 60, 100),
            config_version_id=dice.one(None, dice.id()),
            model=dice.one(None, "m"),
            own_key=dice.often(30),
            agent_version=_seen_version(world, zombie_id),
            asked=_asked(world, zombie_id),
            ran_version=dice.one(None, 3, 4),
        )
        for zombie_id in [*agents, *dice.some([dice.id()], 20)]
    ]


def _seen_version(world: World, zombie_id: UUID) -> int | None:
    """Often another of agents that are not active: they are many, and rare answers stay as likely."""
    agent = world.tables.zombies.get(zombie_id)
    if agent is None:
        return None
    is_old = agent.status is not ZombieStatus.ACTIVE and world.dice.often(50)
    return agent.version - 1 if is_old else world.dice.one(None, agent.version)


def _asked(world: World, zombie_id: UUID) -> Asked | None:
    """Most often what the next event asks for."""
    waiting = world.tables.received(zombie_id)
    if waiting and world.dice.often(90):
        return waiting[0].asked
    return world.dice.one(None, Asked(3), Asked(3, TRIAL))


def appends(world: World) -> list[Write[Any]]:
    dice = world.dice
    found: list[AppendEvent] = []
    for agent in world.tables.zombies.values():
        found += [_append(world, agent) for _ in range(dice.upto(3))]
    stranger = replace(dice.one(*world.tables.zombies.values()), id=dice.id())
    # One node's batch has them in the order of its clock. Where a window of deliveries ends between two times
    # that go back, the statement sees what the batch found, and the rule what the write before left there.
    some = dice.some([*found, _append(world, stranger)], 90)
    return [*sorted(some, key=lambda write: write.event.created_at)]


def appends_alone(world: World) -> list[Write[Any]]:
    """Those that a batch can keep in one message."""
    return [
        replace(write, gate=None, firing=None, follow_up_id=None, source=None)
        for write in appends(world)
        if isinstance(write, AppendEvent)
    ]


def _append(world: World, agent: Zombie) -> AppendEvent:
    dice = world.dice
    at = world.now + dice.one(-40, 0, 40)
    event_id = dice.id()
    event = Event(
        id=event_id,
        zombie_id=agent.id,
        workspace_id=agent.workspace_id,
        tenant_id=agent.tenant_id,
        actor="webhook:github",
        event_type="push",
        status=EventStatus.RECEIVED,
        request_json=request_of(event_id) if event_id.int % 2 else '{"n": "\x00"}',
        created_at=at,
        updated_at=at,
        source_event_id=dice.one(None, "source"),
        resumes_event_id=dice.one(None, dice.id()),
        traceparent=dice.one(None, "00-trace"),
        asked_version=dice.one(None, None, 3),
        trial_id=dice.one(None, TRIAL),
    )
    gate = None
    if dice.often(30):
        status = dice.one(GateStatus.PENDING, GateStatus.PENDING, GateStatus.DENIED)
        gate = _gate(world, event, None, "before", status)
        if status is GateStatus.DENIED:
            blocked = EventStatus.GATE_BLOCKED
            event = replace(event, status=blocked, failure_label="approval_denied", completed_at=at)
    key = dice.one(None, None, *KEYS, *[dice.id().bytes] * (6 if world.is_lucky else 0))
    follow_ups = [f.id for f in world.tables.follow_ups.values() if f.zombie_id == agent.id]
    firing = Firing(SCHEDULE, "UTC", world.now, world.now + 86_400_000) if dice.often(20) else None
    follow_up_id = None if firing is not None or dice.often(75) else dice.one(dice.id(), *follow_ups)
    return AppendEvent(
        event=event,
        dedup_key=key,
        budget_daily_nanos=dice.one(None, None, None, None, 5, 100),
        budget_monthly_nanos=dice.one(None, None, None, 60, 60, 100),
        frames=(NewFrame(agent.id, event.id, "event_received", at, document_of(event.id, {"n": 1})),),
        gate=gate,
        body_key=dice.one(*[None] * (9 if world.is_lucky else 1), *KEYS),
        firing=firing,
        follow_up_id=follow_up_id,
        events_limit=world.limits[agent.tenant_id],
        source=_source(world, agent) if dice.often(20) else None,
    )


def _source(world: World, agent: Zombie) -> Source:
    """Something that an event may be made from, most often as it is."""
    dice, tables = world.dice, world.tables
    events = [event for event in tables.events.values() if event.zombie_id == agent.id]
    follow_ups = [row for row in tables.follow_ups.values() if row.zombie_id == agent.id]
    bodies = tables.delivery_bodies.items()
    source = dice.one(
        Source(dice.one(*SourceKind), dice.id(), b"none"),
        *map(source_event, events),
        *map(source_follow_up, follow_ups),
        *(source_delivery(*one) for one in bodies),
    )
    return replace(source, sha256=b"another") if dice.often(20) else source


def _gate(world: World, event: Event, lease_id: UUID | None, action: str, status: GateStatus) -> Gate:
    return Gate(
        id=world.dice.id(),
        zombie_id=event.zombie_id,
        workspace_id=event.workspace_id,
        tenant_id=event.tenant_id,
        event_id=event.id,
        lease_id=lease_id,
        action_id=action,
        status=status,
        requested_at=world.now,
        timeout_at=world.now + 60_000,
        detail=text_of(event.id, "asked \x00"),
        evidence={"why": "so"},
    )


def cancels(world: World) -> list[Write[Any]]:
    dice = world.dice
    agents = list(world.tables.zombies)
    asked = [(event.zombie_id, event.id) for event in dice.some(list(world.tables.events.values()))]
    asked += [(dice.one(*agents), event_id) for _, event_id in asked if dice.often(10)]
    return [
        CancelEvent(
            zombie_id, event_id, world.now + 3, (NewFrame(zombie_id, event_id, "over", world.now, {}),)
        )
        for zombie_id, event_id in [*asked, (dice.one(*agents), dice.id())]
    ]


def renewals(world: World) -> list[Write[Any]]:
    """Those of a batch are of one moment, so that they empty a balance at one time."""
    now = world.now + world.dice.one(-40, 0, 40)
    return [_renewal(world, lease, now) for lease in leases_for(world, current=True)]


def _renewal(world: World, lease: Lease, now: int) -> RenewLease:
    dice = world.dice
    part = _slice(world, lease)
    asked = replace(
        lease,
        version=lease.version + dice.one(1, 1, 1, 1, 1, 2),
        expires_at=now + TERM_MS,
        metered_at=now,
        slice_seq=part.seq,
        input_tokens=lease.input_tokens + part.d_input_tokens,
        output_tokens=lease.output_tokens + part.d_output_tokens,
        run_ms=dice.upto(900),
    )
    return RenewLease(asked, part, now)


def _slice(world: World, lease: Lease) -> Slice:
    dice = world.dice
    return Slice(
        lease.slice_seq + 1, dice.upto(9), 2, dice.upto(9), 1_000, dice.one(0, 1, 30), dice.one(0, 20)
    )


def parks(world: World) -> list[Write[Any]]:
    """Ends of runs that wait for an approval, at a gate of theirs, of another event, or of nobody."""
    return [
        replace(
            _end(world, lease, LeaseStatus.PARKED, EventStatus.WAITING_APPROVAL, world.now + 3),
            parked_gate_id=world.dice.one(*gates_to_park_at(world, lease)),
        )
        for lease in leases_for(world, 40)
    ]


def ends(world: World) -> list[Write[Any]]:
    dice = world.dice
    return [_end(world, lease, *dice.one(*ENDS), world.now + 3) for lease in leases_for(world, 40)]


def _end(world: World, lease: Lease, status: LeaseStatus, becomes: EventStatus, now: int) -> EndLease:
    dice = world.dice
    event = world.tables.events[lease.event_id]
    continuation = None
    if becomes is EventStatus.PROCESSED and dice.often(25):
        resumes, at = event.id, world.now + 2
        continuation = replace(
            event, id=dice.id(), status=EventStatus.RECEIVED, resumes_event_id=resumes, created_at=at
        )
    said = EventEnd(
        becomes,
        give_attempt_back=status in {LeaseStatus.RELEASED, LeaseStatus.PARKED},
        failure_label=dice.one(None, "label"),
        error_code=dice.one(None, "UZ-RUN-016"),
        response_text=dice.one(None, text_of(lease.event_id, "done \x00")),
        evidence=dice.one(None, document_of(lease.event_id, {"log": [1, "x"]})),
        checkpoint=dice.one(None, {"at": 2}),
        wall_ms=dice.upto(5),
        failed_checks=dice.upto(2),
    )
    told = document_of(lease.id, {"text": "in pieces", "name": "shell", "n": 1})
    return EndLease(
        lease_id=lease.id,
        version=lease.version - dice.one(0, 0, 0, 0, 0, 1),
        status=status,
        now=now,
        slice=_slice(world, lease) if dice.often(60) else None,
        event=said,
        frames=(NewFrame(lease.zombie_id, lease.event_id, "event_complete", now, told),),
        require_unexpired=dice.often(40),
        require_expired=dice.often(15),
        report_digest=dice.one(None, b"digest"),
        continuation=continuation,
    )


def gates_opened(world: World) -> list[Write[Any]]:
    dice = world.dice
    return [
        OpenGate(
            _gate(
                world,
                world.tables.events[lease.event_id],
                lease_of_gate(world, lease),
                dice.one("a0", "a1", "new"),
                GateStatus.PENDING,
            ),
            fencing_token=lease.fencing_token - dice.one(0, 0, 0, 0, 1),
            frames=(NewFrame(lease.zombie_id, lease.event_id, "gate_opened", world.now, {}),),
        )
        for lease in leases_for(world, 60, current=True)
    ]


def gates_resolved(world: World) -> list[Write[Any]]:
    dice = world.dice
    return [_answer(world, gate_id) for gate_id in [*gates_for(world), dice.id()]]


def _answer(world: World, gate_id: UUID) -> ResolveGate:
    dice = world.dice
    received = dice.often(60)
    return ResolveGate(
        gate_id=gate_id,
        status=dice.one(GateStatus.APPROVED, GateStatus.DENIED, GateStatus.TIMED_OUT),
        now=world.now + 3,
        resolved_by="user:1",
        detail="because \x00",
        event_status=EventStatus.RECEIVED if received else EventStatus.GATE_BLOCKED,
        failure_label=None if received else "approval_denied",
        frames=(),
    )


REQUESTS: Mapping[str, Callable[[World], list[Write[Any]]]] = {
    "append": appends,
    "append alone": appends_alone,
    "cancel": cancels,
    "claim": claims,
    "end": ends,
    "open gate": gates_opened,
    "park": parks,
    "renew": renewals,
    "resolve gate": gates_resolved,
}


def batch_of(world: World, kind: str) -> Sequence[Write[Any]]:
    """Requests of one kind that may share a batch, as the journal chooses them."""
    asked = deque(Waiting(write, _nobody, 0.0) for write in REQUESTS[kind](world))
    chosen, _ = choose(deque(), asked, len(asked))
    return [waiting.write for waiting in chosen]


def _nobody(_: object) -> None:
    """Hears no answer: the batch gives them."""
