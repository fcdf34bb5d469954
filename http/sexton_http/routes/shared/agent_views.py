"""Agents as they are shown."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from sexton_actors.amounts import NANOS_PER_DOLLAR
from sexton_actors.canaries.record import canary_on_trial
from sexton_actors.pins import Pin
from sexton_actors.webhooks.trigger_view import filled_in
from sexton_actors.zombie.waits import WaitingFor
from sexton_http.bodies.shapes import Shape
from sexton_storage.records.zombies import AgentSummary, Zombie, ZombieStatus


class ZombieItem(Shape):
    id: UUID
    zombie_id: UUID
    name: str
    status: ZombieStatus
    required_tags: tuple[str, ...]
    triggers: list[Mapping[str, Any]]
    created_at: int
    updated_at: int
    last_event_at: int | None


class ZombiePage(Shape):
    items: list[ZombieItem]
    total: int
    """The number of all agents in the workspace."""
    cursor: str | None
    next_cursor: str | None


class Spend(Shape):
    day_nanos: int
    month_nanos: int


class BudgetItem(Shape):
    """As it is declared, and in nanos as it is counted."""

    daily_dollars: float
    monthly_dollars: float | None
    daily_nanos: int
    monthly_nanos: int | None


class AgentPin(Shape):
    """The version that an agent is pinned to."""

    version: int
    held_version: int | None
    """The newest files that it was given since: they wait as this version; null: it was given none."""
    by: str
    at: int
    reason: str


class AgentTrial(Shape):
    """The version of an agent that is on trial; `GET …/canary` says more."""

    version: int
    config_version_id: UUID
    share: int
    """Percent of the agent's events."""


class ZombieRecord(ZombieItem):
    workspace_id: UUID
    source_markdown: str
    trigger_markdown: str
    config_version_id: UUID
    config_revision: int
    budget: BudgetItem | None
    spend: Spend
    """In the UTC day and month of now."""
    waiting_for: WaitingFor | None
    """What has to happen before it works again; null when nothing waits, or only behind a run."""
    unmet_needs: tuple[str, ...]
    """What the runner that comes nearest lacks of `required_tags`, while the agent waits for a runner."""
    webhook_urls: Mapping[str, str]
    """Trigger source to its address. A secret in an address was shown once; here it is `zwh_***`."""
    pin: AgentPin | None
    """Null: it is pinned to no version."""
    on_trial: AgentTrial | None
    """Null: none of its versions is on trial."""


def view_agent(agent: AgentSummary) -> ZombieItem:
    """As a list shows it."""
    return ZombieItem(
        id=agent.id,
        zombie_id=agent.id,
        name=agent.name,
        status=agent.status,
        required_tags=agent.required_tags,
        triggers=[filled_in(trigger) for trigger in agent.triggers],
        created_at=agent.created_at,
        updated_at=agent.updated_at,
        last_event_at=agent.last_event_at,
    )


def view_pin(pin: Pin | None) -> AgentPin | None:
    return None if pin is None else AgentPin(pin.version, pin.held_version, pin.by, pin.at, pin.reason)


def view_trial(zombie: Zombie) -> AgentTrial | None:
    canary = canary_on_trial(zombie.canary)
    return None if canary is None else AgentTrial(canary.version, canary.config_version_id, canary.share)


def budget_of(zombie: Zombie) -> BudgetItem | None:
    """What its files allow it to spend; None: all that its tenant may."""
    kept = zombie.compiled.get("budget")
    if kept is None:
        return None
    daily, monthly = kept["daily_nanos"], kept["monthly_nanos"]
    dollars = None if monthly is None else monthly / NANOS_PER_DOLLAR
    return BudgetItem(daily / NANOS_PER_DOLLAR, dollars, daily, monthly)


def is_over(budget: BudgetItem | None, day: int, month: int) -> bool:
    """Whether what was spent in the day or the month, in nanos, is as much as may be."""
    if budget is None:
        return False
    return day >= budget.daily_nanos or (budget.monthly_nanos is not None and month >= budget.monthly_nanos)
