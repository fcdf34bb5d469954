"""Replay and cancel, in every state of an event, over each of their two addresses."""

from collections.abc import Awaitable, Callable
from uuid import UUID

import httpx2
import pytest
from msgspec.structs import replace

from sexton_actors.terms import RECORD_FRESH_MS
from sexton_storage.periods import day_of
from sexton_storage.records.events import EventStatus
from sexton_storage.records.tenants import PlanTier
from tests.actors.test_state_tables import cells
from tests.http.house import House
from tests.http.listening import listening
from tests.http.test_http_plans import cut_off

UNKNOWN = "019363b0-0000-7000-8000-00000000ffff"
GATED = "gates: {rules: [{tool: '*', action: '*', behavior: approve}]}"
Step = Callable[[House], Awaitable[tuple[str, str]]]
ADDRESSES = ("agent", "workspace")


async def waking(house: House, config: str = "") -> tuple[str, str]:
    """An agent and its first event."""
    zombie = await house.install(config=config)
    accepted = await house.post(f"{house.ws}/zombies/{zombie['zombie_id']}/messages", {"message": "hello"})
    assert accepted.status_code == 202, accepted.text
    return zombie["zombie_id"], accepted.json()["event_id"]


async def received(house: House) -> tuple[str, str]:
    return await waking(house)


async def waiting(house: House) -> tuple[str, str]:
    return await waking(house, GATED)


async def running(house: House) -> tuple[str, str]:
    zombie_id, event_id = await waking(house)
    await house.lease(await house.enrol())
    return zombie_id, event_id


def ended(status: EventStatus) -> Step:
    async def end(house: House) -> tuple[str, str]:
        zombie_id, event_id = await waking(house)
        tables, now = house.memory.tables, house.world.now_ms()
        event = tables.events[UUID(event_id)]
        tables.put_event(replace(event, status=status, completed_at=now, updated_at=now))
        return zombie_id, event_id

    return end


async def unpaid(house: House) -> tuple[str, str]:
    zombie_id, event_id = await waking(house)
    tables = house.memory.tables
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


async def act(house: House, address: str, what: str, zombie_id: str, event_id: str) -> httpx2.Response:
    agent = f"/zombies/{zombie_id}" if address == "agent" else ""
    return await house.call("POST", f"{house.ws}{agent}/events/{event_id}/{what}")


async def status_of(house: House, event_id: str) -> str:
    page = (await house.get(f"{house.ws}/events")).json()
    [found] = [item for item in page["items"] if item["event_id"] == event_id]
    return str(found["status"])


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize(("row", "column", "cell"), cells("Event"))
async def test_an_event_does_what_its_table_says(
    house: House, row: str, column: str, cell: str, address: str
) -> None:
    zombie_id, event_id = await STATES[column](house)
    before = await status_of(house, event_id)
    answer = await act(house, address, row, zombie_id, event_id)
    said = answer.json()
    if cell.startswith("`"):
        assert (answer.status_code, f"`{said['error_code']}`") == (409, cell)
        assert said["current_state"] == before == await status_of(house, event_id)
        return
    assert (answer.status_code, said["status"]) == (202, cell)
    if row == "replay":
        assert said["resumes_event_id"] == event_id
        assert await status_of(house, event_id) == before
        [new, old] = (await house.get(f"{house.ws}/events")).json()["items"]
        assert (new["event_id"], new["resumes_event_id"]) == (said["event_id"], event_id)
        same = ("actor", "event_type", "request_json", "zombie_id")
        assert [new[name] for name in same] == [old[name] for name in same]
    else:
        assert said["event_id"] == event_id
        assert await status_of(house, event_id) == {"cancelled": "cancelled", "cancelling": "running"}[cell]


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("what", ["replay", "cancel"])
async def test_an_event_that_is_not_there_is_not_found(house: House, what: str, address: str) -> None:
    zombie_id, event_id = await received(house)
    other = (await house.install("other"))["zombie_id"]
    missing = await act(house, address, what, zombie_id, UNKNOWN)
    assert (missing.status_code, missing.json()["error_code"]) == (404, "UZ-EVENT-001")
    if address == "agent":
        of_another = await act(house, address, what, other, event_id)
        assert (of_another.status_code, of_another.json()["error_code"]) == (404, "UZ-EVENT-001")
        nobodys = await act(house, address, what, UNKNOWN, event_id)
        assert (nobodys.status_code, nobodys.json()["error_code"]) == (404, "UZ-ZMB-009")
    else:
        elsewhere = (await house.post("/v1/workspaces", {"name": "elsewhere"})).json()["workspace_id"]
        answer = await house.post(f"/v1/workspaces/{elsewhere}/events/{event_id}/{what}")
        assert (answer.status_code, answer.json()["error_code"]) == (404, "UZ-EVENT-001")
    assert await status_of(house, event_id) == "received"


