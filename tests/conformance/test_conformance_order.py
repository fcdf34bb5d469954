"""An agent's events are handled and listed in the order of their arrival, whatever clocks and ids say."""

from collections.abc import Sequence
from uuid import UUID

import pytest
import trio

from sexton_storage.paging import Page
from sexton_storage.postgres import open_postgres_storage
from sexton_storage.records.events import EventStatus
from sexton_storage.records.zombies import Zombie
from sexton_storage.writes import Appended, AppendEvent, EventEnd
from tests.patience import PATIENCE_S
from tests.worlds.storage import StorageWorld, new_id

FIVE_MINUTES_MS = 300_000
SKEWS_MS = (FIVE_MINUTES_MS, -FIVE_MINUTES_MS, 2_000)
"""What the clocks of three nodes are wrong by."""


def id_of_a_clock(now: int, skew_ms: int) -> UUID:
    """A UUIDv7 as a node makes it whose clock is wrong by so much."""
    return UUID(int=(new_id().int & ((1 << 80) - 1)) | (now + skew_ms) << 80)


async def handled(world: StorageWorld, agent: Zombie) -> list[UUID]:
    """The agent's events, in the order in which they come under a lease."""
    order: list[UUID] = []
    more = True
    while more:
        claimed = await world.claim(agent)
        order.append(claimed.event.id)
        more = (await world.end(claimed.lease, EventEnd(EventStatus.PROCESSED))).more
    return order


async def listed(world: StorageWorld, limit: int = 3) -> list[UUID]:
    """The workspace's events, oldest first, read page by page."""
    order: list[UUID] = []
    page = None
    while part := await world.storage.events.list(world.workspace_id, limit=limit, before=page):
        order += [event.id for event in part]
        page = Page(part[-1].created_at, part[-1].id)
    return order[::-1]


async def test_events_are_handled_and_listed_in_the_order_they_came_though_ids_say_another(
    world: StorageWorld,
) -> None:
    agent = await world.agent()
    ids = [id_of_a_clock(world.now, SKEWS_MS[n % 3]) for n in range(8)]

    for event_id in ids:
        await world.append(agent, id=event_id)

    assert await listed(world) == ids
    assert await handled(world, agent) == ids


async def test_a_node_that_takes_the_time_for_earlier_than_it_is_keeps_no_event_before_the_last(
    world: StorageWorld,
) -> None:
    agent, at = await world.agent(), world.now

    first = await world.append(agent, created_at=at)
    second = await world.append(agent, created_at=at - 20, updated_at=at - 20)

    assert await listed(world) == [first.id, second.id]

    kept = await world.storage.events.load(second.id)
    assert kept is not None
    assert (kept.created_at, kept.updated_at) == (at, at)


async def test_events_that_are_written_together_keep_the_order_of_their_writes(world: StorageWorld) -> None:
    agent, at = await world.agent(), world.now
    events = [world.event_of(agent, created_at=at, id=id_of_a_clock(at, -n * 1_000)) for n in range(40)]
    left: list[object] = []

    done = trio.Event()

    def kept(answer: object) -> None:
        left.append(answer)
        if len(left) == len(events):
            done.set()

    for event in events:
        world.storage.journal.submit(AppendEvent(event, None, None, None, ()), kept)
    with trio.fail_after(PATIENCE_S):
        await done.wait()

    assert left == [Appended(event.id) for event in events]
    assert await listed(world) == [event.id for event in events]
    assert await handled(world, agent) == [event.id for event in events]


async def test_an_event_that_comes_back_is_before_those_that_came_after_it(world: StorageWorld) -> None:
    agent = await world.agent()
    first = await world.append(agent)
    claimed = await world.claim(agent)
    second = await world.append(agent, id=id_of_a_clock(world.now, -FIVE_MINUTES_MS))

    ended = await world.end(claimed.lease, EventEnd(EventStatus.RECEIVED, give_attempt_back=True))

    assert ended.next_event_at == first.created_at
    assert await handled(world, agent) == [first.id, second.id]


async def test_a_page_goes_on_where_its_last_event_was_though_that_was_purged(world: StorageWorld) -> None:
    kept, purged = await world.agent(), await world.agent()
    first = await world.append(kept)
    last = await world.append(purged, created_at=first.created_at + 10)

    await world.storage.zombies.delete(purged.id)

    before = Page(last.created_at, last.id)
    found = await world.storage.events.list(world.workspace_id, limit=9, before=before)

    assert [event.id for event in found] == [first.id]


@pytest.mark.parametrize("turns", [30])
async def test_of_two_nodes_that_write_at_once_neither_overtakes_what_was_acknowledged(
    postgres_dsn: str, turns: int
) -> None:
    """Four senders, each of whom sends to the other node once the one before has said that it is kept."""
    async with open_postgres_storage(postgres_dsn) as one, open_postgres_storage(postgres_dsn) as two:
        world = await StorageWorld(one).found()
        agent = await world.agent()
        nodes = (one, two)
        sent: dict[int, list[UUID]] = {sender: [] for sender in range(4)}

        async def send(sender: int) -> None:
            for turn in range(turns):
                number = (sender + turn) % 2
                skew = FIVE_MINUTES_MS if number else -FIVE_MINUTES_MS
                event = world.event_of(agent, id=id_of_a_clock(world.now, skew))
                await nodes[number].journal.write(AppendEvent(event, None, None, None, ()))
                sent[sender].append(event.id)

        async with trio.open_nursery() as nursery:
            for sender in sent:
                nursery.start_soon(send, sender)

        for order in (await listed(world, limit=50), await handled(world, agent)):
            assert_kept(order, sent)


def assert_kept(order: Sequence[UUID], sent: dict[int, list[UUID]]) -> None:
    for mine in sent.values():
        assert [event_id for event_id in order if event_id in set(mine)] == mine


async def test_a_clock_that_goes_back_within_a_batch_makes_no_later_event_the_earlier_one(
    world: StorageWorld,
) -> None:
    agent, answers = await world.agent(), list[object]()
    events = [world.event_of(agent, created_at=world.now - 1_000 * n, updated_at=0) for n in range(4)]
    for event in events:
        world.storage.journal.submit(AppendEvent(event, None, None, None, ()), answers.append)
    last = await world.append(agent)

    kept = [await world.storage.events.load(event.id) for event in (*events, last)]

    assert answers == [Appended(event.id) for event in events]

    ages = [event.created_at for event in kept if event is not None]
    assert len(ages) == 5
    assert ages == sorted(ages)
