"""Makes a decision again when another node has written first."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import trio

from sexton_actors.refusal import Refusal
from sexton_actors.terms import MAX_RACES
from sexton_actors.world import World
from sexton_storage.errors import Conflict
from sexton_storage.refusals import Lost

T = TypeVar("T")
Attempt = Callable[[], Awaitable[T | Lost]]
"""Reads, decides and writes; ``Lost`` or ``Conflict`` when the row was not as it was read."""

RACE_PAUSE_S: Final = 0.02
"""What a second lost race waits at most before the next try; each further one waits that much longer."""
RACED: Final = "UZ-API-003"


async def decide_until_kept(
    attempt: Attempt[T],
    subject: str,
    world: World,
    *,
    lost: int = 0,
    on_lost: Callable[[], None] | None = None,
) -> T | Refusal:
    """What ``attempt`` gives once it wins; it has at most MAX_RACES tries, of which ``lost`` were made.

    ``subject`` begins the sentence that a person is told when all are lost. ``on_lost`` is called for each
    race that is lost here.
    """
    while lost < MAX_RACES:
        if lost > 1:
            # Random, so that nodes that are asked at the same moment do not meet again and again.
            await trio.sleep(pause_s(lost, int(world.new_token(2), 16) / 0xFFFF))
        try:
            outcome = await attempt()
        except Conflict:
            outcome = Lost()
        if not isinstance(outcome, Lost):
            return outcome
        lost += 1
        if on_lost is not None:
            on_lost()
    return raced(subject)


def pause_s(lost: int, part: float) -> float:
    """How long to wait after ``lost`` lost races; ``part`` is random, from 0 to 1.

    >>> pause_s(1, 1.0), pause_s(2, 0.5), pause_s(3, 1.0)
    (0.0, 0.01, 0.04)
    """
    return part * RACE_PAUSE_S * (lost - 1)


def raced(subject: str) -> Refusal:
    """The state is as it was, as far as anybody can say; to ask again is all there is to do.

    >>> raced("The plan").detail
    'The plan changes faster than it can be read; try again.'
    """
    return Refusal(RACED, f"{subject} changes faster than it can be read; try again.", retry_after_s=1)
