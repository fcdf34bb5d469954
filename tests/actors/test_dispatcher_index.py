"""The index of ready agents does what a plain list would do, only faster."""

from uuid import UUID

from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sexton_actors.dispatcher.index import HOME_WAIT_MS, ReadyIndex
from sexton_storage.records.events import ReadyAgent
from sexton_storage.scopes import PLATFORM, Scope, is_within
from tests.thorough import examples

TAGS = [(), ("gpu",), ("gpu", "linux")]
RUNNERS = [UUID(int=n) for n in (101, 102)]
SCOPES = [
    PLATFORM,
    Scope(UUID(int=1)),
    Scope(UUID(int=2)),
    Scope(UUID(int=1), UUID(int=1002)),
    Scope(UUID(int=9)),
]
LABELS = [frozenset(), frozenset({"gpu"}), frozenset({"linux", "gpu", "eu"})]


def agent(
    number: int,
    workspace: int = 1,
    at: int = 0,
    tags: tuple[str, ...] = (),
    home: UUID | None = None,
    *,
    unsandboxed: bool = False,
) -> ReadyAgent:
    tenant = tenant_of(workspace)
    return ReadyAgent(UUID(int=number), UUID(int=1000 + workspace), tenant, tags, unsandboxed, at, home)


def tenant_of(workspace: int) -> UUID:
    """Two of the three workspaces are of one tenant."""
    return UUID(int=2 if workspace == 3 else 1)


agents = st.builds(
    agent,
    st.integers(1, 12),
    st.integers(1, 3),
    st.integers(0, 4).map(lambda n: n * 600),
    st.sampled_from(TAGS),
    st.none() | st.sampled_from(RUNNERS),
    unsandboxed=st.booleans(),
)


class IndexAgainstList(RuleBasedStateMachine):
    """The model ranks every agent again for each offer."""

    def __init__(self) -> None:
        super().__init__()
        self.index = ReadyIndex()
        self.waiting: dict[UUID, ReadyAgent] = {}
        self.served: dict[UUID, int] = {}
        self.floor = 0
        self.own: dict[UUID, dict[UUID, int]] = {}
        self.own_floors: dict[UUID, int] = {}

    @rule(ready=agents)
    def add(self, ready: ReadyAgent) -> None:
        self.index.add(ready)
        self.waiting.pop(ready.zombie_id, None)
        beside = [self.served[a.workspace_id] for a in self.waiting.values() if need(a) == need(ready)]
        level = min(beside, default=self.floor)
        self.served[ready.workspace_id] = max(self.served.get(ready.workspace_id, 0), level)
        self.waiting[ready.zombie_id] = ready

    @rule(number=st.integers(1, 12))
    def remove(self, number: int) -> None:
        self.index.remove(UUID(int=number))
        self.waiting.pop(UUID(int=number), None)

    @rule(
        runner=st.sampled_from(RUNNERS),
        labels=st.sampled_from(LABELS),
        bare=st.booleans(),
        scope=st.sampled_from(SCOPES),
    )
    def take(self, runner: UUID, labels: frozenset[str], bare: bool, scope: Scope) -> None:
        taken = self.index.take(runner, labels, unsandboxed=bare, scope=scope)
        expected = self.expected(runner, labels, scope, bare=bare)
        assert taken == expected
        if expected is None:
            return
        del self.waiting[expected.zombie_id]
        if scope.tenant_id is None:
            left = any(need(a) == need(expected) for a in self.waiting.values())
            self.floor = self.served[expected.workspace_id] + (not left)
            self.served[expected.workspace_id] += 1
        elif scope.workspace_id is None:
            had = self.own_floors[scope.tenant_id] = self.turns(expected, scope)
            self.own.setdefault(scope.tenant_id, {})[expected.workspace_id] = had + 1

    def turns(self, ready: ReadyAgent, scope: Scope) -> int:
        if scope.tenant_id is None:
            return self.served[ready.workspace_id]
        own = self.own.get(ready.tenant_id, {}).get(ready.workspace_id, 0)
        return max(own, self.own_floors.get(ready.tenant_id, 0))

    def expected(
        self, runner: UUID, labels: frozenset[str], scope: Scope, *, bare: bool
    ) -> ReadyAgent | None:
        mine = [
            a
            for a in self.waiting.values()
            if set(a.required_tags) <= labels
            and (a.allows_unsandboxed or not bare)
            and is_within(scope, a.tenant_id, a.workspace_id)
        ]
        if not mine:
            return None
        first = min(mine, key=lambda a: (self.turns(a, scope), a.oldest_event_at, a.zombie_id))
        line = [a for a in mine if a.workspace_id == first.workspace_id and need(a) == need(first)]
        home = [a for a in line if a.last_runner_id == runner]
        nearest = min(home, key=lambda a: (a.oldest_event_at, a.zombie_id), default=first)
        close = nearest.oldest_event_at <= first.oldest_event_at + HOME_WAIT_MS
        return nearest if close else first

    @invariant()
    def nothing_is_lost_or_doubled(self) -> None:
        assert set(self.index.keys()) == set(self.waiting)
        assert len(self.index) == len(self.waiting)
        assert sum(self.index.by_tags().values()) == len(self.waiting)
        oldest = min((a.oldest_event_at for a in self.waiting.values()), default=None)
        assert self.index.oldest_event_at() == oldest


