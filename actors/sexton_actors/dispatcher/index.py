"""Which agent a runner gets next: fair between workspaces, then oldest first, at home if it can be.

Agents stand in classes by what they need of a runner. In each class the workspaces stand in a heap by how
often they were served, so that what an offer costs grows with the number of different needs, never with the
number of agents or workspaces that wait. Heaps are corrected late: an entry that is no longer true is dropped
or moved when it comes up.

A runner that is limited to a tenant looks only at that tenant's heap, and one that is limited to a workspace
only at its line. What they take is no turn of the workspace's with the runners that serve everybody: it
would wait there for all that it had of its own. Between its workspaces a tenant's runners are fair as well,
by turns that are counted for them alone.
"""

import heapq
from collections.abc import Callable, Iterable
from functools import partial
from uuid import UUID

from sexton_storage.offers import unmet
from sexton_storage.records.events import ReadyAgent
from sexton_storage.scopes import PLATFORM, Scope

HOME_WAIT_MS = 1_000
"""How much younger an agent may be than the oldest and still go first to the runner that ran it last."""
SLACK = 64
"""Entries that a heap may hold beyond twice those that are true, before it is rebuilt."""

Tags = tuple[str, ...]
Need = tuple[Tags, bool]
"""The labels and offers an agent needs, and whether it may run without a sandbox."""


class _ByAge:
    """Agents by the age of their oldest event."""

    __slots__ = ("_heap",)

    def __init__(self) -> None:
        self._heap: list[tuple[int, UUID]] = []

    def push(self, agent: ReadyAgent, agents: dict[UUID, ReadyAgent]) -> None:
        heapq.heappush(self._heap, (agent.oldest_event_at, agent.zombie_id))
        if len(self._heap) > 2 * len(agents) + SLACK:
            self._heap = [entry for entry in set(self._heap) if self._true(entry, agents)]
            heapq.heapify(self._heap)

    def oldest(self, agents: dict[UUID, ReadyAgent]) -> ReadyAgent | None:
        while self._heap:
            if self._true(self._heap[0], agents):
                return agents[self._heap[0][1]]
            heapq.heappop(self._heap)
        return None

    @staticmethod
    def _true(entry: tuple[int, UUID], agents: dict[UUID, ReadyAgent]) -> bool:
        agent = agents.get(entry[1])
        return agent is not None and agent.oldest_event_at == entry[0]


class _Line:
    """One workspace's ready agents of one class."""

    __slots__ = ("_by_age", "_homes", "agents")

    def __init__(self) -> None:
        self.agents: dict[UUID, ReadyAgent] = {}
        self._by_age = _ByAge()
        self._homes: dict[UUID, tuple[dict[UUID, ReadyAgent], _ByAge]] = {}

    def add(self, agent: ReadyAgent) -> None:
        self.agents[agent.zombie_id] = agent
        self._by_age.push(agent, self.agents)
        if agent.last_runner_id is not None:
            there, by_age = self._homes.setdefault(agent.last_runner_id, ({}, _ByAge()))
            there[agent.zombie_id] = agent
            by_age.push(agent, there)

    def remove(self, zombie_id: UUID) -> None:
        agent = self.agents.pop(zombie_id)
        if agent.last_runner_id is not None:
            there, _ = self._homes[agent.last_runner_id]
            del there[zombie_id]
            if not there:
                del self._homes[agent.last_runner_id]

    def oldest(self) -> ReadyAgent:
        oldest = self._by_age.oldest(self.agents)
        if oldest is None:
            raise LookupError("an empty line is not kept")
        return oldest

    def best(self, runner_id: UUID) -> ReadyAgent:
        """The oldest, or the oldest of those that this runner ran last if it is hardly younger."""
        oldest = self.oldest()
        there, by_age = self._homes.get(runner_id, ({}, None))
        mine = None if by_age is None else by_age.oldest(there)
        if mine is not None and mine.oldest_event_at <= oldest.oldest_event_at + HOME_WAIT_MS:
            return mine
        return oldest


Rank = tuple[int, int, UUID, UUID]
"""Turns had, then age, then the agent and its workspace."""