@pytest.mark.parametrize("address", ADDRESSES)
async def test_a_replay_needs_an_agent_that_takes_work_and_somebody_who_pays(
    house: House, address: str
) -> None:
    zombie = await house.install(config="budget: {daily_dollars: 1}")
    zombie_id = zombie["zombie_id"]
    path = f"{house.ws}/zombies/{zombie_id}"
    event_id = (await house.post(f"{path}/messages", {"message": "hello"})).json()["event_id"]
    assert (await act(house, address, "cancel", zombie_id, event_id)).status_code == 202

    async def refused() -> tuple[int, str]:
        house.pass_ms(RECORD_FRESH_MS)
        answer = await act(house, address, "replay", zombie_id, event_id)
        return answer.status_code, answer.json().get("error_code", "")

    await house.call("PATCH", path, json={"status": "stopped"})
    assert await refused() == (409, "UZ-ZMB-012")
    await house.call("PATCH", path, json={"status": "active"})
    tables, tenant_id = house.memory.tables, house.installation.tenant_id
    rich = tables.tenants[tenant_id]
    tables.tenants[tenant_id] = replace(rich, balance_nanos=0)
    assert await refused() == (402, "UZ-BILLING-005")
    tables.tenants[tenant_id] = rich
    spent = (UUID(zombie_id), day_of(house.world.now_ms()))
    tables.spend[spent] = 10**10
    assert await refused() == (402, "UZ-ZMB-001")
    del tables.spend[spent]
    assert await refused() == (202, "")


async def test_the_same_replay_asked_for_twice_is_one(house: House) -> None:
    zombie_id, event_id = await STATES["dead_lettered"](house)
    path = f"{house.ws}/zombies/{zombie_id}/events/{event_id}/replay"
    first = await house.call("POST", path, headers={"idempotency-key": "k"})
    again = await house.call("POST", path, headers={"idempotency-key": "k"})
    assert first.json()["event_id"] == again.json()["event_id"]
    assert again.headers["idempotent-replayed"] == "true"
    page = (await house.get(f"{house.ws}/events")).json()
    assert len(page["items"]) == 2


async def test_a_dead_letter_is_listed_as_such(house: House) -> None:
    _, event_id = await STATES["dead_lettered"](house)
    listed = (await house.get(f"{house.ws}/events", params={"status": "dead_lettered"})).json()
    assert [item["event_id"] for item in listed["items"]] == [event_id]
    others = (await house.get(f"{house.ws}/events", params={"status": "received"})).json()
    assert others["items"] == []


async def test_what_a_cancel_ends_is_told_in_the_stream_and_the_inbox(house: House) -> None:
    zombie_id, event_id = await waiting(house)
    [gate] = (await house.get(f"{house.ws}/approvals", params={"status": "pending"})).json()["items"]
    assert (await act(house, "agent", "cancel", zombie_id, event_id)).json()["status"] == "cancelled"
    closed = (await house.get(f"{house.ws}/approvals/{gate['gate_id']}")).json()
    assert (closed["status"], closed["resolved_by"]) == ("denied", "system:cancel")
    late = await house.post(f"{house.ws}/approvals/{gate['gate_id']}:approve")
    assert (late.status_code, late.json()["outcome"]) == (404, "denied")
    path = f"{house.ws}/zombies/{zombie_id}/events/stream"
    async with listening(house.base_url, path, house.api_key, last_event_id="0") as stream:
        frames = [await stream.frame() for _ in range(4)]
    assert [frame["kind"] for frame in frames] == [
        "event_received",
        "gate_pending",
        "gate_resolved",
        "event_complete",
    ]
    assert frames[3]["status"] == "cancelled"
    assert frames[3]["by"].startswith(("user:", "api:"))


async def test_a_run_that_is_cancelled_hears_of_it_by_each_of_its_calls(house: House) -> None:
    zombie_id, event_id = await waking(house)
    token = await house.enrol()
    lease = await house.lease(token)
    assert (await act(house, "workspace", "cancel", zombie_id, event_id)).json()["status"] == "cancelling"
    polled = (await house.post("/v1/runners/me/leases", {"wait_ms": 5000}, token)).json()
    assert polled["cancelled_lease_ids"] == [lease["lease_id"]]
    beat = (await house.post("/v1/runners/me/heartbeats", {}, token)).json()
    assert beat["cancelled_lease_ids"] == [lease["lease_id"]]
    usage = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0}
    renewed = await house.post(f"/v1/runners/me/leases/{lease['lease_id']}/renew", usage, token)
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
    assert (await house.post("/v1/runners/me/reports", report, token)).status_code == 200
    assert await status_of(house, event_id) == "cancelled"


async def test_what_the_plan_allows_is_read_before_a_replay(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    zombie_id, event_id = await STATES["processed"](house)
    cut_off(house, monkeypatch)
    for address in ADDRESSES:
        refused = await act(house, address, "replay", zombie_id, event_id)
        assert (refused.status_code, refused.json()["error_code"]) == (503, "UZ-ENTL-001")


async def test_the_plan_counts_a_replay_among_the_events_of_the_day(house: House) -> None:
    zombie_id, event_id = await STATES["processed"](house)
    house.set_plan(PlanTier.FREE)
    house.pass_ms(2 * RECORD_FRESH_MS)
    tables, day = house.memory.tables, day_of(house.world.now_ms())
    tables.event_counts[house.installation.tenant_id, day] = 10**9
    for address in ADDRESSES:
        refused = await act(house, address, "replay", zombie_id, event_id)
        assert (refused.status_code, refused.json()["error_code"]) == (402, "UZ-ENTL-003")
