"""An agent's life over HTTP: other files, every request in every status, its end."""

from typing import Any
from uuid import UUID

import pytest
import trio
import trio.testing
from msgspec.structs import replace

from sexton_actors.terms import RECORD_FRESH_MS
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.zombies import ZombieStatus
from tests.patience import PATIENCE_S
from tests.worlds.event_stream import listening
from tests.worlds.http import HttpWorld
from tests.worlds.http_agents import (
    USAGE,
    at,
    code,
    compiled,
    open_trigger,
    patch,
    propose,
    report,
    report_of,
    skill,
    steer,
    trigger,
    versions,
)

# --- other files --------------------------------------------------------------------------------------------


async def test_new_files_are_the_next_version_and_the_next_lease_is_given_them(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    assert "twice" not in lease["instructions"]

    changed = await patch(world, zombie, source_markdown=skill(tags="gpu", body="Look twice.\n"))
    assert (changed["config_revision"], changed["name"], changed["status"]) == (2, "doctor", "active")
    assert changed["config_version_id"] != zombie["config_version_id"]

    shown = (await world.get(at(world, zombie))).json()
    assert (shown["required_tags"], shown["config_revision"]) == (["gpu"], 2)
    assert shown["trigger_markdown"] == trigger()

    await report(world, token, lease)
    await steer(world, zombie)
    strong = await world.enrol("h2", labels=["gpu"])
    assert "Look twice." in (await world.lease(strong))["instructions"]

    none = await world.post("/v1/runners/me/leases", {"wait_ms": 0}, token)
    assert none.json()["lease"] is None


async def test_the_same_files_again_change_nothing(world: HttpWorld) -> None:
    zombie = await world.install()
    changed = await patch(world, zombie, source_markdown=skill(), trigger_markdown=trigger())

    assert (changed["config_version_id"], changed["config_revision"]) == (zombie["config_version_id"], 1)
    assert "webhook_urls" not in changed


async def test_a_name_may_change_as_long_as_it_is_free(world: HttpWorld) -> None:
    zombie, _other = await world.install(), await world.install("nurse")
    taken = {"source_markdown": skill("nurse"), "trigger_markdown": trigger("nurse")}
    assert await code(world, "PATCH", at(world, zombie), json=taken) == (409, "UZ-ZMB-006")

    free = {"source_markdown": skill("surgeon"), "trigger_markdown": trigger("surgeon")}
    assert (await patch(world, zombie, **free))["name"] == "surgeon"
    assert (await world.install())["name"] == "doctor"


async def test_a_trigger_that_stays_keeps_its_secret_and_a_new_one_is_shown_once(world: HttpWorld) -> None:
    body = {"source_markdown": skill(), "trigger_markdown": open_trigger("alerts")}
    zombie = (await world.post(f"{world.ws}/zombies", body)).json()
    old = zombie["webhook_urls"]["alerts"]
    changed = await patch(world, zombie, trigger_markdown=open_trigger("alerts", "pager"))
    assert set(changed["webhook_urls"]) == {"pager"}

    new = changed["webhook_urls"]["pager"]
    event = {"event_id": "e1", "type": "a", "data": {}}
    for url, sent in ((old, event), (new, {**event, "event_id": "e2"})):
        assert (await world.http.post(url, json=sent)).status_code == 202
    gone = await patch(world, zombie, trigger_markdown=open_trigger("pager"))
    assert gone["webhook_urls"] == {}
    assert (await world.http.post(old, json={**event, "event_id": "e3"})).status_code == 401

    back = await patch(world, zombie, trigger_markdown=open_trigger("pager", "alerts"))
    assert back["webhook_urls"]["alerts"] != old


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"source_markdown": "no front matter"}, "UZ-ZMB-008"),
        ({"source_markdown": skill("nurse")}, "UZ-ZMB-011"),
        ({"source_markdown": skill(tags="x" * 65)}, "UZ-REQ-001"),
        ({"source_markdown": "é" * 40_000}, "UZ-REQ-001"),
        ({"trigger_markdown": trigger(config="gates: {rules: 7}")}, "UZ-APPROVAL-001"),
        (
            {
                "trigger_markdown": trigger(
                    config="gates: {rules: [{tool: '*', action: '*', behavior: approve, condition: 'a =='}]}"
                )
            },
            "UZ-APPROVAL-005",
        ),
        ({}, "UZ-REQ-001"),
        ({"status": "paused"}, "UZ-REQ-001"),
        ({"status": "killed", "source_markdown": skill(body="x")}, "UZ-REQ-001"),
    ],
)
async def test_what_makes_no_agent_is_refused_and_changes_nothing(
    world: HttpWorld, body: dict[str, Any], error: str
) -> None:
    zombie = await world.install()
    assert await code(world, "PATCH", at(world, zombie), json=body) == (400, error)

    shown = (await world.get(at(world, zombie))).json()
    assert (shown["config_revision"], shown["status"]) == (1, "active")


