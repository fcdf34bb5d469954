"""Replay and cancel, in every state of an event, over each of their two addresses."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import httpx2
import pytest
from msgspec.structs import replace

from sexton_actors.terms import RECORD_FRESH_MS
from sexton_storage.periods import day_of
from sexton_storage.records.events import EventStatus
from sexton_storage.records.tenants import PlanTier
from tests.http.test_http_plans import cut_off
from tests.worlds.event_stream import listening
from tests.worlds.http import HttpWorld
from tests.worlds.states_page import cells

UNKNOWN = "019363b0-0000-7000-8000-00000000ffff"
GATED = "gates: {rules: [{tool: '*', action: '*', behavior: approve}]}"
Step = Callable[[HttpWorld], Awaitable[tuple[str, str]]]
ADDRESSES = ("agent", "workspace")


async def waking(world: HttpWorld, config: str = "") -> tuple[str, str]:
    """An agent and its first event."""
    zombie = await world.install(config=config)
    accepted = await world.post(f"{world.ws}/zombies/{zombie['zombie_id']}/messages", {"message": "hello"})
    assert accepted.status_code == 202, accepted.text
    return zombie["zombie_id"], accepted.json()["event_id"]


async def received(world: HttpWorld) -> tuple[str, str]:
    return await waking(world)


async def waiting(world: HttpWorld) -> tuple[str, str]:
    return await waking(world, GATED)


async def running(world: HttpWorld) -> tuple[str, str]:
    zombie_id, event_id = await waking(world)
    await world.lease(await world.enrol())
    return zombie_id, event_id


def ended(status: EventStatus) -> Step:
    async def end(world: HttpWorld) -> tuple[str, str]:
        zombie_id, event_id = await waking(world)
        tables, now = world.memory.tables, world.actors_world.now_ms()
        event = tables.events[UUID(event_id)]
        tables.put_event(replace(event, status=status, completed_at=now, updated_at=now))
        return zombie_id, event_id

    return end


async def unpaid(world: HttpWorld) -> tuple[str, str]:
    zombie_id, event_id = await waking(world)
    tables = world.memory.tables
    blocked = EventStatus.GATE_BLOCKED
    event = replace(tables.events[UUID(event_id)], status=blocked, failure_label="balance_exhausted")
    tables.put_event(event)
    return zombie_id, event_id


STATES: dict[str, Step] = {
    "received": received,
    "waiting_approval": waiting,
    "running": running,
    "gate_blocked, for credit": unpaid,
    "gate_blocked": ended(EventStatus.GATE_BLOCKED),
    "processed": ended(EventStatus.PROCESSED),
    "agent_error": ended(EventStatus.AGENT_ERROR),
    "cancelled": ended(EventStatus.CANCELLED),
    "dead_lettered": ended(EventStatus.DEAD_LETTERED),
}


async def act(world: HttpWorld, address: str, what: str, zombie_id: str, event_id: str) -> httpx2.Response:
    agent = f"/zombies/{zombie_id}" if address == "agent" else ""
    return await world.call("POST", f"{world.ws}{agent}/events/{event_id}/{what}")


async def status_of(world: HttpWorld, event_id: str) -> str:
    page = (await world.get(f"{world.ws}/events")).json()
    [found] = [item for item in page["items"] if item["event_id"] == event_id]
    return str(found["status"])


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize(("row", "column", "cell"), cells("Event"))
async def test_an_event_does_what_its_table_says(
    world: HttpWorld, row: str, column: str, cell: str, address: str
) -> None:
    zombie_id, event_id = await STATES[column](world)
    before = await status_of(world, event_id)
    answer = await act(world, address, row, zombie_id, event_id)
    said = answer.json()
    if cell.startswith("`"):
        assert (answer.status_code, f"`{said['error_code']}`") == (409, cell)
        assert said["current_state"] == before == await status_of(world, event_id)
        return
    assert (answer.status_code, said["status"]) == (202, cell)

    if row == "replay":
        assert said["resumes_event_id"] == event_id
        assert await status_of(world, event_id) == before
        [new, old] = (await world.get(f"{world.ws}/events")).json()["items"]
        assert (new["event_id"], new["resumes_event_id"]) == (said["event_id"], event_id)
        same = ("actor", "event_type", "request_json", "zombie_id")
        assert [new[name] for name in same] == [old[name] for name in same]
    else:
        assert said["event_id"] == event_id
        assert await status_of(world, event_id) == {"cancelled": "cancelled", "cancelling": "running"}[cell]


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("what", ["replay", "cancel"])
async def test_an_event_that_is_not_there_is_not_found(world: HttpWorld, what: str, address: str) -> None:
    zombie_id, event_id = await received(world)
    other = (await world.install("other"))["zombie_id"]
    missing = await act(world, address, what, zombie_id, UNKNOWN)
    assert (missing.status_code, missing.json()["error_code"]) == (404, "UZ-EVENT-001")

    if address == "agent":
        of_another = await act(world, address, what, other, event_id)
        assert (of_another.status_code, of_another.json()["error_code"]) == (404, "UZ-EVENT-001")
        nobodys = await act(world, address, what, UNKNOWN, event_id)
        assert (nobodys.status_code, nobodys.json()["error_code"]) == (404, "UZ-ZMB-009")
    else:
        elsewhere = (await world.post("/v1/workspaces", {"name": "elsewhere"})).json()["workspace_id"]
        answer = await world.post(f"/v1/workspaces/{elsewhere}/events/{event_id}/{what}")
        assert (answer.status_code, answer.json()["error_code"]) == (404, "UZ-EVENT-001")
    assert await status_of(world, event_id) == "received"


@pytest.mark.parametrize("address", ADDRESSES)
async def test_a_replay_needs_an_agent_that_takes_work_and_somebody_who_pays(
    world: HttpWorld, address: str
) -> None:
    zombie = await world.install(config="budget: {daily_dollars: 1}")
    zombie_id = zombie["zombie_id"]
    path = f"{world.ws}/zombies/{zombie_id}"
    event_id = (await world.post(f"{path}/messages", {"message": "hello"})).json()["event_id"]
    assert (await act(world, address, "cancel", zombie_id, event_id)).status_code == 202

    async def refused() -> tuple[int, str]:
        world.pass_ms(RECORD_FRESH_MS)
        answer = await act(world, address, "replay", zombie_id, event_id)
        return answer.status_code, answer.json().get("error_code", "")

    await world.call("PATCH", path, json={"status": "stopped"})
    assert await refused() == (409, "UZ-ZMB-012")

    await world.call("PATCH", path, json={"status": "active"})
    tables, tenant_id = world.memory.tables, world.installation.tenant_id
    rich = tables.tenants[tenant_id]
    tables.tenants[tenant_id] = replace(rich, balance_nanos=0)
    assert await refused() == (402, "UZ-BILLING-005")

    tables.tenants[tenant_id] = rich
    spent = (UUID(zombie_id), day_of(world.actors_world.now_ms()))
    tables.spend[spent] = 10**10
    assert await refused() == (402, "UZ-ZMB-001")

    del tables.spend[spent]
    assert await refused() == (202, "")


async def test_the_same_replay_asked_for_twice_is_one(world: HttpWorld) -> None:
    zombie_id, event_id = await STATES["dead_lettered"](world)
    path = f"{world.ws}/zombies/{zombie_id}/events/{event_id}/replay"
    first = await world.call("POST", path, headers={"idempotency-key": "k"})
    again = await world.call("POST", path, headers={"idempotency-key": "k"})
    assert first.json()["event_id"] == again.json()["event_id"]
    assert again.headers["idempotent-replayed"] == "true"

    page = (await world.get(f"{world.ws}/events")).json()
    assert len(page["items"]) == 2


async def test_a_replay_may_ask_something_else(world: HttpWorld) -> None:
    zombie_id, event_id = await STATES["dead_lettered"](world)
    paths = [f"{world.ws}{agent}/events/{event_id}/replay" for agent in ("", f"/zombies/{zombie_id}")]
    key = {"idempotency-key": "k"}
    orders: list[dict[str, Any]] = [{"request": {"message": "Another."}}, {"merge": {"hint": 7}}, {}]
    made = [(await world.post(paths[0], orders[0], headers=key)).json()]
    made += [(await world.post(paths[1], body)).json() for body in orders]
    asked = [(await world.get(f"{world.ws}/events/{one['event_id']}")).json()["request_json"] for one in made]
    before = (await world.get(f"{world.ws}/events/{event_id}")).json()["request_json"]
    assert asked == [{"message": "Another."}, {"message": "Another."}, {**before, "hint": 7}, before]

    again = await world.post(paths[0], orders[0], headers=key)
    assert again.json()["event_id"] == made[0]["event_id"]

    both = await world.post(paths[0], {"request": {}, "merge": {}})
    assert (both.status_code, both.json()["error_code"], both.json()["pointer"]) == (
        400,
        "UZ-REQ-001",
        "/merge",
    )


async def test_a_dead_letter_is_listed_as_such(world: HttpWorld) -> None:
    _, event_id = await STATES["dead_lettered"](world)
    listed = (await world.get(f"{world.ws}/events", params={"status": "dead_lettered"})).json()
    assert [item["event_id"] for item in listed["items"]] == [event_id]

    others = (await world.get(f"{world.ws}/events", params={"status": "received"})).json()
    assert others["items"] == []


async def test_what_a_cancel_ends_is_told_in_the_stream_and_the_inbox(world: HttpWorld) -> None:
    zombie_id, event_id = await waiting(world)
    [gate] = (await world.get(f"{world.ws}/approvals", params={"status": "pending"})).json()["items"]
    assert (await act(world, "agent", "cancel", zombie_id, event_id)).json()["status"] == "cancelled"

    closed = (await world.get(f"{world.ws}/approvals/{gate['gate_id']}")).json()
    assert (closed["status"], closed["resolved_by"]) == ("denied", "system:cancel")

    late = await world.post(f"{world.ws}/approvals/{gate['gate_id']}:approve")
    assert (late.status_code, late.json()["outcome"]) == (404, "denied")

    path = f"{world.ws}/zombies/{zombie_id}/events/stream"
    async with listening(world.base_url, path, world.api_key, last_event_id="0") as stream:
        frames = [await stream.frame() for _ in range(4)]
    assert [frame["kind"] for frame in frames] == [
        "event_received",
        "gate_pending",
        "gate_resolved",
        "event_complete",
    ]
    assert frames[3]["status"] == "cancelled"
    assert frames[3]["by"].startswith(("user:", "api:"))


async def test_a_run_that_is_cancelled_hears_of_it_by_each_of_its_calls(world: HttpWorld) -> None:
    zombie_id, event_id = await waking(world)
    token = await world.enrol()
    lease = await world.lease(token)
    assert (await act(world, "workspace", "cancel", zombie_id, event_id)).json()["status"] == "cancelling"

    polled = (await world.post("/v1/runners/me/leases", {"wait_ms": 5000}, token)).json()
    assert polled["cancelled_lease_ids"] == [lease["lease_id"]]

    beat = (await world.post("/v1/runners/me/heartbeats", {}, token)).json()
    assert beat["cancelled_lease_ids"] == [lease["lease_id"]]

    usage = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0}
    renewed = await world.post(f"/v1/runners/me/leases/{lease['lease_id']}/renew", usage, token)
    assert renewed.json()["state"] == "cancelling"

    report = {
        "lease_id": lease["lease_id"],
        "event_id": event_id,
        "fencing_token": lease["fencing_token"],
        "outcome": "processed",
        "response_text": "too late",
        **usage,
        "telemetry": {"time_to_first_token_ms": None, "wall_ms": 1},
    }
    assert (await world.post("/v1/runners/me/reports", report, token)).status_code == 200
    assert await status_of(world, event_id) == "cancelled"


async def test_what_the_plan_allows_is_read_before_a_replay(
    world: HttpWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    zombie_id, event_id = await STATES["processed"](world)
    cut_off(world, monkeypatch)
    for address in ADDRESSES:
        refused = await act(world, address, "replay", zombie_id, event_id)
        assert (refused.status_code, refused.json()["error_code"]) == (503, "UZ-ENTL-001")


async def test_the_plan_counts_a_replay_among_the_events_of_the_day(world: HttpWorld) -> None:
    zombie_id, event_id = await STATES["processed"](world)
    world.set_plan(PlanTier.FREE)
    world.pass_ms(2 * RECORD_FRESH_MS)
    tables, day = world.memory.tables, day_of(world.actors_world.now_ms())
    tables.event_counts[world.installation.tenant_id, day] = 10**9
    for address in ADDRESSES:
        refused = await act(world, address, "replay", zombie_id, event_id)
        assert (refused.status_code, refused.json()["error_code"]) == (402, "UZ-ENTL-003")
