"""Reads the file that says what plans allow and how long the free trial lasts."""

import tomllib
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from sexton_actors.amounts import NANOS_PER_DOLLAR
from sexton_actors.manifest.model import Runtime
from sexton_actors.plans import DEFAULT_PLANS, DEFAULT_TERMS, STARTER_CREDIT_NANOS, BillingTerms, PlanLimits
from sexton_actors.terms import RUN_NANOS_PER_SEC
from sexton_cli.exits import CONFIG, StartupFault
from sexton_storage.records.tenants import PlanTier

BILLING_FILE: Final = "billing.toml"
"""In the data folder, where no other is named."""

Bound = Annotated[int, msgspec.Meta(ge=0, le=10**9)] | Annotated[str, msgspec.Meta(pattern="^unlimited$")]
Pace = Annotated[int, msgspec.Meta(ge=1, le=10**6)] | Annotated[str, msgspec.Meta(pattern="^unlimited$")]
Days = Annotated[int, msgspec.Meta(ge=1, le=36_500)] | Annotated[str, msgspec.Meta(pattern="^unlimited$")]
# No pattern: where a list may also be a text that has one, msgspec frees the wrong memory, and the process
# ends by SIGSEGV. See docs/explanation/msgspec-union-fault.md.
All = Literal["all"]
NO_BOUND: Final = frozenset({"unlimited", "all"})


class _Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is left out stays as it is without the file."""

    requests_per_second: Pace | msgspec.UnsetType = msgspec.UNSET
    workspaces: Bound | msgspec.UnsetType = msgspec.UNSET
    agents_per_workspace: Bound | msgspec.UnsetType = msgspec.UNSET
    events_per_day: Bound | msgspec.UnsetType = msgspec.UNSET
    tools: list[str] | All | msgspec.UnsetType = msgspec.UNSET
    runtimes: list[Runtime] | All | msgspec.UnsetType = msgspec.UNSET
    credentials: Bound | msgspec.UnsetType = msgspec.UNSET
    api_keys: Bound | msgspec.UnsetType = msgspec.UNSET
    agent_keys: Bound | msgspec.UnsetType = msgspec.UNSET
    proposals: Bound | msgspec.UnsetType = msgspec.UNSET
    drafts: Bound | msgspec.UnsetType = msgspec.UNSET
    queued_messages: Bound | msgspec.UnsetType = msgspec.UNSET
    crons: Bound | msgspec.UnsetType = msgspec.UNSET
    event_days: Days | msgspec.UnsetType = msgspec.UNSET
    transcript_days: Days | msgspec.UnsetType = msgspec.UNSET
    file_days: Days | msgspec.UnsetType = msgspec.UNSET
    delivery_days: Days | msgspec.UnsetType = msgspec.UNSET


class _Trial(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    ends: datetime
    dollars_per_hour: Annotated[float, msgspec.Meta(ge=0, le=1000)] = 0.0


Dollars = Annotated[float, msgspec.Meta(ge=0, le=10**6)] | Annotated[str, msgspec.Meta(pattern="^unlimited$")]


class _Credit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What tenants begin with."""

    first_tenant_dollars: Dollars = "unlimited"
    sign_in_dollars: Dollars = STARTER_CREDIT_NANOS / NANOS_PER_DOLLAR


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    plans: dict[PlanTier, _Plan] = msgspec.field(default_factory=dict)
    credit: _Credit = _Credit()
    free_trial: _Trial | None = None


def load_terms(path: Path | None, data: Path) -> BillingTerms:
    """The operator's file (None: that of the data folder, if there is one). Raises StartupFault."""
    file = data / BILLING_FILE if path is None else path
    if path is None and not file.exists():
        return DEFAULT_TERMS
    try:
        return read_terms(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        what, way_out = f"{file}: {fault}", "Fix the file, or give another with --billing"
        raise StartupFault("UZ-STARTUP-002", what, way_out, CONFIG) from fault


def read_terms(text: str) -> BillingTerms:
    """Raises ValueError that says where the mistake is."""
    file = msgspec.convert(tomllib.loads(text), _File)
    plans = {tier: _changed(limits, file.plans.get(tier, _Plan())) for tier, limits in DEFAULT_PLANS.items()}
    trial = file.free_trial
    terms = BillingTerms(
        plans,
        first_tenant_nanos=_nanos(file.credit.first_tenant_dollars),
        sign_in_nanos=_nanos(file.credit.sign_in_dollars),
    )
    if trial is None:
        return terms
    if trial.ends.tzinfo is None:
        raise ValueError("free_trial.ends has no time zone: write 2027-01-01T00:00:00Z")
    rate = round(trial.dollars_per_hour * NANOS_PER_DOLLAR / 3600)
    return msgspec.structs.replace(
        terms,
        free_trial_ends_ms=round(trial.ends.timestamp() * 1000),
        free_trial_nanos_per_sec=min(rate, RUN_NANOS_PER_SEC),
    )


def _nanos(dollars: float | str) -> int | None:
    return None if isinstance(dollars, str) else round(dollars * NANOS_PER_DOLLAR)


def _changed(limits: PlanLimits, given: _Plan) -> PlanLimits:
    changes = {
        name: None if isinstance(value, str) and value in NO_BOUND else value
        for name in given.__struct_fields__
        if not isinstance(value := _plain(getattr(given, name)), msgspec.UnsetType)
    }
    return msgspec.structs.replace(limits, **changes)


def _plain(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value