class _Front:
    """Lines of one need, of everybody or of one tenant, the one to be served next in front."""

    __slots__ = ("_heap", "_turns", "lines")

    def __init__(self, turns: Callable[[UUID], int]) -> None:
        self.lines: dict[UUID, _Line] = {}
        self._heap: list[Rank] = []
        self._turns = turns

    def push(self, oldest: ReadyAgent) -> None:
        heapq.heappush(self._heap, self.rank(oldest))
        if len(self._heap) > 2 * len(self.lines) + SLACK:
            self._heap = [self.rank(line.oldest()) for line in self.lines.values()]
            heapq.heapify(self._heap)

    def rank(self, oldest: ReadyAgent) -> Rank:
        workspace_id = oldest.workspace_id
        return (self._turns(workspace_id), oldest.oldest_event_at, oldest.zombie_id, workspace_id)

    def first(self) -> Rank | None:
        """The rank of the line to be served next; what moved back since it was pushed is put in its place."""
        while self._heap:
            front = self._heap[0]
            line = self.lines.get(front[3])
            if line is None:
                heapq.heappop(self._heap)
                continue
            now = self.rank(line.oldest())
            if now == front:
                return front
            heapq.heapreplace(self._heap, now)
        return None


class _Class:
    """All lines of one need, and each tenant's."""

    __slots__ = ("_of_tenant", "_own_turns", "_platform")

    def __init__(self, served: dict[UUID, int], own_turns: "_OwnTurns") -> None:
        self._platform = _Front(served.__getitem__)
        self._of_tenant: dict[UUID, _Front] = {}
        self._own_turns = own_turns

    @property
    def lines(self) -> dict[UUID, _Line]:
        return self._platform.lines

    def add(self, agent: ReadyAgent) -> None:
        line = self.lines.setdefault(agent.workspace_id, _Line())
        line.add(agent)
        theirs = self._of_tenant.get(agent.tenant_id)
        if theirs is None:
            theirs = self._of_tenant[agent.tenant_id] = _Front(partial(self._own_turns.had, agent.tenant_id))
        theirs.lines[agent.workspace_id] = line
        if line.oldest() is agent:
            self._platform.push(agent)
            theirs.push(agent)

    def first(self, scope: Scope = PLATFORM) -> Rank | None:
        """The rank of the line to be served next of those in the scope."""
        if scope.tenant_id is None:
            return self._platform.first()
        theirs = self._of_tenant.get(scope.tenant_id)
        if theirs is None or scope.workspace_id is None:
            return None if theirs is None else theirs.first()
        line = theirs.lines.get(scope.workspace_id)
        return None if line is None else theirs.rank(line.oldest())

    def remove(self, zombie_id: UUID, tenant_id: UUID, workspace_id: UUID) -> None:
        line = self.lines[workspace_id]
        line.remove(zombie_id)
        if line.agents:
            return
        del self.lines[workspace_id]
        theirs = self._of_tenant[tenant_id]
        del theirs.lines[workspace_id]
        if not theirs.lines:
            del self._of_tenant[tenant_id]


class _Turns:
    """How often one tenant's workspaces were served by its own runners."""

    __slots__ = ("_floor", "_forget_at", "_served")

    def __init__(self) -> None:
        self._served: dict[UUID, int] = {}
        self._floor = 0
        self._forget_at = SLACK

    def had(self, workspace_id: UUID) -> int:
        """Who comes later than the others starts level with who was served last."""
        return max(self._floor, self._served.get(workspace_id, 0))

    def count(self, workspace_id: UUID) -> None:
        self._floor = self.had(workspace_id)
        self._served[workspace_id] = self._floor + 1
        if len(self._served) > self._forget_at:
            self._served = {key: count for key, count in self._served.items() if count > self._floor}
            self._forget_at = 2 * len(self._served) + SLACK


class _OwnTurns:
    """The turns of the tenants that have runners of their own; no tenant's count touches another's."""

    def __init__(self) -> None:
        self._of_tenant: dict[UUID, _Turns] = {}

    def had(self, tenant_id: UUID, workspace_id: UUID) -> int:
        turns = self._of_tenant.get(tenant_id)
        return 0 if turns is None else turns.had(workspace_id)

    def count(self, tenant_id: UUID, workspace_id: UUID) -> None:
        self._of_tenant.setdefault(tenant_id, _Turns()).count(workspace_id)


