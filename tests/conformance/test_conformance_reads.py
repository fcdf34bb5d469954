"""How events, leases, gates and frames are found again."""

from uuid import UUID

import pytest
from msgspec.structs import replace

from sexton_storage.paging import Page
from sexton_storage.records.events import EventStatus
from sexton_storage.records.gates import GateStatus
from sexton_storage.writes import AppendEvent, AppendFrames, CancelEvent, EventEnd, ResolveGate
from tests.conformance.house import HOUR_MS, House, new_id


async def test_events_are_listed_newest_first_by_pages(house: House) -> None:
    agent = await house.agent()
    at = house.now
    events = [await house.append(agent, created_at=at + i // 3) for i in range(10)]
    expected = sorted(events, key=lambda e: (e.created_at, e.id), reverse=True)
    found: list[UUID] = []
    page = None
    while part := await house.storage.events.list(house.workspace_id, limit=4, before=page):
        found += [e.id for e in part]
        page = Page(part[-1].created_at, part[-1].id)
    assert found == [e.id for e in expected]


async def test_events_are_filtered(house: House) -> None:
    agent, other = await house.agent(), await house.agent()
    at = house.now
    cron = await house.append(agent, actor="cron:* * *", created_at=at)
    steer = await house.append(agent, actor="steer:ann_x", created_at=at + 10)
    alien = await house.append(other, actor="steer:annax", created_at=at + 20)
    await house.storage.journal.write(CancelEvent(agent.id, steer.id, at, ()))
    events, workspace = house.storage.events, house.workspace_id

    async def ids(**filters: object) -> list[UUID]:
        return [e.id for e in await events.list(workspace, limit=9, **filters)]  # type: ignore[arg-type] # one filter each

    assert await ids() == [alien.id, steer.id, cron.id]
    assert await ids(zombie_id=agent.id) == [steer.id, cron.id]
    assert await ids(since=at + 10) == [alien.id, steer.id]
    assert await ids(actor_glob="steer:*") == [alien.id, steer.id]
    assert await ids(actor_glob="steer:ann_x") == [steer.id]
    assert await ids(actor_glob="cron:\\*") == []
    assert await ids(actor_glob="cron:? ? ?") == []
    assert await ids(actor_glob="steer:ann?x") == []
    assert await ids(actor_glob="steer:ann[_x]x") == []
    assert await ids(zombie_id=agent.id, status=EventStatus.RECEIVED) == [cron.id]
    assert await ids(status=EventStatus.CANCELLED) == [steer.id]
    assert await events.list(new_id(), limit=9) == []


async def test_live_leases_are_found_by_runner(house: House) -> None:
    runner, idle = new_id(), new_id()
    leases = [await house.lease(runner_id=runner) for _ in range(3)]
    await house.end(leases[0], EventEnd(EventStatus.PROCESSED))
    live = await house.storage.leases.live_of_runner(runner)
    assert [lease.id for lease in live] == sorted(lease.id for lease in leases[1:])
    assert await house.storage.leases.count_live_by_runner([runner, idle]) == {runner: 2, idle: 0}
    assert await house.storage.leases.live_of_runner(idle) == []


async def test_expired_leases_are_found_longest_first(house: House) -> None:
    now = house.now
    late = [await house.lease(now=now - 60_000, term_ms=ms) for ms in (30_000, 10_000, 20_000)]
    await house.lease()
    order = [late[1].id, late[2].id, late[0].id]
    assert list(await house.storage.leases.expired(limit=9)) == order
    assert list(await house.storage.leases.expired(limit=2)) == order[:2]
    await house.end(late[1], EventEnd(EventStatus.RECEIVED), require_expired=True)
    assert list(await house.storage.leases.expired(limit=9)) == order[1:]


async def _gates(house: House) -> list[UUID]:
    agent, at = await house.agent(), house.now
    ids = []
    for i in range(6):
        event = house.event_of(agent)
        gate = house.gate_of(event, requested_at=at + i // 2, gate_kind="deploy" if i % 2 else "")
        await house.storage.journal.write(AppendEvent(event, None, None, None, (), gate))
        ids.append(gate.id)
    return ids


async def test_gates_are_listed_oldest_first_by_pages(house: House) -> None:
    await _gates(house)
    every = await house.storage.gates.list(house.workspace_id, limit=99)
    assert [(g.requested_at, g.id) for g in every] == sorted((g.requested_at, g.id) for g in every)
    first = await house.storage.gates.list(house.workspace_id, limit=4)
    page = Page(first[-1].requested_at, first[-1].id)
    rest = await house.storage.gates.list(house.workspace_id, limit=4, after=page)
    assert [*first, *rest] == list(every)
    assert len(every) == 6


async def test_gates_are_filtered(house: House) -> None:
    ids = await _gates(house)
    write = ResolveGate(ids[0], GateStatus.DENIED, house.now, "user:1", "", EventStatus.GATE_BLOCKED, "x", ())
    await house.storage.journal.write(write)
    gates = house.storage.gates
    pending = await gates.list(house.workspace_id, limit=9, status=GateStatus.PENDING)
    assert {g.id for g in pending} == set(ids[1:])
    assert len(await gates.list(house.workspace_id, limit=9, gate_kind="deploy")) == 3
    assert await gates.list(house.workspace_id, limit=9, zombie_id=new_id()) == []


async def test_the_newest_gate_of_an_action_is_found(house: House) -> None:
    agent, at = await house.agent(), house.now
    gates = []
    for i in (1, 0):
        event = house.event_of(agent)
        gate = house.gate_of(event, action_id="deploy", requested_at=at + i)
        await house.storage.journal.write(AppendEvent(event, None, None, None, (), gate))
        gates.append(gate)
    assert await house.storage.gates.find_by_action(agent.id, "deploy") == gates[0]
    assert await house.storage.gates.find_by_action(agent.id, "other") is None
    assert await house.storage.gates.load(new_id()) is None


async def test_overdue_gates_are_found_until_they_are_resolved(house: House) -> None:
    agent, now = await house.agent(), house.now
    ids = []
    for late_by in (10, 20, -HOUR_MS):
        event = house.event_of(agent)
        gate = house.gate_of(event, timeout_at=now - late_by)
        await house.storage.journal.write(AppendEvent(event, None, None, None, (), gate))
        ids.append(gate.id)
    assert list(await house.storage.gates.overdue(limit=9)) == [ids[1], ids[0]]
    write = ResolveGate(
        ids[1], GateStatus.TIMED_OUT, now, "system:timeout", "", EventStatus.GATE_BLOCKED, "x", ()
    )
    await house.storage.journal.write(write)
    assert list(await house.storage.gates.overdue(limit=9)) == [ids[0]]


# --- frames -------------------------------------------------------------------------------------------------


async def test_a_stream_is_read_from_where_one_was(house: House) -> None:
    agent = await house.agent()
    assert await house.storage.frames.bounds(agent.id) == (1, 0)
    assert await house.storage.frames.bounds(new_id()) == (1, 0)
    frames = tuple(house.frame(agent, "chunk", {"i": i}) for i in range(10))
    await house.storage.journal.write(AppendFrames(agent.id, frames))
    assert await house.storage.frames.bounds(agent.id) == (1, 10)
    part = await house.storage.frames.read(agent.id, after=4, limit=3)
    assert [f.seq for f in part] == [5, 6, 7]
    assert part[0].data == {"i": 4}
    assert await house.storage.frames.heads([agent.id, new_id()]) == {agent.id: 10}


@pytest.mark.parametrize(
    ("keep_ms", "keep_frames", "left"), [(HOUR_MS, 100, 4), (9 * HOUR_MS, 3, 3), (0, 100, 0)]
)
async def test_frames_beyond_retention_are_pruned(
    house: House, keep_ms: int, keep_frames: int, left: int
) -> None:
    agent, now = await house.agent(), house.now
    frames = [
        replace(house.frame(agent, "chunk"), at_ms=now - (2 * HOUR_MS if i < 6 else 5)) for i in range(10)
    ]
    await house.storage.journal.write(AppendFrames(agent.id, tuple(frames)))
    pruned = await house.storage.frames.prune(keep_ms=keep_ms, keep_frames=keep_frames, limit=100)
    assert pruned == 10 - left
    assert await house.storage.frames.bounds(agent.id) == (11 - left, 10)
    await house.storage.journal.write(AppendFrames(agent.id, (house.frame(agent),)))
    assert (await house.storage.frames.bounds(agent.id))[1] == 11


async def test_one_pruning_is_bounded(house: House) -> None:
    agent = await house.agent()
    frames = tuple(replace(house.frame(agent, "chunk"), at_ms=1) for _ in range(10))
    await house.storage.journal.write(AppendFrames(agent.id, frames))
    counts = [await house.storage.frames.prune(keep_ms=1, keep_frames=9, limit=4) for _ in range(4)]
    assert counts == [4, 4, 2, 0]
