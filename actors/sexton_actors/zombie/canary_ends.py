"""What a trial that ends leaves in its agent's record and stream."""

import msgspec

from sexton_actors.canaries.record import Canary, canary_on_trial, kept_as
from sexton_actors.canaries.transitions import Ending, after_activation, changed_frame, end, notice_of
from sexton_actors.refusal import Refusal
from sexton_actors.run_versions import RunVersion
from sexton_actors.world import World
from sexton_storage.documents import Json
from sexton_storage.records.chats import ChatNotice
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.zombies import Zombie


class Ended(msgspec.Struct, frozen=True):
    canary: Json
    """As it is kept in the agent's record."""
    frames: tuple[NewFrame, ...] = ()
    notice: ChatNotice | None = None


async def ended(
    world: World, zombie: Zombie, canary: Canary | None, ending: Ending, now: int
) -> Ended | Refusal:
    """End a trial with what its runs have come to. Raises StorageUnavailable."""
    tallies = None if canary is None else await world.storage.zombies.tallies(zombie.id, canary.id)
    over = end(canary, ending, tallies, now)
    if isinstance(over, Refusal):
        return over
    return Ended(kept_as(over), (changed_frame(zombie.id, over, now),), notice_of(zombie, over, now))


async def ended_by_activation(
    world: World, zombie: Zombie, version: RunVersion, *, by: str, ending: Ending | None, now: int
) -> Ended:
    """End the trial that goes on, if there is one, as this version becomes active."""
    canary = canary_on_trial(zombie.canary)
    ending = ending or after_activation(canary, version, by)
    over = None if ending is None else await ended(world, zombie, canary, ending, now)
    return over if isinstance(over, Ended) else Ended(zombie.canary)
