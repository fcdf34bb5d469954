"""How far an agent is trusted, and whether it still gets better."""

from enum import StrEnum

import msgspec

from sexton_storage.records.improvement import LAST_DECIDED, ProposalStatus, Rate, Trust
from sexton_storage.terms import RATE_EVENTS

MEDIUM_FROM = 5
HIGH_FROM = 20


class TrustLevel(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class TrustReport(msgspec.Struct, frozen=True):
    trust_level: TrustLevel
    trust_streak_runs: int
    improvement_stalled_warning: bool


def trust_report(trust: Trust) -> TrustReport:
    """See docs/reference/scoring.md.

    >>> trust_report(Trust(5, (), Rate(20, 9), Rate(20, 9))).improvement_stalled_warning
    True
    """
    return TrustReport(level(trust.streak), trust.streak, _refused(trust) or _no_better(trust))


def level(streak: int) -> TrustLevel:
    """By the runs that were processed in a row.

    >>> [level(streak).value for streak in (0, 4, 5, 19, 20)]
    ['low', 'low', 'medium', 'medium', 'high']
    """
    if streak < MEDIUM_FROM:
        return TrustLevel.LOW
    return TrustLevel.MEDIUM if streak < HIGH_FROM else TrustLevel.HIGH


def _refused(trust: Trust) -> bool:
    last = trust.last_decided
    return len(last) == LAST_DECIDED and all(status is ProposalStatus.REJECTED for status in last)


def _no_better(trust: Trust) -> bool:
    """Only once there is as much to compare as the rule asks for."""
    before, after = trust.before, trust.after
    if after.runs < RATE_EVENTS or not before.runs:
        return False
    return _compared(after, before) <= 0


def _compared(one: Rate, other: Rate) -> int:
    """Compare two rates without a division."""
    return one.processed * other.runs - other.processed * one.runs
