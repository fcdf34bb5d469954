"""A record that an actor holds: when it is read, and what happens when somebody else writes it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest
import trio
from hypothesis import given, settings, strategies as st
from trio.testing import MockClock

from sexton_actors.held.freshness import SHARED_FOR, Freshness, Knowledge
from sexton_actors.held.races import RACED
from sexton_actors.held.record import Held
from sexton_actors.refusal import Refusal
from sexton_actors.terms import MAX_RACES
from sexton_actors.world import World
from sexton_storage.errors import Conflict
from sexton_storage.refusals import Lost
from tests.thorough import examples
from tests.worlds.actors import ActorsWorld
from tests.worlds.states_page import cells

FRESH_MS = 1_000
KEY = UUID(int=7)


@dataclass(frozen=True)
class Row:
    version: int = 1
    total: int = 0


@dataclass
class Table:
    """One row, and all who write it."""

    row: Row | None = Row()
    reads: int = 0
    while_read: Callable[[], None] = lambda: None
    """Called while the row is on its way."""

    def save(self, seen: Row, total: int) -> Row | None:
        """None when the row is not as it was seen."""
        if self.row is None or self.row.version != seen.version:
            return None
        self.row = Row(seen.version + 1, total)
        return self.row

    def written_elsewhere(self, by: int = 0) -> None:
        assert self.row is not None
        self.row = replace(self.row, version=self.row.version + 1, total=self.row.total + by)


class HeldRow(Held[Row]):
    subject = "The row"

    def __init__(self, world: World, table: Table, fresh_ms: int | None = FRESH_MS) -> None:
        super().__init__(cast("Any", SimpleNamespace(key=KEY)), world, fresh_ms=fresh_ms)
        self.table = table

    async def _read(self) -> Row | None:
        self.table.reads += 1
        row = self.table.row
        self.table.while_read()
        return row

    def _version(self, record: Row) -> int:
        return record.version

    def _may_have_changed(self, mark: int) -> bool:
        return self.world.changed_records.since(mark, KEY)

    def unknown(self) -> Refusal:
        return Refusal("UZ-TEST-404", "There is no row.")

    async def add(self, one: int, meanwhile: int = 0) -> int | Refusal:
        """Add to the total; that many others write between the decision and the write."""
        left = meanwhile

        async def attempt(row: Row, _now: int) -> int | Lost:
            nonlocal left
            if left:
                left -= 1
                self.table.written_elsewhere()
            saved = self.table.save(row, row.total + one)
            return Lost() if saved is None else self.adopt(saved).total

        return await self.until_kept(attempt)


async def test_a_held_record_is_read_once_until_it_may_have_changed(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    held = HeldRow(world.actors_world, table := Table())

    for _ in range(3):
        assert await held.refresh() == Row()
    assert table.reads == 1

    await trio.sleep(FRESH_MS / 1000)
    await held.refresh()
    assert table.reads == 2

    world.actors_world.changed_records.note(KEY)
    await held.refresh()
    await held.refresh()
    assert table.reads == 3


async def test_that_there_is_none_is_known_for_as_long_as_a_record_is(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    bounded = HeldRow(world.actors_world, bound := Table(None))
    unbounded = HeldRow(world.actors_world, free := Table(None), fresh_ms=None)

    for held in (bounded, unbounded):
        assert await held.refresh() is None
        assert await held.refresh() is None

    assert (bound.reads, free.reads) == (1, 2)


async def test_a_record_changed_while_it_is_read_is_read_again(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    table = Table(while_read=lambda: world.actors_world.changed_records.note(KEY))
    held = HeldRow(world.actors_world, table)

    await held.refresh()
    await held.refresh()

    assert table.reads == 2


async def test_a_change_wins_the_last_of_its_races(world: ActorsWorld, autojump_clock: MockClock) -> None:
    held = HeldRow(world.actors_world, Table())

    assert await held.add(5, meanwhile=MAX_RACES - 1) == 5


async def test_a_change_that_loses_all_its_races_is_told_to_come_again(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    held = HeldRow(world.actors_world, table := Table())

    refused = await held.add(5, meanwhile=MAX_RACES)

    assert isinstance(refused, Refusal)
    assert (refused.code, refused.retry_after_s) == (RACED, 1)
    assert table.row == Row(version=1 + MAX_RACES)
    assert await held.add(5) == 5


async def test_the_first_lost_race_is_made_up_for_at_once_and_later_ones_after_a_pause(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    held, start = HeldRow(world.actors_world, Table()), trio.current_time()

    await held.add(1, meanwhile=1)
    assert trio.current_time() == start

    await held.add(1, meanwhile=MAX_RACES - 1)
    assert 0 < trio.current_time() - start < 1


async def test_a_conflict_that_a_store_raises_is_a_lost_race(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    held, tries = HeldRow(world.actors_world, Table()), 0

    async def attempt(row: Row, _now: int) -> Row:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise Conflict
        return row

    assert await held.until_kept(attempt) == Row()
    assert tries == 2


async def test_who_changes_what_does_not_exist_is_told_so(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    refused = await HeldRow(world.actors_world, Table(None)).add(1)

    assert isinstance(refused, Refusal)
    assert refused.code == "UZ-TEST-404"


async def test_after_a_lost_race_the_row_is_read_first_until_nobody_else_writes_it(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    held = HeldRow(world.actors_world, table := Table(), fresh_ms=None)
    await held.add(1, meanwhile=1)
    reads = table.reads

    for _ in range(SHARED_FOR):
        await held.add(1)
    assert table.reads == reads + SHARED_FOR

    await held.add(1)
    assert table.reads == reads + SHARED_FOR


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, MAX_RACES), st.integers(0, 2)), max_size=12))
def test_nothing_that_anybody_wrote_is_ever_lost(steps: list[tuple[int, int, int]]) -> None:
    async def run() -> None:
        held, expected = HeldRow(_world(), Table(), fresh_ms=None), 0
        for one, meanwhile, before in steps:
            for _ in range(before):
                held.table.written_elsewhere(by=100)
                expected += 100
            kept = await held.add(one, meanwhile)
            expected += 0 if isinstance(kept, Refusal) else one
        assert held.table.row is not None
        assert held.table.row.total == expected

    trio.run(run, clock=MockClock(autojump_threshold=0))


def _world() -> World:
    plain = SimpleNamespace(
        now_ms=lambda: round(trio.current_time() * 1000),
        changed_records=SimpleNamespace(mark=0, since=lambda *_: False),
        new_token=lambda _: "8000",
    )
    return cast("World", plain)


def _read_unchanged(known: Freshness) -> None:
    known.read(0, found=True)
    known.found_unchanged()


STEPS: dict[str, Callable[[Freshness], object]] = {
    "it is read": lambda known: known.read(0, found=True),
    "it is read, and is as it was": _read_unchanged,
    "it is read, and there is none": lambda known: known.read(0, found=False),
    "a commit sees it as it is": lambda known: known.confirm(0),
    "it is doubted": lambda known: known.doubt(),
    "a race is lost": lambda known: known.race_lost(),
}


def _known(column: str) -> Freshness:
    known = Freshness()
    match Knowledge(column.partition(",")[0]):
        case Knowledge.UNKNOWN:
            return known
        case Knowledge.STALE:
            known = Freshness(FRESH_MS)
            known.read(-FRESH_MS, found=True)
        case Knowledge.SHARED:
            known.read(0, found=True)
            known.race_lost()
            known.shared = 1 if "last" in column else known.shared
        case Knowledge.HELD:
            known.read(0, found=True)
    return known


@pytest.mark.parametrize(("row", "column", "cell"), cells("A record as its actor holds it"))
def test_what_is_known_of_a_record_is_what_the_table_says(row: str, column: str, cell: str) -> None:
    known = _known(column)
    at, changed = 0, row == "another node says that it changed it"
    if row == "its time passes":
        known.fresh_ms, at = FRESH_MS, FRESH_MS
    elif not changed:
        STEPS[row](known)

    assert str(known.at(at, changed=changed)) == cell
