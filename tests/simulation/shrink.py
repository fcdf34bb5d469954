"""Cuts a seed that breaks a promise down to the fewest deviations from the calm that still break it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from tests.simulation.product.life import Heard, Size, live
from tests.simulation.product.record import Broken
from tests.simulation.world.deviations import Deviation, Kept, deviations_until

T = TypeVar("T")
LIVES_MAX: Final = 400
"""Lives that one shrinking may take; what is left then is told as it is."""


@dataclass(frozen=True, slots=True)
class Failure:
    """How a life ended that broke a promise."""

    judge: str
    """The judge that noticed it, or the name of the error that left a program."""
    said: str
    heard: Heard


@dataclass(frozen=True, slots=True)
class Shrunk:
    """What is left of a seed."""

    failure: Failure
    deviations: tuple[Deviation, ...]
    lives: int
    """How many were lived to find it."""


def failure_of(
    seed: int, size: Size, deviations: Sequence[Deviation] | None = None, *, told: bool = False
) -> Failure | None:
    """Live through a seed with these deviations (None: all of them); None when no promise is broken."""
    heard = Heard(told=told)
    try:
        live(seed, size, kept=None if deviations is None else Kept.of(deviations), heard=heard)
    except Exception as error:  # noqa: BLE001 - whatever a life comes to is what is looked for
        fault = fault_of(error)
        said = str(fault)
        judge = said.partition(":")[0] if isinstance(fault, Broken) else type(fault).__name__
        return Failure(judge, said, heard)
    return None


def fault_of(error: BaseException) -> BaseException:
    """The first error inside groups of errors."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def fewest(items: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """Drop what is not needed to fail: halves first, then ever smaller parts, in the end each one by itself.

    ``items`` is known to fail. What comes out fails, and without any one of its items it does not.

    >>> fewest(range(20), lambda some: {3, 17} <= set(some))
    [3, 17]
    >>> fewest(range(20), lambda some: True)
    []
    """
    kept = list(items)
    if not kept or fails([]):
        return []
    size = (len(kept) + 1) // 2
    while True:
        place = 0
        while place < len(kept):
            rest = kept[:place] + kept[place + size :]
            if len(rest) < len(kept) and rest and fails(rest):
                kept = rest
            else:
                place += size
        if size == 1:
            return kept
        size = (size + 1) // 2


class _Enough(Exception):
    """No more lives."""


def shrink(
    seed: int, size: Size, *, lives: int = LIVES_MAX, progress: Callable[[str], None] = lambda _: None
) -> Shrunk | None:
    """Find the fewest deviations with which the same judge notices a fault; None: there is none."""
    first = failure_of(seed, size)
    if first is None:
        return None
    best: list[Deviation] = list(deviations_until(first.heard.ended_s, first.heard.faults))
    lived = 1

    def fails(some: Sequence[Deviation]) -> bool:
        nonlocal best, lived
        if lived >= lives:
            raise _Enough
        lived += 1
        failure = failure_of(seed, size, some)
        if failure is None or failure.judge != first.judge:
            return False
        best = list(some)
        progress(f"{len(some)} deviations still break it, after {lived} lives")
        return True

    try:
        # Without other orders and delays the faults alone are few, and are mostly enough.
        faults = [one for one in best if one[0] == "fault"]
        if fails(faults):
            fewest(faults, fails)
        else:
            fewest(best, fails)
    except _Enough:
        progress(f"{lives} lives are the most; this is what is left")
    shown = failure_of(seed, size, best, told=True)
    assert shown is not None, "the same deviations are the same life"
    return Shrunk(shown, tuple(best), lived)
