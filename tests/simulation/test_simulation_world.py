"""The world of the simulations: one seed is one life wherever it runs, and faults are as they are outside."""

import asyncio
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
import uuid
from functools import partial
from pathlib import Path

import pytest
import trio

from tests.simulation.world import echo
from tests.simulation.world.descriptors import Stalled
from tests.simulation.world.replacements import Forbidden
from tests.simulation.world.run import World, run

ROOT = Path(__file__).parents[2]
OTHER_PYTHONS = "SEXTON_OTHER_PYTHONS"
"""Paths of further interpreters that have trio, separated as in PATH: they must come to the same digests."""


def digest_of(python: str, seed: int, hash_seed: str) -> str:
    words = [python, "-m", "tests.simulation.world.echo", str(seed)]
    environment = {"PATH": os.environ["PATH"], "PYTHONHASHSEED": hash_seed}
    return subprocess.run(words, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout


def test_the_same_seed_is_the_same_life_whatever_the_hashes_of_texts_and_the_python() -> None:
    others = os.environ.get(OTHER_PYTHONS, "").split(os.pathsep)

    lives = {
        digest_of(python, 3, hash_seed)
        for python in (sys.executable, *filter(None, others))
        for hash_seed in ("1", "2")
    }

    assert lives == {f"{run(echo.a_day, seed=3).sha256}\n"}


def test_another_seed_is_another_life() -> None:
    assert len({run(echo.a_day, seed=seed).sha256 for seed in range(5)}) == 5


def test_seeds_find_a_planted_race() -> None:
    async def racing(world: World) -> int:
        return (await echo.a_day(world, echo.Shop(guarded=False), faults=False)).total

    async def guarded(world: World) -> int:
        return (await echo.a_day(world, faults=False)).total

    whole = echo.CLIENTS * echo.ADDITIONS

    assert any(run(racing, seed=seed).value < whole for seed in range(10))
    assert [run(guarded, seed=seed).value for seed in range(10)] == [whole] * 10


def test_what_was_acknowledged_was_done_whatever_happened() -> None:
    for seed in range(20):
        assert run(echo.a_day, seed=seed).value.total >= echo.CLIENTS * echo.ADDITIONS


async def _tick(heard: list[float]) -> None:
    try:
        while True:
            await trio.sleep(1)
            heard.append(trio.current_time())
    finally:
        heard.append(-1)


def test_a_killed_program_runs_nothing_more_and_a_frozen_one_goes_on_where_it_was() -> None:
    async def main(world: World) -> tuple[list[float], list[float]]:
        dead: list[float] = []
        frozen: list[float] = []
        killed = world.machine("a").start(_tick, dead)
        stopped = world.machine("b").start(_tick, frozen)
        await trio.sleep(2.5)
        killed.crash()
        stopped.freeze()
        await trio.sleep(10)
        stopped.thaw()
        await trio.sleep(0.1)
        return list(dead), list(frozen)

    assert run(main, seed=1).value == ([1, 2], [1, 2, 12.5])


async def _listen(heard: list[bytes], answer: bytes = b"") -> None:
    async def hear(stream: trio.SocketStream) -> None:
        try:
            async for part in stream:
                heard.append(bytes(part))
                if answer:
                    await stream.send_all(answer)
        except trio.BrokenResourceError:
            heard.append(b"<broken>")
        else:
            heard.append(b"<end>")

    await trio.serve_listeners(hear, await trio.open_tcp_listeners(80, host="0.0.0.0"))


async def _say(heard: list[bytes], *words: bytes, rest_s: float = 1) -> None:
    stream = await trio.open_tcp_stream("there", 80)
    try:
        for word in words:
            await stream.send_all(word)
            await trio.sleep(rest_s)
        heard.append(await stream.receive_some())
    except trio.BrokenResourceError:
        heard.append(b"<broken>")


def test_a_cut_delays_what_is_sent_and_healing_brings_it_in_order() -> None:
    async def main(world: World) -> tuple[list[bytes], list[bytes]]:
        heard: list[bytes] = []
        here, there = world.machine("here"), world.machine("there")
        there.start(_listen, heard)
        here.start(partial(_say, rest_s=5), [], b"one", b"two", b"three")
        await trio.sleep(1)
        world.network.cut(here, there)
        await trio.sleep(20)
        during = list(heard)
        world.network.heal()
        await trio.sleep(5)
        return during, heard

    during, heard = run(main, seed=1).value

    assert during == [b"one"]
    assert b" ".join(heard).startswith(b"one two")
    assert b"".join(heard) == b"onetwothree"


def test_who_is_killed_ends_its_connections_and_who_loses_power_leaves_them_half_open() -> None:
    async def main(world: World, *, power: bool) -> list[bytes]:
        heard: list[bytes] = []
        here, there = world.machine("here"), world.machine("there")
        server = there.start(_listen, [])
        here.start(_say, heard, b"hello")
        await trio.sleep(0.5)
        if power:
            there.power_off()
        else:
            server.crash()
        await trio.sleep(100)
        return list(heard)

    async def off(world: World) -> list[bytes]:
        return await main(world, power=True)

    async def killed(world: World) -> list[bytes]:
        return await main(world, power=False)

    assert run(off, seed=1).value == []
    assert run(killed, seed=1).value == [b""]


def test_a_connection_that_outlived_its_machine_breaks_with_the_next_word() -> None:
    async def main(world: World) -> list[bytes]:
        heard: list[bytes] = []
        there = world.machine("there")
        there.start(_listen, [])
        world.machine("here").start(partial(_say, rest_s=10), heard, b"before", b"after")
        await trio.sleep(0.5)
        there.power_off()
        await trio.sleep(1)
        there.power_on()
        await trio.sleep(30)
        return list(heard)

    assert run(main, seed=1).value == [b"<broken>"]


def test_nobody_listens_and_nobody_is_there_are_told_apart() -> None:
    async def main(world: World) -> list[tuple[str, float]]:
        told: list[tuple[str, float]] = []

        async def call(name: str) -> None:
            began = trio.current_time()
            try:
                await trio.open_tcp_stream(name, 80)
            except OSError as fault:
                [inner] = (
                    fault.__cause__.exceptions if isinstance(fault.__cause__, ExceptionGroup) else [fault]
                )
                told.append((type(inner).__name__, round(trio.current_time() - began)))

        world.machine("off").power_off()
        world.machine("empty")
        for name in ("off", "empty"):
            world.machine("here").start(call, name)
        await trio.sleep(120)
        return told

    assert run(main, seed=1).value == [("ConnectionRefusedError", 0), ("TimeoutError", 63)]


def test_each_machine_has_clocks_of_its_own() -> None:
    async def main(world: World) -> list[tuple[float, float]]:
        seen: list[tuple[float, float]] = []

        async def look() -> None:
            seen.append((time.time() - world.machine("true").calendar_s(), time.monotonic()))

        fast = world.machine("fast")
        fast.skew_s, fast.drift = 3600.0, 0.01
        await trio.sleep(100)
        fast.start(look)
        world.machine("true").start(look)
        await trio.sleep(1)
        return sorted(seen)

    [true, fast] = run(main, seed=1).value

    assert true == pytest.approx((0, 100))
    assert fast == pytest.approx((3601, 101))


def test_what_programs_draw_comes_from_the_seed() -> None:
    async def main(_: World) -> tuple[object, ...]:
        await trio.lowlevel.checkpoint()
        return os.urandom(8), secrets.token_hex(), uuid.uuid4()

    assert run(main, seed=1).value == run(main, seed=1).value
    assert run(main, seed=1).value != run(main, seed=2).value


@pytest.mark.parametrize(
    "act",
    [
        lambda: threading.Thread(target=print).start(),
        lambda: time.sleep(1),
        lambda: socket.socket(socket.AF_INET),
        lambda: asyncio.Runner().get_loop(),
        lambda: subprocess.run(["true"], check=True),
    ],
    ids=["thread", "sleep", "socket", "asyncio", "process"],
)
def test_what_no_seed_decides_is_an_error(act: object) -> None:
    async def main(_: World) -> None:
        await trio.lowlevel.checkpoint()
        with pytest.raises((Forbidden, RuntimeError)):
            act()  # type: ignore[operator]

    run(main, seed=1)


def test_work_for_a_thread_is_done_in_its_place() -> None:
    async def main(_: World) -> tuple[int, bool]:
        return await trio.to_thread.run_sync(threading.get_ident), trio.current_time() > 0

    assert run(main, seed=1).value == (threading.get_ident(), True)


def test_a_world_in_which_nothing_happens_any_more_says_so() -> None:
    async def forever(_: World) -> None:
        await trio.sleep_forever()

    async def busy(_: World) -> None:
        while True:
            await trio.lowlevel.checkpoint()

    with pytest.raises(Stalled, match="nobody waits for a time"):
        run(forever, seed=1)
    with pytest.raises(Stalled, match="the clock stands"):
        run(busy, seed=1)


def test_a_fault_of_a_program_ends_the_simulation() -> None:
    async def fail() -> None:
        await trio.sleep(1)
        raise LookupError("planted")

    async def main(world: World) -> None:
        world.machine("a").start(fail)
        await trio.sleep_forever()

    with pytest.RaisesGroup(LookupError):
        run(main, seed=1)
