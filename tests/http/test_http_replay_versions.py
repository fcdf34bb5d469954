"""A replay under another version of its agent's files: that version is what runs, and no more than it may."""

from typing import Any

import pytest

from sexton_storage.postgres import PostgresStorage
from tests.http.test_http_bulk_jobs import begin, over
from tests.worlds.http import HttpWorld, open_http_world_on
from tests.worlds.http_agents import at, compiled, patch, report, run, skill, source, steer, trigger

SECOND = "Version two."
"""What the second version says beside the first."""
LENT = "credentials: [github-hook]\nnetwork: {allow: [api.example.com]}\ntools: [http_request]"


async def replay(
    world: HttpWorld, event_id: str, version: int, zombie: dict[str, Any] | None = None
) -> tuple[int, dict[str, Any]]:
    scope = world.ws if zombie is None else at(world, zombie)
    answer = await world.post(f"{scope}/events/{event_id}/replay", {"agent_version": version})
    return answer.status_code, answer.json()


async def whole(world: HttpWorld, event_id: str) -> dict[str, Any]:
    found: dict[str, Any] = (await world.get(f"{world.ws}/events/{event_id}")).json()
    return found


async def test_a_replay_runs_under_the_version_that_was_asked_for(postgres_storage: PostgresStorage) -> None:
    async with open_http_world_on(postgres_storage) as world:
        zombie, token = await world.install(), await world.enrol()
        newer = await patch(world, zombie, source_markdown=skill(body=SECOND))
        done = (await run(world, zombie, token))["event"]["event_id"]
        status, made = await replay(world, done, 1)
        behind = await steer(world, zombie)
        assert (status, (await whole(world, made["event_id"]))["asked_version"]) == (202, 1)

        found = []
        for _ in range(2):
            lease = await world.lease(token)
            found.append((lease["event"]["event_id"], SECOND in lease["instructions"]))
            await report(world, token, lease)
        assert found == [(made["event_id"], False), (behind, True)]

        ran = [await whole(world, event_id) for event_id in (made["event_id"], behind)]
        assert [(one["agent_version"], one["asked_version"]) for one in ran] == [(1, 1), (2, None)]
        assert [one["leases"][0]["config_version_id"] for one in ran] == [
            zombie["config_version_id"],
            newer["config_version_id"],
        ]

        many = await over(world, await begin(world, "replay", filter="after:0", agent_version=1))
        assert (many["agent_version"], many["done"], many["failed"]) == (1, 3, 0)

        for _ in range(many["done"]):
            lease = await world.lease(token)
            assert SECOND not in lease["instructions"]

            await report(world, token, lease)
        none = await over(world, await begin(world, "replay", filter="after:0", agent_version=9))
        assert (none["done"], none["refused"]) == (0, {"UZ-HARNESS-001": 6})


@pytest.mark.parametrize("address", ["agent", "workspace"])
async def test_a_version_that_may_not_run_is_refused(world: HttpWorld, address: str) -> None:
    await world.keep_secret()
    zombie, token = await world.install(), await world.enrol()
    await source(world, zombie, skill(body="A draft.\n"))
    await compiled(world, zombie, skill(), trigger(config=LENT))
    done = (await run(world, zombie, token))["event"]["event_id"]
    scope = zombie if address == "agent" else None
    refusals = {
        9: (404, "UZ-HARNESS-001"),
        2: (409, "UZ-HARNESS-002"),
        3: (409, "UZ-HARNESS-003"),
    }

    for version, expected in refusals.items():
        status, said = await replay(world, done, version, scope)
        assert (status, said.get("error_code")) == expected, said

    assert (await replay(world, done, 1, scope))[0] == 202


async def test_what_such_a_run_asks_people_for_goes_by_its_own_rules(world: HttpWorld) -> None:
    gates = "gates: {rules: [{tool: http, action: POST, behavior: deny}]}"
    zombie, token = await world.install(config=gates), await world.enrol()
    await patch(world, zombie, trigger_markdown=trigger())
    done = (await run(world, zombie, token))["event"]["event_id"]
    await replay(world, done, 1)
    await steer(world, zombie)

    found = []
    for number in range(2):
        lease = await world.lease(token)
        ask = {"action_id": f"a{number}", "tool_name": "http", "action_name": "POST"}
        gate = await world.post(f"/v1/runners/me/leases/{lease['lease_id']}/gates", ask, token)
        found.append(gate.json()["status"])
        await report(world, token, lease)

    assert found == ["denied", "pending"]
