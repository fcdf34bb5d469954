"""What pykka documents about actors, refs, proxies, futures and its registry, on trio."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable
from types import TracebackType
from typing import Any

import pykka
import pytest
import trio
import trio.testing
from pykka.messages import ProxyCall

from sexton_engine import FamilySpec, FutureNotReadyError, TrioActor, TrioFuture, actor_scope, open_system
from tests.worlds.engine import Clock, EngineWorld, Note, ScriptedActor, Wait, scripted_family, tree


class Playback:
    def __init__(self) -> None:
        self.volume = 3

    def play(self, track: str) -> str:
        return f"playing {track}"


class Speaker(TrioActor):
    def __init__(self, events: list[Any]) -> None:
        super().__init__()
        self.events = events
        self.count = 0
        self.playback = pykka.traversable(Playback())

    async def on_start(self) -> None:  # type: ignore[override]  # pykka annotates its hooks for threads
        await trio.lowlevel.checkpoint()
        self.events.append("start")

    async def on_stop(self) -> None:  # type: ignore[override]  # pykka annotates its hooks for threads
        await trio.lowlevel.checkpoint()
        self.events.append("stop")

    async def on_failure(  # type: ignore[override]  # pykka annotates its hooks for threads
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await trio.lowlevel.checkpoint()
        self.events.append(("failure", exception_type, str(exception_value), traceback is not None))

    async def on_receive(self, message: Any) -> Any:
        self.events.append(message)
        match message:
            case {"raise": text}:
                raise ValueError(text)
            case {"sleep": seconds}:
                await trio.sleep(seconds)
            case _:
                pass
        return message

    def add(self, number: int, *, twice: bool = False) -> int:
        self.count += number * (2 if twice else 1)
        return self.count

    async def add_slowly(self, number: int) -> int:
        await trio.sleep(10)
        self.count += number
        return self.count


class LouderSpeaker(Speaker):
    pass


@pytest.fixture
async def scope() -> AsyncIterator[None]:
    async with actor_scope():
        yield
    assert pykka.ActorRegistry.get_all() == []


@pytest.fixture
def events() -> list[Any]:
    return []


async def test_tell_and_ask_reach_on_receive_in_order(
    autojump_clock: Clock, scope: None, events: list[Any]
) -> None:
    ref = Speaker.start(events)
    ref.tell("one")

    assert await ref.ask("two") == "two"
    assert events == ["start", "one", "two"]


async def test_an_exception_goes_to_the_asker_and_the_actor_lives_on(
    autojump_clock: Clock, scope: None, events: list[Any]
) -> None:
    ref = Speaker.start(events)
    with pytest.raises(ValueError, match="x"):
        await ref.ask({"raise": "x"})

    assert ref.is_alive()
    assert await ref.ask("still here") == "still here"


async def test_an_exception_on_a_tell_runs_on_failure_and_stops_the_actor(
    autojump_clock: Clock, scope: None, events: list[Any]
) -> None:
    ref = Speaker.start(events)
    ref.tell({"raise": "x"})
    future = ref.ask("behind")
    with pytest.raises(pykka.ActorDeadError, match="stopped before handling"):
        await future

    assert not ref.is_alive()
    assert events[-1] == ("failure", ValueError, "x", True)
    assert "stop" not in events


async def test_a_failing_on_start_stops_the_actor(autojump_clock: Clock, scope: None) -> None:
    class Broken(TrioActor):
        def on_start(self) -> None:
            raise ValueError("broken")

    ref = Broken.start()
    with pytest.raises(pykka.ActorDeadError):
        await ref.ask("x")

    assert pykka.ActorRegistry.get_by_class(Broken) == []


async def test_failing_hooks_at_the_end_are_borne(autojump_clock: Clock, scope: None) -> None:
    class Broken(TrioActor):
        def on_stop(self) -> None:
            raise ValueError("stop")

        def on_failure(self, *_: object) -> None:
            raise ValueError("failure")

        def on_receive(self, message: Any) -> None:
            raise ValueError("message")

    ref = Broken.start()
    assert await ref.stop()

    ref = Broken.start()
    ref.tell("x")
    await trio.testing.wait_all_tasks_blocked()
    assert not ref.is_alive()


async def test_stop_lets_the_messages_before_it_be_handled_and_refuses_those_behind(
    autojump_clock: Clock, scope: None, events: list[Any]
) -> None:
    ref = Speaker.start(events)
    before, stopped, behind = ref.ask({"sleep": 1}), ref.stop(), ref.ask("behind")
    assert await stopped is True
    assert await before == {"sleep": 1}
    assert events == ["start", {"sleep": 1}, "stop"]

    with pytest.raises(pykka.ActorDeadError):
        await behind
    assert await ref.stop() is False

    with pytest.raises(pykka.ActorDeadError):
        ref.tell("dead")
    with pytest.raises(pykka.ActorDeadError):
        await ref.ask("dead")
    with pytest.raises(pykka.ActorDeadError):
        ref.proxy()


async def test_an_actor_may_stop_itself(autojump_clock: Clock, scope: None, events: list[Any]) -> None:
    class Leaver(Speaker):
        async def on_receive(self, message: Any) -> Any:
            self.stop()
            return "leaving"

    ref = Leaver.start(events)
    assert await ref.ask("x") == "leaving"

    await trio.testing.wait_all_tasks_blocked()
    assert events == ["start", "stop"]


async def test_an_ask_with_a_timeout_gives_up(autojump_clock: Clock, scope: None, events: list[Any]) -> None:
    ref = Speaker.start(events)
    before = trio.current_time()
    with pytest.raises(pykka.Timeout, match="3 seconds"):
        await ref.ask({"sleep": 10}, timeout=3)

    assert trio.current_time() - before == 3


async def test_a_proxy_calls_methods_reads_and_writes_attributes(
    autojump_clock: Clock, scope: None, events: list[Any]
) -> None:
    proxy = Speaker.start(events).proxy()
    assert await proxy.add(2) == 2
    assert await proxy.add(2, twice=True) == 6
    assert await proxy.count == 6

    proxy.count = 40
    assert await proxy.add_slowly(2) == 42

    proxy.add.defer(1)
    assert await proxy.count == 43

    with pytest.raises(AttributeError):
        proxy.nothing  # noqa: B018 - reading it is the test
    with pytest.raises(TypeError):
        await proxy.add("wrong")
    assert await proxy.count == 43


async def test_a_traversable_attribute_is_reached_through_the_actor(
    autojump_clock: Clock, scope: None, events: list[Any]
) -> None:
    proxy = Speaker.start(events).proxy()
    assert await proxy.playback.play("one") == "playing one"

    proxy.playback.volume = 9
    assert await proxy.playback.volume == 9


async def test_proxies_of_one_actor_are_equal(autojump_clock: Clock, scope: None, events: list[Any]) -> None:
    ref = Speaker.start(events)

    assert ref.proxy() == ref.proxy()
    assert ref.proxy() != Speaker.start(events).proxy()
    assert len({ref.proxy(), ref.proxy()}) == 1


async def test_pykkas_own_messages_can_be_sent_without_a_proxy(
    autojump_clock: Clock, scope: None, events: list[Any]
) -> None:
    ref = Speaker.start(events)
    assert await ref.ask(ProxyCall(attr_path=("add",), args=(5,), kwargs={})) == 5


async def test_the_registry_knows_who_runs(autojump_clock: Clock, scope: None, events: list[Any]) -> None:
    one, two = Speaker.start(events), LouderSpeaker.start(events)
    assert pykka.ActorRegistry.get_all() == [one, two]
    assert pykka.ActorRegistry.get_by_class(Speaker) == [one, two]
    assert pykka.ActorRegistry.get_by_class(LouderSpeaker) == [two]
    assert pykka.ActorRegistry.get_by_class_name("LouderSpeaker") == [two]
    assert pykka.ActorRegistry.get_by_urn(one.actor_urn) is one

    await one.stop()
    assert pykka.ActorRegistry.get_all() == [two]


async def test_a_broadcast_reaches_all_or_one_class(
    autojump_clock: Clock, scope: None, events: list[Any]
) -> None:
    others: list[Any] = []
    Speaker.start(events)
    LouderSpeaker.start(others)
    pykka.ActorRegistry.broadcast("all")
    pykka.ActorRegistry.broadcast("loud", target_class=LouderSpeaker)
    await trio.testing.wait_all_tasks_blocked()

    assert events == ["start", "all"]
    assert others == ["start", "all", "loud"]


async def test_stop_all_stops_the_last_started_first(autojump_clock: Clock, scope: None) -> None:
    order: list[int] = []

    class Numbered(TrioActor):
        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

        def on_stop(self) -> None:
            order.append(self.number)

    for number in range(3):
        Numbered.start(number)
    for future in pykka.ActorRegistry.stop_all():
        assert await future  # type: ignore[misc]  # pykka's annotation promises booleans, this engine's refs futures

    assert sorted(order) == [0, 1, 2]
    assert pykka.ActorRegistry.get_all() == []


async def test_a_cancelled_actor_ends_alone_and_answers_its_askers(
    autojump_clock: Clock, events: list[Any]
) -> None:
    async with actor_scope():
        outer = Speaker.start(events)
        async with actor_scope():
            inner = Speaker.start(events)
            handled, behind = inner.ask({"sleep": 100}), inner.ask("behind")
            await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(pykka.ActorDeadError, match="was cancelled"):
            await handled
        with pytest.raises(pykka.ActorDeadError, match="stopped before handling"):
            await behind

        assert await outer.ask("unharmed") == "unharmed"


async def test_an_actor_cannot_be_started_outside_a_scope(autojump_clock: Clock, events: list[Any]) -> None:
    with pytest.raises(RuntimeError, match="actor_scope"):
        Speaker.start(events)
    assert pykka.ActorRegistry.get_all() == []


async def test_a_busy_actor_lets_others_run(autojump_clock: Clock, scope: None) -> None:
    class Busy(TrioActor):
        handled = 0

        def on_receive(self, message: Any) -> None:
            self.handled += 1
            if self.handled < 10_000:
                self.actor_ref.tell("again")

    ref = Busy.start()
    ref.tell("go")
    for _ in range(5):
        await trio.lowlevel.checkpoint()
    assert await ref.proxy().handled < 5_000

    await ref.stop()


async def test_a_future_is_awaited_or_read_but_never_blocked_on(autojump_clock: Clock) -> None:
    future: TrioFuture[int] = TrioFuture()
    with pytest.raises(FutureNotReadyError):
        future.get()
    with pytest.raises(pykka.Timeout):
        future.get(timeout=1)
    future.set(5)
    assert future.get() == await future == await future == 5
    assert future.is_set

    with pytest.raises(RuntimeError, match="already set"):
        future.set(6)
    with pytest.raises(RuntimeError, match="already set"):
        future.set_get_hook(lambda _: 7)


async def test_several_tasks_may_await_one_future(autojump_clock: Clock) -> None:
    future: TrioFuture[str] = TrioFuture()
    got: list[str] = []

    async def wait() -> None:
        got.append(await future)

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(wait)
        await trio.sleep(1)
        future.set("x")

    assert got == ["x", "x", "x"]


async def test_a_future_may_hold_an_exception(autojump_clock: Clock) -> None:
    future: TrioFuture[int] = TrioFuture()
    try:
        os.environ["NO_SUCH_VARIABLE"]
    except KeyError:
        future.set_exception()
    with pytest.raises(KeyError):
        await future
    other: TrioFuture[int] = TrioFuture()
    with pytest.raises(RuntimeError, match="needs an exception"):
        other.set_exception()
    other.set_exception((ValueError, ValueError("v"), None))
    with pytest.raises(ValueError, match="v"):
        other.get()


async def test_futures_map_filter_reduce_and_join(autojump_clock: Clock) -> None:
    one: TrioFuture[Iterable[int]] = TrioFuture()
    two: TrioFuture[str] = TrioFuture()
    applied: list[object] = []

    def double(numbers: Iterable[int]) -> list[int]:
        applied.append(numbers)
        return [2 * number for number in numbers]

    mapped = one.map(double)
    filtered = one.filter(lambda number: number > 1)
    reduced = one.reduce(lambda total, number: total + number, 100)
    joined = one.join(two)
    async with trio.open_nursery() as nursery:

        async def set_later() -> None:
            await trio.sleep(1)
            one.set([1, 2, 3])
            await trio.sleep(1)
            two.set("two")

        nursery.start_soon(set_later)

        assert await mapped == [2, 4, 6]
        assert await filtered == [2, 3]
        assert await reduced == 106
        assert await joined == [[1, 2, 3], "two"]
        assert await mapped == [2, 4, 6]

    assert applied == [[1, 2, 3]]
    assert pykka.get_all([filtered, filtered]) == [[2, 3], [2, 3]]


async def test_a_supervised_actor_has_pykkas_ref_and_proxy(autojump_clock: Clock) -> None:
    class Musician(ScriptedActor):
        tempo = 120

        def play(self, piece: str) -> str:
            return f"{piece} at {self.tempo}"

        async def rest(self, seconds: float) -> str:
            await trio.sleep(seconds)
            return "rested"

    refs: list[Any] = []

    class Shy(Musician):
        async def on_start(self) -> None:  # type: ignore[override]  # pykka annotates its hooks for threads
            refs.append(self.actor_ref)
            assert self.actor_ref is self.context.ref
            assert self.actor_urn == "urn:1"

    family = FamilySpec("shy", lambda context: Shy(context, EngineWorld()), idle_s=10)
    async with open_system(tree(family), ids=lambda: "urn:1") as system:
        await system.ask("shy", "a", Note("x"))
        (ref,) = refs
        assert ref.is_alive()
        assert await ref.ask(Note("y")) == 2

        ref.tell(Wait(1))
        proxy = ref.proxy()
        assert await proxy.play("march") == "march at 120"

        proxy.tempo = 60
        assert await proxy.tempo == 60
        assert await proxy.rest(3) == "rested"
        # Thousands of these come and go: they are in the engine's directory, not in pykka's list.
        assert pykka.ActorRegistry.get_all() == []
        assert await ref.stop() is True
        assert not ref.is_alive()

        with pytest.raises(pykka.ActorDeadError):
            ref.tell(Note("dead"))


async def test_a_ref_outlives_a_restart_and_its_proxy_sees_the_new_instance(autojump_clock: Clock) -> None:
    seen: list[Any] = []

    made: list[Any] = []

    class Counting(ScriptedActor):
        def fail(self) -> None:
            self.world.crashes["n"] = self.world.crashes.get("n", 0) + 1
            if self.world.crashes["n"] == 1:
                raise ValueError("once")

        async def on_start(self) -> None:  # type: ignore[override]  # pykka annotates its hooks for threads
            await super().on_start()
            seen.append(self.context.ref)
            made.append(self)

    world = EngineWorld()
    family = FamilySpec("counting", lambda context: Counting(context, world))
    async with open_system(tree(family)) as system:
        await system.ask("counting", "a", Note("x"))
        await seen[0].proxy().fail()

        assert seen[0] is seen[1]
        assert seen[0].proxy()._actor is made[-1]
        assert await seen[0].proxy().count == 0


async def test_a_supervised_actor_is_not_started_by_hand(autojump_clock: Clock) -> None:
    world = EngineWorld()
    made: list[ScriptedActor] = []

    def start(context: Any) -> ScriptedActor:
        made.append(ScriptedActor(context, world))
        return made[-1]

    async with open_system(tree(FamilySpec("scripted", start), scripted_family(world, "other"))) as system:
        await system.ask("scripted", "a", Note("x"))
        with pytest.raises(TypeError, match="its system starts it"):
            made[0]._start_actor_loop()
        with pytest.raises(AttributeError, match="the engine names"):
            made[0].actor_urn = "urn:mine"
