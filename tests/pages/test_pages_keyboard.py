"""The console by keyboard alone: the six journeys of its operators, and what keys do in a list."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
from selenium.webdriver.common.keys import Keys

from tests.pages.checks import sign_in
from tests.pages.screen import Screen
from tests.pages.test_pages_console import open_gate
from tests.pages.test_pages_keeping import tab_to, type_keys
from tests.patience import PATIENCE_S
from tests.worlds.http import HttpWorld, open_http_world
from tests.worlds.http_agents import activate, compiled, open_trigger, report, skill, steer

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


async def failed(world: HttpWorld, token: str, zombie: dict[str, Any]) -> str:
    """An event of the agent that has failed."""
    event_id = await steer(world, zombie)
    lease = await world.lease(token)
    await report(world, token, lease, outcome="agent_error", failure_reason="startup_posture")
    return event_id


async def test_it_is_found_why_an_event_waits_and_a_runner_is_enrolled_without_a_mouse(
    screen: Screen, world: HttpWorld
) -> None:
    await steer(world, await world.install("picky", tags="gpu"))
    await sign_in(screen, world)
    await screen.open(f"{world.base_url}/console")
    await screen.sees("● live")

    await tab_to(screen, "Why picky waits")
    await type_keys(screen, Keys.ENTER)
    await screen.sees("Why it waits")
    why = await screen.text("#why")

    await type_keys(screen, "g", "f")
    await screen.sees("No runner is enrolled")
    await tab_to(screen, "Enrol a runner: shows the command that starts it")
    await type_keys(screen, Keys.ENTER)
    command = await screen.text("#command pre")

    await type_keys(screen, "g", "t")
    await screen.sees("Mailbox")

    assert "No runner is enrolled that its agent may have." in why
    assert command.startswith("SEXTON_ENROLMENT_TOKEN=")


async def test_events_are_chosen_in_the_list_and_replayed_together_without_a_mouse(
    screen: Screen, world: HttpWorld
) -> None:
    zombie, token = await world.install(), await world.enrol()
    ids = [await failed(world, token, zombie) for _ in range(3)]
    await sign_in(screen, world)
    await screen.open(f"{world.base_url}/console/-/events")
    await screen.sees("● live")

    await type_keys(screen, "j", "x", "j", "j", "x")
    await screen.sees("Replay 2 events")
    # What happens meanwhile takes the choice from nobody.
    await steer(world, await world.install("other"))
    await tab_to(screen, "Replay 2 events")
    await type_keys(screen, Keys.ENTER)
    await screen.sees("2 events fit")
    await tab_to(screen, f"Replay 2 events: id:{ids[2]},{ids[0]}")
    await type_keys(screen, Keys.ENTER)
    await screen.sees("of 2")
    [job] = (await world.get(f"{world.ws}/jobs")).json()["items"]

    assert (job["kind"], job["total"], job["filter"]) == ("replay", 2, f"id:{ids[2]},{ids[0]}")


async def test_credit_is_given_and_an_agent_rolled_back_without_a_mouse(
    screen: Screen, world: HttpWorld
) -> None:
    zombie = await world.install()
    second = await compiled(world, zombie, skill(body="Look twice.\n"), open_trigger("github"))
    assert (await activate(world, second)).status_code == 200

    balance = (await world.get("/v1/tenants/me/billing")).json()["balance_nanos"]
    await sign_in(screen, world)
    await screen.open(f"{world.base_url}/console")
    await screen.sees("● live")

    await type_keys(screen, "g", "m")
    await screen.sees("Give credit")
    await tab_to(screen, "Dollars")
    await type_keys(screen, "2.50", Keys.TAB, "A gift.", Keys.ENTER)
    with trio.fail_after(PATIENCE_S):
        while (after := (await world.get("/v1/tenants/me/billing")).json()["balance_nanos"]) == balance:
            await trio.sleep(0.05)

    await screen.open(f"{world.base_url}/console")
    await screen.sees("● live")
    await type_keys(screen, "g", "g")
    await screen.sees("Wakes on")
    await type_keys(screen, "j", Keys.ENTER)
    await screen.sees("Versions")
    await tab_to(screen, "1")
    await type_keys(screen, Keys.ENTER)
    await screen.sees("What it would change")
    await tab_to(screen, "Have doctor work by version 1 from its next event on")
    await type_keys(screen, Keys.ENTER)
    await screen.sees("version 1")
    now = (await world.get(f"{world.ws}/zombies/{zombie['zombie_id']}")).json()

    assert after - balance == 2_500_000_000
    assert now["config_version_id"] == zombie["config_version_id"]
