"""Keeps what broke a promise once, so that each seed can be lived through again by one command."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Final

import msgspec

from tests.simulation.drill.faults import fault_named
from tests.simulation.drill.planting import planted
from tests.simulation.product.life import Size
from tests.simulation.shrink import Failure, Shrunk, failure_of
from tests.simulation.story import story_of
from tests.simulation.world.deviations import Deviation

FOLDER: Final = Path(__file__).with_name("regressions")


class Regression(msgspec.Struct, frozen=True):
    """A life by its seed, size and deviations; the judge that noticed it, and how that came about."""

    seed: int
    size: Size
    deviations: list[tuple[str, int]]
    judge: str
    planted: str | None
    """The planted fault that it is of; None: a fault of the product, which is mended."""
    story: list[str]

    def deviation_list(self) -> list[Deviation]:
        return [(kind, number) for kind, number in self.deviations]  # type: ignore[misc]

    def live(self, *, with_fault: bool) -> Failure | None:
        """Live through it again, with what was planted, or with the product as it is."""
        fault = fault_named(self.planted) if with_fault and self.planted is not None else None
        with nullcontext() if fault is None else planted(fault):
            return failure_of(self.seed, self.size, self.deviation_list(), told=True)


def keep(shrunk: Shrunk, seed: int, size: Size, path: Path, fault: str | None = None) -> Regression:
    """Write a regression down."""
    story = story_of(shrunk.failure, shrunk.deviations)
    made = Regression(
        seed,
        size,
        [(kind, number) for kind, number in shrunk.deviations],
        shrunk.failure.judge,
        fault,
        story,
    )
    path.write_bytes(msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n")
    return made


def read(path: Path) -> Regression:
    return msgspec.json.decode(path.read_bytes(), type=Regression)


def all_kept() -> list[Path]:
    return sorted(FOLDER.glob("*.json"))
