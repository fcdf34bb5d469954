"""The claims of one poll: written together, without waiting for one that is late or has nothing to write."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from sexton_actors.claim_groups import MOMENT_S, ClaimGroup, ClaimPart
from sexton_storage.writes import NothingToClaim

WRITE: Any = object()
EMPTY = NothingToClaim("empty")


class Journal:
    """Notes how many writes came together, and how many alone, and answers them at once."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.alone = 0

    def submit_all(self, writes: Sequence[tuple[Any, Callable[[Any], None]]]) -> None:
        self.batches.append(len(writes))
        for _, done in writes:
            done(EMPTY)

    def submit(self, _write: Any, done: Callable[[Any], None]) -> None:
        self.alone += 1
        done(EMPTY)


def group_of(count: int) -> tuple[Any, ClaimGroup, list[ClaimPart]]:
    journal: Any = Journal()
    group = ClaimGroup(journal, count)
    return journal, group, list(group.parts())


async def claim(part: ClaimPart, after_s: float, heard: list[Any]) -> None:
    await trio.sleep(after_s)
    assert part.submit(WRITE, heard.append)


@pytest.mark.parametrize(
    ("after_s", "batches", "alone"),
    [
        ((0, 0, 0), [3], 0),
        ((0, MOMENT_S / 2, MOMENT_S / 2), [3], 0),
        ((0, 0, MOMENT_S * 3), [2], 1),
        ((MOMENT_S * 3, MOMENT_S * 3), [0], 2),
    ],
)
async def test_claims_that_are_ready_within_a_moment_are_one_write(
    after_s: Sequence[float], batches: list[int], alone: int, autojump_clock: MockClock
) -> None:
    journal, group, parts = group_of(len(after_s))
    heard: list[Any] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(group.keep_time)
        for part, after in zip(parts, after_s, strict=True):
            nursery.start_soon(claim, part, after, heard)

    assert (journal.batches, journal.alone, heard) == (batches, alone, [EMPTY] * len(after_s))


async def test_one_that_has_nothing_to_write_is_not_waited_for(autojump_clock: MockClock) -> None:
    journal, group, (first, second, third) = group_of(3)
    heard: list[Any] = []
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(group.keep_time)
        nursery.start_soon(claim, first, 0, heard)
        nursery.start_soon(claim, second, 0, heard)
        third.drop()
        third.drop()

    assert (journal.batches, trio.current_time() - began) == ([2], 0)
    assert not third.submit(WRITE, heard.append)


async def test_a_part_is_submitted_once() -> None:
    journal, _, (first, _second) = group_of(2)
    heard: list[Any] = []

    submitted = [first.submit(WRITE, heard.append) for _ in range(2)]

    assert (submitted, journal.batches, journal.alone, heard) == ([True, False], [], 0, [])


async def test_those_that_are_ready_go_when_nobody_keeps_the_time_any_more(
    autojump_clock: MockClock,
) -> None:
    journal, group, (first, _second) = group_of(2)
    heard: list[Any] = []
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(group.keep_time)
        nursery.start_soon(claim, first, 0, heard)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()

    assert (journal.batches, heard, trio.current_time() - began) == ([1], [EMPTY], 0)
