"""The newest trial of one of an agent's versions, as the agent's record holds it."""

from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec

from sexton_storage.documents import Json
from sexton_storage.records.canaries import ON_TRIAL, Tallies


class CanaryStatus(StrEnum):
    ON_TRIAL = ON_TRIAL
    PROMOTED = "promoted"
    WITHDRAWN = "withdrawn"


class Guard(msgspec.Struct, frozen=True):
    """When a candidate goes back by itself. What is None is not looked at."""

    min_runs: int = 10
    """Nothing is judged before the candidate has had as many; nor against a stable side with fewer."""
    max_failure_percent: int | None = None
    """How many of the candidate's runs may fail."""
    failure_margin_percent: int | None = None
    """How many percentage points more of its runs may fail than of the stable version's."""
    max_cost_nanos: int | None = None
    """What a run may cost on average."""
    cost_margin_percent: int | None = None
    """How much more a run may cost, on average, than one of the stable version's."""
    min_score: float | None = None
    """What the runs' scores must come to on average."""
    score_margin: float | None = None
    """How much lower its average may be than that of the stable version."""


class Canary(msgspec.Struct, frozen=True):
    """One version on trial against the one that is active."""

    id: UUID
    config_version_id: UUID
    version: int
    """The number of the candidate."""
    base_version: int
    """The number of the stable version: the one that was active when the trial began."""
    share: int
    """Percent of the agent's events that the candidate is given."""
    guard: Guard
    promote_after: int | None
    """Processed runs of the candidate after which it is promoted by itself; None: a person does that."""
    status: CanaryStatus
    started_at: int
    started_by: str
    ended_at: int | None = None
    ended_by: str | None = None
    """A person or key; ``system:guard`` where it went back or was promoted by itself."""
    why: str | None = None
    """``failures``, ``cost``, ``score``, ``runs``, ``person``, or ``other_version``."""
    detail: str = ""
    """The same as a sentence."""
    tallies: Tallies | None = None
    """What was known of both sides when it ended."""


def canary_of(kept: Json) -> Canary | None:
    """The newest trial of an agent's record; None: there never was one."""
    return msgspec.convert(kept, Canary) if kept else None


def canary_on_trial(kept: Json) -> Canary | None:
    """The trial that goes on; None: there is none. Asked for each event, so the rest is read only then."""
    return canary_of(kept) if kept and kept.get("status") == ON_TRIAL else None


def kept_as(canary: Canary) -> dict[str, Any]:
    """As it is kept in the agent's record."""
    plain: dict[str, Any] = msgspec.to_builtins(canary)
    return plain
