"""What people ask of one event: what became of each attempt, and what it waits for; and of the last hour."""

from collections.abc import Sequence
from typing import Final, Protocol
from uuid import UUID

import msgspec

from sexton_storage.records.events import Event
from sexton_storage.records.gates import Gate
from sexton_storage.records.leases import Lease
from sexton_storage.records.runners import AdminState
from sexton_storage.records.zombies import Zombie

AHEAD_CAP: Final = 10_000
"""Events before one are counted up to here."""
RUNNERS_CAP: Final = 1_000
"""Runners that are looked at for one that could take an event; the newest."""
LONGEST_CAP: Final = 20
"""Agents that are named of those whose events have waited longest."""
STARTS_WINDOW_MS: Final = 600_000
"""How far back it is looked how often runners took events."""
STARTS_CAP: Final = 50
"""The newest of them that are counted of each runner."""
ATTEMPTS_CAP: Final = 50
"""The newest attempts and gates that are told of an event."""


MINUTE_MS: Final = 60_000
SLACK_BAND_MS: Final = 5_000
SLACK_CAP: Final = 10_000
"""Leases whose slack is looked at."""


class Attempt(msgspec.Struct, frozen=True, gc=False):
    lease: Lease
    charged_nanos: int
    """The sum of its metering rows."""


class EventHistory(msgspec.Struct, frozen=True):
    """What became of an event, oldest first; of more than ``ATTEMPTS_CAP`` the newest."""

    attempts: tuple[Attempt, ...] = ()
    gates: tuple[Gate, ...] = ()


class RunnerState(msgspec.Struct, frozen=True, gc=False):
    """A runner, as far as it matters to those who wait for one."""

    id: UUID
    abilities: tuple[str, ...]
    """The labels and offers of the runner."""
    sandbox_tier: str
    admin_state: AdminState
    last_seen_at: int | None
    slots: int
    held: int
    """Live leases."""
    starts: int
    """Leases that it took since ``starts_since``; at most ``STARTS_CAP``."""
    starts_since: int


class EventSituation(msgspec.Struct, frozen=True):
    """All that an event could wait for, as it stands at one moment."""

    event: Event
    agent: Zombie
    at: int
    """The database's clock, in ms."""
    workspace_paused: bool
    has_credit: bool
    spent_day: int
    spent_month: int
    running: Lease | None
    """The live lease of the agent, of whichever event."""
    ahead_of_agent: int
    """Received events of the agent that come before it; up to ``AHEAD_CAP``."""
    first_of_agent: UUID | None
    """The received event of the agent that comes first."""
    first_retry_at: int | None
    """Until then that one waits, and all behind it."""
    ahead: int
    """Older events of other agents that need the same of a runner and may run; up to ``AHEAD_CAP``."""
    gates: tuple[Gate, ...]
    """The pending ones of the event, oldest first."""
    runners: tuple[RunnerState, ...]
    """Those in whose scope the agent is, whatever they can; by id."""


class MinuteOfEvents(msgspec.Struct, frozen=True, gc=False):
    """The events of a workspace that came within one minute, and what became of them so far."""

    at: int
    """When the minute began, in ms."""
    came: int
    done: int
    failed: int
    """Ended in an error, or given up."""
    charged_nanos: int
    longest_wait_ms: int
    """From coming to the first lease; 0 where none was leased yet."""


class TagsWaiting(msgspec.Struct, frozen=True, gc=False):
    """Events of a workspace that wait for a runner, of the agents that need the same labels of one."""

    required_tags: tuple[str, ...]
    events: int
    """Stopped agents' events are among them."""
    oldest_at: int | None
    """When the oldest of them came whose agent may run."""


class AgentWaiting(msgspec.Struct, frozen=True, gc=False):
    """An agent with events that wait."""

    zombie_id: UUID
    name: str
    events: int
    oldest_id: UUID
    """The event of the agent that comes first."""
    oldest_at: int
    """When that one came, in ms."""


class TagsMinute(msgspec.Struct, frozen=True, gc=False):
    """Events with the same needs that came within one minute, whatever became of them."""

    required_tags: tuple[str, ...]
    oldest_at: int
    """When the first of them came."""
    left_at: int | None
    """When the last of them was leased for the first time, or ended without a lease; None: one waits."""


class SlackBand(msgspec.Struct, frozen=True, gc=False):
    """Leases that have about the same time left."""

    from_ms: int
    """They have this much left, and less than ``SLACK_BAND_MS`` more; 0 takes in those that are overdue."""
    leases: int
    least_ms: int
    """What the one has left that has the least; below 0 it is about to be taken back."""


class QueueLook(msgspec.Struct, frozen=True):
    """What waits in a workspace, how long things have waited of late, and what its leases have left."""

    at: int
    """The database's clock, in ms."""
    waiting: tuple[TagsWaiting, ...]
    longest: tuple[AgentWaiting, ...]
    """The ``LONGEST_CAP`` agents whose oldest event came first, whether or not they may run."""
    minutes: tuple[TagsMinute, ...]
    slack: tuple[SlackBand, ...]
    """Those with leases, the least first."""


class InsightStore(Protocol):
    async def history(self, event_id: UUID) -> EventHistory:
        """The leases and the gates of an event, as they stand at one moment."""
        ...

    async def situation(self, event_id: UUID) -> EventSituation | None:
        """None when there is no such event."""
        ...

    async def throughput(self, workspace_id: UUID, *, since: int, limit: int) -> Sequence[MinuteOfEvents]:
        """The minutes in which events came since then, oldest first; of more than ``limit`` the newest."""
        ...

    async def queue(self, workspace_id: UUID, *, since: int, limit: int) -> QueueLook:
        """What waits now, of the ``limit`` oldest; and minutes since then, of the ``limit`` newest events."""
        ...
