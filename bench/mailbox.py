"""Asks through the full engine, and the memory of an idle actor.

Against pykka's ThreadingActor and against a bare trio task with memory channels, in alternating rounds of one
run. All do the same: a number of askers, each waiting for its reply before it asks again. The engine does
it with all it has: directory, bounded mailbox, deadline, counters by type of message. Once with a handler
that is a plain function, which an idle actor runs in the asker's own task, and once with an ``async def``
one, which always goes through the mailbox and a worker. Memory is what a fresh process grows by, as the
kernel counts it.
"""

import gc
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import pykka
import trio
import trio.testing

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness, machine
from sexton_engine import Actor, ActorSystem, FamilySpec, Message, Strategy, SupervisorSpec, open_system

ASKERS = 32
ROUNDS = 5
ASKS = 12_000
"""A round, shared among the askers."""
THREAD_ASKS = 4_000
"""The number of asks for threads, which are slower."""
TIMEOUT_S = 5.0
IDLE_ACTORS = 20_000
TOLD_AT_ONCE = 100
"""Activations at a time, so that the memory of messages that wait is not taken for that of idle actors."""
IDLE_THREADS = 1_000
"""More would try the system's limits, not pykka's."""
IDLE_S = 0.2
PAGE_BYTES = 4096


class Ping(Message[int]):
    __slots__ = ()


PING = Ping()


class Plain(Actor):
    kind = "plain"

    def on_receive(self, message: Ping) -> int:  # noqa: ARG002 - whatever it is, the answer is 1
        return 1


class Async(Actor):
    kind = "async"

    async def on_receive(self, message: Ping) -> int:  # noqa: ARG002 - whatever it is, the answer is 1
        return 1


class Threaded(pykka.ThreadingActor):
    use_daemon_thread = True

    def on_receive(self, message: Ping) -> int:  # noqa: ARG002 - whatever it is, the answer is 1
        return 1


def tree(idle_s: float = 60.0) -> SupervisorSpec:
    families = tuple(FamilySpec(actor.kind, actor, idle_s=idle_s) for actor in (Plain, Async))
    return SupervisorSpec("root", Strategy.ONE_FOR_ONE, families)


