"""What becomes of an event at the door."""

from collections.abc import Sequence
from uuid import UUID

import pytest
import trio
from msgspec.structs import replace

from sexton_storage.errors import RowRefused
from sexton_storage.records.events import EventStatus
from sexton_storage.records.gates import GateStatus
from sexton_storage.records.zombies import ZombieStatus
from sexton_storage.refusals import Lost
from sexton_storage.terms import DEDUP_WINDOW_MS
from sexton_storage.writes import Appended, AppendEvent, Duplicate, OverBudget
from tests.worlds.storage import StorageWorld, new_id


async def test_an_event_is_kept_as_it_was_given(world: StorageWorld) -> None:
    agent = await world.agent()
    event = await world.append(
        agent,
        source_event_id="d-1",
        resumes_event_id=new_id(),
        traceparent="00-a",
        request_json='{"x": "\\u0000", "y": "\u00e9"}',
    )

    assert await world.storage.events.load(event.id) == event


async def test_text_that_no_row_can_hold_is_mended_not_refused(world: StorageWorld) -> None:
    event = await world.append(await world.agent(), request_json="a\x00b\ud800")
    kept = await world.storage.events.load(event.id)

    assert kept is not None
    assert kept.request_json == "a\ufffdb?"


async def test_an_event_moves_the_agents_last_event_at_but_never_back(world: StorageWorld) -> None:
    agent = await world.agent()
    event = await world.append(agent)
    await world.append(agent, created_at=event.created_at - 5_000)
    loaded = await world.storage.zombies.load(agent.id)

    assert loaded is not None
    assert loaded.last_event_at == event.created_at
    assert loaded.version == 1


async def test_an_agent_that_does_not_exist_takes_no_event(world: StorageWorld) -> None:
    event = world.event_of(world.agent_record())

    assert isinstance(await world.storage.journal.write(AppendEvent(event, None, None, None, ())), Lost)
    assert await world.storage.events.load(event.id) is None


async def test_a_killed_agent_takes_no_event(world: StorageWorld) -> None:
    agent = await world.agent()
    await world.storage.zombies.kill(replace(agent, version=2), (), world.now)
    event = world.event_of(agent)

    assert isinstance(await world.storage.journal.write(AppendEvent(event, None, None, None, ())), Lost)


async def test_a_stopped_agent_still_takes_events(world: StorageWorld) -> None:
    agent = await world.agent(status=ZombieStatus.STOPPED)
    await world.append(agent)


async def test_the_same_key_within_the_window_is_a_duplicate_of_the_first(world: StorageWorld) -> None:
    agent = await world.agent()
    first, second = world.event_of(agent), world.event_of(agent)
    journal = world.storage.journal
    frames = (world.frame(agent),)

    assert await journal.write(AppendEvent(first, b"k", None, None, frames)) == Appended(first.id)
    assert await journal.write(AppendEvent(second, b"k", None, None, frames)) == Duplicate(first.id)
    assert await world.storage.events.load(second.id) is None
    assert await world.storage.frames.bounds(agent.id) == (1, 1)


async def test_another_agent_may_use_the_same_key(world: StorageWorld) -> None:
    for agent in (await world.agent(), await world.agent()):
        event = world.event_of(agent)
        assert await world.storage.journal.write(AppendEvent(event, b"k", None, None, ())) == Appended(
            event.id
        )


async def test_a_key_is_free_again_after_the_window(world: StorageWorld) -> None:
    agent = await world.agent()
    old = world.event_of(agent, created_at=world.now - DEDUP_WINDOW_MS)
    new = world.event_of(agent, created_at=old.created_at + DEDUP_WINDOW_MS)
    third = world.event_of(agent, created_at=new.created_at + 1)
    journal = world.storage.journal

    assert await journal.write(AppendEvent(old, b"k", None, None, ())) == Appended(old.id)
    assert await journal.write(AppendEvent(new, b"k", None, None, ())) == Appended(new.id)
    assert await journal.write(AppendEvent(third, b"k", None, None, ())) == Duplicate(new.id)


async def test_of_many_with_one_key_at_once_exactly_one_is_kept(world: StorageWorld) -> None:
    agent = await world.agent()
    events = [world.event_of(agent) for _ in range(20)]
    answers: list[Appended | Duplicate | OverBudget | Lost] = []

    async def append(index: int) -> None:
        answers.append(await world.storage.journal.write(AppendEvent(events[index], b"k", None, None, ())))

    async with trio.open_nursery() as nursery:
        for i in range(len(events)):
            nursery.start_soon(append, i)
    (kept,) = [a.event_id for a in answers if isinstance(a, Appended)]

    assert {a.event_id for a in answers if isinstance(a, Duplicate)} == {kept}
    assert len(await world.storage.events.list(world.workspace_id, limit=100)) == 1


