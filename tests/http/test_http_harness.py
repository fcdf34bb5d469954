"""Versions of an agent's configuration over HTTP: drafted, compiled, activated, listed."""

from typing import Any

import pytest

from sexton_storage.records.tenants import PlanTier
from tests.http.test_http_plans import cut_off, free
from tests.worlds.http import HttpWorld, open_http_world
from tests.worlds.http_agents import (
    UNKNOWN,
    activate,
    at,
    code,
    compiled,
    open_trigger,
    propose,
    skill,
    source,
    trigger,
    versions,
)


async def test_a_version_is_drafted_compiled_activated_and_superseded(world: HttpWorld) -> None:
    zombie = await world.install()
    made = await source(world, zombie, skill(body="Version two.\n"))
    assert (made["version"], made["status"], made["agent_id"]) == (2, "DRAFT", zombie["zombie_id"])
    assert (await source(world, zombie, skill(body="Version two.\n")))["config_version_id"] == made[
        "config_version_id"
    ]

    wish = {"config_version_id": made["config_version_id"]}
    early = await activate(world, made["config_version_id"])
    assert (early.status_code, early.json()["error_code"], early.json()["current_state"]) == (
        409,
        "UZ-HARNESS-002",
        "DRAFT",
    )

    for _ in range(2):
        judged = (await world.post(f"{world.ws}/harness/compile", wish)).json()
        assert (judged["status"], judged["errors"]) == ("COMPILED", [])
    for _ in range(2):
        active = await activate(world, made["config_version_id"])
        assert active.status_code == 200, active.text
        assert active.json() == {
            "workspace_id": str(world.installation.workspace_id),
            "agent_id": zombie["zombie_id"],
            "config_version_id": made["config_version_id"],
            "status": "ACTIVE",
            "request_id": active.json()["request_id"],
        }
    page = (await versions(world, zombie)).json()
    assert [(item["version"], item["status"]) for item in page["items"]] == [(2, "ACTIVE"), (1, "SUPERSEDED")]

    back = await activate(world, zombie["config_version_id"])
    assert back.status_code == 200, "one that was active before can be again"
    assert (await world.get(at(world, zombie))).json()["source_markdown"] == skill()


async def test_a_version_that_makes_no_agent_says_where(world: HttpWorld) -> None:
    zombie = await world.install()
    made = await source(world, zombie, "---\nname: doctor\nversion: 1\n---\n")
    wish = {"config_version_id": made["config_version_id"]}
    judged = (await world.post(f"{world.ws}/harness/compile", wish)).json()
    assert judged["status"] == "INVALID"
    assert {(e["file"], e["line"], e["key"]) for e in judged["errors"]} == {
        ("SKILL.md", 2, "description"),
        ("SKILL.md", 3, "version"),
    }
    assert all(error["message"] for error in judged["errors"])

    refused = await activate(world, made["config_version_id"])
    assert (refused.status_code, refused.json()["error_code"]) == (409, "UZ-HARNESS-002")
    assert refused.json()["errors"]

    listed = (await versions(world, zombie)).json()["items"][0]
    assert (listed["status"], listed["errors"]) == ("INVALID", judged["errors"])


