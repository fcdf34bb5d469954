"""The console by keyboard alone: an approval with its reason, a search that is a link, and a replay."""

from collections.abc import AsyncIterator

import pytest
from selenium.webdriver.common.keys import Keys

from tests.pages.checks import sign_in
from tests.pages.screen import Screen
from tests.pages.test_pages_console import open_gate
from tests.pages.test_pages_keeping import tab_to, type_keys
from tests.worlds.http import HttpWorld, open_http_world
from tests.worlds.http_agents import report, steer

ACTION = "Roll parcel-service back to 8f4c2d1e"


@pytest.fixture
async def world() -> AsyncIterator[HttpWorld]:
    async with open_http_world() as opened:
        yield opened


async def test_a_gate_is_approved_and_an_event_found_and_replayed_without_a_mouse(
    screen: Screen, world: HttpWorld
) -> None:
    _, token, lease = await world.working()
    gate = await open_gate(world, token, lease)
    await steer(world, await world.install("scribe"))
    failing = await world.lease(token)
    await report(world, token, failing, outcome="agent_error", failure_reason="startup_posture")
    await sign_in(screen, world)
    await screen.open(f"{world.base_url}/console")
    await screen.sees("live")

    await type_keys(screen, "g", "a")
    await screen.sees("Reason")
    await tab_to(screen, "Reason")
    await type_keys(screen, "The build is broken.")
    # What happens meanwhile takes neither the words nor the place.
    await steer(world, await world.install("other"))
    await tab_to(screen, f"Approve: {ACTION}")
    await type_keys(screen, Keys.ENTER)
    await screen.sees("Decided lately")
    decided = (await world.get(f"{world.ws}/approvals/{gate['gate_id']}")).json()
    assert (decided["status"], decided["detail"]) == ("approved", "The build is broken.")

    await type_keys(screen, "g", "n")
    assert "other" in await screen.sees("Waiting")
    assert "other" not in await screen.text("#troubles"), "it waits for its turn only"

    await type_keys(screen, "g", "e")
    await screen.sees("Filter")
    await type_keys(screen, "/")
    await type_keys(screen, "status:agent_error", Keys.ENTER)
    await screen.sees("status:agent_error")
    link = await screen.url()
    assert "q=status%3Aagent_error" in link

    await screen.open(link)
    await type_keys(screen, "j", Keys.ENTER)
    await screen.sees("startup_posture")
    await tab_to(screen, "Replay this event of scribe")
    await type_keys(screen, Keys.ENTER)
    await screen.sees("Follows")