async def together(askers: int, asks: int, asker: Callable[[int], Awaitable[None]]) -> float:
    """Asks a second of that many askers."""
    began = perf_counter()
    async with trio.open_nursery() as nursery:
        for _ in range(askers):
            nursery.start_soon(asker, asks // askers)
    return asks / (perf_counter() - began)


async def engine(system: ActorSystem, kind: str, askers: int) -> float:
    async def asker(count: int) -> None:
        for _ in range(count):
            assert await system.ask(kind, "one", PING, timeout=TIMEOUT_S) == 1

    return await together(askers, ASKS, asker)


async def bare_task(askers: int) -> float:
    """A task that answers on the channel it is given; each asker keeps one for its replies."""
    requests, inbox = trio.open_memory_channel[tuple[Ping, trio.MemorySendChannel[int]]](1024)

    async def actor() -> None:
        async for _, reply_to in inbox:
            await reply_to.send(1)

    async def asker(count: int) -> None:
        reply_to, replies = trio.open_memory_channel[int](1)
        for _ in range(count):
            await requests.send((PING, reply_to))
            assert await replies.receive() == 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(actor)
        rate = await together(askers, ASKS, asker)
        nursery.cancel_scope.cancel()
    return rate


async def threads(askers: int) -> float:
    """As many asking threads; trio's own waits meanwhile."""
    ref = Threaded.start()

    def asker() -> None:
        for _ in range(THREAD_ASKS // askers):
            assert ref.ask(PING, timeout=TIMEOUT_S) == 1

    crowd = [threading.Thread(target=asker) for _ in range(askers)]
    began = perf_counter()
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    rate = THREAD_ASKS / (perf_counter() - began)
    ref.stop()
    return rate


async def ask_figures(askers: int) -> list[harness.Figure]:
    async with open_system(tree()) as system:
        samples = await harness.alternate(
            {
                "plain": lambda: engine(system, "plain", askers),
                "async": lambda: engine(system, "async", askers),
                "bare": lambda: bare_task(askers),
                "threads": lambda: threads(askers),
            },
            rounds=ROUNDS,
        )
    rivals = {
        "threads": ("pykka's ThreadingActor", (harness.at_least_times(8),)),
        "bare": ("a bare trio task with memory channels", (harness.at_least_times(0.6),)),
    }
    crowd = "1 asker" if askers == 1 else f"{askers} askers"
    figures = [
        harness.Figure(
            f"asks, {handler} handler, {crowd}",
            harness.Spread.of(samples[handler]),
            "asks/s",
            against,
            harness.ratios(samples[handler], samples[rival]),
            budgets,
        )
        for handler in ("plain", "async")
        for rival, (against, budgets) in rivals.items()
    ]
    figures += [
        harness.Figure(f"{against}, {crowd}", harness.Spread.of(samples[rival]), "asks/s")
        for rival, (against, _) in rivals.items()
    ]
    return figures


# --- memory -----------------------------------------------------------------------------------------------


def resident_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE_BYTES


async def activate(system: ActorSystem, count: int, at_once: int) -> None:
    for first in range(0, count, at_once):
        for key in range(first, min(first + at_once, count)):
            system.tell("plain", key, PING)
        await trio.testing.wait_all_tasks_blocked()
    assert system.statistics().kind("plain").activations > count


async def idle_engine(at_once: int = TOLD_AT_ONCE) -> float:
    async with open_system(tree()) as system:
        await system.ask("plain", "warm up", PING)
        before = resident_bytes()
        await activate(system, IDLE_ACTORS, at_once)
        return (resident_bytes() - before) / IDLE_ACTORS


async def idle_after_a_burst() -> float:
    """The same when all were told before any could run: the crest of that stays with the process."""
    return await idle_engine(IDLE_ACTORS)


async def idle_bare_tasks() -> float:
    async def actor(inbox: trio.MemoryReceiveChannel[Ping]) -> None:
        async for _ in inbox:
            pass

    async with trio.open_nursery() as nursery:
        before = resident_bytes()
        channels = []
        for _ in range(IDLE_ACTORS):
            requests, inbox = trio.open_memory_channel[Ping](1024)
            channels.append(requests)
            nursery.start_soon(actor, inbox)
        await trio.testing.wait_all_tasks_blocked()
        grown = resident_bytes() - before
        nursery.cancel_scope.cancel()
    return grown / IDLE_ACTORS


async def idle_threads() -> float:
    before = resident_bytes()
    refs = [Threaded.start() for _ in range(IDLE_THREADS)]
    for ref in refs:
        assert ref.ask(PING) == 1
    grown = resident_bytes() - before
    for ref in refs:
        ref.stop(block=False)
    return grown / IDLE_THREADS


async def asleep() -> float:
    """What is left of an actor that was put to sleep, as Python counts its memory."""
    async with open_system(tree(IDLE_S)) as system:
        await system.ask("plain", "warm up", PING)
        tracemalloc.start()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        await activate(system, IDLE_ACTORS, IDLE_ACTORS)
        while system.statistics().kind("plain").live:  # noqa: ASYNC110 - the engine tells nobody that all sleep
            await trio.sleep(IDLE_S)
        gc.collect()
        left = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        return left / IDLE_ACTORS


IDLE = {
    "engine": idle_engine,
    "burst": idle_after_a_burst,
    "bare": idle_bare_tasks,
    "threads": idle_threads,
    "asleep": asleep,
}


def idle_bytes(contender: str) -> float:
    """Measured in a process of its own, which has not grown for anything else."""
    words = [sys.executable, str(Path(__file__)), "--idle", contender]
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def memory_figures() -> list[harness.Figure]:
    ours = idle_bytes("engine")
    theirs = {
        "pykka's ThreadingActor": idle_bytes("threads"),
        "a bare trio task with memory channels": idle_bytes("bare"),
    }
    figures = [
        harness.Figure(
            "idle actor",
            harness.once(ours),
            "bytes",
            against,
            harness.once(ours / size),
            (harness.at_most(1536, "bytes"),),
        )
        for against, size in theirs.items()
    ]
    figures.append(
        harness.Figure(
            f"idle actor, {IDLE_ACTORS:,} woken in the same instant",
            harness.once(idle_bytes("burst")),
            "bytes",
        )
    )
    # The few bytes are workers that wait for the next message; they do not grow with the actors.
    left = harness.Figure(
        "actor put to sleep",
        harness.once(max(idle_bytes("asleep"), 0.0)),
        "bytes",
        budgets=(harness.at_most(1, "bytes"),),
    )
    figures.append(left)
    figures += [harness.Figure(f"idle, {name}", harness.once(size), "bytes") for name, size in theirs.items()]
    return figures


def run() -> dict[str, Any]:
    """Under half a minute."""
    figures: list[harness.Figure] = []
    for askers in (ASKERS, 1):
        harness.tell(f"asks, {askers} at once")
        figures += trio.run(ask_figures, askers)
    harness.tell("idle actors")
    figures += memory_figures()
    return harness.report("mailbox", machine.describe(), figures)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--idle"]:
        print(trio.run(IDLE[sys.argv[2]]))
    else:
        print(harness.line(run()))
