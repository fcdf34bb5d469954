"""An agent that is pinned to a version: what it is given meanwhile waits, and what contradicts is refused."""

from typing import Any

import httpx2

from tests.worlds.http import HttpWorld
from tests.worlds.http_agents import at, code, compiled, patch, propose, run, skill

SECOND, THIRD = skill(body="The second one.\n"), skill(body="The third one.\n")


async def pin(world: HttpWorld, zombie: dict[str, Any], version: int, **more: Any) -> httpx2.Response:
    body = {"agent_version": version, **more}
    answer: httpx2.Response = await world.call("PUT", f"{at(world, zombie)}/pin", json=body)
    return answer


async def record(world: HttpWorld, zombie: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = (await world.get(at(world, zombie))).json()
    return shown


async def versions(world: HttpWorld, zombie: dict[str, Any]) -> list[tuple[int, str]]:
    found = await world.get(f"{world.ws}/harness/versions", params={"agent_id": zombie["zombie_id"]})
    return [(row["version"], row["status"]) for row in found.json()["items"]]


async def test_files_of_a_pinned_agent_wait_until_it_is_let_go(world: HttpWorld) -> None:
    zombie, token = await world.install(), await world.enrol()
    pinned = (await pin(world, zombie, 1, reason="the fair")).json()
    given = await patch(world, zombie, source_markdown=SECOND)
    repeated = await patch(world, zombie, source_markdown=SECOND)
    lease = await run(world, zombie, token)
    waiting = await versions(world, zombie)
    third = await patch(world, zombie, source_markdown=THIRD, status="stopped")
    back = await patch(world, zombie, source_markdown=skill(), status="active")
    newest = await patch(world, zombie, source_markdown=THIRD)
    shown = await record(world, zombie)
    free = await world.call("DELETE", f"{at(world, zombie)}/pin")
    again = await world.call("DELETE", f"{at(world, zombie)}/pin")
    after = await patch(world, zombie, source_markdown=THIRD)
    done = await run(world, zombie, token)

    assert (pinned["pin"]["version"], pinned["pin"]["reason"]) == (1, "the fair")
    assert (given["config_revision"], given["pin"]["held_version"]) == (1, 2)
    assert repeated["pin"]["held_version"] == 2
    assert "second" not in lease["instructions"]
    assert waiting == [(2, "COMPILED"), (1, "ACTIVE")]
    assert (third["status"], third["pin"]["held_version"]) == ("stopped", 3)
    assert (back["status"], back["pin"]["held_version"]) == ("active", None)
    assert newest["pin"]["held_version"] == 3, "the same files are the same version"
    assert (shown["source_markdown"], shown["config_revision"]) == (skill(), 1)
    assert (free.json()["config_revision"], free.json()["pin"]) == (1, None)
    assert again.status_code == 200
    assert "third" in done["instructions"]
    assert "pin" not in after


async def test_what_contradicts_a_pin_is_refused(world: HttpWorld) -> None:
    zombie = await world.install()
    second = await compiled(world, zombie, SECOND)
    not_active = await pin(world, zombie, 2)
    proposal = await propose(world, zombie["zombie_id"])
    await pin(world, zombie, 1)
    twice = await pin(world, zombie, 1, reason="another")
    activated = await code(world, "POST", f"{world.ws}/harness/activate", json={"config_version_id": second})
    canary = f"{at(world, zombie)}/canary"
    started = await code(world, "POST", canary, json={"agent_version": 2, "share": 10})
    approve = f"/v1/agents/{zombie['zombie_id']}/proposals/{proposal['proposal_id']}:approve"
    approved = await code(world, "POST", approve)
    await world.call("DELETE", f"{at(world, zombie)}/pin")
    begun = await world.post(canary, {"agent_version": 2, "share": 10})
    shown = await record(world, zombie)
    on_trial = await pin(world, zombie, 1)
    await world.post(f"{canary}/withdraw")
    await world.call("PATCH", at(world, zombie), json={"status": "killed"})
    killed = await pin(world, zombie, 1)

    assert (not_active.status_code, not_active.json()["error_code"]) == (409, "UZ-HARNESS-004")
    assert twice.json()["pin"]["reason"] == "", "the first one stays"
    assert (activated, started, approved) == ((409, "UZ-HARNESS-004"),) * 3
    assert begun.status_code == 201
    assert (shown["on_trial"]["version"], shown["on_trial"]["share"]) == (2, 10)
    assert on_trial.json()["error_code"] == "UZ-REQ-009"
    assert killed.json()["error_code"] == "UZ-ZMB-010"
