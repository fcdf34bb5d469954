"""Gates, cancellation and activity."""

import pytest
import trio
from msgspec.structs import replace

from sexton_storage.records.events import EventStatus
from sexton_storage.records.gates import GateStatus
from sexton_storage.records.leases import Lease, LeaseStatus
from sexton_storage.records.zombies import Zombie
from sexton_storage.refusals import Lost
from sexton_storage.writes import (
    AppendEvent,
    AppendFrames,
    CancelEvent,
    Cancelled,
    CancelOutcome,
    EventEnd,
    FramesAppended,
    GateOpened,
    GateResolved,
    OpenGate,
    ResolveGate,
)
from tests.worlds.storage import StorageWorld, new_id


async def _running(world: StorageWorld, **claim: int) -> tuple[Zombie, Lease]:
    agent = await world.agent()
    await world.append(agent)
    return agent, (await world.claim(agent, **claim)).lease


async def test_a_gate_is_opened_under_a_live_lease(world: StorageWorld) -> None:
    agent, lease = await _running(world)
    event = world.event_of(agent, id=lease.event_id)
    gate = world.gate_of(event, lease)
    frames = (world.frame(agent, "gate_pending"),)

    assert await world.storage.journal.write(OpenGate(gate, lease.fencing_token, frames)) == GateOpened(
        gate, existed=False
    )
    assert await world.storage.gates.load(gate.id) == gate
    assert await world.storage.gates.of_lease(lease.id) == [gate]
    assert await world.storage.gates.pending(world.workspace_id, most=9) == 1
    assert await world.storage.gates.pending(world.workspace_id, most=0) == 0
    assert [f.kind for f in await world.storage.frames.read(agent.id, after=1, limit=9)] == ["gate_pending"]


async def test_the_same_action_of_an_event_has_one_gate(world: StorageWorld) -> None:
    agent, lease = await _running(world)
    event = world.event_of(agent, id=lease.event_id)
    first = world.gate_of(event, lease)
    second = replace(world.gate_of(event, lease), action_id=first.action_id)
    frames = (world.frame(agent, "gate_pending"),)
    answers: list[GateOpened | Lost] = []

    async def open_gate(write: OpenGate) -> None:
        answers.append(await world.storage.journal.write(write))

    async with trio.open_nursery() as nursery:
        for gate in (first, second):
            nursery.start_soon(open_gate, OpenGate(gate, lease.fencing_token, frames))
    opened = [a for a in answers if isinstance(a, GateOpened)]

    assert sorted(a.existed for a in opened) == [False, True]
    assert len({a.gate.id for a in opened}) == 1
    assert await world.storage.frames.bounds(agent.id) == (1, 2)


async def test_a_resolved_gate_is_given_again_for_the_same_action(world: StorageWorld) -> None:
    agent, lease = await _running(world)
    gate = world.gate_of(world.event_of(agent, id=lease.event_id), lease)
    await world.storage.journal.write(OpenGate(gate, lease.fencing_token, ()))
    resolve = ResolveGate(
        gate.id, GateStatus.DENIED, world.now, "user:1", "no", EventStatus.RECEIVED, None, ()
    )
    resolved = await world.storage.journal.write(resolve)
    assert isinstance(resolved, GateResolved)

    again = replace(gate, id=new_id())
    opened = await world.storage.journal.write(OpenGate(again, lease.fencing_token, ()))
    assert opened == GateOpened(resolved.gate, existed=True)


@pytest.mark.parametrize("fault", ["token", "expired", "ended", "unknown"])
async def test_no_gate_is_opened_without_the_lease(world: StorageWorld, fault: str) -> None:
    agent, lease = await _running(world, **({"term_ms": 0} if fault == "expired" else {}))
    gate = world.gate_of(world.event_of(agent, id=lease.event_id), lease)
    if fault == "ended":
        await world.end(lease, EventEnd(EventStatus.RECEIVED))
    if fault == "unknown":
        gate = replace(gate, lease_id=new_id())
    token = lease.fencing_token + (fault == "token")

    assert isinstance(await world.storage.journal.write(OpenGate(gate, token, ())), Lost)
    assert await world.storage.gates.load(gate.id) is None


