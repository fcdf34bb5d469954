"""Deliveries of webhooks are noted without a secret: why they were refused, and what replays make of them."""

import hashlib
import hmac
from typing import Any
from uuid import UUID

import pytest

from sexton_actors.file_bounds import FileBounds
from sexton_actors.periodic.delivery_rounds import WriteDeliveries
from sexton_storage.records.deliveries import DELIVERIES_KEEP_MS, REFUSED_KEPT
from sexton_storage.records.users import Role
from tests.http.test_http_plans import cut_off
from tests.worlds.http import HttpWorld, open_http_world
from tests.worlds.http_agents import UNKNOWN, at, code, open_trigger, patch, skill
from tests.worlds.samples import SECRET

BODY = b'{"action": "completed",  "workflow_run": {"id": 7, "n": 1.50}}'


async def written(world: HttpWorld, **params: Any) -> list[dict[str, Any]]:
    await world.system.ask("delivery_rounds", "", WriteDeliveries())
    answer = await world.get(f"{world.ws}/webhook-deliveries", params=params)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def signed(secret: str, delivery: str, **more: str) -> dict[str, str]:
    digest = hmac.new(secret.encode(), BODY, hashlib.sha256).hexdigest()
    named = {"x-github-event": "workflow_run", "x-github-delivery": delivery}
    return {"x-hub-signature-256": f"sha256={digest}", **named, **more}


async def replay(world: HttpWorld, delivery: dict[str, Any], **rest: Any) -> dict[str, Any]:
    answer = await world.post(f"{world.ws}/webhook-deliveries/{delivery['delivery_id']}:replay", **rest)
    assert answer.status_code == 200, answer.text
    after: dict[str, Any] = answer.json()
    return after


