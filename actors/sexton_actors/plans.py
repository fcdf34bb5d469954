"""What each plan allows, and what the operator gives for free."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Final

import msgspec

from sexton_actors.refusal import Refusal
from sexton_actors.terms import RUN_NANOS_PER_SEC
from sexton_storage.records.holdings import Holding
from sexton_storage.records.tenants import PlanTier

STARTER_CREDIT_NANOS: Final = 5_000_000_000
"""What a tenant begins with: five dollars."""


class PlanLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The limits of a plan; None means that there is no limit."""

    requests_per_second: int | None = None
    """The rate of each workspace."""
    workspaces: int | None = None
    agents_per_workspace: int | None = None
    events_per_day: int | None = None
    """The bound of the whole tenant, by the UTC day."""
    tools: tuple[str, ...] | None = None
    """Names, or globs of names; None: all."""
    runtimes: tuple[str, ...] | None = None
    credentials: int | None = None
    """This and those below bound the whole tenant; see ``Holding``."""
    api_keys: int | None = None
    agent_keys: int | None = None
    proposals: int | None = None
    drafts: int | None = None
    queued_messages: int | None = None
    crons: int | None = None
    event_days: int | None = None
    """Days that an event is kept after it ended, with all that belongs to it; None: as long as its agent."""
    transcript_days: int | None = None
    """These keep less than the server does, never more."""
    file_days: int | None = None
    delivery_days: int | None = None

    def of(self, holding: Holding) -> int | None:
        """How many of these the tenant may have."""
        limit: int | None = getattr(self, holding.value)
        return limit


class BillingTerms(msgspec.Struct, frozen=True):
    """What the operator has decided about plans and free trials."""

    plans: Mapping[PlanTier, PlanLimits]
    free_trial_ends_ms: int | None = None
    """Runs that begin before it are billed the trial's rate for their time; None: there is no trial."""
    free_trial_nanos_per_sec: int = 0
    first_tenant_nanos: int | None = None
    """What the tenant of the first start begins with; None: no balance stops it."""
    sign_in_nanos: int | None = STARTER_CREDIT_NANOS
    """The starting credit of a tenant that a sign-in makes."""

    def is_trial(self, now: int) -> bool:
        return self.free_trial_ends_ms is not None and now < self.free_trial_ends_ms

    def run_rate(self, now: int) -> int:
        """Nanos a second for the time of a run that begins now.

        >>> DEFAULT_TERMS.run_rate(0)
        100000
        """
        return self.free_trial_nanos_per_sec if self.is_trial(now) else RUN_NANOS_PER_SEC


DEFAULT_PLANS: Final[Mapping[PlanTier, PlanLimits]] = MappingProxyType(
    {
        PlanTier.FREE: PlanLimits(
            requests_per_second=20,
            workspaces=3,
            agents_per_workspace=20,
            events_per_day=1_000,
            credentials=100,
            api_keys=100,
            agent_keys=200,
            proposals=5_000,
            drafts=500,
            queued_messages=1_000,
            crons=100,
        ),
        PlanTier.PRO: PlanLimits(
            requests_per_second=200,
            workspaces=1_000,
            events_per_day=100_000,
            credentials=2_000,
            api_keys=1_000,
            agent_keys=5_000,
            proposals=100_000,
            drafts=10_000,
            queued_messages=20_000,
            crons=10_000,
        ),
        PlanTier.ENTERPRISE: PlanLimits(
            workspaces=10_000,
            credentials=20_000,
            api_keys=10_000,
            agent_keys=100_000,
            proposals=1_000_000,
            drafts=100_000,
            queued_messages=100_000,
            crons=100_000,
        ),
    }
)
DEFAULT_TERMS: Final = BillingTerms(DEFAULT_PLANS)


def full(limit: int | None, holding: Holding, count: int) -> Refusal | None:
    """None when one more may be made where there are ``count``.

    >>> full(2, Holding.CRONS, 1), full(None, Holding.CRONS, 10**9)
    (None, None)
    >>> full(2, Holding.CRONS, 2).facts
    {'limit': 'crons', 'allowed': 2}
    """
    if limit is None or count < limit:
        return None
    name = holding.value.replace("_", " ")
    detail = f"The plan allows the tenant {limit} {name}: delete some, or go over to a larger plan."
    return Refusal("UZ-ENTL-005", detail, {"limit": holding.value, "allowed": limit})


def not_allowed(limits: PlanLimits, runtime: str, tools: Sequence[str]) -> Refusal | None:
    """None when the plan includes the agent's runtime and all of its tools.

    >>> not_allowed(PlanLimits(tools=("http_*",)), "agent", ["http_request", "shell"]).facts
    {'tools': ['shell']}
    """
    if limits.runtimes is not None and runtime not in limits.runtimes:
        detail = f"The plan does not include the runtime {runtime}."
        return Refusal("UZ-ENTL-004", detail, {"runtime": str(runtime)})
    if limits.tools is None:
        return None
    allowed = limits.tools
    missing = [tool for tool in tools if not any(fnmatchcase(tool, glob) for glob in allowed)]
    if not missing:
        return None
    return Refusal("UZ-ENTL-004", f"The plan does not include {', '.join(missing)}.", {"tools": missing})
