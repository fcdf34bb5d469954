"""Freed memory is given back when a peak is over, and not again and again where that gives nothing."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import trio
from hypothesis import given, strategies as st
from trio.testing import MockClock

from sexton_actors.memory_rounds import PAUSE_ROUNDS_MAX, ROUND_S, MemoryState, look
from sexton_actors.memory_use import ProcessMemory
from sexton_actors.tree import tree
from sexton_engine import open_system
from tests.worlds.actors import ActorsWorld

MIB = 2**20


def rounds(*mib: int) -> tuple[MemoryState, list[int]]:
    """What is known in the end, and in which rounds it was trimmed."""
    state, trimmed = MemoryState(), []
    for number, resident in enumerate(mib):
        state, trims = look(state, resident * MIB)
        if trims:
            trimmed.append(number)
    return state, trimmed


def test_a_peak_is_trimmed_once_it_no_longer_rises() -> None:
    state, trimmed = rounds(100, 400, 900, 900, 124, 120, 118)

    assert trimmed == [3]
    assert (state.least // MIB, state.peak // MIB, state.trims) == (100, 900, 1)


def test_what_is_in_use_is_tried_ever_more_seldom_and_never_given_up() -> None:
    _, trimmed = rounds(100, *[400] * 60)
    pauses = [after - before for before, after in pairwise(trimmed)]

    assert trimmed[0] == 2
    assert pauses[0] < pauses[1] < pauses[2]
    assert max(pauses) <= PAUSE_ROUNDS_MAX + 1
    # After five minutes of quiet memory that was in use until then is back, whatever was tried in vain.
    assert (PAUSE_ROUNDS_MAX + 2) * ROUND_S < 300


def test_a_little_more_than_the_least_is_left_alone() -> None:
    assert rounds(100, *[120] * 9)[1] == []
    assert rounds(20, *[34] * 9)[1] == []
    assert rounds(20, *[60] * 2)[1] == [2]


@given(st.lists(st.integers(1, 4000), min_size=1, max_size=60))
def test_the_least_and_the_most_are_those_that_were_seen(mib: Sequence[int]) -> None:
    state, trimmed = rounds(*mib)

    assert (state.least, state.peak, state.last) == (min(mib) * MIB, max(mib) * MIB, mib[-1] * MIB)
    assert len(trimmed) == state.trims


class Memory:
    """A process whose free memory stays with it until it is trimmed."""

    def __init__(self) -> None:
        self.held, self.used = 100 * MIB, 100 * MIB
        self.trims = 0

    def resident(self) -> int:
        return self.held

    def trim(self) -> None:
        self.trims += 1
        self.held = self.used


async def test_a_node_gives_back_what_a_peak_left_within_five_minutes(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    memory = Memory()
    node = replace(world.actors_world, memory=memory)
    async with open_system(tree(node)):
        await trio.sleep(15)
        memory.held = memory.used = 2000 * MIB
        await trio.sleep(600)
        memory.used = 105 * MIB
        await trio.sleep(300)
        assert memory.held == memory.used

        # The peak lasted for ten minutes, and was not trimmed in each of its sixty rounds.
        assert memory.trims < 15

        await trio.sleep(15)

    assert node.meters.memory.peak == 2000 * MIB


async def test_the_memory_of_this_process_is_known_and_can_be_trimmed() -> None:
    memory = ProcessMemory()
    assert memory.resident() > MIB

    memory.trim()


HOLES = """
import time
from sexton_actors.memory_use import ProcessMemory
import trio

async def main():
    memory = ProcessMemory()
    before = memory.resident()
    pieces = [bytes(65536) for _ in range(3000)]
    pieces = pieces[::50]
    held = memory.resident()
    memory.trim()
    for _ in range(500):
        if memory.resident() < (before + held) / 2:
            break
        await trio.sleep(0.01)
    print(before, held, memory.resident(), len(pieces))

trio.run(main)
"""
"""Leaves holes of 3 MiB between what is in use: the C library keeps them by itself."""


def test_a_trim_gives_back_what_lies_between_memory_in_use() -> None:
    told = subprocess.run([sys.executable, "-c", HOLES], capture_output=True, text=True, check=True)
    before, held, after, _ = map(int, told.stdout.split())

    assert held - before > 100 * MIB, "the library gave it back by itself: nothing is shown here"
    assert after - before < (held - before) / 4
