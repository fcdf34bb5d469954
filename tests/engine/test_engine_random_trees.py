"""Random trees, random crashes: what must hold of supervision whatever happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

import trio
import trio.testing
from hypothesis import HealthCheck, given, settings, strategies as st

from sexton_engine import (
    Actor,
    ActorSpec,
    ActorSystem,
    Backoff,
    Context,
    EngineError,
    EngineFault,
    FamilySpec,
    Intensity,
    Message,
    Restart,
    Strategy,
    SupervisorSpec,
    TreeNode,
    open_system,
)
from tests.thorough import examples

KEYS = ("k1", "k2")
ALWAYS = Intensity(10_000, 1.0)


@dataclass(frozen=True, slots=True)
class Job(Message[int]):
    """Handled after that many crashes, each of which is one delivery."""

    number: int
    crashes: int = 0
    seconds: float = 0.0
    leave: bool = False


@dataclass
class Ledger:
    """What happened, as the actors saw it."""

    log: list[tuple[str, str]] = field(default_factory=list)
    deliveries: Counter[int] = field(default_factory=Counter)
    handled: Counter[int] = field(default_factory=Counter)
    order: dict[str, list[int]] = field(default_factory=dict)
    running: Counter[str] = field(default_factory=Counter)
    most_running: Counter[str] = field(default_factory=Counter)


class Worker(Actor):
    def __init__(self, context: Context, ledger: Ledger) -> None:
        super().__init__(context)
        self.ledger = ledger

    async def on_start(self) -> None:  # type: ignore[override]  # pykka annotates its hooks for threads
        await trio.lowlevel.checkpoint()
        self.ledger.log.append(("start", self.context.kind))

    async def on_stop(self) -> None:  # type: ignore[override]  # pykka annotates its hooks for threads
        self.ledger.log.append(("stop", self.context.kind))

    async def on_receive(self, message: Job) -> int:
        ledger, me = self.ledger, f"{self.context.kind}/{self.context.key}"
        ledger.running[me] += 1
        ledger.most_running[me] = max(ledger.most_running[me], ledger.running[me])
        try:
            ledger.deliveries[message.number] += 1
            await trio.sleep(message.seconds)
            if ledger.deliveries[message.number] <= message.crashes:
                ledger.log.append(("crash", self.context.kind))
                raise ValueError(message.number)
            ledger.handled[message.number] += 1
            ledger.order.setdefault(me, []).append(message.number)
            if message.leave:
                self.context.stop()
            return message.number
        finally:
            ledger.running[me] -= 1


Children: TypeAlias = tuple[ActorSpec | FamilySpec | SupervisorSpec, ...]


@st.composite
def trees(
    draw: st.DrawFn, restarts: tuple[Restart, ...] = (Restart.PERMANENT,)
) -> Callable[[Ledger], SupervisorSpec]:
    """Trees up to three levels deep; the leaves are named in the order of start."""
    shape = draw(
        st.recursive(
            st.sampled_from(["actor", "family"]),
            lambda inner: st.tuples(st.sampled_from(Strategy), st.lists(inner, min_size=1, max_size=3)),
            max_leaves=6,
        ).filter(lambda drawn: isinstance(drawn, tuple))
    )
    kinds_of_restart = draw(st.lists(st.sampled_from(restarts), min_size=20, max_size=20))

    def build(ledger: Ledger) -> SupervisorSpec:
        names = iter(range(100))

        def leaf_start(context: Context) -> Actor:
            return Worker(context, ledger)

        def node(drawn: Any) -> ActorSpec | FamilySpec | SupervisorSpec:
            number = next(names)
            restart = kinds_of_restart[number % len(kinds_of_restart)]
            match drawn:
                case "actor":
                    return ActorSpec(f"actor{number}", leaf_start, restart=restart)
                case "family":
                    return FamilySpec(f"family{number}", leaf_start, restart=restart, intensity=ALWAYS)
                case (strategy, children):
                    return SupervisorSpec(
                        f"supervisor{number}",
                        strategy,
                        tuple(node(child) for child in children),
                        intensity=ALWAYS,
                        backoff=Backoff(0.5, 2, 4, 0.3),
                    )
                case _:
                    raise AssertionError(drawn)

        root = node(shape)
        assert isinstance(root, SupervisorSpec)
        return root

    return build


def leaves(spec: SupervisorSpec) -> list[ActorSpec | FamilySpec]:
    found: list[ActorSpec | FamilySpec] = []
    for child in spec.children:
        found.extend(leaves(child) if isinstance(child, SupervisorSpec) else [child])
    return found


def states(node: TreeNode) -> set[str]:
    return {node.state}.union(*(states(child) for child in node.children))


# Hypothesis seeds trio's choice of the next task as well, always with 0; this draws other seeds.
orders_of_tasks = st.random_module()

jobs = st.lists(
    st.tuples(
        st.integers(0, 5),  # which leaf
        st.sampled_from(KEYS),
        st.sampled_from([0, 0, 0, 1, 2]),  # crashes
        st.sampled_from([0.0, 0.0, 0.2, 3.0]),  # seconds
        st.sampled_from([0.0, 0.0, 0.1, 2.0]),  # pause before the next one
    ),
    max_size=14,
)


def on_mock_clock(main: Callable[[], Any]) -> None:
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


@given(trees(), jobs, orders_of_tasks)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_message_is_handled_once_or_dies_after_its_second_crash(
    build: Callable[[Ledger], SupervisorSpec],
    plan: list[tuple[int, str, int, float, float]],
    order_of_tasks: object,
) -> None:
    ledger = Ledger()
    spec = build(ledger)
    targets = leaves(spec)
    sent: dict[str, list[Job]] = {}

    async def main() -> None:
        async with open_system(spec, rng=Random(0)) as system:
            starts = [child.kind for child in targets if isinstance(child, ActorSpec)]
            assert ledger.log == [("start", kind) for kind in starts]
            for number, (leaf, key, crashes, seconds, pause) in enumerate(plan):
                target = targets[leaf % len(targets)]
                own_key = "" if isinstance(target, ActorSpec) else key
                job = Job(number, crashes, seconds)
                sent.setdefault(f"{target.kind}/{own_key}", []).append(job)
                system.tell(target.kind, own_key, job)
                await trio.sleep(pause)
            await trio.sleep(500)
            check(system)

    def check(system: ActorSystem) -> None:
        # A group restart may kill a handler that outlasts its budget of 5 s; none here does. So:
        assert system.dead_letters.total() == sum(job.crashes >= 2 for of in sent.values() for job in of)
        for address, of in sent.items():
            for job in of:
                assert ledger.deliveries[job.number] == min(job.crashes, 1) + 1
                assert ledger.handled[job.number] == (job.crashes < 2)
            # Redelivery does not change the order either.
            assert ledger.order.get(address, []) == [job.number for job in of if job.crashes < 2]
            assert ledger.most_running[address] <= 1

    on_mock_clock(main)


@given(trees(), jobs, orders_of_tasks)
@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_singletons_stop_in_the_reverse_of_the_order_of_start(
    build: Callable[[Ledger], SupervisorSpec],
    plan: list[tuple[int, str, int, float, float]],
    order_of_tasks: object,
) -> None:
    ledger = Ledger()
    spec = build(ledger)
    targets = leaves(spec)
    singletons = [child.kind for child in targets if isinstance(child, ActorSpec)]

    async def main() -> None:
        async with open_system(spec, rng=Random(0)) as system:
            for number, (leaf, key, crashes, _, _) in enumerate(plan):
                target = targets[leaf % len(targets)]
                system.tell(
                    target.kind, "" if isinstance(target, ActorSpec) else key, Job(number, min(crashes, 1))
                )
            await trio.sleep(300)
            assert states(system.tree()) <= {"up", "awake", "open"}
            ledger.log.clear()

    on_mock_clock(main)
    stops = [kind for what, kind in ledger.log if what == "stop"]

    assert [kind for kind in stops if kind in singletons] == singletons[::-1]


@given(
    st.sampled_from(Strategy),
    st.lists(st.sampled_from(Restart), min_size=1, max_size=5),
    st.integers(0, 4),
    st.booleans(),
)
@settings(max_examples=examples(80), deadline=None)
def test_one_crash_or_stop_restarts_whom_strategy_and_restart_type_say(
    strategy: Strategy,
    types: list[Restart],
    place: int,
    crash: bool,
) -> None:
    ledger = Ledger()
    place %= len(types)
    children = tuple(
        ActorSpec(f"a{number}", lambda context: Worker(context, ledger), restart=restart)
        for number, restart in enumerate(types)
    )
    spec = SupervisorSpec("root", strategy, children, intensity=ALWAYS, backoff=Backoff(1, 2, 4, 0))

    async def main() -> None:
        async with open_system(spec) as system:
            ledger.log.clear()
            system.tell(f"a{place}", "", Job(0, crashes=1) if crash else Job(0, leave=True))
            await trio.sleep(100)
            check()

    def check() -> None:
        again = types[place] is Restart.PERMANENT or (crash and types[place] is Restart.TRANSIENT)
        group = {
            Strategy.ONE_FOR_ONE: [place],
            Strategy.REST_FOR_ONE: list(range(place, len(types))),
            Strategy.ONE_FOR_ALL: list(range(len(types))),
        }[strategy]
        down = [number for number in reversed(group) if number != place] if again else []
        up = [number for number in group if types[number] is not Restart.TEMPORARY] if again else []
        own = [] if crash else [place]
        log = [(what, int(kind.removeprefix("a"))) for what, kind in ledger.log]
        assert [number for what, number in log if what == "stop"] == [*own, *down]
        assert [number for what, number in log if what == "start"] == up
        # All that go down are down before the first comes up.
        whats = [what for what, _ in log if what in {"start", "stop"}]
        assert whats == sorted(whats, reverse=True)

    on_mock_clock(main)


@given(st.integers(0, 4), st.floats(1, 20), st.lists(st.floats(0.1, 12), min_size=1, max_size=12))
@settings(max_examples=examples(60), deadline=None)
def test_the_system_falls_exactly_when_the_intensity_is_exceeded(
    most: int, period_s: float, gaps: list[float]
) -> None:
    ledger = Ledger()
    crashed_at: list[float] = []
    fell = False

    class Crasher(Worker):
        async def on_receive(self, message: Job) -> int:
            if self.ledger.deliveries[message.number] == 0:
                crashed_at.append(trio.current_time())
            return await super().on_receive(message)

    spec = SupervisorSpec(
        "root",
        Strategy.ONE_FOR_ONE,
        (ActorSpec("a", lambda context: Crasher(context, ledger)),),
        intensity=Intensity(most, period_s),
        backoff=Backoff(0.01, 1, 0.01, 0),
    )

    async def main() -> None:
        nonlocal fell
        try:
            async with open_system(spec) as system:
                for number, gap in enumerate(gaps):
                    await trio.sleep(gap)
                    system.tell("a", "", Job(number, crashes=1))
                await trio.sleep(1)
        except EngineFault:
            fell = True

    on_mock_clock(main)
    counted: list[float] = []
    expected = False
    for at in crashed_at:
        recent = [one for one in counted if one > at - period_s]
        if len(recent) >= most:
            expected = True
            break
        counted.append(at)

    assert fell is expected
    assert fell or len(crashed_at) == len(gaps)


@given(trees(restarts=tuple(Restart)), jobs, st.floats(0, 30), orders_of_tasks)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_ask_is_left_without_an_answer_whatever_ends_meanwhile(
    build: Callable[[Ledger], SupervisorSpec],
    plan: list[tuple[int, str, int, float, float]],
    kill_at: float,
    order_of_tasks: object,
) -> None:
    ledger = Ledger()
    spec = build(ledger)
    targets = leaves(spec)
    answers: Counter[int] = Counter()

    async def main() -> None:
        async with open_system(spec, rng=Random(0)) as system, trio.open_nursery() as nursery:

            async def ask(kind: str, key: str, job: Job) -> None:
                with suppress(EngineError):
                    assert await system.ask(kind, key, job, timeout=500) == job.number
                answers[job.number] += 1

            async def kill() -> None:
                await trio.sleep(kill_at)
                for target in targets:
                    system.kill(target.kind, "" if isinstance(target, ActorSpec) else KEYS[0])

            nursery.start_soon(kill)
            for number, (leaf, key, crashes, seconds, pause) in enumerate(plan):
                target = targets[leaf % len(targets)]
                own_key = "" if isinstance(target, ActorSpec) else key
                nursery.start_soon(ask, target.kind, own_key, Job(number, crashes, seconds))
                await trio.sleep(pause)

    on_mock_clock(main)

    assert answers == Counter(range(len(plan)))
    assert all(count <= 2 for count in ledger.deliveries.values())
    assert all(count <= 1 for count in ledger.handled.values())
