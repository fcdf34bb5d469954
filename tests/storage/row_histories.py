"""Histories of random commands, decided by the rules and by PostgreSQL; one that differs is cut down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from tests.storage import row_bulk
from tests.storage.row_requests import REQUESTS
from tests.storage.row_twins import Twins
from tests.storage.row_worlds import Dice, World

STEPS: Final = 36
"""Batches of one history."""
EVERY: Final = 12
"""Rows are compared after this many batches. Where they differ, the history is lived through again, and
they are compared after each."""
KINDS: Final = (
    *(*REQUESTS, "kill", "drop"),
    *("append", "open gate", "park") * 2,
    *["end"] * 3,
    *["claim"] * 5,
    *["renew"] * 8,
)
"""What is drawn from: mostly what keeps runs alive, so that the commands that end them meet some."""
FEW: Final = {"cancel": 2}
"""The most of a batch of these, which would end all runs else."""
PAUSES_MS: Final = (0, 0, 0, 0, 1, 1, 5, 50, 400, 5_000)
LONG_PAUSES_MS: Final = (31_000, 3_600_000, 86_400_000)
LONG_PERCENT: Final = 3
AGENTS: Final = 19
DICE_OF_ONE: Final = 1_000_003
"""Keeps the dice of each step apart from those of the others, and of the next seed."""

BESIDE: Final = 1 << 62
BESIDE_PERCENT: Final = 60
"""How many batches are followed by a command of an erasure or a bulk job."""


class Difference(NamedTuple):
    """A history whose commands are not decided alike."""

    seed: int
    steps: tuple[int, ...]
    """The steps that it takes."""
    says: str

    def __str__(self) -> str:
        return f"SEED={self.seed} STEPS={','.join(map(str, self.steps))}\n{self.says}"


def _kinds(world: World, seed: int, steps: Sequence[int]) -> Iterator[str]:
    for step in steps:
        # Each step has dice of its own: one that is left out changes no other's.
        world.dice = dice = Dice(seed * DICE_OF_ONE + step + 1)
        world.now += dice.one(*(LONG_PAUSES_MS if dice.often(LONG_PERCENT) else PAUSES_MS))
        yield dice.one(*KINDS)
        # Dice of their own too: histories without bulk commands are what they were.
        world.dice = beside = Dice(BESIDE + seed * DICE_OF_ONE + step)
        if beside.often(BESIDE_PERCENT):
            yield beside.one(*row_bulk.KINDS)


def difference_of(
    twins: Twins, seed: int, steps: Sequence[int] = range(STEPS), *, every: int = 1
) -> Difference | None:
    """Live through the steps of a history, and say where it is not decided alike."""
    dice = Dice(seed * DICE_OF_ONE)
    world = World(dice, 1 + dice.upto(AGENTS), busy_percent=70, is_lucky=True)
    try:
        twins.compare_in_turn(world, _kinds(world, seed, steps), FEW, every=every)
    except Exception as error:  # noqa: BLE001 - a statement that fails differs from a rule that answers
        return Difference(seed, tuple(steps), f"{type(error).__name__}: {error}")
    return None


def shrunk(twins: Twins, found: Difference) -> Difference:
    """Leave out steps as long as something differs."""
    size = len(found.steps) // 2
    while size:
        for at in range(0, len(found.steps), size):
            fewer = found.steps[:at] + found.steps[at + size :]
            smaller = difference_of(twins, found.seed, fewer)
            if smaller is not None:
                found = smaller
                break
        else:
            size //= 2
        size = min(size, len(found.steps) // 2 or len(found.steps) - 1)
    return found


def first_difference(twins: Twins, seed: int, commands: int) -> Difference | None:
    """Go through histories until that many commands have been compared, or one differs, which is cut down."""
    while twins.compared.total() < commands:
        found = difference_of(twins, seed, every=EVERY)
        if found is not None:
            return shrunk(twins, difference_of(twins, seed) or found)
        seed += 1
    return None
