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
from sexton_storage.writes import DEDUP_WINDOW_MS, Appended, AppendEvent, Duplicate, OverBudget
from tests.conformance.house import House, new_id


async def test_an_event_is_kept_as_it_was_given(house: House) -> None:
    agent = await house.agent()
    event = await house.append(
        agent,
        source_event_id="d-1",
        resumes_event_id=new_id(),
        traceparent="00-a",
        request_json='{"x": "\\u0000", "y": "\u00e9"}',
    )
    assert await house.storage.events.load(event.id) == event


async def test_text_that_no_row_can_hold_is_mended_not_refused(house: House) -> None:
    event = await house.append(await house.agent(), request_json="a\x00b\ud800")
    kept = await house.storage.events.load(event.id)
    assert kept is not None
    assert kept.request_json == "a\ufffdb?"


async def test_an_event_moves_the_agents_last_event_at_but_never_back(house: House) -> None:
    agent = await house.agent()
    event = await house.append(agent)
    await house.append(agent, created_at=event.created_at - 5_000)
    loaded = await house.storage.zombies.load(agent.id)
    assert loaded is not None
    assert loaded.last_event_at == event.created_at
    assert loaded.version == 1


async def test_an_agent_that_does_not_exist_takes_no_event(house: House) -> None:
    event = house.event_of(house.agent_record())
    assert isinstance(await house.storage.journal.write(AppendEvent(event, None, None, None, ())), Lost)
    assert await house.storage.events.load(event.id) is None


async def test_a_killed_agent_takes_no_event(house: House) -> None:
    agent = await house.agent()
    await house.storage.zombies.kill(replace(agent, version=2), (), house.now)
    event = house.event_of(agent)
    assert isinstance(await house.storage.journal.write(AppendEvent(event, None, None, None, ())), Lost)


async def test_a_stopped_agent_still_takes_events(house: House) -> None:
    agent = await house.agent(status=ZombieStatus.STOPPED)
    await house.append(agent)


async def test_the_same_key_within_the_window_is_a_duplicate_of_the_first(house: House) -> None:
    agent = await house.agent()
    first, second = house.event_of(agent), house.event_of(agent)
    journal = house.storage.journal
    frames = (house.frame(agent),)
    assert await journal.write(AppendEvent(first, b"k", None, None, frames)) == Appended(first.id)
    assert await journal.write(AppendEvent(second, b"k", None, None, frames)) == Duplicate(first.id)
    assert await house.storage.events.load(second.id) is None
    assert await house.storage.frames.bounds(agent.id) == (1, 1)


async def test_another_agent_may_use_the_same_key(house: House) -> None:
    for agent in (await house.agent(), await house.agent()):
        event = house.event_of(agent)
        assert await house.storage.journal.write(AppendEvent(event, b"k", None, None, ())) == Appended(
            event.id
        )


async def test_a_key_is_free_again_after_the_window(house: House) -> None:
    agent = await house.agent()
    old = house.event_of(agent, created_at=house.now - DEDUP_WINDOW_MS)
    new = house.event_of(agent, created_at=old.created_at + DEDUP_WINDOW_MS)
    third = house.event_of(agent, created_at=new.created_at + 1)
    journal = house.storage.journal
    assert await journal.write(AppendEvent(old, b"k", None, None, ())) == Appended(old.id)
    assert await journal.write(AppendEvent(new, b"k", None, None, ())) == Appended(new.id)
    assert await journal.write(AppendEvent(third, b"k", None, None, ())) == Duplicate(new.id)


async def test_of_many_with_one_key_at_once_exactly_one_is_kept(house: House) -> None:
    agent = await house.agent()
    events = [house.event_of(agent) for _ in range(20)]
    answers: list[Appended | Duplicate | OverBudget | Lost] = []

    async def append(index: int) -> None:
        answers.append(await house.storage.journal.write(AppendEvent(events[index], b"k", None, None, ())))

    async with trio.open_nursery() as nursery:
        for i in range(len(events)):
            nursery.start_soon(append, i)
    (kept,) = [a.event_id for a in answers if isinstance(a, Appended)]
    assert {a.event_id for a in answers if isinstance(a, Duplicate)} == {kept}
    assert len(await house.storage.events.list(house.workspace_id, limit=100)) == 1


async def _spend(house: House, nanos: int) -> UUID:
    """Let a new agent spend so much; gives its id."""
    lease = await house.lease()
    await house.renew(lease, nanos)
    return lease.zombie_id