def need(ready: ReadyAgent) -> tuple[tuple[str, ...], bool]:
    return tuple(sorted(ready.required_tags)), ready.allows_unsandboxed


TestIndexAgainstList = IndexAgainstList.TestCase
TestIndexAgainstList.settings = settings(max_examples=examples(150), stateful_step_count=40, deadline=None)

ANY: frozenset[str] = frozenset()


def test_a_flood_of_one_workspace_does_not_delay_another_by_more_than_a_turn() -> None:
    index = ReadyIndex()
    for number in range(1000):
        index.add(agent(number + 1, workspace=1, at=number))
    for _ in range(100):
        index.take(RUNNERS[0], ANY, unsandboxed=False)
    for number in range(3):
        index.add(agent(5000 + number, workspace=2, at=9999))
    order = [index.take(RUNNERS[0], ANY, unsandboxed=False) for _ in range(6)]

    assert [taken.workspace_id.int - 1000 for taken in order if taken] == [1, 2, 1, 2, 1, 2]


def test_a_workspace_that_was_idle_has_saved_up_no_turns() -> None:
    index = ReadyIndex()
    index.add(agent(1, workspace=2))
    index.take(RUNNERS[0], ANY, unsandboxed=False)
    for number in range(200):
        index.add(agent(100 + number, workspace=1, at=number))
        index.take(RUNNERS[0], ANY, unsandboxed=False)
    for number in range(10):
        index.add(agent(500 + number, workspace=1, at=number))
        index.add(agent(600 + number, workspace=2, at=number))
    order = [index.take(RUNNERS[0], ANY, unsandboxed=False) for _ in range(10)]

    assert sum(taken.workspace_id.int == 1002 for taken in order if taken) == 5


def test_a_runner_without_a_sandbox_sees_past_agents_that_need_one() -> None:
    index = ReadyIndex()
    index.add(agent(1, at=0))
    index.add(agent(2, at=5, unsandboxed=True))
    taken = index.take(RUNNERS[0], ANY, unsandboxed=True)

    assert taken is not None
    assert taken.zombie_id == UUID(int=2)


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 10_000)), max_size=300))
def test_memory_does_not_grow_with_what_has_gone(moves: list[tuple[int, int]]) -> None:
    index = ReadyIndex()
    for number, at in moves:
        index.add(agent(number, workspace=number % 5, at=at))
    for waiting in index._classes.values():
        for front in (waiting._platform, *waiting._of_tenant.values()):
            assert len(front._heap) <= 2 * len(front.lines) + 65
        assert sum(len(theirs.lines) for theirs in waiting._of_tenant.values()) == len(waiting.lines)
        for line in waiting.lines.values():
            assert len(line._by_age._heap) <= 2 * len(line.agents) + 65


def test_counts_of_workspaces_that_have_gone_are_forgotten() -> None:
    index = ReadyIndex()
    for number in range(5000):
        index.add(agent(number + 1, workspace=number))
        index.take(RUNNERS[0], ANY, unsandboxed=False)

    assert len(index._served) <= 200


def test_what_a_tenants_own_runners_took_is_no_turn_with_those_of_everybody() -> None:
    index = ReadyIndex()
    for number in range(100):
        index.add(agent(100 + number, workspace=1, at=number))
        index.take(RUNNERS[1], ANY, unsandboxed=False, scope=Scope(tenant_of(1)))
    for number in range(10):
        index.add(agent(500 + number, workspace=1, at=number))
        index.add(agent(600 + number, workspace=3, at=number))
    order = [index.take(RUNNERS[0], ANY, unsandboxed=False) for _ in range(10)]

    assert sum(taken.workspace_id.int == 1001 for taken in order if taken) == 5