async def test_a_gate_is_resolved_once(world: StorageWorld) -> None:
    agent, lease = await _running(world)
    gate = world.gate_of(world.event_of(agent, id=lease.event_id), lease)
    await world.storage.journal.write(OpenGate(gate, lease.fencing_token, ()))
    answers: list[GateResolved | Lost] = []

    async def resolve(status: GateStatus) -> None:
        frames = (world.frame(agent, "gate_resolved"),)
        write = ResolveGate(gate.id, status, world.now, "user:1", "why", EventStatus.RECEIVED, None, frames)
        answers.append(await world.storage.journal.write(write))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(resolve, GateStatus.APPROVED)
        nursery.start_soon(resolve, GateStatus.TIMED_OUT)
    (won,) = [a for a in answers if isinstance(a, GateResolved)]
    assert await world.storage.gates.load(gate.id) == won.gate
    assert (won.gate.resolved_by, won.gate.detail, won.event_freed) == ("user:1", "why", False)
    assert won.gate.updated_at is not None

    kinds = [f.kind for f in await world.storage.frames.read(agent.id, after=0, limit=9)]
    assert kinds.count("gate_resolved") == 1


async def test_an_unknown_gate_cannot_be_resolved(world: StorageWorld) -> None:
    write = ResolveGate(
        new_id(), GateStatus.APPROVED, world.now, "user:1", "", EventStatus.RECEIVED, None, ()
    )
    assert isinstance(await world.storage.journal.write(write), Lost)


@pytest.mark.parametrize(
    ("status", "becomes", "freed"),
    [
        (GateStatus.APPROVED, EventStatus.RECEIVED, True),
        (GateStatus.DENIED, EventStatus.GATE_BLOCKED, False),
    ],
)
async def test_an_event_waiting_at_the_door_becomes_what_its_gate_says(
    world: StorageWorld, status: GateStatus, becomes: EventStatus, *, freed: bool
) -> None:
    agent = await world.agent()
    event = world.event_of(agent)
    gate = world.gate_of(event)
    await world.storage.journal.write(AppendEvent(event, None, None, None, (), gate))
    label = None if freed else "approval_denied"
    now = world.now + 5
    write = ResolveGate(gate.id, status, now, "user:1", "", becomes, label, ())
    resolved = await world.storage.journal.write(write)
    assert isinstance(resolved, GateResolved)
    assert resolved.event_freed is freed

    after = await world.storage.events.load(event.id)
    assert after is not None
    assert (after.status, after.failure_label, after.updated_at) == (becomes, label, now)
    assert after.completed_at == (None if freed else now)


async def test_another_gate_does_not_free_an_event_that_waits(world: StorageWorld) -> None:
    agent, lease = await _running(world)
    event = world.event_of(agent, id=lease.event_id)
    other, own = world.gate_of(event, lease), world.gate_of(event, lease)
    for gate in (other, own):
        await world.storage.journal.write(OpenGate(gate, lease.fencing_token, ()))
    await world.end(
        lease, EventEnd(EventStatus.WAITING_APPROVAL), status=LeaseStatus.PARKED, parked_gate_id=own.id
    )
    write = ResolveGate(
        other.id, GateStatus.APPROVED, world.now, "user:1", "", EventStatus.RECEIVED, None, ()
    )
    resolved = await world.storage.journal.write(write)
    assert isinstance(resolved, GateResolved)
    assert not resolved.event_freed

    waiting = await world.storage.events.load(event.id)
    assert waiting is not None
    assert waiting.status is EventStatus.WAITING_APPROVAL


# --- cancel -------------------------------------------------------------------------------------------------


