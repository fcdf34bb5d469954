"""A delivery that is turned away: told to its sender, shown in the stream, and no secret in either."""

from typing import Any
from uuid import UUID

import httpx2
import pytest
import trio

from sexton_storage.records.tenants import PlanTier
from tests.patience import PATIENCE_S
from tests.worlds.http import HttpWorld, open_http_world
from tests.worlds.http_agents import at, open_trigger, patch, skill

BIG = b"x" * (1024 * 1024 + 1)


async def doorbell(world: HttpWorld) -> tuple[dict[str, Any], str]:
    """An agent whose sender does not sign, and the address with its secret."""
    files = {"source_markdown": skill(), "trigger_markdown": open_trigger("doorbell")}
    answer = await world.post(f"{world.ws}/zombies", files)
    assert answer.status_code == 201, answer.text
    zombie: dict[str, Any] = answer.json()
    return zombie, zombie["webhook_urls"]["doorbell"]


def rejected(world: HttpWorld, zombie: dict[str, Any]) -> list[tuple[str, str]]:
    frames = world.memory.tables.frames.get(UUID(zombie["zombie_id"]), [])
    return [
        (frame.data["reason"].removeprefix("webhook_rejected: "), frame.data["source"])
        for frame in frames
        if frame.kind == "webhook_rejected"
    ]


async def shown(world: HttpWorld, zombie: dict[str, Any], count: int) -> list[tuple[str, str]]:
    """The first ``count`` and what came with them; they are written beside the answers."""
    with trio.fail_after(PATIENCE_S):
        while len(found := rejected(world, zombie)) < count:
            await trio.lowlevel.checkpoint()
    return found


def told(answer: httpx2.Response) -> tuple[int, str, str]:
    problem = answer.json()
    assert problem["error"]["details"]["reason"] == problem["reason"]
    assert "zwh_" not in answer.text
    reason: str = problem["reason"]
    return answer.status_code, problem["error_code"], reason.removeprefix("webhook_rejected: ")


async def test_the_secret_of_an_address_shows_nowhere_whatever_becomes_of_the_delivery(
    world: HttpWorld, capfd: pytest.CaptureFixture[str]
) -> None:
    zombie, url = await doorbell(world)
    bare = url.rpartition("/")[0]
    assert told(await world.http.post(url, content=BIG)) == (413, "UZ-WH-030", "too_large")
    assert told(await world.http.post(url, content=b"{")) == (400, "UZ-WH-002", "malformed_body")

    for segment in (url.rpartition("/")[2][:-1], "zwh_" + "a" * 43, "%7Awh_" + "a" * 43):
        assert (await world.http.post(f"{bare}/{segment}", content=b"{}")).status_code == 401
        assert told(await world.http.post(f"{bare}/{segment}", content=BIG))[2] == "too_large"
    assert (await world.http.post(f"{bare}/a-password", content=b"{}")).status_code == 401
    assert (await world.http.post(f"{bare}/doorbell", content=BIG)).status_code == 413

    await patch(world, zombie, status="stopped")
    assert told(await world.http.post(url, content=b"{}")) == (403, "UZ-WH-003", "not_active")

    await patch(world, zombie, status="active")
    assert (await world.http.post(url, content=b'{"type":"rung"}')).status_code == 202

    await patch(world, zombie, status="killed")
    assert told(await world.http.post(url, content=b"{}")) == (410, "UZ-WH-004", "not_active")
    assert await shown(world, zombie, 12) == [
        ("too_large", "doorbell"),
        ("malformed_body", "doorbell"),
        ("signature_malformed", ""),
        ("too_large", ""),
        ("signature_mismatch", ""),
        ("too_large", ""),
        ("signature_mismatch", ""),
        ("too_large", ""),
        ("credential_missing", ""),
        ("too_large", "doorbell"),
        ("not_active", "doorbell"),
        ("not_active", "doorbell"),
    ]

    tables = world.memory.tables
    assert "zwh_" not in repr((tables.frames, tables.events))

    metrics = (await world.get("/metrics")).text
    history = (await world.get(f"{at(world, zombie)}/events")).text
    printed = capfd.readouterr()
    assert "zwh_" not in metrics + history + printed.out + printed.err


