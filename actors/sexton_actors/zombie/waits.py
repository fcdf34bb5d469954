"""Says what an agent's open events wait for."""

from enum import StrEnum

from sexton_storage.records.events import EventWaits
from sexton_storage.records.zombies import ZombieStatus


class WaitingFor(StrEnum):
    """What has to happen before the agent works again."""

    ACTIVATION = "activation"
    """It is stopped or paused, and has events."""
    WORKSPACE = "workspace"
    """The agent's workspace is paused."""
    CREDIT = "credit"
    """The tenant's balance is used up."""
    GRANT = "grant"
    """A credential that its files name has to be granted first."""
    BUDGET = "budget"
    """It has spent what it may in the day or month."""
    APPROVAL = "approval"
    """A person has to decide."""
    RUNNER = "runner"
    """An event could run, and no runner has taken it yet."""


def waiting_for(
    status: ZombieStatus,
    waits: EventWaits,
    *,
    is_over_budget: bool,
    is_workspace_paused: bool,
    is_withheld: bool = False,
) -> WaitingFor | None:
    """None when nothing waits, or when what waits does so behind a run.

    >>> waits = EventWaits(blocked=True)
    >>> waiting_for(ZombieStatus.ACTIVE, waits, is_over_budget=False, is_workspace_paused=False)
    <WaitingFor.CREDIT: 'credit'>
    >>> waiting_for(ZombieStatus.ACTIVE, EventWaits(), is_over_budget=True, is_workspace_paused=True)
    """
    if status is ZombieStatus.KILLED or not (waits.received or waits.blocked or waits.approval):
        return None
    if status is not ZombieStatus.ACTIVE:
        return WaitingFor.ACTIVATION
    if is_workspace_paused:
        return WaitingFor.WORKSPACE
    if waits.blocked:
        return WaitingFor.CREDIT
    if waits.received and is_withheld:
        return WaitingFor.GRANT
    if waits.received and is_over_budget:
        return WaitingFor.BUDGET
    if waits.approval:
        return WaitingFor.APPROVAL
    return None if waits.running else WaitingFor.RUNNER
