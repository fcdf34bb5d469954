"""How far what an actor knows of a record can be relied on; pure."""

from enum import StrEnum
from typing import Final

SHARED_FOR: Final = 4
"""Reads after a lost race that each must find the record unchanged before it is relied on again."""


class Knowledge(StrEnum):
    UNKNOWN = "unknown"
    """Nothing is known: it is read first."""
    HELD = "held"
    """What is known may be decided on. Another node may still write: the version of a write tells."""
    STALE = "stale"
    """Another node changed it, or may have by now: it is read first."""
    SHARED = "shared"
    """Another node writes it too. To read it costs less than to lose a race, so it is read first."""


class Freshness:
    """When a record was read, and whether somebody else writes it; docs/reference/states.md has the table.

    ``fresh_ms``: how old a record may be that other nodes change without a word; None where each write
    names the version it has seen, so that old knowledge costs a lost race and nothing more.

    >>> freshness = Freshness(fresh_ms=1_000)
    >>> freshness.read(at=0, found=True)
    >>> str(freshness.at(999)), str(freshness.at(1_000)), str(freshness.at(0, changed=True))
    ('held', 'stale', 'stale')
    >>> freshness.race_lost()
    >>> str(freshness.at(0))
    'shared'
    >>> for _ in range(SHARED_FOR):
    ...     freshness.found_unchanged()
    >>> str(freshness.at(0))
    'held'
    """

    __slots__ = ("fresh_ms", "read_at", "shared")

    def __init__(self, fresh_ms: int | None = None) -> None:
        self.fresh_ms = fresh_ms
        self.read_at: int | None = None
        """Unix ms; None: nothing is known."""
        self.shared = 0
        """How often it has yet to be found unchanged."""

    def __repr__(self) -> str:
        return f"<Freshness read at {self.read_at}, shared {self.shared}>"

    def at(self, now: int, *, changed: bool = False) -> Knowledge:
        """``changed``: another node has said that it changed the record since it was read."""
        if self.read_at is None:
            return Knowledge.UNKNOWN
        if self.shared:
            return Knowledge.SHARED
        is_old = self.fresh_ms is not None and now - self.read_at >= self.fresh_ms
        return Knowledge.STALE if changed or is_old else Knowledge.HELD

    def read(self, at: int, *, found: bool) -> None:
        """Note a read. Where ``fresh_ms`` is set, a missing record is remembered as long as a found one."""
        self.read_at = at if found or self.fresh_ms is not None else None

    def confirm(self, at: int) -> None:
        """Note that a commit has seen what is known as it is."""
        if self.read_at is not None:
            self.read_at = max(self.read_at, at)

    def doubt(self) -> None:
        """Nothing is known any more."""
        self.read_at = None

    def race_lost(self) -> None:
        """A write found another version than was known."""
        self.shared = SHARED_FOR

    def found_unchanged(self) -> None:
        """A read gave the version that was known."""
        self.shared = max(0, self.shared - 1)
