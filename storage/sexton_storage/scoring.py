"""How well a run went, as one number from what is on record of it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.improvement import Score

OUTCOME_WEIGHT: Final = 0.6
ATTEMPTS_WEIGHT: Final = 0.1
GATES_WEIGHT: Final = 0.1
CHECKS_WEIGHT: Final = 0.1
SPEND_WEIGHT: Final = 0.1
DECIMALS: Final = 4

_OUTCOMES: Mapping[EventStatus, float] = MappingProxyType(
    {
        EventStatus.PROCESSED: 1.0,
        # A person stopped it: it is neither done nor failed.
        EventStatus.CANCELLED: 0.5,
    }
)


class Facts(msgspec.Struct, frozen=True, gc=False):
    """What a score is made of; all of it is kept beside the score."""

    outcome: EventStatus
    attempts: int
    denied_gates: int
    """Denied, timed out or auto_killed."""
    failed_checks: int
    charged_nanos: int
    budget_nanos: int | None
    """The agent's for a day; None when it has none."""


def score(facts: Facts) -> float:
    """From 0 to 1.

    >>> score(Facts(EventStatus.PROCESSED, 1, 0, 0, 0, None))
    1.0
    >>> score(Facts(EventStatus.PROCESSED, 2, 1, 0, 500, 1000))
    0.85
    >>> score(Facts(EventStatus.AGENT_ERROR, 5, 0, 1, 2000, 1000))
    0.17
    """
    whole = (
        OUTCOME_WEIGHT * _OUTCOMES.get(facts.outcome, 0.0)
        + ATTEMPTS_WEIGHT / max(1, facts.attempts)
        + GATES_WEIGHT / (1 + facts.denied_gates)
        + CHECKS_WEIGHT / (1 + facts.failed_checks)
        + SPEND_WEIGHT * _thrift(facts.charged_nanos, facts.budget_nanos)
    )
    return min(1.0, max(0.0, round(whole, DECIMALS)))


def _thrift(charged: int, budget: int | None) -> float:
    return 1.0 if not budget else 1.0 - min(1.0, charged / budget)


def score_of(event: Event, denied_gates: int, failed_checks: int, budget_nanos: int | None) -> Score:
    """The row of a run that has just ended with its event."""
    facts = Facts(
        event.status, event.attempts, denied_gates, failed_checks, event.charged_nanos, budget_nanos
    )
    return Score(
        event_id=event.id,
        zombie_id=event.zombie_id,
        score=score(facts),
        created_at=event.updated_at,
        **msgspec.structs.asdict(facts),
    )
