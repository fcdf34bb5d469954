"""How long a server, a plan and a workspace keep what they have."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sexton_actors.plans import PlanLimits
from sexton_storage.records.retention import KeptClass
from sexton_storage.records.tenants import PlanTier

DAY_MS: Final = 24 * 3600 * 1000
DEFAULT_SLICE_DAYS: Final = 7


@dataclass(frozen=True, slots=True)
class RetentionTerms:
    """What the operator has decided for the whole installation."""

    slice_days: int = DEFAULT_SLICE_DAYS
    """Days after which the metering rows of a day's events become one for each attempt; 0: never."""

    @property
    def slices_ms(self) -> int | None:
        """The same in ms; None: never.

        >>> RetentionTerms(2).slices_ms, RetentionTerms(0).slices_ms
        (172800000, None)
        """
        return self.slice_days * DAY_MS or None


def shortest(*days: int | None) -> int | None:
    """The smallest bound of those that there are.

    >>> shortest(None, 30, 7), shortest(None, None)
    (7, None)
    """
    return min((one for one in days if one is not None), default=None)


def plan_days(limits: PlanLimits, kept: KeptClass) -> int | None:
    """What a plan says of a class.

    >>> plan_days(PlanLimits(event_days=90), KeptClass.EVENTS), plan_days(PlanLimits(), KeptClass.FILES)
    (90, None)
    """
    match kept:
        case KeptClass.EVENTS:
            return limits.event_days
        case KeptClass.TRANSCRIPTS:
            return limits.transcript_days
        case KeptClass.FILES:
            return limits.file_days
        case KeptClass.DELIVERIES:
            return limits.delivery_days


def plan_bounds(plans: Mapping[PlanTier, PlanLimits], kept: KeptClass) -> dict[PlanTier, int]:
    """How many ms each plan keeps a class, of the plans that say so.

    >>> plan_bounds({PlanTier.FREE: PlanLimits(file_days=1), PlanTier.PRO: PlanLimits()}, KeptClass.FILES)
    {<PlanTier.FREE: 'free'>: 86400000}
    """
    said = {tier: plan_days(limits, kept) for tier, limits in plans.items()}
    return {tier: days * DAY_MS for tier, days in said.items() if days is not None}
