"""How events, leases, gates and frames are found again."""

from uuid import UUID

import pytest
from msgspec.structs import replace

from sexton_storage.paging import Page
from sexton_storage.records.events import EventStatus
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.gates import Gate, GateOrder, GateStatus, place_of
from sexton_storage.writes import AppendEvent, AppendFrames, CancelEvent, EventEnd, ResolveGate
from tests.worlds.storage import HOUR_MS, StorageWorld, new_id


async def test_events_are_listed_newest_first_by_pages(world: StorageWorld) -> None:
    agent = await world.agent()
    at = world.now
    events = [await world.append(agent, created_at=at + i // 3) for i in range(10)]
    expected = sorted(events, key=lambda e: (e.created_at, e.id), reverse=True)
    found: list[UUID] = []
    page = None
    while part := await world.storage.events.list(world.workspace_id, limit=4, before=page):
        found += [e.id for e in part]
        page = Page(part[-1].created_at, part[-1].id)

    assert found == [e.id for e in expected]


async def test_events_are_filtered(world: StorageWorld) -> None:
    agent, other = await world.agent(), await world.agent()
    at = world.now
    cron = await world.append(agent, actor="cron:* * *", created_at=at)
    steer = await world.append(agent, actor="steer:ann_x", created_at=at + 10)
    alien = await world.append(other, actor="steer:annax", created_at=at + 20)
    await world.storage.journal.write(CancelEvent(agent.id, steer.id, at, ()))
    events, workspace = world.storage.events, world.workspace_id

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


async def test_lists_leave_out_what_is_long_and_say_how_long_it_is(world: StorageWorld) -> None:
    agent = await world.agent()
    short = await world.append(agent, request_json='{"n":"é"}', created_at=world.now)
    long = await world.append(agent, request_json='{"n":"%s"}' % ("é" * 500), created_at=world.now + 1)
    answered = await world.claim(agent)
    evidence = {"lines": ["x" * 900]}
    await world.end(
        answered.lease, EventEnd(EventStatus.PROCESSED, response_text="é" * 300, evidence=evidence)
    )
    events = world.storage.events

    listed = {e.id: e for e in await events.list(world.workspace_id, limit=9, whole_bytes=600)}
    assert (listed[long.id].request_json, listed[long.id].request_bytes) == ("null", 1008)
    assert (listed[short.id].request_json, listed[short.id].request_bytes) == ('{"n":"é"}', 10)
    assert listed[short.id].response_text == "é" * 300
    assert (listed[short.id].evidence, listed[short.id].evidence_bytes) == (None, 914)
    assert listed[long.id].is_cut
    assert listed[short.id].is_cut
    assert (listed[long.id].response_bytes, listed[long.id].evidence_bytes) == (None, None)

    whole = {e.id: e for e in await events.list(world.workspace_id, limit=9)}
    assert whole[short.id].evidence == evidence
    assert not whole[short.id].is_cut

    kept = await events.load(long.id)
    assert kept is not None
    assert whole[long.id].request_json == kept.request_json == long.request_json

    bare = await events.list(world.workspace_id, limit=9, whole_bytes=0)
    assert [e.request_json for e in bare] == ["null", "null"]
    assert all(e.is_cut for e in bare)


async def test_live_leases_are_found_by_runner(world: StorageWorld) -> None:
    runner, idle = new_id(), new_id()
    leases = [await world.lease(runner_id=runner) for _ in range(3)]
    await world.end(leases[0], EventEnd(EventStatus.PROCESSED))
    live = await world.storage.leases.live_of_runner(runner)

    assert [lease.id for lease in live] == sorted(lease.id for lease in leases[1:])
    assert await world.storage.leases.count_live_by_runner([runner, idle]) == {runner: 2, idle: 0}
    assert await world.storage.leases.live_of_runner(idle) == []


async def test_expired_leases_are_found_longest_first(world: StorageWorld) -> None:
    now = world.now
    late = [await world.lease(now=now - 60_000, term_ms=ms) for ms in (30_000, 10_000, 20_000)]
    await world.lease()
    order = [late[1].id, late[2].id, late[0].id]
    assert list(await world.storage.leases.expired(limit=9)) == order
    assert list(await world.storage.leases.expired(limit=2)) == order[:2]

    await world.end(late[1], EventEnd(EventStatus.RECEIVED), require_expired=True)
    assert list(await world.storage.leases.expired(limit=9)) == order[1:]


async def _gates(world: StorageWorld) -> list[UUID]:
    agent, at = await world.agent(), world.now
    ids = []
    for i in range(6):
        event = world.event_of(agent)
        gate = world.gate_of(event, requested_at=at + i // 2, gate_kind="deploy" if i % 2 else "")
        await world.storage.journal.write(AppendEvent(event, None, None, None, (), gate))
        ids.append(gate.id)
    return ids


async def test_gates_are_listed_oldest_first_by_pages(world: StorageWorld) -> None:
    await _gates(world)
    every = await world.storage.gates.list(world.workspace_id, limit=99)
    assert [(g.requested_at, g.id) for g in every] == sorted((g.requested_at, g.id) for g in every)

    first = await world.storage.gates.list(world.workspace_id, limit=4)
    page = Page(first[-1].requested_at, first[-1].id)
    rest = await world.storage.gates.list(world.workspace_id, limit=4, after=page)
    assert [*first, *rest] == list(every)
    assert len(every) == 6


async def test_gates_are_paged_in_each_order(world: StorageWorld) -> None:
    ids, now = await _gates(world), world.now
    for i, at in ((4, 3), (1, 2), (2, 3)):
        write = ResolveGate(
            ids[i], GateStatus.DENIED, now + at, "user:1", "", EventStatus.GATE_BLOCKED, "x", ()
        )
        await world.storage.journal.write(write)
    every = {g.id: g for g in await world.storage.gates.list(world.workspace_id, limit=99)}

    async def paged(order: GateOrder) -> list[UUID]:
        seen: list[Gate] = []
        while page := await world.storage.gates.list(
            world.workspace_id, limit=2, order=order, after=place_of(seen[-1], order) if seen else None
        ):
            seen += page
        return [gate.id for gate in seen]

    oldest = sorted(every, key=lambda i: (every[i].requested_at, i))

    assert await paged(GateOrder.OLDEST) == oldest
    assert await paged(GateOrder.NEWEST) == oldest[::-1]
    assert await paged(GateOrder.DECIDED) == [*sorted((ids[2], ids[4]), reverse=True), ids[1]]


async def test_gates_are_filtered(world: StorageWorld) -> None:
    ids = await _gates(world)
    write = ResolveGate(ids[0], GateStatus.DENIED, world.now, "user:1", "", EventStatus.GATE_BLOCKED, "x", ())
    await world.storage.journal.write(write)
    gates = world.storage.gates
    pending = await gates.list(world.workspace_id, limit=9, status=GateStatus.PENDING)

    assert {g.id for g in pending} == set(ids[1:])
    assert len(await gates.list(world.workspace_id, limit=9, gate_kind="deploy")) == 3
    assert await gates.list(world.workspace_id, limit=9, zombie_id=new_id()) == []


async def test_the_newest_gate_of_an_action_is_found(world: StorageWorld) -> None:
    agent, at = await world.agent(), world.now
    gates = []
    for i in (1, 0):
        event = world.event_of(agent)
        gate = world.gate_of(event, action_id="deploy", requested_at=at + i)
        await world.storage.journal.write(AppendEvent(event, None, None, None, (), gate))
        gates.append(gate)

    assert await world.storage.gates.find_by_action(agent.id, "deploy") == gates[0]
    assert await world.storage.gates.find_by_action(agent.id, "other") is None
    assert await world.storage.gates.load(new_id()) is None


async def test_overdue_gates_are_found_until_they_are_resolved(world: StorageWorld) -> None:
    agent, now = await world.agent(), world.now
    ids = []
    for late_by in (10, 20, -HOUR_MS):
        event = world.event_of(agent)
        gate = world.gate_of(event, timeout_at=now - late_by)
        await world.storage.journal.write(AppendEvent(event, None, None, None, (), gate))
        ids.append(gate.id)
    assert list(await world.storage.gates.overdue(limit=9)) == [ids[1], ids[0]]

    write = ResolveGate(
        ids[1], GateStatus.TIMED_OUT, now, "system:timeout", "", EventStatus.GATE_BLOCKED, "x", ()
    )
    await world.storage.journal.write(write)
    assert list(await world.storage.gates.overdue(limit=9)) == [ids[0]]


# --- frames -------------------------------------------------------------------------------------------------


async def test_a_stream_is_read_from_where_one_was(world: StorageWorld) -> None:
    agent = await world.agent()
    assert await world.storage.frames.bounds(agent.id) == (1, 0)
    assert await world.storage.frames.bounds(new_id()) == (1, 0)

    frames = tuple(world.frame(agent, "chunk", {"i": i}) for i in range(10))
    await world.storage.journal.write(AppendFrames(agent.id, frames))
    assert await world.storage.frames.bounds(agent.id) == (1, 10)

    part = await world.storage.frames.read(agent.id, after=4, limit=3)
    assert [f.seq for f in part] == [5, 6, 7]
    assert part[0].data == {"i": 4}
    assert await world.storage.frames.heads([agent.id, new_id()]) == {agent.id: 10}


async def test_a_page_of_frames_ends_with_its_bytes(world: StorageWorld) -> None:
    agent = await world.agent()
    frames = tuple(world.frame(agent, "chunk", {"text": "é" * 500}) for _ in range(6))
    huge = world.frame(agent, "chunk", {"text": "x" * 5000})
    await world.storage.journal.write(AppendFrames(agent.id, (*frames, huge, frames[0])))

    async def page(after: int, max_bytes: int, limit: int = 99) -> list[int]:
        found = world.storage.frames.read(agent.id, after=after, limit=limit, max_bytes=max_bytes)
        return [frame.seq for frame in await found]

    one = len('{"text":""}') + 1000
    assert await page(0, 3 * one) == [1, 2, 3]
    assert await page(0, 3 * one - 1) == [1, 2]
    assert await page(0, 3 * one, limit=2) == [1, 2]
    assert await page(3, 10 * one) == [4, 5, 6, 7, 8]
    assert await page(6, one) == [7], "one that is longer than a page by itself has a page of its own"
    assert await page(8, one) == []

    kept = await world.storage.frames.read(agent.id, after=0, limit=1)
    assert kept[0].size == one


async def test_the_end_of_an_event_is_found_among_the_newest_frames(world: StorageWorld) -> None:
    agent, now = await world.agent(), world.now
    kinds = ("over", "chunk", "over", "chunk", "chunk")
    frames = [replace(world.frame(agent, kind), at_ms=now + n) for n, kind in enumerate(kinds)]
    await world.storage.journal.write(AppendFrames(agent.id, tuple(frames)))
    find = world.storage.frames.last_of_kind

    assert await find(agent.id, "over", since=now, among=9) == 3
    assert await find(agent.id, "over", since=now + 3, among=9) is None
    assert await find(agent.id, "over", since=now, among=2) is None
    assert await find(new_id(), "over", since=now, among=9) is None


@pytest.mark.parametrize(
    ("keep_ms", "keep_frames", "left"), [(HOUR_MS, 100, 4), (9 * HOUR_MS, 3, 3), (0, 100, 0)]
)
async def test_frames_beyond_retention_are_pruned(
    world: StorageWorld, keep_ms: int, keep_frames: int, left: int
) -> None:
    agent, now = await world.agent(), world.now
    frames = [
        replace(world.frame(agent, "chunk"), at_ms=now - (2 * HOUR_MS if i < 6 else 5)) for i in range(10)
    ]
    await world.storage.journal.write(AppendFrames(agent.id, tuple(frames)))
    pruned = await world.storage.frames.prune(keep_ms=keep_ms, keep_frames=keep_frames, limit=100)
    assert pruned == 10 - left
    assert await world.storage.frames.bounds(agent.id) == (11 - left, 10)

    await world.storage.journal.write(AppendFrames(agent.id, (world.frame(agent),)))
    assert (await world.storage.frames.bounds(agent.id))[1] == 11


async def test_one_pruning_is_bounded(world: StorageWorld) -> None:
    agent = await world.agent()
    frames = tuple(replace(world.frame(agent, "chunk"), at_ms=1) for _ in range(10))
    await world.storage.journal.write(AppendFrames(agent.id, frames))
    counts = [await world.storage.frames.prune(keep_ms=1, keep_frames=9, limit=4) for _ in range(4)]

    assert counts == [4, 4, 2, 0]


async def test_frames_of_one_event_are_read_without_those_of_others(world: StorageWorld) -> None:
    agent = await world.agent()
    mine, other = world.event_of(agent), world.event_of(agent)
    for number in range(6):
        event = mine if number % 2 else other
        frame = NewFrame(agent.id, event.id, "chunk", world.now, {"n": number, "text": "x" * 100})
        await world.storage.journal.write(AppendFrames(agent.id, (frame,)))
    frames = world.storage.frames

    found = await frames.of_event(agent.id, mine.id, after=0, limit=9)
    some = await frames.of_event(agent.id, mine.id, after=found[0].seq, limit=1)
    narrow = await frames.of_event(agent.id, mine.id, after=0, limit=9, max_bytes=1)

    assert [frame.data["n"] for frame in found] == [1, 3, 5]
    assert [frame.seq for frame in some] == [4]
    assert [frame.data["n"] for frame in narrow] == [1]
    assert await frames.of_event(agent.id, new_id(), after=0, limit=9) == []