async def test_an_event_that_waits_is_cancelled_at_once(world: StorageWorld) -> None:
    agent = await world.agent()
    event = await world.append(agent)
    frames = (world.frame(agent, "event_complete"),)
    now = world.now
    answer = await world.storage.journal.write(CancelEvent(agent.id, event.id, now, frames))
    assert answer == Cancelled(CancelOutcome.ENDED, None, EventStatus.CANCELLED)

    ended = await world.storage.events.load(event.id)
    assert ended is not None
    assert (ended.status, ended.completed_at, ended.failure_label) == (
        EventStatus.CANCELLED,
        now,
        "cancelled",
    )
    assert await world.storage.frames.bounds(agent.id) == (1, 1)

    again = await world.storage.journal.write(CancelEvent(agent.id, event.id, now, frames))
    assert again == Cancelled(CancelOutcome.CLOSED, None, EventStatus.CANCELLED)
    assert await world.storage.frames.bounds(agent.id) == (1, 1)
    assert await world.storage.events.ready_agent(agent.id) is None


async def test_an_event_at_a_gate_is_cancelled_at_once_and_stays_so(world: StorageWorld) -> None:
    agent = await world.agent()
    event = world.event_of(agent)
    gate = world.gate_of(event)
    await world.storage.journal.write(AppendEvent(event, None, None, None, (), gate))
    now, complete = world.now, world.frame(agent, "event_complete")
    answer = await world.storage.journal.write(CancelEvent(agent.id, event.id, now, (complete,)))
    assert answer == Cancelled(CancelOutcome.ENDED, None, EventStatus.CANCELLED, (gate.id,))

    closed = await world.storage.gates.load(gate.id)
    assert closed is not None
    assert (closed.status, closed.resolved_by, closed.updated_at) == (GateStatus.DENIED, "system:cancel", now)

    frames = await world.storage.frames.read(agent.id, after=0, limit=9)
    assert [frame.kind for frame in frames] == ["gate_resolved", "event_complete"]
    assert frames[0].data == {
        "gate_id": str(gate.id),
        "action_id": gate.action_id,
        "status": "denied",
        "resolved_by": "system:cancel",
    }

    write = ResolveGate(gate.id, GateStatus.APPROVED, world.now, "user:1", "", EventStatus.RECEIVED, None, ())
    assert isinstance(await world.storage.journal.write(write), Lost)

    ended = await world.storage.events.load(event.id)
    assert ended is not None
    assert ended.status is EventStatus.CANCELLED


async def test_a_running_event_has_its_lease_marked(world: StorageWorld) -> None:
    agent, lease = await _running(world)
    write = CancelEvent(agent.id, lease.event_id, world.now, (world.frame(agent, "event_complete"),))
    assert await world.storage.journal.write(write) == Cancelled(
        CancelOutcome.CANCELLING, lease.id, EventStatus.RUNNING
    )

    marked = await world.storage.leases.load(lease.id)
    assert marked == replace(lease, status=LeaseStatus.CANCELLING, version=lease.version + 1)
    assert await world.storage.journal.write(write) == Cancelled(
        CancelOutcome.CANCELLING, lease.id, EventStatus.RUNNING
    )
    assert await world.storage.leases.load(lease.id) == marked
    assert await world.storage.frames.bounds(agent.id) == (1, 1)


async def test_another_agents_event_cannot_be_cancelled(world: StorageWorld) -> None:
    event = await world.append(await world.agent())
    other = await world.agent()

    assert isinstance(await world.storage.journal.write(CancelEvent(other.id, event.id, world.now, ())), Lost)


# --- activity -----------------------------------------------------------------------------------------------


async def test_activity_is_kept_under_its_lease(world: StorageWorld) -> None:
    agent, lease = await _running(world)
    frames = tuple(world.frame(agent, "chunk", {"text": f"\u00e9{i}\x00", "n": i}) for i in range(3))
    write = AppendFrames(agent.id, frames, lease.id, lease.fencing_token)
    assert await world.storage.journal.write(write) == FramesAppended(3)

    kept = await world.storage.frames.read(agent.id, after=1, limit=9)
    assert [(f.seq, f.data) for f in kept] == [(2 + i, {"text": f"\u00e9{i}\x00", "n": i}) for i in range(3)]


