"""How long a step asks for a lock, and when it asks again."""

from typing import Final

LOCK_MS: Final = 1_500
"""How long a step waits for a table. Whoever comes after it waits behind it, so it is less than what a batch
is allowed; and more than a second, after which PostgreSQL ends an automatic vacuum that is in the way."""
FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 8.0
TRIES: Final = 60
"""Some eight minutes in all."""


def pause_s(attempt: int, roll: float) -> float:
    """How long others are let through before the next try; ``roll`` is from 0 to 1.

    >>> [pause_s(attempt, 0.5) for attempt in range(6)]
    [0.5, 1.0, 2.0, 4.0, 8.0, 8.0]
    >>> pause_s(0, 0.0), pause_s(9, 1.0)
    (0.25, 12.0)
    """
    return min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(attempt, 10)) * (0.5 + roll)