class ReadyIndex:
    """All ready agents of this node's view."""

    def __init__(self) -> None:
        self._classes: dict[Need, _Class] = {}
        self._where: dict[UUID, tuple[Need, UUID, UUID]] = {}
        self._own_turns = _OwnTurns()
        self._served: dict[UUID, int] = {}
        self._floor = 0
        self._forget_at = SLACK

    def __len__(self) -> int:
        return len(self._where)

    def __contains__(self, zombie_id: UUID) -> bool:
        return zombie_id in self._where

    def __repr__(self) -> str:
        return f"<ReadyIndex {len(self._where)} agents, {len(self._classes)} needs>"

    def keys(self) -> Iterable[UUID]:
        """The agents that are in."""
        return self._where.keys()

    def add(self, agent: ReadyAgent) -> None:
        """Put an agent in, replacing what was known of it."""
        self.remove(agent.zombie_id)
        need = need_of(agent)
        waiting = self._classes.get(need)
        if waiting is None:
            waiting = self._classes[need] = _Class(self._served, self._own_turns)
        # A workspace that had nothing to do has no credit for it: it starts level with those who wait beside
        # it.
        first = waiting.first()
        floor = self._floor if first is None else first[0]
        self._served[agent.workspace_id] = max(self._served.get(agent.workspace_id, 0), floor)
        self._where[agent.zombie_id] = (need, agent.tenant_id, agent.workspace_id)
        waiting.add(agent)

    def remove(self, zombie_id: UUID) -> None:
        """Take an agent out; nothing happens when it is not in."""
        where = self._where.pop(zombie_id, None)
        if where is None:
            return
        need, tenant_id, workspace_id = where
        self._classes[need].remove(zombie_id, tenant_id, workspace_id)
        if not self._classes[need].lines:
            del self._classes[need]

    def next(
        self, runner_id: UUID, labels: frozenset[str], *, unsandboxed: bool, scope: Scope = PLATFORM
    ) -> ReadyAgent | None:
        """The agent that ``take`` would give; it stays in."""
        best = self._best(labels, unsandboxed=unsandboxed, scope=scope)
        if best is None:
            return None
        (_, _, _, workspace_id), need = best
        return self._classes[need].lines[workspace_id].best(runner_id)

    def _best(self, labels: frozenset[str], *, unsandboxed: bool, scope: Scope) -> tuple[Rank, Need] | None:
        """The line to be served next, of those that have agents for such a runner."""
        eligible = (
            (rank, need)
            for need, waiting in self._classes.items()
            if admits(labels, need, unsandboxed=unsandboxed) and (rank := waiting.first(scope)) is not None
        )
        return min(eligible, default=None)

    def take(
        self, runner_id: UUID, labels: frozenset[str], *, unsandboxed: bool, scope: Scope = PLATFORM
    ) -> ReadyAgent | None:
        """The next agent for this runner, taken out; None when it may run none of them."""
        best = self._best(labels, unsandboxed=unsandboxed, scope=scope)
        if best is None:
            return None
        (served, _, _, workspace_id), need = best
        agent = self._classes[need].lines[workspace_id].best(runner_id)
        self.remove(agent.zombie_id)
        if scope.tenant_id is not None:
            if scope.workspace_id is None:
                self._own_turns.count(scope.tenant_id, workspace_id)
            return agent
        self._served[workspace_id] = served + 1
        # With nobody left beside it, whoever comes next starts level with the one that was just served.
        self._floor = served if need in self._classes else served + 1
        self._forget_served()
        return agent

    def _forget_served(self) -> None:
        # A count that is not above the floor says nothing; those above it are kept, or a workspace that is
        # empty for a moment after each of its turns would always come first.
        if len(self._served) <= self._forget_at:
            return
        here = {workspace_id for _, _, workspace_id in self._where.values()}
        for workspace_id, served in tuple(self._served.items()):
            if served <= self._floor and workspace_id not in here:
                del self._served[workspace_id]
        self._forget_at = 2 * len(self._served) + SLACK

    def oldest_event_at(self) -> int | None:
        """When the event that has waited longest came; None when none waits."""
        times = [line.oldest().oldest_event_at for c in self._classes.values() for line in c.lines.values()]
        return min(times, default=None)

    def by_tags(self) -> dict[Tags, int]:
        """How many agents wait, by the labels they need."""
        counts: dict[Tags, int] = {}
        for (tags, _), waiting in self._classes.items():
            here = sum(len(line.agents) for line in waiting.lines.values())
            counts[tags] = counts.get(tags, 0) + here
        return counts


def need_of(agent: ReadyAgent) -> Need:
    """What the agent needs of a runner."""
    return tuple(sorted(agent.required_tags)), agent.allows_unsandboxed


def admits(labels: frozenset[str], need: Need, *, unsandboxed: bool) -> bool:
    """Whether a runner with these labels and offers, and perhaps without a sandbox, may run such agents.

    >>> admits(frozenset({"gpu", "linux"}), (("gpu",), False), unsandboxed=False)
    True
    >>> admits(frozenset({"gpu"}), (("gpu",), False), unsandboxed=True)
    False
    >>> admits(frozenset({"memory<=1024MiB"}), (("memory>=512MiB",), False), unsandboxed=False)
    True
    """
    tags, allows_unsandboxed = need
    return (allows_unsandboxed or not unsandboxed) and (labels.issuperset(tags) or not unmet(labels, tags))
