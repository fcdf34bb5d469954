"""The claims of one poll: written together, without waiting for one that is late or has nothing to write."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from sexton_actors.claim_groups import MOMENT_S, ClaimGroup, ClaimPart
from sexton_storage.errors import StorageUnavailable
from sexton_storage.writes import NothingToClaim

WRITE: Any = object()
EMPTY = NothingToClaim("empty")


class Journal:
    """Notes how many writes came together, and answers them when it is told to."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.alone = 0
        self.answer: Any = EMPTY

    def submit_all(self, writes: Sequence[tuple[Any, Callable[[Any], None]]]) -> None:
        self.batches.append(len(writes))
        for _, done in writes:
            done(self.answer)

    async def write(self, _write: Any) -> Any:
        self.alone += 1
        await trio.lowlevel.checkpoint()
        return EMPTY


def group_of(count: int) -> tuple[Any, list[ClaimPart]]:
    journal: Any = Journal()
    return journal, list(ClaimGroup(journal, count).parts())


async def claim(part: ClaimPart, after_s: float, heard: list[Any]) -> None:
    await trio.sleep(after_s)
    heard.append(await part.write(WRITE))


@pytest.mark.parametrize(
    ("after_s", "batches", "alone"),
    [
        ((0, 0, 0), [3], 0),
        ((0, MOMENT_S / 2, MOMENT_S / 2), [3], 0),
        ((0, 0, MOMENT_S * 3), [2], 1),
    ],
)
async def test_claims_that_are_ready_within_a_moment_are_one_write(
    after_s: Sequence[float], batches: list[int], alone: int, autojump_clock: MockClock
) -> None:
    journal, parts = group_of(len(after_s))
    heard: list[Any] = []
    async with trio.open_nursery() as nursery:
        for part, after in zip(parts, after_s, strict=True):
            nursery.start_soon(claim, part, after, heard)

    assert (journal.batches, journal.alone, heard) == (batches, alone, [EMPTY] * len(after_s))


async def test_one_that_has_nothing_to_write_is_not_waited_for(autojump_clock: MockClock) -> None:
    journal, (first, second, third) = group_of(3)
    heard: list[Any] = []
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(claim, first, 0, heard)
        nursery.start_soon(claim, second, 0, heard)
        third.drop()
        third.drop()

    assert (journal.batches, trio.current_time() - began) == ([2], 0)
    assert await third.write(WRITE) is None


async def test_one_that_is_stopped_before_it_is_sent_claims_nothing(autojump_clock: MockClock) -> None:
    journal, (first, second) = group_of(2)
    heard: list[Any] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(claim, second, MOMENT_S / 2, heard)
        with trio.move_on_after(MOMENT_S / 4):
            await first.write(WRITE)

    assert (journal.batches, len(heard)) == ([1], 1)


async def test_when_the_first_is_stopped_those_that_are_ready_go_at_once(autojump_clock: MockClock) -> None:
    journal, (first, second, _) = group_of(3)
    heard: list[Any] = []
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        with trio.move_on_after(MOMENT_S / 4):
            nursery.start_soon(claim, second, MOMENT_S / 8, heard)
            await first.write(WRITE)

    assert (journal.batches, heard) == ([1], [EMPTY])
    assert trio.current_time() - began == MOMENT_S / 4


async def test_each_hears_that_the_database_is_away() -> None:
    journal, parts = group_of(2)
    journal.answer = StorageUnavailable("away")
    heard: list[str] = []

    async def fail(part: ClaimPart) -> None:
        with pytest.raises(StorageUnavailable):
            await part.write(WRITE)
        heard.append("away")

    async with trio.open_nursery() as nursery:
        for part in parts:
            nursery.start_soon(fail, part)

    assert heard == ["away", "away"]