async def _spend(world: StorageWorld, nanos: int) -> UUID:
    """Let a new agent spend so much; gives its id."""
    lease = await world.lease()
    await world.renew(lease, nanos)
    return lease.zombie_id


@pytest.mark.parametrize(
    ("daily", "monthly", "period"),
    [(1_000, None, "day"), (999, 5_000, "day"), (None, 1_000, "month"), (1_001, 1_000, "month")],
)
async def test_an_event_over_budget_is_not_kept(
    world: StorageWorld, daily: int | None, monthly: int | None, period: str
) -> None:
    agent = await world.storage.zombies.load(await _spend(world, 1_000))
    assert agent is not None

    event = world.event_of(agent)
    write = AppendEvent(event, b"k", daily, monthly, (world.frame(agent),))
    assert await world.storage.journal.write(write) == OverBudget(period)
    assert await world.storage.events.load(event.id) is None

    again = world.event_of(agent)
    assert await world.storage.journal.write(AppendEvent(again, b"k", None, None, ())) == Appended(again.id)


async def test_an_event_within_its_budgets_is_kept(world: StorageWorld) -> None:
    agent = await world.storage.zombies.load(await _spend(world, 1_000))
    assert agent is not None

    event = world.event_of(agent)
    assert await world.storage.journal.write(AppendEvent(event, None, 1_001, 1_001, ())) == Appended(event.id)


async def test_a_duplicate_is_a_duplicate_even_over_budget(world: StorageWorld) -> None:
    agent = await world.storage.zombies.load(await _spend(world, 10))
    assert agent is not None

    first = world.event_of(agent)
    await world.storage.journal.write(AppendEvent(first, b"k", None, None, ()))
    write = AppendEvent(world.event_of(agent), b"k", 10, None, ())
    assert await world.storage.journal.write(write) == Duplicate(first.id)


async def test_an_event_that_must_wait_is_kept_with_its_gate(world: StorageWorld) -> None:
    agent = await world.agent()
    event = world.event_of(agent)
    gate = world.gate_of(event)
    await world.storage.journal.write(AppendEvent(event, None, None, None, (), gate))
    kept = await world.storage.events.load(event.id)

    assert kept is not None
    assert kept.status is EventStatus.WAITING_APPROVAL
    assert await world.storage.gates.load(gate.id) == gate
    assert await world.storage.events.ready_agent(agent.id) is None


async def test_an_event_whose_gate_was_decided_at_once_keeps_the_status_it_was_given(
    world: StorageWorld,
) -> None:
    agent = await world.agent()
    event = world.event_of(
        agent, status=EventStatus.GATE_BLOCKED, failure_label="approval_denied", completed_at=world.now
    )
    gate = world.gate_of(
        event, status=GateStatus.AUTO_KILLED, resolved_by="system:auto_kill", updated_at=world.now
    )
    await world.storage.journal.write(AppendEvent(event, None, None, None, (), gate))

    assert await world.storage.events.load(event.id) == event
    assert await world.storage.gates.load(gate.id) == gate


async def test_a_second_event_of_the_same_id_is_refused_alone(world: StorageWorld) -> None:
    agent = await world.agent()
    event = await world.append(agent)
    neighbours = [world.event_of(agent) for _ in range(5)]
    answers: list[object] = []
    for each in (*neighbours[:3], event, *neighbours[3:]):
        world.storage.journal.submit(AppendEvent(each, None, None, None, ()), answers.append)
    while len(answers) < 6:
        await trio.sleep(0.001)
    kinds = [type(answer) for answer in answers]

    assert kinds.count(Appended) == 5
    assert kinds.count(RowRefused) == 1


async def test_frames_of_one_agent_are_numbered_in_the_order_their_writes_arrived(
    world: StorageWorld,
) -> None:
    agent = await world.agent()
    heard: list[tuple[UUID, int]] = []

    def listen(news: Sequence[tuple[UUID, int]]) -> None:
        heard.extend(news)

    world.storage.on_frames(listen)
    async with trio.open_nursery() as nursery:
        for i in range(30):
            frames = (world.frame(agent, data={"n": 2 * i}), world.frame(agent, data={"n": 2 * i + 1}))
            write = AppendEvent(world.event_of(agent), None, None, None, frames)
            nursery.start_soon(world.storage.journal.write, write)
    kept = await world.storage.frames.read(agent.id, after=0, limit=100)
    assert [f.seq for f in kept] == list(range(1, 61))

    pairs = [(kept[i].data["n"], kept[i + 1].data["n"]) for i in range(0, 60, 2)]
    assert sorted(pairs) == [(2 * i, 2 * i + 1) for i in range(30)]
    assert max(seq for _, seq in heard) == 60
    assert {zombie_id for zombie_id, _ in heard} == {agent.id}