async def test_versions_are_listed_by_pages(world: HttpWorld) -> None:
    zombie = await world.install()
    for number in range(4):
        await source(world, zombie, skill(body=f"{number}\n"))
    found, cursor = [], None
    while True:
        page = (await versions(world, zombie, limit=2, **({"cursor": cursor} if cursor else {}))).json()
        found += [item["version"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert found == [5, 4, 3, 2, 1]

    other = await world.install("nurse")
    first = (await versions(world, zombie, limit=2)).json()["next_cursor"]
    assert (await versions(world, other, cursor=first)).status_code == 400


async def test_what_is_no_version_here_is_not_found(world: HttpWorld) -> None:
    zombie, other = await world.install(), await world.install("nurse")
    for action in ("compile", "activate"):
        path, body = f"{world.ws}/harness/{action}", {"config_version_id": UNKNOWN}
        assert await code(world, "POST", path, json=body) == (404, "UZ-HARNESS-001")
    body = {"agent_id": UNKNOWN, "source_markdown": skill(), "trigger_markdown": trigger()}
    assert await code(world, "PUT", f"{world.ws}/harness/source", json=body) == (404, "UZ-ZMB-009")
    assert (await versions(world, {"zombie_id": UNKNOWN})).status_code == 404

    renamed = {"agent_id": zombie["zombie_id"], "source_markdown": skill("nurse")}
    made = await world.call(
        "PUT", f"{world.ws}/harness/source", json={**renamed, "trigger_markdown": trigger("nurse")}
    )
    version = made.json()["config_version_id"]
    await world.post(f"{world.ws}/harness/compile", {"config_version_id": version})
    taken = await activate(world, version)
    assert (taken.status_code, taken.json()["error_code"]) == (409, "UZ-ZMB-006")
    assert (await world.call("DELETE", at(world, other))).status_code == 204
    assert (await activate(world, version)).status_code == 200


async def test_a_version_with_a_new_secret_shows_it_when_it_is_activated(world: HttpWorld) -> None:
    zombie = await world.install()
    body = {
        "agent_id": zombie["zombie_id"],
        "source_markdown": skill(),
        "trigger_markdown": open_trigger("pager"),
    }
    made = (await world.call("PUT", f"{world.ws}/harness/source", json=body)).json()["config_version_id"]
    await world.post(f"{world.ws}/harness/compile", {"config_version_id": made})
    url = (await activate(world, made)).json()["webhook_urls"]["pager"]
    sent = {"event_id": "e1", "type": "a", "data": {}}

    assert (await world.http.post(url, json=sent)).status_code == 202


async def test_a_plan_that_does_not_hold_the_new_files_refuses_each_way_to_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with open_http_world(terms=free(tools=("http_*",))) as world:
        world.set_plan(PlanTier.FREE)
        zombie = await world.install()
        beyond = trigger(config="tools: [shell]")
        version = await compiled(world, zombie, skill(body="new\n"), beyond)
        proposal = await propose(world, zombie["zombie_id"], trigger_markdown=beyond)
        approve = f"/v1/agents/{zombie['zombie_id']}/proposals/{proposal['proposal_id']}:approve"
        asked: list[tuple[str, str, dict[str, Any]]] = [
            ("PATCH", at(world, zombie), {"json": {"trigger_markdown": beyond}}),
            ("POST", f"{world.ws}/harness/activate", {"json": {"config_version_id": version}}),
            ("POST", approve, {}),
        ]
        for method, path, sent in asked:
            assert await code(world, method, path, **sent) == (403, "UZ-ENTL-004"), path
        cut_off(world, monkeypatch)
        for method, path, sent in asked:
            assert await code(world, method, path, **sent) == (503, "UZ-ENTL-001"), path


async def test_a_version_is_shown_with_what_it_would_change_and_is_gone_back_to(world: HttpWorld) -> None:
    zombie, other = await world.install(), await world.install("scribe")
    first = zombie["config_version_id"]
    second = await compiled(world, zombie, skill(body="Look twice.\n"))
    path = f"{world.ws}/harness/versions"
    ahead = (await world.get(f"{path}/{second}")).json()
    assert (ahead["status"], ahead["against_config_version_id"]) == ("COMPILED", first)
    assert ahead["diff"].splitlines()[:2] == ["--- a/SKILL.md", "+++ b/SKILL.md"]
    assert "+Look twice." in ahead["diff"]
    assert ahead["source_markdown"].endswith("Look twice.\n")
    assert ahead["author"].startswith("api:")

    assert (await activate(world, second)).status_code == 200

    back = (await world.get(f"{path}/{first}")).json()
    assert (back["status"], "-Look twice." in back["diff"]) == ("SUPERSEDED", True)
    assert (await world.get(f"{path}/{second}")).json()["diff"] == ""
    assert (await world.get(f"{path}/{first}", params={"against": first})).json()["diff"] == ""

    assert (await activate(world, first)).json()["config_version_id"] == first

    record = (await world.get(f"{world.ws}/zombies/{zombie['zombie_id']}")).json()
    assert (record["config_version_id"], "Look twice." in record["source_markdown"]) == (first, False)

    strange = other["config_version_id"]
    for wrong in (
        f"{path}/{UNKNOWN}",
        f"{path}/{first}?against={UNKNOWN}",
        f"{path}/{first}?against={strange}",
    ):
        assert await code(world, "GET", wrong) == (404, "UZ-HARNESS-001")
