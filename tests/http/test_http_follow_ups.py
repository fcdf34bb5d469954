"""Follow-ups over HTTP: a run asks, the agent is woken once at the time, people see it and take it back."""

from typing import Any

import httpx2
import msgspec
import pytest
import trio

from sexton_actors.protocol.scheduler import Look
from sexton_runner.client import ControlPlane, Outage, open_http
from sexton_runner.redact import Redactor
from sexton_runner.tools.follow_up import ScheduleFollowUp
from sexton_runner.wire import Lease
from sexton_storage.records.users import Role
from tests.http.house import House

UNKNOWN = "019363b0-0000-7000-8000-00000000ffff"
DAY_MS = 24 * 3_600_000
REPORT = {
    "outcome": "processed",
    "response_text": "",
    "input_tokens": 0,
    "cached_input_tokens": 0,
    "output_tokens": 0,
}


def code(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("error_code", "") if answer.content else ""


async def ask(
    house: House, token: str, lease: dict[str, Any], call_id: str = "c", **changes: Any
) -> httpx2.Response:
    body = {"call_id": call_id, "message": "look again", **({"delay_s": 60} | changes)}
    body = {name: value for name, value in body.items() if value is not None}
    return await house.post(f"/v1/runners/me/leases/{lease['lease_id']}/follow-ups", body, token)


async def report(house: House, token: str, lease: dict[str, Any]) -> None:
    fence = {"lease_id": lease["lease_id"], "fencing_token": lease["fencing_token"]}
    body = {**fence, "event_id": lease["event"]["event_id"], **REPORT}
    answer = await house.post("/v1/runners/me/reports", body, token)
    assert answer.status_code == 200, answer.text


def path(house: House, zombie: dict[str, Any], follow_up_id: str = "") -> str:
    one = f"/{follow_up_id}" if follow_up_id else ""
    return f"{house.ws}/zombies/{zombie['zombie_id']}/follow-ups{one}"


async def items(house: House, zombie: dict[str, Any]) -> list[dict[str, Any]]:
    answer = await house.get(path(house, zombie))
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


async def look(house: House, zombie: dict[str, Any], pending: int = 0) -> list[str]:
    """Have the scheduler look until so many wait, and give what became of all."""
    with trio.fail_after(15):
        while True:
            house.system.tell("scheduler", "", Look())
            states = [item["status"] for item in await items(house, zombie)]
            if states.count("pending") == pending:
                return states
            await trio.sleep(0.01)


async def woken(house: House, zombie: dict[str, Any]) -> list[dict[str, Any]]:
    answer = await house.get(f"{house.ws}/zombies/{zombie['zombie_id']}/events?actor=follow_up:*")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


async def test_the_tool_of_a_run_has_its_agent_woken_once_at_the_time(house: House) -> None:
    zombie, token, wire = await house.working()
    lease, now = msgspec.convert(wire, Lease, strict=False), house.world.now_ms()
    async with open_http(house.base_url, token, 5.0) as http:
        plane = ControlPlane(http, Outage(trio.current_time))
        tool = ScheduleFollowUp(plane, lease, Redactor({"a": {"b": "canary-secret-1"}}, None))
        wanted = {"message": "is it up? canary-secret-1", "delay_s": 60}
        made, again = await tool.call(wanted), await tool.call(wanted)
        assert made.ok, made.content
        assert again.facts == made.facts
        wrong = await tool.call({"message": "both", "delay_s": 60, "at": now + DAY_MS})
        assert (wrong.ok, wrong.facts) == (False, {"code": "UZ-REQ-001"})
    [shown] = await items(house, zombie)
    assert shown["event_id"] == lease.event.event_id
    assert "canary" not in shown["message"]
    assert shown["at"] == made.facts["at"]
    await report(house, token, wire)
    assert await look(house, zombie, pending=1) == ["pending"]
    house.pass_ms(61_000)
    assert await look(house, zombie) == ["fired"]
    await look(house, zombie)
    following = await house.lease(token)
    event = following["event"]
    assert (event["actor"], event["event_type"]) == (f"follow_up:{lease.event.event_id}", "follow_up")
    request = event["request_json"]
    assert request == {
        "follow_up_id": shown["follow_up_id"],
        "scheduled_at": shown["at"],
        "message": shown["message"],
    }
    [kept] = await woken(house, zombie)
    assert (kept["event_id"], kept["resumes_event_id"]) == (event["event_id"], lease.event.event_id)
    assert code(await house.call("DELETE", path(house, zombie, shown["follow_up_id"]))) == (409, "UZ-REQ-009")


async def test_the_same_call_is_the_same_follow_up_even_when_its_time_is_past(house: House) -> None:
    zombie, token, lease = await house.working()
    at = house.world.now_ms() + 65_000
    first = await ask(house, token, lease, delay_s=None, at=at)
    assert (first.status_code, first.json()["at"]) == (201, at)
    house.pass_ms(20_000)
    assert code(await ask(house, token, lease, "other", delay_s=None, at=at)) == (400, "UZ-REQ-001")
    again = await ask(house, token, lease, message="something else", delay_s=None, at=at)
    assert (again.status_code, again.json()["follow_up_id"]) == (201, first.json()["follow_up_id"])
    assert [item["message"] for item in await items(house, zombie)] == ["look again"]


async def test_what_is_out_of_bounds_is_refused_and_nothing_is_kept(house: House) -> None:
    zombie, token, lease = await house.working()
    now = house.world.now_ms()
    wrongs: list[dict[str, Any]] = [
        {"delay_s": 59},
        {"delay_s": 2_592_001},
        {"delay_s": 60.5},
        {"delay_s": "60"},
        {"delay_s": None},
        {"at": now + DAY_MS},
        {"delay_s": None, "at": now},
        {"delay_s": None, "at": -1},
        {"delay_s": None, "at": now + 31 * DAY_MS},
        {"delay_s": None, "at": 2**63},
        {"message": ""},
        {"message": "x" * 8193},
        {"message": "\u00e9" * 4097},
        {"message": None},
        {"call_id": ""},
        {"call_id": "x" * 257},
        {"more": 1},
    ]
    for wrong in wrongs:
        assert code(await ask(house, token, lease, **wrong)) == (400, "UZ-REQ-001"), wrong
    assert await items(house, zombie) == []
    assert (await ask(house, token, lease, "full", message="\u00e9" * 4096, delay_s=2_592_000)).is_success


async def test_sixteen_wait_and_no_more_until_one_is_taken_back(house: House) -> None:
    zombie, token, lease = await house.working()
    for number in range(16):
        assert (await ask(house, token, lease, str(number))).status_code == 201
    full = await ask(house, token, lease, "more")
    assert code(full) == (409, "UZ-REQ-009")
    assert full.json()["current_state"] == "full"
    newest = (await items(house, zombie))[0]["follow_up_id"]
    for _ in range(2):
        assert code(await house.call("DELETE", path(house, zombie, newest))) == (204, "")
    assert (await ask(house, token, lease, "more")).status_code == 201
    page = (await house.get(path(house, zombie), params={"limit": "10"})).json()
    rest = await house.get(path(house, zombie), params={"limit": "10", "cursor": page["next_cursor"]})
    shown = [item["follow_up_id"] for item in (*page["items"], *rest.json()["items"])]
    assert (len(shown), len(set(shown)), rest.json()["next_cursor"]) == (17, 17, None)


async def test_only_who_holds_the_lease_asks_and_only_operators_take_back(house: House) -> None:
    zombie, token, lease = await house.working()
    made = (await ask(house, token, lease)).json()["follow_up_id"]
    assert code(await ask(house, await house.enrol("h2"), lease)) == (404, "UZ-RUN-006")
    one = path(house, zombie, made)
    assert code(await house.call("DELETE", one, house.user_token(Role.USER))) == (403, "UZ-AUTH-009")
    assert code(await house.call("DELETE", path(house, zombie, UNKNOWN))) == (404, "UZ-FOLLOWUP-001")
    other = await house.install("other")
    assert code(await house.call("DELETE", path(house, other, made))) == (404, "UZ-FOLLOWUP-001")
    gone = {"zombie_id": UNKNOWN}
    assert code(await house.call("DELETE", path(house, gone, made))) == (404, "UZ-ZMB-009")
    assert code(await house.get(path(house, gone))) == (404, "UZ-ZMB-009")
    house.pass_ms(30_001)
    assert code(await ask(house, token, lease, "late")) == (409, "UZ-RUN-005")
    assert code(await ask(house, token, {"lease_id": UNKNOWN})) == (404, "UZ-RUN-006")


@pytest.mark.parametrize("paused", [False, True])
async def test_one_whose_time_comes_when_its_agent_takes_no_work_is_dropped(
    house: House, *, paused: bool
) -> None:
    zombie, token, lease = await house.working()
    agent = f"{house.ws}/zombies/{zombie['zombie_id']}"
    await ask(house, token, lease, "soon")
    await ask(house, token, lease, "later", delay_s=3600)
    await report(house, token, lease)
    for wanted in (True, False):
        status = "stopped" if wanted else "active"
        changed = (
            await house.call("PATCH", house.ws, json={"paused": wanted})
            if paused
            else await house.call("PATCH", agent, json={"status": status})
        )
        assert changed.status_code == 200, changed.text
        house.pass_ms(61_000)
        assert sorted(await look(house, zombie, pending=1)) == ["dropped", "pending"]
    assert await woken(house, zombie) == []
    house.pass_ms(3_600_000)
    assert sorted(await look(house, zombie)) == ["dropped", "fired"]
    assert len(await woken(house, zombie)) == 1


async def test_those_of_an_agent_that_is_killed_are_dropped_at_once(house: House) -> None:
    zombie, token, lease = await house.working()
    await ask(house, token, lease)
    await house.call("PATCH", f"{house.ws}/zombies/{zombie['zombie_id']}", json={"status": "killed"})
    assert [item["status"] for item in await items(house, zombie)] == ["dropped"]


async def test_a_rule_may_stop_a_follow_up_at_a_gate(house: House) -> None:
    rule = "{tool: follow_up, action: 'follow_up:*', behavior: approve}"
    zombie, token, lease = await house.working(f"gates: {{rules: [{rule}]}}")
    await ask(house, token, lease)
    await report(house, token, lease)
    house.pass_ms(61_000)
    assert await look(house, zombie) == ["fired"]
    assert [event["status"] for event in await woken(house, zombie)] == ["waiting_approval"]
