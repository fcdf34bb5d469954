"""A page that is left open for hours: what it takes in the browser and on the server does not grow."""

import gc
from collections.abc import AsyncIterator

import pytest
import trio

from sexton_http.gateway.page_parts import PageParts
from tests.pages.checks import sign_in
from tests.pages.screen import Screen
from tests.patience import PATIENCE_S
from tests.thorough import amount
from tests.worlds.http import HttpWorld, open_http_world
from tests.worlds.http_agents import steer

REFRESHES = amount(60, 2_000, variable="SEXTON_REFRESHES")
"""An open page asks each half minute, and each second while things happen: 2,000 are half an hour of that."""
PORTION = 50
"""Refreshes that the browser is asked for at a time: a script may not take longer than half a minute."""
FIRST = 20
"""By then all is loaded and compiled that is going to be."""
REFRESH = """
const [count, done] = arguments;
(async () => {
  for (let turn = 0; turn < count; turn += 1) {
    for (const part of document.querySelectorAll("[data-part]")) part.append(`${turn}`);
    await refresh();
  }
  done(document.querySelectorAll("#events tbody tr").length);
})();
"""
"""What was appended makes every part differ, so that each is put in again."""
IDLE = "const [done] = arguments; requestIdleCallback(() => done(null));"
LOOKS = 100
"""The browser lets go of what was put out when it likes: some of it only after several collections."""
HEAP_SHARE, HEAP_BYTES, NODES = 0.1, 256 * 1024, 100
OBJECTS_EACH = 2.0


@pytest.fixture
async def world() -> AsyncIterator[HttpWorld]:
    async with open_http_world(address_rate=None) as opened:
        yield opened


async def held(screen: Screen) -> dict[str, float]:
    """What the page holds after a collection."""
    await screen.run_async(IDLE)
    await screen.command("HeapProfiler.collectGarbage")
    metrics = (await screen.command("Performance.getMetrics"))["metrics"]
    return {one["name"]: one["value"] for one in metrics}


def most_of(before: dict[str, float]) -> dict[str, float]:
    return {
        "Nodes": before["Nodes"] + NODES,
        "JSEventListeners": before["JSEventListeners"],
        "JSHeapUsedSize": before["JSHeapUsedSize"] * (1 + HEAP_SHARE) + HEAP_BYTES,
    }


async def held_too_much(screen: Screen, most: dict[str, float]) -> dict[str, float]:
    """What stays above its bound, however often the browser collects."""
    above = most
    for _ in range(LOOKS):
        found = await held(screen)
        above = {name: found[name] for name in above if found[name] > most[name]}
        if not above:
            break
    return above


def objects() -> int:
    gc.collect()
    return len(gc.get_objects())


async def test_a_page_that_is_left_open_takes_no_more_on_either_side(
    screen: Screen, world: HttpWorld
) -> None:
    zombie = await world.install()
    for _ in range(5):
        await steer(world, zombie)
    await sign_in(screen, world)
    await screen.open(f"{world.base_url}/console/-/events")
    await screen.sees("● live")
    await screen.command("Performance.enable")
    await screen.run_async(REFRESH, FIRST)
    before, kept, tasks = await held(screen), objects(), trio.lowlevel.current_statistics().tasks_living

    shown = {
        await screen.run_async(REFRESH, min(PORTION, REFRESHES - n)) for n in range(0, REFRESHES, PORTION)
    }

    assert shown == {5}

    most = most_of(before)
    assert await held_too_much(screen, most) == {}, most
    assert objects() - kept <= OBJECTS_EACH * REFRESHES + 2_000
    assert trio.lowlevel.current_statistics().tasks_living <= tasks + 4

    [parts] = [one for one in gc.get_objects() if isinstance(one, PageParts) and one.watchers]
    await screen.open("about:blank")
    with trio.fail_after(PATIENCE_S):
        while parts.watchers:
            await trio.sleep(0.05)
