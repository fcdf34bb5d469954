"""Which agent a runner gets next: fair between workspaces, then oldest first, at home if it can be.

Agents stand in classes by their required tags, so what an offer costs grows with the number of different tag sets
and of workspaces that have work, never with the number of agents that sleep or wait.
"""

import heapq
from collections import OrderedDict
from collections.abc import Iterator
from uuid import UUID

from sexton_storage.records import ReadyAgent

HOME_WAIT_MS = 1_000
"""How much younger an agent may be than the oldest and still go first to the runner that ran it last."""

Tags = tuple[str, ...]


class _Line:
    """One workspace's ready agents of one tag set, oldest first; removal is lazy."""

    __slots__ = ("agents", "heap", "homes")

    def __init__(self) -> None:
        self.agents: dict[UUID, ReadyAgent] = {}
        self.heap: list[tuple[int, UUID]] = []
        self.homes: dict[UUID, OrderedDict[UUID, None]] = {}

    def add(self, agent: ReadyAgent) -> None:
        self.agents[agent.zombie_id] = agent
        heapq.heappush(self.heap, (agent.oldest_event_at, agent.zombie_id))
        if agent.last_runner_id is not None:
            self.homes.setdefault(agent.last_runner_id, OrderedDict())[agent.zombie_id] = None

    def remove(self, zombie_id: UUID) -> None:
        agent = self.agents.pop(zombie_id)
        if agent.last_runner_id is not None:
            at_home = self.homes[agent.last_runner_id]
            del at_home[zombie_id]
            if not at_home:
                del self.homes[agent.last_runner_id]
        # Most of the heap may be entries of agents long gone: then it is cheaper to build it anew.
        if len(self.heap) > 2 * len(self.agents) + 64:
            self.heap = [(a.oldest_event_at, a.zombie_id) for a in self.agents.values()]
            heapq.heapify(self.heap)

    def oldest(self) -> ReadyAgent:
        while True:
            at, zombie_id = self.heap[0]
            agent = self.agents.get(zombie_id)
            if agent is not None and agent.oldest_event_at == at:
                return agent
            heapq.heappop(self.heap)

    def best(self, runner_id: UUID) -> ReadyAgent:
        oldest = self.oldest()
        at_home = self.homes.get(runner_id)
        if at_home:
            mine = self.agents[next(iter(at_home))]
            if mine.oldest_event_at <= oldest.oldest_event_at + HOME_WAIT_MS:
                return mine
        return oldest


class ReadyIndex:
    """All ready agents of this node's view."""

    def __init__(self) -> None:
        self._lines: dict[Tags, dict[UUID, _Line]] = {}
        self._where: dict[UUID, tuple[Tags, UUID]] = {}
        self._served: dict[UUID, int] = {}
        self._floor = 0

    def __len__(self) -> int:
        return len(self._where)

    def __contains__(self, zombie_id: UUID) -> bool:
        return zombie_id in self._where

    def __repr__(self) -> str:
        return f"<ReadyIndex {len(self._where)} agents, {len(self._lines)} tag sets>"

    def add(self, agent: ReadyAgent) -> None:
        """Put an agent in, in the place of what was known of it."""
        self.remove(agent.zombie_id)
        tags = tuple(sorted(agent.required_tags))
        lines = self._lines.setdefault(tags, {})
        lines.setdefault(agent.workspace_id, _Line()).add(agent)
        self._where[agent.zombie_id] = (tags, agent.workspace_id)
        # A workspace that had nothing to do has no credit for it: it starts level with those being served.
        self._served[agent.workspace_id] = max(self._served.get(agent.workspace_id, 0), self._floor)

    def remove(self, zombie_id: UUID) -> None:
        """Take an agent out; nothing happens when it is not in."""
        where = self._where.pop(zombie_id, None)
        if where is None:
            return
        tags, workspace_id = where
        line = self._lines[tags][workspace_id]
        line.remove(zombie_id)
        if not line.agents:
            del self._lines[tags][workspace_id]
            if not self._lines[tags]:
                del self._lines[tags]

    def take(self, runner_id: UUID, labels: frozenset[str], *, unsandboxed: bool) -> ReadyAgent | None:
        """The next agent for this runner, taken out; None when it may run none of them."""
        best: tuple[int, int, UUID] | None = None
        agent: ReadyAgent | None = None
        for workspace_id, candidate in self._candidates(runner_id, labels, unsandboxed=unsandboxed):
            rank = (self._served[workspace_id], candidate.oldest_event_at, candidate.zombie_id)
            if best is None or rank < best:
                best, agent = rank, candidate
        if agent is None:
            return None
        self.remove(agent.zombie_id)
        self._floor = self._served[agent.workspace_id]
        self._served[agent.workspace_id] += 1
        return agent

    def _candidates(
        self, runner_id: UUID, labels: frozenset[str], *, unsandboxed: bool
    ) -> Iterator[tuple[UUID, ReadyAgent]]:
        for tags, lines in self._lines.items():
            if not labels.issuperset(tags):
                continue
            for workspace_id, line in lines.items():
                candidate = line.best(runner_id)
                if not unsandboxed or candidate.allows_unsandboxed:
                    yield workspace_id, candidate

    def oldest_event_at(self) -> int | None:
        """When the event that has waited longest came; None when none waits."""
        times = [line.oldest().oldest_event_at for lines in self._lines.values() for line in lines.values()]
        return min(times, default=None)

    def by_tags(self) -> dict[Tags, int]:
        """How many agents wait, by the labels they need."""
        return {tags: sum(len(line.agents) for line in lines.values()) for tags, lines in self._lines.items()}

    def remove_tenant(self, tenant_id: UUID) -> int:
        """Take out all agents of one tenant; how many that were."""
        gone = [
            agent.zombie_id
            for lines in self._lines.values()
            for line in lines.values()
            for agent in line.agents.values()
            if agent.tenant_id == tenant_id
        ]
        for zombie_id in gone:
            self.remove(zombie_id)
        return len(gone)
