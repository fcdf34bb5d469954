"""Faults that only long time shows: days that do not end, hours that come twice, keys that never expire."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from tests.simulation.drill.planting import Fault

MEMORY: Final = "sexton_storage.memory"


def _always(_: Any) -> Any:
    return lambda *_: True


def _one_endless_day(_: Any) -> Any:
    return lambda _: 20_000


def _never_over(_: Any) -> Any:
    return lambda *_: None


def _without_end(find: Any) -> Any:
    async def changed(self: Any, hashed: bytes) -> Any:
        key = await find(self, hashed)
        return key if key is None else replace(key, expires_at=None)

    return changed


def _last_slice(_: Any) -> Any:
    return lambda rows: list(rows)[-1]


def _after_an_hour(old: Any) -> Any:
    return lambda event, since: old(event, since + 23 * 3_600_000)


async def _nothing_pruned(*_: Any, **__: Any) -> int:
    return 0


FAULTS: Final = (
    Fault(
        "doubled-hour",
        "a schedule fires twice in the hour that comes twice",
        "sexton_actors.schedules.times",
        "_goes_by_real_time",
        _always,
    ),
    Fault(
        "day-not-over",
        "what an agent has spent in a day is never reset",
        "sexton_storage.periods",
        "day_of",
        _one_endless_day,
    ),
    Fault(
        "budget-ignored",
        "a budget that is spent stops nothing but the run that goes on",
        "sexton_storage.decisions.claim",
        "over_period",
        _never_over,
    ),
    Fault(
        "key-for-ever",
        "a key that has expired still works",
        f"{MEMORY}.tenancy",
        "MemoryApiKeys.find_by_hash",
        _without_end,
    ),
    Fault(
        "compacted-wrongly",
        "of a run's old metering rows the last one is kept, and the sum is lost",
        f"{MEMORY}.metering",
        "_sum",
        _last_slice,
    ),
    Fault(
        "kept-for-an-hour",
        "events are deleted a day too early",
        f"{MEMORY}.retention",
        "_ended_before",
        _after_an_hour,
    ),
    Fault(
        "frames-stay",
        "old frames of streams are never deleted",
        f"{MEMORY}.frames",
        "MemoryFrames.prune",
        lambda _: _nothing_pruned,
    ),
)
"""Noticed at the slow pace."""
