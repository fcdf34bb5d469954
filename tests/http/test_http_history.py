"""Event history: what an item says, which filters there are, and pages that hold still while more arrive."""

import base64
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from sexton_http.answers import Problem
from sexton_http.bodies.cursors import decode
from sexton_http.routes.events import parse_since
from tests.thorough import examples
from tests.worlds.http import HttpWorld

FIELDS = {
    "event_id",
    "ended",
    "retry_at",
    "zombie_id",
    "zombie_name",
    "workspace_id",
    "actor",
    "event_type",
    "status",
    "request_json",
    "response_text",
    "evidence",
    "tokens",
    "wall_ms",
    "charged_nanos",
    "attempts",
    "failure_label",
    "error_code",
    "source_event_id",
    "resumes_event_id",
    "created_at",
    "updated_at",
    "completed_at",
    "truncated",
    "request_bytes",
    "response_bytes",
    "evidence_bytes",
    "agent_version",
    "asked_version",
    "canary_id",
    "canary_side",
    "shadow_job_id",
}


async def page(world: HttpWorld, path: str = "", **query: Any) -> dict[str, Any]:
    answer = await world.get(f"{world.ws}{path}/events", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def refused(world: HttpWorld, path: str = "", **query: Any) -> str:
    answer = await world.get(f"{world.ws}{path}/events", params=query)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error_code"] == "UZ-REQ-001"
    detail: str = answer.json()["detail"]
    return detail


async def steer(world: HttpWorld, zombie_id: str, count: int = 1) -> list[str]:
    path = f"{world.ws}/zombies/{zombie_id}/messages"
    return [(await world.post(path, {"message": f"{n}"})).json()["event_id"] for n in range(count)]


async def pages(world: HttpWorld, path: str = "", **query: Any) -> AsyncIterator[list[str]]:
    """The ids of each page, to the last."""
    found = await page(world, path, **query)
    yield [item["event_id"] for item in found["items"]]
    query.pop("since", None)
    while found["next_cursor"] is not None:
        found = await page(world, path, **query, cursor=found["next_cursor"])
        yield [item["event_id"] for item in found["items"]]


async def test_an_item_has_every_field_of_the_contract(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    report = {
        "lease_id": lease["lease_id"],
        "event_id": lease["event"]["event_id"],
        "fencing_token": lease["fencing_token"],
        "outcome": "agent_error",
        "failure_reason": "agent_run",
        "response_text": "no",
        "evidence": {"a": 1},
        "input_tokens": 1,
        "cached_input_tokens": 2,
        "output_tokens": 4,
        "telemetry": {"time_to_first_token_ms": None, "wall_ms": 12},
    }
    assert (await world.post("/v1/runners/me/reports", report, token)).status_code == 200

    [item] = (await page(world))["items"]
    assert item.keys() == FIELDS
    assert item["zombie_id"] == zombie["zombie_id"]
    assert (item["actor"], item["event_type"], item["status"]) == (
        "webhook:github",
        "workflow_run.completed",
        "agent_error",
    )
    assert (item["tokens"], item["wall_ms"], item["attempts"]) == (7, 12, 1)
    assert (item["failure_label"], item["error_code"]) == ("agent_run", "UZ-EXEC-013")
    assert (item["source_event_id"], item["resumes_event_id"]) == ("delivery-1", None)
    assert item["request_json"]["raw"]["action"] == "completed"
    assert item["created_at"] <= item["updated_at"] == item["completed_at"]


async def test_filters_choose_by_agent_actor_status_and_age(world: HttpWorld) -> None:
    await world.keep_secret()
    one, two = await world.install("one"), await world.install("two")
    await world.deliver(one["webhook_urls"]["github"])
    [mine], [other] = await steer(world, one["zombie_id"]), await steer(world, two["zombie_id"])
    mark = world.actors_world.now_ms()
    world.pass_ms(60_000)
    [late] = await steer(world, two["zombie_id"])
    await world.post(f"{world.ws}/events/{other}/cancel")

    async def ids(path: str = "", **query: Any) -> set[str]:
        return {item["event_id"] for item in (await page(world, path, **query))["items"]}

    agent = f"/zombies/{two['zombie_id']}"
    assert await ids(agent) == {other, late} == await ids(zombie_id=two["zombie_id"])
    assert await ids(actor="steer:*") == {mine, other, late}
    assert await ids(agent, actor="webhook:*") == set()
    assert len(await ids(actor="webhook:github")) == 1
    assert len(await ids(actor="*:git*ub")) == 1
    assert await ids(actor="*:git?ub") == set()
    assert await ids(status="cancelled") == {other} == await ids(agent, status="cancelled")
    assert await ids(agent, status="received") == {late}
    assert await ids(f"/zombies/{one['zombie_id']}", status="cancelled") == set()
    assert await ids(since="30s") == {late} == await ids(agent, since="30s")
    assert len(await ids(since="2m")) == 4

    stamp = datetime.fromtimestamp((mark + 1000) / 1000, UTC).isoformat(timespec="milliseconds")
    assert await ids(since=stamp.replace("+00:00", "Z")) == {late}


async def test_pages_hold_still_while_events_arrive(world: HttpWorld) -> None:
    zombie_id = (await world.install())["zombie_id"]
    before = await steer(world, zombie_id, 12)
    for path in ("", f"/zombies/{zombie_id}"):
        seen: list[str] = []
        async for ids in pages(world, path, limit=5, actor="steer:*", since="1h"):
            seen += ids
            before += await steer(world, zombie_id, 2)
        assert len(set(seen)) == len(seen)
        assert seen == sorted(seen, reverse=True)
        assert set(seen) <= set(before)
        before_it_began = [event_id for event_id in before if event_id <= seen[0]]
        assert set(seen) == set(before_it_began)


async def test_a_page_that_is_just_full_is_the_last(world: HttpWorld) -> None:
    zombie_id = (await world.install())["zombie_id"]
    await steer(world, zombie_id, 4)

    assert [len(ids) async for ids in pages(world, limit=2)] == [2, 2]
    assert [len(ids) async for ids in pages(world, limit=4)] == [4]
    assert [len(ids) async for ids in pages(world, limit=200)] == [4]


async def test_a_cursor_is_good_for_the_listing_it_came_from_only(world: HttpWorld) -> None:
    one, two = (await world.install("one"))["zombie_id"], (await world.install("two"))["zombie_id"]
    await steer(world, one, 3)
    await steer(world, two, 3)
    agent, other = f"/zombies/{one}", f"/zombies/{two}"
    cursor = (await page(world, agent, limit=1))["next_cursor"]
    assert cursor
    assert "=" not in cursor
    assert (await page(world, agent, limit=2, cursor=cursor))["items"]
    assert "filters" in await refused(world, other, cursor=cursor)
    assert "filters" in await refused(world, cursor=cursor)
    assert "filters" in await refused(world, agent, cursor=cursor, actor="steer:*")

    by_status = (await page(world, limit=1, status="received"))["next_cursor"]
    assert "filters" in await refused(world, cursor=by_status, status="running")

    by_status = (await page(world, agent, limit=1, status="received"))["next_cursor"]
    assert "filters" in await refused(world, agent, cursor=by_status)
    assert (await page(world, agent, cursor=by_status, status="received"))["items"]
    assert "status" in await refused(world, agent, status="lost")

    approvals = await world.get(f"{world.ws}/approvals", params={"cursor": cursor})
    assert approvals.status_code == 400


async def test_a_cursor_and_a_since_exclude_each_other(world: HttpWorld) -> None:
    zombie_id = (await world.install())["zombie_id"]
    await steer(world, zombie_id, 2)
    cursor = (await page(world, limit=1, since="1h"))["next_cursor"]

    assert "exclude" in await refused(world, cursor=cursor, since="1h")
    assert len((await page(world, cursor=cursor))["items"]) == 1


def forged(*parts: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


NO_CURSORS = (
    "x",
    "====",
    "\u00ff",
    "bm90IGpzb24",
    forged(),
    forged(1),
    forged("a", "b", "c"),
    forged(1, "x", "y", 2),
    "A" * 512,
)
NO_TIMES = (
    "",
    "1",
    "1w",
    "-5m",
    "5 m",
    "yesterday",
    "2024-11-20",
    "2024-13-01T00:00:00Z",
    "\u0663m",
    "9" * 12 + "d",
)
OUT_OF_BOUNDS: tuple[dict[str, Any], ...] = (
    {"limit": 0},
    {"limit": 201},
    {"status": "done"},
    {"actor": ""},
    {"actor": "a" * 257},
)


async def test_what_is_no_filter_is_refused(world: HttpWorld) -> None:
    for cursor in NO_CURSORS:
        await refused(world, cursor=cursor)
    for since in NO_TIMES:
        await refused(world, since=since)
    for query in OUT_OF_BOUNDS:
        await refused(world, **query)


@settings(max_examples=examples(300), deadline=None)
@given(st.text(max_size=80) | st.from_regex(r"\d{1,12}[smhdw]", fullmatch=True))
def test_whatever_a_since_says_it_is_a_time_or_a_problem(text: str) -> None:
    found: int | str | None
    try:
        found = parse_since(text, 1_732_060_800_000)
    except Problem as problem:
        found = problem.code

    assert isinstance(found, int) or found == "UZ-REQ-001"


@settings(max_examples=examples(300), deadline=None)
@given(
    st.text(max_size=120)
    | st.builds(lambda raw: base64.urlsafe_b64encode(raw).decode().rstrip("="), st.binary(max_size=80))
    | st.lists(st.integers() | st.text() | st.none(), max_size=5).map(lambda parts: forged(*parts))
)
def test_whatever_a_cursor_says_it_is_a_place_or_a_problem(text: str) -> None:
    with pytest.raises(Problem) as raised:
        decode(text, "the filters")
    assert raised.value.code == "UZ-REQ-001"
