"""A delivery that is turned away: told to its sender, shown in the stream, and no secret in either."""

from typing import Any
from uuid import UUID

import httpx2
import pytest
import trio

from sexton_storage.records.tenants import PlanTier
from tests.http.agent_life import at, open_trigger, patch, skill
from tests.http.house import House, open_house

BIG = b"x" * (1024 * 1024 + 1)


async def doorbell(house: House) -> tuple[dict[str, Any], str]:
    """An agent whose sender does not sign, and the address with its secret."""
    files = {"source_markdown": skill(), "trigger_markdown": open_trigger("doorbell")}
    answer = await house.post(f"{house.ws}/zombies", files)
    assert answer.status_code == 201, answer.text
    zombie: dict[str, Any] = answer.json()
    return zombie, zombie["webhook_urls"]["doorbell"]


def rejected(house: House, zombie: dict[str, Any]) -> list[tuple[str, str]]:
    frames = house.memory.tables.frames.get(UUID(zombie["zombie_id"]), [])
    return [
        (frame.data["reason"].removeprefix("webhook_rejected: "), frame.data["source"])
        for frame in frames
        if frame.kind == "webhook_rejected"
    ]


async def shown(house: House, zombie: dict[str, Any], count: int) -> list[tuple[str, str]]:
    """The first ``count`` and what came with them; they are written beside the answers."""
    with trio.fail_after(10):
        while len(found := rejected(house, zombie)) < count:
            await trio.lowlevel.checkpoint()
    return found


def told(answer: httpx2.Response) -> tuple[int, str, str]:
    problem = answer.json()
    assert problem["error"]["details"]["reason"] == problem["reason"]
    assert "zwh_" not in answer.text
    reason: str = problem["reason"]
    return answer.status_code, problem["error_code"], reason.removeprefix("webhook_rejected: ")


async def test_the_secret_of_an_address_shows_nowhere_whatever_becomes_of_the_delivery(
    house: House, capfd: pytest.CaptureFixture[str]
) -> None:
    zombie, url = await doorbell(house)
    bare = url.rpartition("/")[0]
    assert told(await house.http.post(url, content=BIG)) == (413, "UZ-WH-030", "too_large")
    assert told(await house.http.post(url, content=b"{")) == (400, "UZ-WH-002", "malformed_body")
    for segment in (url.rpartition("/")[2][:-1], "zwh_" + "a" * 43, "%7Awh_" + "a" * 43):
        assert (await house.http.post(f"{bare}/{segment}", content=b"{}")).status_code == 401
        assert told(await house.http.post(f"{bare}/{segment}", content=BIG))[2] == "too_large"
    assert (await house.http.post(f"{bare}/a-password", content=b"{}")).status_code == 401
    assert (await house.http.post(f"{bare}/doorbell", content=BIG)).status_code == 413
    await patch(house, zombie, status="stopped")
    assert told(await house.http.post(url, content=b"{}")) == (403, "UZ-WH-003", "not_active")
    await patch(house, zombie, status="active")
    assert (await house.http.post(url, content=b'{"type":"rung"}')).status_code == 202
    await patch(house, zombie, status="killed")
    assert told(await house.http.post(url, content=b"{}")) == (410, "UZ-WH-004", "not_active")
    assert await shown(house, zombie, 12) == [
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
    tables = house.memory.tables
    assert "zwh_" not in repr((tables.frames, tables.events))
    metrics = (await house.get("/metrics")).text
    history = (await house.get(f"{at(house, zombie)}/events")).text
    printed = capfd.readouterr()
    assert "zwh_" not in metrics + history + printed.out + printed.err


async def test_a_flood_by_an_address_with_a_secret_shows_the_source_alone() -> None:
    async with open_house(plan_rates=dict.fromkeys(PlanTier, 5)) as house:
        zombie, url = await doorbell(house)
        answers = [await house.http.post(url, content=b'{"type":"rung"}') for _ in range(30)]
        refused = [answer for answer in answers if answer.status_code == 429]
        assert {told(answer) for answer in refused} == {(429, "UZ-REQ-006", "rate_limited")}
        found = await shown(house, zombie, 1)
        assert set(found) == {("rate_limited", "doorbell")}


async def test_a_delivery_over_the_budget_tells_its_reason(house: House) -> None:
    await house.keep_secret()
    zombie = await house.install(config="budget: {daily_dollars: 0.00001}")
    url = zombie["webhook_urls"]["github"]
    token = await house.enrol()
    assert (await house.deliver(url)).status_code == 202
    lease = await house.lease(token)
    house.pass_ms(5_000)
    usage = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0}
    await house.post(f"/v1/runners/me/leases/{lease['lease_id']}/renew", usage, token)
    over = await house.deliver(url)
    assert told(over) == (503, "UZ-ZMB-001", "budget_exceeded")
    assert await shown(house, zombie, 1) == [("budget_exceeded", "github")]


async def test_a_body_of_a_senders_own_needs_no_field_of_ours(house: House) -> None:
    zombie, url = await doorbell(house)
    whole = {"event_id": "e1", "type": "rung", "data": {"n": 1}}
    for sent in (whole, {"type": "rung", "data": {"n": 1}}, {"alert": 1, "data": []}):
        assert (await house.http.post(url, json=sent)).status_code == 202
    items = (await house.get(f"{at(house, zombie)}/events")).json()["items"]
    assert [(item["event_type"], item["source_event_id"]) for item in reversed(items)] == [
        ("rung", "e1"),
        ("rung", None),
        ("doorbell", None),
    ]


async def test_two_names_for_one_secret_are_refused_with_line_key_and_fix(house: House) -> None:
    text = open_trigger("github").replace(
        "github", "github\n    credential_name: hook\n    signature: {secret_ref: hook}"
    )
    files = {"source_markdown": skill(), "trigger_markdown": text}
    answer = await house.post(f"{house.ws}/zombies", files)
    assert (answer.status_code, answer.json()["error_code"]) == (400, "UZ-ZMB-008")
    assert answer.json()["detail"].startswith(
        "ERR_ZOMBIE_INVALID_CONFIG: TRIGGER.md line 7, key `triggers[0].signature.secret_ref`"
    )
    assert "leave credential_name out" in answer.json()["detail"]


async def test_a_delivery_that_is_compressed_shows_in_the_stream(house: House) -> None:
    zombie, url = await doorbell(house)
    zipped = {"content-type": "application/json", "content-encoding": "gzip"}
    answer = await house.http.post(url, content=b"\x1f\x8b", headers=zipped)
    assert told(answer) == (415, "UZ-REQ-005", "encoded")
    assert await shown(house, zombie, 1) == [("encoded", "doorbell")]


async def test_who_knocks_at_a_killed_agent_takes_nothing_from_its_workspace() -> None:
    async with open_house(plan_rates=dict.fromkeys(PlanTier, 100)) as house:
        zombie, url = await doorbell(house)
        assert (await house.http.post(url, content=b'{"type":"rung"}')).status_code == 202
        await patch(house, zombie, status="killed")
        before = left(await house.get(house.ws))
        knocked = [await house.http.post(url, content=b"{}") for _ in range(50)]
        assert {answer.status_code for answer in knocked} == {410}
        assert left(knocked[-1]) < left(knocked[0])  # They are bounded all the same, by a count of their own.
        assert left(await house.get(house.ws)) > before - 10


def left(answer: httpx2.Response) -> int:
    return int(answer.headers["ratelimit"].partition("r=")[2].partition(";")[0])
