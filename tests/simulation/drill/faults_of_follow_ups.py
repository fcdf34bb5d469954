"""Faults in when follow-ups wake their agents, and whether they do."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from sexton_storage.records.follow_ups import FollowUpStatus
from tests.simulation.drill.planting import Fault

APPEND: Final = "sexton_storage.decisions.append"
FOLLOW_UPS: Final = "sexton_actors.zombie.follow_ups"
MEMORY: Final = "sexton_storage.memory.follow_ups"


def _always(_: Any) -> Any:
    return lambda *_: True


def _by_the_message_alone(append: Any) -> Any:
    # As where the event is made first, and the follow-up is closed by a statement of its own.
    def changed(rows: Any, write: Any) -> Any:
        if write.follow_up_id is None:
            return append(rows, write)
        pending = replace(rows.follow_up, status=FollowUpStatus.PENDING)
        return append(replace(rows, by_key=None, follow_up=pending), write)

    return changed


async def _closed_only(self: Any, zombie: Any, manifest: Any, follow_up: Any) -> None:
    # As where it is closed first, and its event is not kept.
    del zombie, manifest
    world = self._held.world
    await world.storage.follow_ups.close(follow_up, FollowUpStatus.FIRED, world.now_ms())


def _half_a_minute_early(due: Any) -> Any:
    async def changed(self: Any, *, before: int, limit: int) -> Any:
        return await due(self, before=before + 30_000, limit=limit)

    return changed


async def _none_due(*_: Any, **__: Any) -> tuple[()]:
    return ()


def _never_found(_: Any) -> Any:
    return lambda *_: None


FAULTS: Final = (
    Fault(
        "follow-up-after-all",
        "a follow-up that was taken back meanwhile wakes its agent all the same",
        APPEND,
        "is_due",
        _always,
    ),
    Fault(
        "follow-up-twice",
        "a follow-up that two servers see due wakes its agent twice",
        APPEND,
        "append",
        _by_the_message_alone,
    ),
    Fault(
        "follow-up-lost",
        "a follow-up is closed, and its event is not kept",
        FOLLOW_UPS,
        "FollowUps._wake",
        lambda _: _closed_only,
    ),
    Fault(
        "follow-up-early",
        "a follow-up comes half a minute before its time",
        MEMORY,
        "MemoryFollowUps.due",
        _half_a_minute_early,
        ((FOLLOW_UPS, "is_due", _always),),
    ),
    Fault(
        "follow-up-waits",
        "no follow-up is found due",
        MEMORY,
        "MemoryFollowUps.due",
        lambda _: _none_due,
    ),
    Fault(
        "follow-up-asked-again",
        "a run that asks again for its follow-up is given another",
        MEMORY,
        "MemoryFollowUps._asked",
        _never_found,
    ),
)