async def test_a_flood_by_an_address_with_a_secret_shows_the_source_alone() -> None:
    async with open_http_world(plan_rates=dict.fromkeys(PlanTier, 5)) as world:
        zombie, url = await doorbell(world)
        answers = [await world.http.post(url, content=b'{"type":"rung"}') for _ in range(30)]
        refused = [answer for answer in answers if answer.status_code == 429]
        assert {told(answer) for answer in refused} == {(429, "UZ-REQ-006", "rate_limited")}

        found = await shown(world, zombie, 1)
        assert set(found) == {("rate_limited", "doorbell")}


async def test_a_delivery_over_the_budget_tells_its_reason(world: HttpWorld) -> None:
    await world.keep_secret()
    zombie = await world.install(config="budget: {daily_dollars: 0.00001}")
    url = zombie["webhook_urls"]["github"]
    token = await world.enrol()
    assert (await world.deliver(url)).status_code == 202

    lease = await world.lease(token)
    world.pass_ms(5_000)
    usage = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0}
    await world.post(f"/v1/runners/me/leases/{lease['lease_id']}/renew", usage, token)
    over = await world.deliver(url)
    assert told(over) == (503, "UZ-ZMB-001", "budget_exceeded")
    assert await shown(world, zombie, 1) == [("budget_exceeded", "github")]


async def test_a_body_of_a_senders_own_needs_no_field_of_ours(world: HttpWorld) -> None:
    zombie, url = await doorbell(world)
    whole = {"event_id": "e1", "type": "rung", "data": {"n": 1}}
    for sent in (whole, {"type": "rung", "data": {"n": 1}}, {"alert": 1, "data": []}):
        assert (await world.http.post(url, json=sent)).status_code == 202
    items = (await world.get(f"{at(world, zombie)}/events")).json()["items"]

    assert [(item["event_type"], item["source_event_id"]) for item in reversed(items)] == [
        ("rung", "e1"),
        ("rung", None),
        ("doorbell", None),
    ]


async def test_two_names_for_one_secret_are_refused_with_line_key_and_fix(world: HttpWorld) -> None:
    text = open_trigger("github").replace(
        "github", "github\n    credential_name: hook\n    signature: {secret_ref: hook}"
    )
    files = {"source_markdown": skill(), "trigger_markdown": text}
    answer = await world.post(f"{world.ws}/zombies", files)

    assert (answer.status_code, answer.json()["error_code"]) == (400, "UZ-ZMB-008")
    assert answer.json()["detail"].startswith(
        "ERR_ZOMBIE_INVALID_CONFIG: TRIGGER.md line 7, key `triggers[0].signature.secret_ref`"
    )
    assert "leave credential_name out" in answer.json()["detail"]


async def test_a_delivery_that_is_compressed_shows_in_the_stream(world: HttpWorld) -> None:
    zombie, url = await doorbell(world)
    zipped = {"content-type": "application/json", "content-encoding": "gzip"}
    answer = await world.http.post(url, content=b"\x1f\x8b", headers=zipped)

    assert told(answer) == (415, "UZ-REQ-005", "encoded")
    assert await shown(world, zombie, 1) == [("encoded", "doorbell")]


async def test_who_knocks_at_a_killed_agent_takes_nothing_from_its_workspace() -> None:
    async with open_http_world(plan_rates=dict.fromkeys(PlanTier, 100)) as world:
        zombie, url = await doorbell(world)
        assert (await world.http.post(url, content=b'{"type":"rung"}')).status_code == 202

        await patch(world, zombie, status="killed")
        before = left(await world.get(world.ws))
        knocked = [await world.http.post(url, content=b"{}") for _ in range(50)]
        assert {answer.status_code for answer in knocked} == {410}
        # They are bounded all the same, by a count of their own, which fills again while a slow machine asks.
        assert min(map(left, knocked)) < left(knocked[0])
        assert left(await world.get(world.ws)) > before - 10


def left(answer: httpx2.Response) -> int:
    return int(answer.headers["ratelimit"].partition("r=")[2].partition(";")[0])