async def test_files_and_status_change_together_or_not_at_all(world: HttpWorld) -> None:
    zombie = await world.install()
    await patch(world, zombie, status="stopped")
    refused = {"status": "stopped", "source_markdown": skill(body="x")}
    assert await code(world, "PATCH", at(world, zombie), json=refused) == (409, "UZ-ZMB-010")

    changed = await patch(world, zombie, status="active", source_markdown=skill(body="x"))
    assert (changed["status"], changed["config_revision"]) == ("active", 2)
    assert (await patch(world, zombie, status="stopped", source_markdown=skill(body="x")))[
        "status"
    ] == "stopped"

    stored = world.memory.tables.frames[UUID(zombie["zombie_id"])]
    assert [f.kind for f in stored] == [
        "status_changed",
        "status_changed",
        "config_updated",
        "status_changed",
    ]


async def test_two_who_change_an_agent_at_once_both_get_a_version(world: HttpWorld) -> None:
    zombie = await world.install()
    revisions: list[int] = []

    async def change(text: str) -> None:
        revisions.append((await patch(world, zombie, source_markdown=skill(body=text)))["config_revision"])

    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(change, f"{number}\n")
    assert sorted(revisions) == [2, 3, 4, 5, 6]

    page = (await versions(world, zombie)).json()
    assert [item["status"] for item in page["items"]].count("ACTIVE") == 1


# --- every status, every request ----------------------------------------------------------------------------

STATUSES = ("active", "paused", "stopped", "killed")
OVER = "UZ-ZMB-010"
MUTE = "UZ-ZMB-012"
IN_EVERY_STATUS: dict[str, tuple[int | str, int | str, int | str, int | str]] = {
    "files": (200, 200, 200, OVER),
    "draft": (200, 200, 200, OVER),
    "compile": (200, 200, 200, OVER),
    "activate": (200, 200, 200, OVER),
    "propose": (201, 201, 201, OVER),
    "approve": (200, 200, 200, OVER),
    "reject": (200, 200, 200, 200),
    "wake": (200, 200, 200, OVER),
    "stop": (200, 200, OVER, OVER),
    "kill": (200, 200, 200, OVER),
    "message": (202, MUTE, MUTE, MUTE),
    "delete": (204, 204, 204, 204),
}
"""What each request is answered with in each status: a success, or a conflict by its code."""


async def ask_for(
    world: HttpWorld, request: str, zombie: dict[str, Any], version: str, proposal: str
) -> tuple[int, str]:
    files = {"source_markdown": skill(body="new\n"), "trigger_markdown": trigger()}
    agent = {"agent_id": zombie["zombie_id"], **files}
    proposals = f"/v1/agents/{zombie['zombie_id']}/proposals"
    draft = {"title": "t", "rationale": "r", **files}
    calls: dict[str, tuple[str, str, Any]] = {
        "files": ("PATCH", at(world, zombie), files),
        "draft": ("PUT", f"{world.ws}/harness/source", agent),
        "compile": ("POST", f"{world.ws}/harness/compile", {"config_version_id": version}),
        "activate": ("POST", f"{world.ws}/harness/activate", {"config_version_id": version}),
        "propose": ("POST", proposals, draft),
        "approve": ("POST", f"{proposals}/{proposal}:approve", None),
        "reject": ("POST", f"{proposals}/{proposal}:reject", {"rejection_reason": "no"}),
        "wake": ("PATCH", at(world, zombie), {"status": "active"}),
        "stop": ("PATCH", at(world, zombie), {"status": "stopped"}),
        "kill": ("PATCH", at(world, zombie), {"status": "killed"}),
        "message": ("POST", f"{at(world, zombie)}/messages", {"message": "hello"}),
        "delete": ("DELETE", at(world, zombie), None),
    }
    method, path, body = calls[request]
    return await code(world, method, path, **({} if body is None else {"json": body}))