@pytest.mark.parametrize(
    ("daily", "monthly", "period"),
    [(1_000, None, "day"), (999, 5_000, "day"), (None, 1_000, "month"), (1_001, 1_000, "month")],
)
async def test_an_event_over_budget_is_not_kept(
    house: House, daily: int | None, monthly: int | None, period: str
) -> None:
    agent = await house.storage.zombies.load(await _spend(house, 1_000))
    assert agent is not None
    event = house.event_of(agent)
    write = AppendEvent(event, b"k", daily, monthly, (house.frame(agent),))
    assert await house.storage.journal.write(write) == OverBudget(period)
    assert await house.storage.events.load(event.id) is None
    again = house.event_of(agent)
    assert await house.storage.journal.write(AppendEvent(again, b"k", None, None, ())) == Appended(again.id)


async def test_an_event_within_its_budgets_is_kept(house: House) -> None:
    agent = await house.storage.zombies.load(await _spend(house, 1_000))
    assert agent is not None
    event = house.event_of(agent)
    assert await house.storage.journal.write(AppendEvent(event, None, 1_001, 1_001, ())) == Appended(event.id)


async def test_a_duplicate_is_a_duplicate_even_over_budget(house: House) -> None:
    agent = await house.storage.zombies.load(await _spend(house, 10))
    assert agent is not None
    first = house.event_of(agent)
    await house.storage.journal.write(AppendEvent(first, b"k", None, None, ()))
    write = AppendEvent(house.event_of(agent), b"k", 10, None, ())
    assert await house.storage.journal.write(write) == Duplicate(first.id)


async def test_an_event_that_must_wait_is_kept_with_its_gate(house: House) -> None:
    agent = await house.agent()
    event = house.event_of(agent)
    gate = house.gate_of(event)
    await house.storage.journal.write(AppendEvent(event, None, None, None, (), gate))
    kept = await house.storage.events.load(event.id)
    assert kept is not None
    assert kept.status is EventStatus.WAITING_APPROVAL
    assert await house.storage.gates.load(gate.id) == gate
    assert await house.storage.events.ready_agent(agent.id) is None


async def test_an_event_whose_gate_was_decided_at_once_keeps_the_status_it_was_given(house: House) -> None:
    agent = await house.agent()
    event = house.event_of(
        agent, status=EventStatus.GATE_BLOCKED, failure_label="approval_denied", completed_at=house.now
    )
    gate = house.gate_of(
        event, status=GateStatus.AUTO_KILLED, resolved_by="system:auto_kill", updated_at=house.now
    )
    await house.storage.journal.write(AppendEvent(event, None, None, None, (), gate))
    assert await house.storage.events.load(event.id) == event
    assert await house.storage.gates.load(gate.id) == gate


async def test_a_second_event_of_the_same_id_is_refused_alone(house: House) -> None:
    agent = await house.agent()
    event = await house.append(agent)
    neighbours = [house.event_of(agent) for _ in range(5)]
    answers: list[object] = []
    for each in (*neighbours[:3], event, *neighbours[3:]):
        house.storage.journal.submit(AppendEvent(each, None, None, None, ()), answers.append)
    while len(answers) < 6:
        await trio.sleep(0.001)
    kinds = [type(answer) for answer in answers]
    assert kinds.count(Appended) == 5
    assert kinds.count(RowRefused) == 1


async def test_frames_of_one_agent_are_numbered_in_the_order_their_writes_arrived(house: House) -> None:
    agent = await house.agent()
    heard: list[tuple[UUID, int]] = []

    def listen(news: Sequence[tuple[UUID, int]]) -> None:
        heard.extend(news)

    house.storage.on_frames(listen)
    async with trio.open_nursery() as nursery:
        for i in range(30):
            frames = (house.frame(agent, data={"n": 2 * i}), house.frame(agent, data={"n": 2 * i + 1}))
            write = AppendEvent(house.event_of(agent), None, None, None, frames)
            nursery.start_soon(house.storage.journal.write, write)
    kept = await house.storage.frames.read(agent.id, after=0, limit=100)
    assert [f.seq for f in kept] == list(range(1, 61))
    pairs = [(kept[i].data["n"], kept[i + 1].data["n"]) for i in range(0, 60, 2)]
    assert sorted(pairs) == [(2 * i, 2 * i + 1) for i in range(30)]
    assert max(seq for _, seq in heard) == 60
    assert {zombie_id for zombie_id, _ in heard} == {agent.id}
