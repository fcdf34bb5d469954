"""How many events wait, by agent and workspace, and whether one more may."""

from collections import Counter
from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from sexton_actors.refusal import Refusal
from sexton_storage.records.events import AgentBacklog

FULL: Final = "UZ-EVENT-002"
AGAIN_S: Final = 30
AGENT, WORKSPACE, AGE = "agent", "workspace", "age"
DAY_S: Final = 86_400


class QueueBounds(msgspec.Struct, frozen=True):
    """What may wait; 0: as much as comes."""

    agent: int = 25_000
    """Events of one agent."""
    workspace: int = 100_000
    """Events of one workspace."""
    age_s: float = 30 * DAY_S
    """The age of an agent's oldest waiting event, beyond which it takes nothing more."""


class Waiting(msgspec.Struct, frozen=True):
    """What waits for one agent, and in its workspace."""

    agent: int = 0
    workspace: int = 0
    oldest_s: float = 0.0
    """The age of the agent's oldest; 0 where it is not known."""


def may_wait(bounds: QueueBounds, waiting: Waiting) -> Refusal | None:
    """Whether one more event may wait.

    >>> bounds = QueueBounds(agent=2, workspace=3, age_s=60)
    >>> may_wait(bounds, Waiting(agent=1, workspace=2, oldest_s=59)) is None
    True
    >>> [may_wait(bounds, one).facts["bound"] for one in (Waiting(2), Waiting(1, 3), Waiting(1, 1, 61))]
    ['agent', 'workspace', 'age']
    >>> may_wait(QueueBounds(agent=0, workspace=0, age_s=0), Waiting(10**6, 10**6, 10**9)) is None
    True
    """
    if 0 < bounds.agent <= waiting.agent:
        detail = f"{waiting.agent} events of the agent wait, and no more may."
        return _full(AGENT, detail)
    if 0 < bounds.workspace <= waiting.workspace:
        return _full(WORKSPACE, f"{waiting.workspace} events of the workspace wait, and no more may.")
    if 0 < bounds.age_s < waiting.oldest_s:
        return _full(AGE, f"The agent's oldest event has waited for {waiting.oldest_s:.0f} s.")
    return None


def _full(bound: str, detail: str) -> Refusal:
    return Refusal(FULL, detail, {"bound": bound}, AGAIN_S)


class Backlog:
    """One for a node: what the database counted at the last census, and what was done here since.

    So a webhook costs no question. What other nodes took in is known with the next census, seconds later.

    >>> backlog, agent, home = Backlog(), UUID(int=1), UUID(int=2)
    >>> backlog.begin_census()
    >>> backlog.add(agent, home)
    >>> backlog.end_census([AgentBacklog(agent, home, 5, 1000)])
    >>> backlog.waiting(agent, home, now=61_000)
    Waiting(agent=6, workspace=6, oldest_s=60.0)
    >>> backlog.take(agent, home)
    >>> backlog.waiting(agent, home, now=61_000)
    Waiting(agent=5, workspace=5, oldest_s=0.0)
    """

    def __init__(self, bounds: QueueBounds | None = None) -> None:
        self.bounds = bounds or QueueBounds()
        self._agents: Counter[UUID] = Counter()
        self._workspaces: Counter[UUID] = Counter()
        self._oldest_at: dict[UUID, int] = {}
        self.total = 0
        """All that waits."""
        self._since: Counter[tuple[UUID, UUID]] = Counter()
        """What was done since the census under way began; its count may have it or not."""

    def __repr__(self) -> str:
        return f"<Backlog {self.total} of {len(self._agents)} agents>"

    def waiting(self, zombie_id: UUID, workspace_id: UUID, *, now: int) -> Waiting:
        oldest_at = self._oldest_at.get(zombie_id, now)
        # An event that is released or reclaimed waits again, and is counted only by the next census.
        agent, workspace = max(0, self._agents[zombie_id]), max(0, self._workspaces[workspace_id])
        return Waiting(agent, workspace, max(0, now - oldest_at) / 1000)

    def add(self, zombie_id: UUID, workspace_id: UUID, count: int = 1) -> None:
        """One more waits, or, with -1, does not after all."""
        self.total += count
        self._agents[zombie_id] += count
        self._workspaces[workspace_id] += count
        self._since[zombie_id, workspace_id] += count

    def take(self, zombie_id: UUID, workspace_id: UUID) -> None:
        """The agent's oldest does not wait any longer."""
        self.add(zombie_id, workspace_id, -1)
        self._oldest_at.pop(zombie_id, None)

    def begin_census(self) -> None:
        """The database is asked now."""
        self._since.clear()

    def end_census(self, rows: Sequence[AgentBacklog]) -> None:
        """Take over what it counted, and what was done here meanwhile."""
        self._agents = Counter({row.zombie_id: row.waiting for row in rows})
        self._oldest_at = {row.zombie_id: row.oldest_event_at for row in rows}
        self._workspaces = Counter()
        for row in rows:
            self._workspaces[row.workspace_id] += row.waiting
        for (zombie_id, workspace_id), count in self._since.items():
            self._agents[zombie_id] += count
            self._workspaces[workspace_id] += count
        self.total = self._agents.total()