@pytest.mark.parametrize("status", STATUSES)
async def test_every_request_in_this_status_has_its_answer(world: HttpWorld, status: str) -> None:
    for number, (request, answers) in enumerate(IN_EVERY_STATUS.items()):
        zombie = await world.install()
        proposal = await propose(world, zombie["zombie_id"])
        version = await compiled(world, zombie, skill(body=f"{number}\n"))
        zombies, zombie_id = world.memory.tables.zombies, UUID(zombie["zombie_id"])
        if status == "paused":
            # Only the platform does that, and its rules have tests of their own.
            zombies[zombie_id] = replace(zombies[zombie_id], status=ZombieStatus.PAUSED)
            world.pass_ms(RECORD_FRESH_MS)
        elif status != "active":
            await patch(world, zombie, status=status)
        got = await ask_for(world, request, zombie, version, proposal["proposal_id"])
        want = answers[STATUSES.index(status)]
        assert got == ((409, want) if isinstance(want, str) else (want, "")), request
        assert (await world.call("DELETE", at(world, zombie))).status_code in {204, 404}


# --- the end ------------------------------------------------------------------------------------------------


async def test_a_deleted_agent_is_gone_with_all_that_hangs_on_it(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    await report(world, token, lease)
    event_id = lease["event"]["event_id"]
    await propose(world, zombie["zombie_id"])
    assert (await world.call("DELETE", at(world, zombie))).status_code == 204

    for path in ("", "/events", "/events/stream"):
        assert await code(world, "GET", at(world, zombie) + path) == (404, "UZ-ZMB-009")
    assert await code(world, "DELETE", at(world, zombie)) == (404, "UZ-ZMB-009")
    assert await code(world, "PATCH", at(world, zombie), json={"status": "active"}) == (404, "UZ-ZMB-009")
    assert (await world.get(f"/v1/agents/{zombie['zombie_id']}")).status_code == 404

    hook = await world.deliver(zombie["webhook_urls"]["github"])
    assert (hook.status_code, hook.json()["error_code"]) == (404, "UZ-WH-001")

    rows = await world.get(f"/v1/tenants/me/billing/charges/{event_id}/metering-periods")
    assert len(rows.json()["items"]) == 1, "money that is gone stays accounted for"
    assert (await world.install())["zombie_id"] != zombie["zombie_id"], "its name is free"


async def test_a_run_of_a_deleted_agent_hears_it_on_its_open_poll_and_is_refused_after(
    world: HttpWorld,
) -> None:
    zombie, token, lease = await world.working()
    heard: list[Any] = []

    async def poll() -> None:
        answer = await world.post("/v1/runners/me/leases", {"wait_ms": 20_000}, token)
        heard.append(answer.json()["cancelled_lease_ids"])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(poll)
        await trio.testing.wait_all_tasks_blocked(0.05)

        assert (await world.call("DELETE", at(world, zombie))).status_code == 204
    assert heard == [[lease["lease_id"]]]

    late = await world.post("/v1/runners/me/reports", report_of(lease), token)
    assert (late.status_code, late.json()["error_code"]) == (404, "UZ-RUN-006")

    at_lease = f"/v1/runners/me/leases/{lease['lease_id']}"
    renewed = await world.post(f"{at_lease}/renew", USAGE, token)
    assert (renewed.status_code, renewed.json()["error_code"]) == (404, "UZ-RUN-006")


async def test_a_run_of_a_deleted_agent_hears_it_at_its_next_heartbeat(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    pulse = {"active_lease_ids": [lease["lease_id"]]}
    before = await world.post("/v1/runners/me/heartbeats", pulse, token)
    assert before.json()["cancelled_lease_ids"] == []
    assert (await world.call("DELETE", at(world, zombie))).status_code == 204

    world.pass_ms(60_000)
    after = await world.post("/v1/runners/me/heartbeats", pulse, token)
    assert after.json()["cancelled_lease_ids"] == [lease["lease_id"]]


async def test_the_stream_of_a_deleted_agent_ends(world: HttpWorld) -> None:
    zombie = await world.install()
    path = f"{at(world, zombie)}/events/stream"
    async with listening(world.base_url, path, world.api_key) as stream:
        await steer(world, zombie)
        assert (await stream.frame())["kind"] == "event_received"
        assert (await world.call("DELETE", at(world, zombie))).status_code == 204

        with trio.fail_after(PATIENCE_S):
            while await stream.line() is not None:
                pass


async def test_a_delete_that_was_cut_off_after_the_kill_can_be_done_again(
    world: HttpWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    zombie = await world.install()
    store = world.memory.zombies

    async def away(zombie_id: UUID) -> bool:
        raise StorageUnavailable("cut off")

    with monkeypatch.context() as cut:
        cut.setattr(store, "delete", away)
        assert await code(world, "DELETE", at(world, zombie)) == (503, "UZ-INTERNAL-001")

    assert (await world.get(at(world, zombie))).json()["status"] == "killed"
    assert (await world.call("DELETE", at(world, zombie))).status_code == 204
