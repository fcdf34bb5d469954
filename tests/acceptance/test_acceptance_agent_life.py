"""An agent's whole life over HTTP on a real database: changed, improved by its own proposal, deleted."""

from sexton_storage.postgres import PostgresStorage
from tests.http.agent_life import (
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
from tests.http.house import open_house_on


async def test_an_agent_is_changed_improves_itself_and_is_deleted_on_postgresql(
    postgres_storage: PostgresStorage,
) -> None:
    async with open_house_on(postgres_storage) as house:
        zombie, token, lease = await house.working()
        agent_id, path = zombie["zombie_id"], at(house, zombie)
        draft = {"title": "Look twice", "rationale": "r", "source_markdown": skill(body="Twice.\n")}
        for duplicate in (False, True):
            assert (await report(house, token, lease, proposals=[draft]))["duplicate"] is duplicate
        proposals = f"/v1/agents/{agent_id}/proposals"
        [proposal] = (await house.get(proposals)).json()["items"]
        assert "+Twice." in proposal["diff"].splitlines()
        assert (await decide(house, proposal, "approve")).json()["status"] == "APPLIED"
        assert "Twice." in (await run(house, zombie, token))["instructions"]
        assert (await profile(house, agent_id))["trust_streak_runs"] == 2

        version = await compiled(house, zombie, skill(body="Thrice.\n"))
        assert (await activate(house, version)).json()["status"] == "ACTIVE"
        listed = (await versions(house, zombie)).json()["items"]
        assert [item["status"] for item in listed] == ["ACTIVE", "SUPERSEDED", "SUPERSEDED"]
        changed = await patch(house, zombie, source_markdown=skill(tags="gpu"), status="stopped")
        assert (changed["config_revision"], changed["status"]) == (4, "stopped")
        await patch(house, zombie, source_markdown=skill(), status="active")

        await steer(house, zombie)
        last = await house.lease(token)
        assert [item["kind"] for item in last["feedback"]] == ["score", "score"]
        assert await code(house, "DELETE", path) == (204, "")
        assert await code(house, "GET", path) == (404, "UZ-ZMB-009")
        assert await code(house, "GET", proposals) == (404, "UZ-AGENT-001")
        refused = await house.post(
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
        assert (await house.install())["zombie_id"] != agent_id