@pytest.mark.parametrize("fault", ["token", "expired", "unknown lease", "unknown agent"])
async def test_activity_without_the_lease_is_refused(world: StorageWorld, fault: str) -> None:
    agent, lease = await _running(world, **({"term_ms": 0} if fault == "expired" else {}))
    write = AppendFrames(
        agent.id, (world.frame(agent, "chunk"),), lease.id, lease.fencing_token + (fault == "token")
    )
    if fault == "unknown lease":
        write = replace(write, lease_id=new_id())
    if fault == "unknown agent":
        write = replace(write, zombie_id=new_id())

    assert isinstance(await world.storage.journal.write(write), Lost)
    assert await world.storage.frames.bounds(agent.id) == (1, 1)


async def test_frames_without_a_lease_need_only_the_agent(world: StorageWorld) -> None:
    agent = await world.agent()
    write = AppendFrames(agent.id, (world.frame(agent, "webhook_rejected"),))
    assert await world.storage.journal.write(write) == FramesAppended(1)

    gone = world.agent_record()
    assert isinstance(await world.storage.journal.write(AppendFrames(gone.id, (world.frame(gone),))), Lost)


async def test_streams_of_many_agents_are_numbered_apart(world: StorageWorld) -> None:
    agents = [await world.agent() for _ in range(5)]
    async with trio.open_nursery() as nursery:
        for i in range(50):
            agent = agents[i % 5]
            frames = (world.frame(agent, "chunk", {"i": i}),)
            nursery.start_soon(world.storage.journal.write, AppendFrames(agent.id, frames))
    for agent in agents:
        kept = await world.storage.frames.read(agent.id, after=0, limit=99)
        assert [f.seq for f in kept] == list(range(1, 11))

    assert await world.storage.frames.heads([a.id for a in agents]) == {a.id: 10 for a in agents}


async def test_a_pending_gate_that_is_asked_for_again_belongs_to_the_lease_that_waits_now(
    world: StorageWorld,
) -> None:
    agent, lease = await _running(world)
    gate = world.gate_of(world.event_of(agent, id=lease.event_id), lease)
    await world.storage.journal.write(OpenGate(gate, lease.fencing_token, ()))
    back = EventEnd(EventStatus.RECEIVED, give_attempt_back=True)
    await world.end(lease, back, status=LeaseStatus.RELEASED)
    later = (await world.claim(agent)).lease
    again = replace(gate, id=new_id(), lease_id=later.id)
    opened = await world.storage.journal.write(OpenGate(again, later.fencing_token, ()))
    adopted = replace(gate, lease_id=later.id)

    assert opened == GateOpened(adopted, existed=True)
    assert await world.storage.gates.of_lease(later.id) == [adopted]
    assert await world.storage.gates.of_lease(lease.id) == []


async def test_a_lease_is_read_with_its_gates_oldest_first(world: StorageWorld) -> None:
    agent, lease = await _running(world)
    assert await world.storage.leases.load_with_gates(new_id()) is None
    assert await world.storage.leases.load_with_gates(lease.id) == (lease, [])

    event = world.event_of(agent, id=lease.event_id)
    gates = [replace(world.gate_of(event, lease), requested_at=1000 - i) for i in range(3)]
    for gate in gates:
        await world.storage.journal.write(OpenGate(gate, lease.fencing_token, ()))
    other, of_other = await _running(world)
    others = world.gate_of(world.event_of(other, id=of_other.event_id), of_other)
    await world.storage.journal.write(OpenGate(others, of_other.fencing_token, ()))
    assert await world.storage.leases.load_with_gates(lease.id) == (lease, gates[::-1])
    assert await world.storage.leases.load_with_gates(of_other.id) == (of_other, [others])
