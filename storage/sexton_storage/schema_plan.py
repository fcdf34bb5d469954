"""What ``sexton migrate`` would do to a database, and whom it would keep waiting."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlannedLock:
    """A table that a step locks."""

    table: str
    mode: str
    rows: int
    """About how many there are, by the database's own estimate; -1: it has not looked yet."""
    goes_through: bool
    """Whether the step takes as long as the table is large."""


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step that has not run."""

    name: str
    in_transaction: bool
    serves_from: int
    """Releases that know this step, or a later one, work on the schema after it."""
    creates: tuple[str, ...]
    locks: tuple[PlannedLock, ...]
    measured: bool
    """Whether this release knows what the step locks."""


@dataclass(frozen=True, slots=True)
class SchemaPlan:
    """The steps in order, and what the database is at now."""

    steps: tuple[PlannedStep, ...]
    at: str | None
    """The newest step that ran; None: none has."""
    serves_from: int | None
    """Releases that know this step work on the database once all of this has run; None: nothing is there."""