async def events(world: HttpWorld, zombie: dict[str, Any]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = (await world.get(f"{at(world, zombie)}/events")).json()["items"]
    return items


async def test_a_refused_delivery_is_shown_and_wakes_the_agent_once_when_its_secret_is_mended(
    world: HttpWorld,
) -> None:
    zombie = await world.install()
    url = zombie["webhook_urls"]["github"]
    token = {"authorization": "Bearer of-a-sender", "cookie": "sid=of-a-sender"}
    assert (
        await world.http.post(url, content=BODY, headers=signed(SECRET, "d1", **token))
    ).status_code == 401

    [refused] = await written(world)
    assert (refused["verdict"], refused["code"], refused["source"]) == ("refused", "UZ-WH-020", "github")
    assert (refused["reason"], refused["size"]) == ("credential_missing", len(BODY))
    assert "github-hook" in refused["detail"]
    assert refused["may_be_replayed"]

    path = f"{world.ws}/webhook-deliveries/{refused['delivery_id']}"
    shown = await world.get(path)
    assert shown.json()["headers"]["x-github-delivery"] == "d1"
    assert shown.json()["headers"]["x-hub-signature-256"] == "*** (71 characters)"
    assert shown.json()["kept_until"] == refused["at"] + DELIVERIES_KEEP_MS
    assert "of-a-sender" not in shown.text
    assert "of-a-sender" not in repr(world.memory.tables.deliveries)

    raw = await world.get(f"{path}/body")
    assert (raw.content, raw.headers["content-type"]) == (BODY, "application/octet-stream")
    assert await code(world, "GET", f"{path}/body", token=world.user_token()) == (403, "UZ-AUTH-009")
    assert await code(world, "POST", f"{path}:replay", token=world.user_token()) == (403, "UZ-AUTH-009")
    assert (await world.get(path, world.user_token(Role.VIEWER))).status_code == 200

    again = await replay(world, refused)
    assert (again["verdict"], again["code"], again["replays"]) == ("refused", "UZ-WH-020", 1)
    assert await events(world, zombie) == []

    await world.keep_secret()
    done = await replay(world, refused)
    [event] = await events(world, zombie)
    assert (done["verdict"], done["event_id"], done["code"]) == ("replayed", event["event_id"], None)
    assert event["event_id"] == refused["delivery_id"]
    assert (await replay(world, refused))["event_id"] == event["event_id"]
    # Its sender sends it again, too; and a node that died before it could note the replay asks once more.
    assert (await world.http.post(url, content=BODY, headers=signed(SECRET, "d1"))).json()[
        "status"
    ] == "duplicate"

    world.memory.tables.deliveries[UUID(refused["delivery_id"])] = world.memory.tables.deliveries[
        UUID(refused["delivery_id"])
    ].__class__(**{**_fields(world, refused), "event_id": None})
    assert (await replay(world, refused))["event_id"] == event["event_id"]
    assert len(await events(world, zombie)) == 1


def _fields(world: HttpWorld, delivery: dict[str, Any]) -> dict[str, Any]:
    kept = world.memory.tables.deliveries[UUID(delivery["delivery_id"])]
    return {name: getattr(kept, name) for name in kept.__struct_fields__}


async def test_what_its_sender_has_sent_again_meanwhile_makes_no_second_event_however_late(
    world: HttpWorld,
) -> None:
    zombie = await world.install()
    url = zombie["webhook_urls"]["github"]
    assert (await world.http.post(url, content=BODY, headers=signed(SECRET, "d1"))).status_code == 401

    [refused] = await written(world)
    await world.keep_secret()
    sent = await world.http.post(url, content=BODY, headers=signed(SECRET, "d1"))
    assert sent.status_code == 202

    world.memory.tables.dedup.clear()  # As after a day.

    done = await replay(world, refused)

    assert (done["verdict"], done["event_id"]) == ("replayed", sent.json()["event_id"])
    assert len(await events(world, zombie)) == 1


async def test_while_the_plan_cannot_be_read_a_delivery_is_not_shown_but_its_body_is(
    world: HttpWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    zombie = await world.install()
    url = zombie["webhook_urls"]["github"]
    assert (await world.http.post(url, content=BODY, headers=signed(SECRET, "d1"))).status_code == 401

    [refused] = await written(world)
    cut_off(world, monkeypatch)
    path = f"{world.ws}/webhook-deliveries/{refused['delivery_id']}"

    assert await code(world, "GET", path) == (503, "UZ-ENTL-001")
    assert await code(world, "POST", f"{path}:replay") == (503, "UZ-ENTL-001")
    assert (await world.get(f"{path}/body")).content == BODY


async def test_each_delivery_is_listed_with_what_became_of_it(world: HttpWorld) -> None:
    files = {"source_markdown": skill(), "trigger_markdown": open_trigger("doorbell", "shop")}
    zombie = (await world.post(f"{world.ws}/zombies", files)).json()
    bell, base = zombie["webhook_urls"]["doorbell"], f"/v1/webhooks/{zombie['zombie_id']}"
    body = b'{"event_id":"e1","type":"rung"}'
    assert (await world.http.post(bell, content=body)).status_code == 202
    assert (await world.http.post(bell, content=body)).status_code == 200
    assert (await world.http.post(bell, content=b"{")).status_code == 400
    assert (await world.http.post(bell, content=b"x" * (1024 * 1024 + 1))).status_code == 413
    assert (await world.http.post(bell, content=b"1", headers={"content-encoding": "br"})).status_code == 415
    assert (await world.http.post(f"{base}/a-password", content=body)).status_code == 401
    assert (await world.http.post(f"{base}/shop", content=body)).status_code == 401
    assert (await world.http.post(f"/v1/webhooks/{UNKNOWN}", content=body)).status_code == 404

    rows = await written(world)
    assert [(row["verdict"], row["code"], row["address"], row["source"]) for row in reversed(rows)] == [
        ("accepted", None, "secret", "doorbell"),
        ("duplicate", None, "secret", "doorbell"),
        ("refused", "UZ-WH-002", "secret", "doorbell"),
        ("refused", "UZ-WH-030", "secret", "doorbell"),
        ("refused", "UZ-REQ-005", "secret", "doorbell"),
        ("refused", "UZ-WH-020", "unknown", ""),
        ("refused", "UZ-WH-020", "source", "shop"),
    ]
    assert rows[-1]["event_id"] == rows[-2]["event_id"] is not None

    tables = world.memory.tables
    assert "zwh_" not in repr((tables.deliveries, tables.refusals))
    assert "a-password" not in repr(tables.deliveries)

    path = f"{world.ws}/webhook-deliveries"
    assert await code(world, "GET", f"{path}/{rows[-1]['delivery_id']}/body") == (410, "UZ-WH-041")
    assert await code(world, "POST", f"{path}/{rows[3]['delivery_id']}:replay") == (410, "UZ-WH-041")

    for verb, rest in (("GET", ""), ("GET", "/body"), ("POST", ":replay")):
        assert await code(world, verb, f"{path}/{UNKNOWN}{rest}") == (404, "UZ-WH-040")
    # What met no trigger reaches one that is declared since, if it is told by its source.
    assert (await replay(world, rows[0]))["code"] == "UZ-WH-020"

    assert [row["code"] for row in await written(world, verdict="refused", limit=1)] == ["UZ-WH-020"]

    first = (await world.get(path, params={"limit": 5})).json()
    rest = (await world.get(path, params={"limit": 5, "cursor": first["next_cursor"]})).json()
    assert [*first["items"], *rest["items"]] == await written(world)
    assert await written(world, since=rows[0]["at"] + 1) == []

    hooks = (await world.get(f"{world.ws}/webhooks", params={"refusing": "true"})).json()["items"]
    assert [(hook["source"], hook["signed"], hook["refused_in_day"]) for hook in hooks] == [
        ("doorbell", False, 5),
        ("shop", False, 5),
    ]
    assert hooks[0]["url"].endswith("/zwh_***")
    assert hooks == (await world.get(f"{world.ws}/webhooks")).json()["items"]

    one = {"zombie_id": zombie["zombie_id"]}
    assert hooks == (await world.get(f"{world.ws}/webhooks", params=one)).json()["items"]
    assert await code(world, "GET", f"{world.ws}/webhooks?zombie_id={UNKNOWN}") == (404, "UZ-ZMB-009")

    other = (await world.post("/v1/workspaces", {"name": "other"})).json()["workspace_id"]
    elsewhere = f"/v1/workspaces/{other}/webhook-deliveries"
    assert (await world.get(elsewhere)).json()["items"] == []
    assert await code(world, "GET", f"{elsewhere}/{rows[0]['delivery_id']}") == (404, "UZ-WH-040")


async def test_a_flood_of_refused_deliveries_is_counted_and_leaves_room_for_others(world: HttpWorld) -> None:
    flooded, calm = await world.install("flooded"), await world.install("calm")
    for _ in range(60):
        await world.http.post(flooded["webhook_urls"]["github"], content=b"{}")
    await world.http.post(calm["webhook_urls"]["github"], content=b"{}")

    rows = await written(world, limit=200)
    kept = [row for row in rows if row["zombie_id"] == flooded["zombie_id"]]
    assert 20 <= len(kept) < 60 <= REFUSED_KEPT
    assert rows[0]["zombie_id"] == calm["zombie_id"]

    hooks = (await world.get(f"{world.ws}/webhooks")).json()["items"]
    counts = {hook["zombie_name"]: (hook["refused_in_week"], hook["unkept_in_week"]) for hook in hooks}
    assert counts == {"flooded": (60, 60 - len(kept)), "calm": (1, 0)}
    assert (
        f'sexton_webhook_records_total{{outcome="unkept"}} {60 - len(kept)}.0'
        in (await world.get("/metrics")).text
    )

    await patch(world, flooded, status="killed")
    assert (await world.call("DELETE", at(world, flooded))).status_code == 204
    assert {row["zombie_id"] for row in await written(world)} == {calm["zombie_id"]}


async def test_an_endless_sender_fills_no_more_than_a_workspace_may_keep() -> None:
    async with open_http_world(files=FileBounds(webhook_bytes=1_000)) as world:
        agents = [await world.install(name) for name in ("a", "b")]
        for number in range(8):
            url = agents[number % 2]["webhook_urls"]["github"]
            await world.http.post(url, content=b"x" * 300, headers={"x-github-event": "push"})
            await written(world)
        rows = await written(world)

        assert len(rows) == 8
        assert [row["body_kept"] for row in rows] == [True] * 3 + [False] * 5
        assert {row["verdict"] for row in rows} == {"refused"}
        assert all(row["reason"] for row in rows)
