"""The way between the loops carries values, errors, context and cancellation."""

import asyncio
import contextvars
import threading

import pytest
import trio

from sexton_storage.clock import NodeClock
from sexton_storage.errors import StorageUnavailable
from sexton_storage.portal import Portal, open_portal

who = contextvars.ContextVar("who", default="nobody")


async def test_work_runs_in_the_other_thread_and_brings_its_value_back() -> None:
    async def work() -> int:
        await asyncio.sleep(0)
        return threading.get_ident()

    async with open_portal() as portal:
        assert await portal.run(work) != threading.get_ident()


async def test_an_error_comes_back_as_it_is() -> None:
    async def work() -> None:
        raise KeyError("mine")

    async with open_portal() as portal:
        with pytest.raises(KeyError, match="mine"):
            await portal.run(work)


async def test_context_variables_go_along() -> None:
    async def work() -> str:
        return who.get()

    async with open_portal() as portal:
        who.set("somebody")
        assert await portal.run(work) == "somebody"


async def test_a_cancelled_caller_waits_until_the_work_has_cleaned_up() -> None:
    steps: list[str] = []
    begun = trio.Event()

    async with open_portal() as portal:

        async def work() -> None:
            portal.post(begun.set)
            try:
                await asyncio.sleep(3600)
            finally:
                await asyncio.sleep(0)
                steps.append("cleaned up")

        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(portal.run, work)
                await begun.wait()
                scope.cancel()

        assert scope.cancelled_caught
        assert steps == ["cleaned up"]


async def test_shielded_work_is_let_finish_and_its_caller_told_after() -> None:
    begun, steps = trio.Event(), list[str]()

    async with open_portal() as portal:

        async def work() -> str:
            portal.post(begun.set)
            await asyncio.sleep(0.01)
            steps.append("finished")
            return "value"

        async def call() -> None:
            steps.append(await portal.run(work, shield=True))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await begun.wait()
            nursery.cancel_scope.cancel()

    assert steps == ["finished", "value"]


async def test_work_that_is_under_way_when_the_portal_closes_hears_of_it() -> None:
    heard: list[BaseException] = []
    begun = trio.Event()

    async def call(portal: Portal) -> None:
        async def work() -> None:
            portal.post(begun.set)
            await asyncio.sleep(3600)

        try:
            await portal.run(work, shield=True)
        except StorageUnavailable as closed:
            heard.append(closed)

    async with trio.open_nursery() as nursery, open_portal() as portal:
        nursery.start_soon(call, portal)
        await begun.wait()
    assert len(heard) == 1

    with pytest.raises(StorageUnavailable):
        await portal.run(lambda: asyncio.sleep(0))


async def test_work_gets_done_beside_a_loop_that_is_never_idle() -> None:
    done = 0

    async with open_portal() as portal:

        async def work() -> None:
            await asyncio.sleep(0)

        async def call() -> None:
            nonlocal done
            for _ in range(50):
                await portal.run(work)
                done += 1

        async def spin() -> None:
            while done < 50:
                sum(range(500))
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(spin)
            nursery.start_soon(call)

        assert portal.outstanding == 0


# --- the clock ----------------------------------------------------------------------------------------------


class Ticks:
    def __init__(self) -> None:
        self.at = 1_000.0

    def __call__(self) -> float:
        return self.at


def test_a_clock_that_was_told_nothing_says_so() -> None:
    with pytest.raises(RuntimeError):
        NodeClock(Ticks()).now_ms()


def test_the_nodes_clock_is_the_databases_and_goes_on_by_itself() -> None:
    ticks = Ticks()
    clock = NodeClock(ticks)
    clock.observe(5_000_000, 990, 1_010)
    assert clock.now_ms() == 5_000_000

    ticks.at += 250
    assert clock.now_ms() == 5_000_250


def test_what_a_slow_answer_leaves_possible_does_not_move_the_clock() -> None:
    ticks = Ticks()
    clock = NodeClock(ticks)
    clock.observe(5_000_000, 1_000, 1_000)
    clock.observe(5_000_030, 980, 1_040)
    assert clock.now_ms() == 5_000_000

    clock.observe(5_000_200, 1_000, 1_000)
    assert clock.now_ms() == 5_000_200
