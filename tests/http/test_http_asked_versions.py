"""A message that asks for a version of its agent is worked on under that one, whichever is active."""

from typing import Any

import httpx2

from tests.worlds.http import HttpWorld
from tests.worlds.http_agents import at, compiled, patch, report, skill, source


async def ask(world: HttpWorld, zombie: dict[str, Any], version: int, token: str = "") -> httpx2.Response:
    body = {"message": "hello", "agent_version": version}
    return await world.post(f"{at(world, zombie)}/messages", body, token)


async def event_of(world: HttpWorld, event_id: str) -> dict[str, Any]:
    event: dict[str, Any] = (await world.get(f"{world.ws}/events/{event_id}")).json()
    return event


async def test_a_message_is_worked_on_under_the_version_that_it_asks_for(world: HttpWorld) -> None:
    zombie = await world.install()
    await patch(world, zombie, source_markdown=skill(body="The second one.\n"))
    token = await world.enrol()
    asked = await ask(world, zombie, 1)
    plain = await world.post(f"{at(world, zombie)}/messages", {"message": "hello"})
    waiting = await event_of(world, asked.json()["event_id"])
    assert (waiting["asked_version"], waiting["agent_version"]) == (1, None)

    first = await world.lease(token)
    await report(world, token, first)
    second = await world.lease(token)
    await report(world, token, second)
    one = await event_of(world, asked.json()["event_id"])
    other = await event_of(world, plain.json()["event_id"])

    assert first["event"]["event_id"] == asked.json()["event_id"]
    assert "The second one." not in first["instructions"]
    assert "The second one." in second["instructions"]
    assert (one["asked_version"], one["agent_version"]) == (1, 1)
    assert (other["asked_version"], other["agent_version"]) == (None, 2)
    assert one["leases"][0]["config_version_id"] == zombie["config_version_id"]


async def test_an_event_that_was_given_back_is_run_under_its_version_again(world: HttpWorld) -> None:
    zombie = await world.install()
    await patch(world, zombie, source_markdown=skill(body="The second one.\n"))
    token = await world.enrol()
    await ask(world, zombie, 1)
    lease = await world.lease(token)
    released = {"fencing_token": lease["fencing_token"]}
    await world.post(f"/v1/runners/me/leases/{lease['lease_id']}/release", released, token)
    await patch(world, zombie, source_markdown=skill(body="The third one.\n"))
    again = await world.lease(token)

    assert again["event"]["event_id"] == lease["event"]["event_id"]
    assert again["instructions"] == lease["instructions"]


async def test_a_version_that_cannot_be_run_is_refused(world: HttpWorld) -> None:
    zombie = await world.install()
    await source(world, zombie, skill(body="A draft.\n"))
    await compiled(world, zombie, skill(tags="gpu", body="Another runner.\n"))

    answers = [await ask(world, zombie, version) for version in (9, 2, 3)]
    by_user = await ask(world, zombie, 1, world.user_token())
    codes = [(answer.status_code, answer.json()["error_code"]) for answer in (*answers, by_user)]

    assert codes == [
        (404, "UZ-HARNESS-001"),
        (409, "UZ-HARNESS-002"),
        (409, "UZ-HARNESS-003"),
        (403, "UZ-AUTH-009"),
    ]
    assert "gpu" in answers[2].json()["detail"]


async def test_an_event_whose_version_cannot_be_run_any_more_ends_and_says_why(world: HttpWorld) -> None:
    zombie = await world.install(tags="gpu")
    await patch(world, zombie, source_markdown=skill(tags="gpu", body="The second one.\n"))
    asked = await ask(world, zombie, 1)
    await patch(world, zombie, source_markdown=skill(body="Any runner.\n"))
    plain = await world.post(f"{at(world, zombie)}/messages", {"message": "hello"})

    lease = await world.lease(await world.enrol())
    lost = await event_of(world, asked.json()["event_id"])

    assert lease["event"]["event_id"] == plain.json()["event_id"], "it is not in the others' way"
    assert (lost["status"], lost["failure_label"]) == ("agent_error", "version_lost")
    assert lost["error_code"] == "UZ-HARNESS-003"
    assert "gpu" in lost["response_text"]
