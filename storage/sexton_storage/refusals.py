"""Why a write or a claim is refused."""

import msgspec


class Lost(msgspec.Struct, frozen=True, gc=False):
    """The condition of the write no longer held; nothing was changed. Reload and decide again."""

    reason: str = ""


GONE = "gone"
"""The agent does not exist any more, or is killed."""
CHANGED = "changed"
"""The agent's record is not the one that the claim was made from."""
OTHER_VERSION = "other_version"
"""The next event asks for another version than the claim was made for."""
NOT_ACTIVE = "not_active"
LEASED = "leased"
PAUSED = "workspace_paused"
OVER_BUDGET = "over_budget"
"""What the agent may spend in the day or month is spent: its events wait for the next."""
NOT_GRANTED = "not_granted"
"""The agent may not be lent a credential that it needs: its events wait for a person."""
EMPTY = "empty"
NOT_YET = "not_yet"
"""The event that is next waits until a time: its run had found every model busy."""
RUNNER_FULL = "runner_full"
"""The runner holds as many leases as it has slots."""
RUNNER_BUSY = "runner_busy"
"""Another node claims for this runner at this moment."""
OUT_OF_SCOPE = "out_of_scope"
"""The runner is of another tenant or workspace than the agent."""
NO_SLOT = frozenset({RUNNER_FULL, RUNNER_BUSY})
NOT_FOR_RUNNER = NO_SLOT | {OUT_OF_SCOPE}
"""Nothing is wrong with the agent, and nothing is to be had by this runner: another may have it."""
FENCED = "fenced"
"""The lease is over, expired, or was succeeded by another."""
FULL = "full"
"""There is as much as there may be."""
SOURCE_CHANGED = "source_changed"
"""What an event was made from is gone, or is not what was read, or is being changed: read it again."""
STALE = "stale"
"""The row is at another version or status than the write had seen."""
