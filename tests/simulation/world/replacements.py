"""Replaces real time, chance, threads, sockets and signals by simulated ones while a simulation runs."""

from __future__ import annotations

import asyncio
import os
import random
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, Final

import trio

from tests.simulation.world.descriptors import FIRST, Descriptor, Flag
from tests.simulation.world.network import End, Network
from tests.simulation.world.processes import PROCESS
from tests.simulation.world.sockets import (
    PlainSocket,
    SimulatedEpoll,
    SimulatedSocket,
    shut_quietly,
)
from tests.simulation.world.timeline import Timeline

THREAD_S: Final = (0.000_05, 0.002)
"""How long work takes that a program gives to a thread; it is done at the end of that time."""
_NANO: Final = 1_000_000_000


class Forbidden(AssertionError):
    """A program of a simulation did what cannot be simulated."""


def _forbid(what: str) -> Callable[..., Any]:
    def refuse(*_: Any, **__: Any) -> Any:
        raise Forbidden(f"{what} in a simulation")

    return refuse


class _Never:
    """What trio asks whether to turn a batch round: the order is decided before it comes there."""

    @staticmethod
    def random() -> float:
        return 1.0


@contextmanager
def replaced(network: Network, timeline: Timeline, rng: Random) -> Iterator[None]:
    """Replace all of it until the end of the block."""
    state = random.getstate()
    random.seed(rng.getrandbits(64))
    kept = []
    for owner, name, stand_in in (*_clocks(timeline), *_chance(rng), *_system(network, timeline)):
        kept.append((owner, name, getattr(owner, name)))
        setattr(owner, name, stand_in)
    try:
        yield
    finally:
        for owner, name, original in reversed(kept):
            setattr(owner, name, original)
        random.setstate(state)


def _clocks(timeline: Timeline) -> Iterator[tuple[object, str, object]]:
    def calendar_s() -> float:
        process = PROCESS.get()
        return timeline.start_s + timeline.now if process is None else process.machine.calendar_s()

    def monotonic_s() -> float:
        process = PROCESS.get()
        return timeline.now if process is None else process.machine.monotonic_s()

    yield time, "time", calendar_s
    yield time, "time_ns", lambda: round(calendar_s() * _NANO)
    for name in ("monotonic", "perf_counter", "process_time", "thread_time"):
        yield time, name, monotonic_s
        yield time, f"{name}_ns", lambda: round(monotonic_s() * _NANO)
    yield time, "sleep", _forbid("a sleep that blocks")


def _chance(rng: Random) -> Iterator[tuple[object, str, object]]:
    yield os, "urandom", rng.randbytes
    yield random, "_urandom", rng.randbytes
    yield trio._core._run, "_r", _Never()
    yield trio._core._run, "_ALLOW_DETERMINISTIC_SCHEDULING", False


def _system(network: Network, timeline: Timeline) -> Iterator[tuple[object, str, object]]:
    kernel = network.kernel
    read, write, close, dup = os.read, os.write, os.close, os.dup

    def end_of(number: int) -> End:
        end = kernel.get(number)
        assert isinstance(end, End)
        return end

    def read_simulated(number: int, most: int) -> bytes:
        return read(number, most) if 0 <= number < FIRST else end_of(number).receive(most)

    def write_simulated(number: int, data: bytes) -> int:
        return write(number, data) if 0 <= number < FIRST else end_of(number).send(data)

    def close_simulated(number: int) -> None:
        return close(number) if 0 <= number < FIRST else shut_quietly(kernel, number)

    def dup_simulated(number: int) -> int:
        return dup(number) if number < FIRST else kernel.open(kernel.get(number))

    async def run_inline(call: Callable[..., Any], *args: Any, **_: Any) -> Any:
        await timeline.rest(network.world.delays.uniform(*THREAD_S))
        return call(*args)

    def send_signal(number: int, sent: int, *_: Any) -> None:
        thing: Descriptor = kernel.get(number)
        if isinstance(thing, Ending):
            thing.kill(sent)

    network_socket = type("socket", (PlainSocket,), {"network": network})
    yield os, "read", read_simulated
    yield os, "write", write_simulated
    yield os, "close", close_simulated
    yield os, "getpid", _process_number
    yield signal, "pidfd_send_signal", send_signal
    yield socket, "dup", dup_simulated
    yield socket, "socket", network_socket
    yield socket, "socketpair", _forbid("a pair of real sockets")
    yield socket, "gethostname", _machine_name
    yield select, "epoll", lambda: SimulatedEpoll(kernel)
    yield (
        trio.socket,
        "from_stdlib_socket",
        lambda plain: SimulatedSocket(network, plain.detach()),
    )
    yield trio.to_thread, "run_sync", run_inline
    yield threading.Thread, "start", _forbid("a thread")
    yield asyncio.events, "new_event_loop", _forbid("a loop of asyncio")
    yield subprocess.Popen, "__init__", _forbid("a process")


class Ending(Flag):
    """A process descriptor: can be read when that process has ended, and a signal kills it."""

    def kill(self, sent: int) -> None:
        """What a signal does; by itself nothing."""


def _process_number() -> int:
    process = PROCESS.get()
    return 1 if process is None else 1000 + process.machine.processes.index(process)


def _machine_name() -> str:
    process = PROCESS.get()
    return "simulation" if process is None else process.machine.name
