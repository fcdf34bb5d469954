"""Faults that wait for a write: which one they pick, and whom they hit."""

from random import Random
from typing import Any

import trio
import trio.testing

from tests.simulation.product.strikes import Strike, Strikes
from tests.simulation.world.processes import PROCESS

SERVER: Any = object()


async def hit_by(strikes: Strikes, writes: list[str], rng: Random) -> Any:
    """What one strike hits while these are written."""
    struck: list[Any] = []
    found: list[Any] = []

    async def wait() -> None:
        found.append(await strikes.wait(Strike(rng, lambda process, _: struck.append(process)), at_most_s=60))

    before = PROCESS.set(SERVER)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        for name in writes:
            strikes.written(name)
    PROCESS.reset(before)
    assert struck == [one for one in found if one is not None]
    return found[0]


async def test_the_first_write_of_its_kind_is_picked_surely(autojump_clock: trio.testing.MockClock) -> None:
    strikes = Strikes()
    for _ in range(1000):
        strikes.written("ClaimEvent")

    hit = await hit_by(strikes, ["MemoryTenants.credit"], Random(1))

    assert hit is SERVER


async def test_a_write_that_is_frequent_is_picked_seldom(autojump_clock: trio.testing.MockClock) -> None:
    hits = 0
    for seed in range(500):
        strikes = Strikes()
        for _ in range(99):
            strikes.written("ClaimEvent")
        hits += await hit_by(strikes, ["ClaimEvent"], Random(seed)) is SERVER

    assert 1 <= hits <= 15


async def test_one_strike_hits_once_and_one_that_nobody_meets_is_over(
    autojump_clock: trio.testing.MockClock,
) -> None:
    strikes = Strikes()

    nothing = await hit_by(strikes, [], Random(1))
    once = await hit_by(strikes, ["OpenGate", "MemoryJobs.add", "MemoryJobs.save"], Random(1))

    assert nothing is None
    assert once is SERVER
