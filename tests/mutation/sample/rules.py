"""A module whose mutants are known: the tool is tried on it."""

from typing import Final

TERM_MS: Final = 30
LONGEST_MS: Final = 2 * TERM_MS


def larger(one: int, other: int) -> int:
    """Give the larger one. Whether two that are equal are compared strictly makes no difference."""
    if one > other:
        return one
    return other


class Lease:
    """A claim with an end."""

    def __init__(self, granted_at: int) -> None:
        self.granted_at = granted_at

    @property
    def expires_at(self) -> int:
        return self.granted_at + TERM_MS


def is_over(lease: Lease, now: int) -> bool:
    """Nothing tests this."""
    return now >= lease.expires_at


def is_long(ms: int) -> bool:
    return ms > LONGEST_MS
