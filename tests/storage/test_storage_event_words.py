"""The index of words follows the events, whatever happens to what tells it of them."""

from uuid import UUID

import asyncpg
import pytest
import trio

from sexton_storage.event_filter.parse import parse_filter
from sexton_storage.postgres import PostgresStorage
from sexton_storage.records.event_words import NOTHING
from sexton_storage.records.events import Event, EventStatus, Found
from sexton_storage.records.frame_kinds import FrameKind
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.zombies import Zombie
from sexton_storage.writes import AppendEvent, EventEnd
from tests.storage.test_storage_purge import fetch
from tests.worlds.storage import StorageWorld

PLACE = "SELECT txid, filled FROM event_words_place"


class Searched:
    """A workspace whose events are searched for words."""

    def __init__(self, world: StorageWorld, dsn: str) -> None:
        self.world = world
        self._dsn = dsn

    async def arrives(self, agent: Zombie, text: str, *, told: bool = True) -> Event:
        event = self.world.event_of(agent, request_json=f'{{"say": "{text}"}}')
        frames = (self._frame(event, FrameKind.EVENT_RECEIVED),) if told else ()
        await self.world.storage.journal.write(AppendEvent(event, None, None, None, frames))
        return event

    async def ends(self, agent: Zombie, text: str) -> None:
        lease = (await self.world.claim(agent)).lease
        event = EventEnd(EventStatus.PROCESSED, response_text=text)
        frame = NewFrame(agent.id, lease.event_id, FrameKind.EVENT_COMPLETE, self.world.now, {})
        await self.world.end(lease, event, frames=(frame,))

    def _frame(self, event: Event, kind: FrameKind) -> NewFrame:
        return NewFrame(event.zombie_id, event.id, kind, self.world.now, {})

    async def index(self, limit: int = 3) -> int:
        """Have rounds until nothing is left; how many events were written."""
        written = 0
        while (done := await self.world.storage.event_words.index(limit=limit)).more:
            written += done.events
        return written + done.events

    async def search(self, text: str, look_through: int = 2) -> Found:
        picked = parse_filter(text, now=0)
        return await self.world.storage.events.search(
            self.world.workspace_id, picked, limit=9, look_through=look_through
        )

    async def finds(self, text: str) -> list[UUID]:
        return [event.id for event in (await self.search(text, look_through=9)).events]

    async def sql(self, query: str) -> list[asyncpg.Record]:
        return await fetch(self._dsn, query)


@pytest.fixture
async def searched(postgres_storage: PostgresStorage, postgres_dsn: str) -> Searched:
    return Searched(await StorageWorld(postgres_storage).found(), postgres_dsn)


async def test_a_rare_word_is_found_in_one_page_however_far_back(searched: Searched) -> None:
    agent = await searched.world.agent()
    events = [await searched.arrives(agent, f"common word{i} " + "x" * 70 + str(i)) for i in range(8)]
    before = await searched.search("word0")

    assert (before.events, before.stopped_at is not None) == ([], True), "it looked through two events"

    assert await searched.index() == 8

    for text in ("word0", "text:WORD0,nowhere", '"common word0"', "word0*", "word0 status:received"):
        found = await searched.search(text)
        assert ([event.id for event in found.events], found.stopped_at) == ([events[0].id], None), text
    assert await searched.finds('"word0 common"') == [], "these words in another order"
    assert await searched.finds("x" * 70 + "5") == [events[5].id], "a word that is longer than what is kept"
    assert await searched.finds("x" * 70 + "* word3") == [events[3].id]

    # Bounds hold for what the words pick out, as they do for all events.
    first = await searched.search("common")
    assert [event.id for event in first.events] == [events[7].id, events[6].id]
    assert first.stopped_at is not None


async def test_what_the_index_has_not_come_to_is_found_all_the_same(searched: Searched) -> None:
    agent = await searched.world.agent()
    await searched.arrives(agent, "first")
    await searched.index()

    second = await searched.arrives(agent, "second")
    await searched.ends(agent, "answered")

    assert await searched.finds("second") == [second.id]
    assert len(await searched.finds("answered")) == 1
    assert len(await searched.finds("first")) == 1

    assert await searched.index() == 2, "one arrived, the other ended"
    assert await searched.world.storage.event_words.index(limit=3) == NOTHING
    assert len(await searched.finds("answered")) == 1
    assert len(await searched.finds("answered first")) == 1, "words of its request and of its answer"
    assert await searched.finds("second") == [second.id]


async def test_the_index_mends_itself(searched: Searched) -> None:
    agent = await searched.world.agent()
    await searched.arrives(agent, "first")
    await searched.index()
    # Its frames are gone before they were read: the next walk finds it.
    lost = await searched.arrives(agent, "lost", told=False)
    await searched.index()
    assert await searched.finds("lost") == []

    await searched.sql("UPDATE event_words_place SET walked_at = 0")
    await searched.index()
    assert await searched.finds("lost") == [lost.id]

    # Restored from a dump, or emptied by hand: it begins again, and is not asked before it has all.
    for misfortune in (
        "UPDATE event_words_place SET txid = 1::bigint << 40",
        "TRUNCATE event_words, event_words_place",
    ):
        await searched.sql(misfortune)
        assert (await searched.world.storage.event_words.index(limit=1)).more
        assert [row["filled"] for row in await searched.sql(PLACE)] == [False]
        assert (await searched.search("first", look_through=1)).stopped_at is not None
        await searched.index()
        assert [row["filled"] for row in await searched.sql(PLACE)] == [True]
        assert await searched.finds("lost") == [lost.id]


async def test_one_node_at_a_time_writes_and_none_while_an_agent_is_purged(searched: Searched) -> None:
    agent, other = await searched.world.agent(), await searched.world.agent()
    await searched.arrives(agent, "first")
    await searched.arrives(other, "second")
    await searched.index()
    await searched.arrives(agent, "third")
    done: list[int] = []

    async def node() -> None:
        done.append((await searched.world.storage.event_words.index(limit=9)).events)

    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(node)
    await searched.index()

    assert sum(done) <= 1

    assert await searched.world.storage.zombies.delete(agent.id)
    assert [row[0] for row in await searched.sql("SELECT zombie_id FROM event_words")] == [other.id]
