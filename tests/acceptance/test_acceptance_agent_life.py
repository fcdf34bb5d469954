"""An agent's whole life over HTTP on a real database: changed, improved by its own proposal, deleted."""

from sexton_storage.postgres import PostgresStorage
from tests.worlds.http import open_http_world_on
from tests.worlds.http_agents import (
    activate,
    at,
    code,
    compiled,
    decide,
    patch,
    profile,
    report,
    run,
    skill,
    steer,
    versions,
)


async def test_an_agent_is_changed_improves_itself_and_is_deleted_on_postgresql(
    postgres_storage: PostgresStorage,
) -> None:
    async with open_http_world_on(postgres_storage) as world:
        zombie, token, lease = await world.working()
        agent_id, path = zombie["zombie_id"], at(world, zombie)
        draft = {"title": "Look twice", "rationale": "r", "source_markdown": skill(body="Twice.\n")}
        for duplicate in (False, True):
            assert (await report(world, token, lease, proposals=[draft]))["duplicate"] is duplicate
        proposals = f"/v1/agents/{agent_id}/proposals"
        [proposal] = (await world.get(proposals)).json()["items"]
        assert "+Twice." in proposal["diff"].splitlines()
        assert (await decide(world, proposal, "approve")).json()["status"] == "APPLIED"
        assert "Twice." in (await run(world, zombie, token))["instructions"]
        assert (await profile(world, agent_id))["trust_streak_runs"] == 2

        version = await compiled(world, zombie, skill(body="Thrice.\n"))
        assert (await activate(world, version)).json()["status"] == "ACTIVE"

        listed = (await versions(world, zombie)).json()["items"]
        assert [item["status"] for item in listed] == ["ACTIVE", "SUPERSEDED", "SUPERSEDED"]

        changed = await patch(world, zombie, source_markdown=skill(tags="gpu"), status="stopped")
        assert (changed["config_revision"], changed["status"]) == (4, "stopped")

        await patch(world, zombie, source_markdown=skill(), status="active")

        await steer(world, zombie)
        last = await world.lease(token)
        assert [item["kind"] for item in last["feedback"]] == ["score", "score"]
        assert await code(world, "DELETE", path) == (204, "")
        assert await code(world, "GET", path) == (404, "UZ-ZMB-009")
        assert await code(world, "GET", proposals) == (404, "UZ-AGENT-001")

        refused = await world.post(
            "/v1/runners/me/reports",
            {
                "lease_id": last["lease_id"],
                "event_id": last["event"]["event_id"],
                "fencing_token": last["fencing_token"],
                "outcome": "processed",
                "response_text": "",
                "input_tokens": 0,
                "cached_input_tokens": 0,
                "output_tokens": 0,
            },
            token,
        )
        assert (refused.status_code, refused.json()["error_code"]) == (404, "UZ-RUN-006")
        assert (await world.install())["zombie_id"] != agent_id
