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
from tests.patience import PATIENCE_S
from tests.worlds.http import HttpWorld

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
    world: HttpWorld, token: str, lease: dict[str, Any], call_id: str = "c", **changes: Any
) -> httpx2.Response:
    body = {"call_id": call_id, "message": "look again", **({"delay_s": 60} | changes)}
    body = {name: value for name, value in body.items() if value is not None}
    return await world.post(f"/v1/runners/me/leases/{lease['lease_id']}/follow-ups", body, token)


async def report(world: HttpWorld, token: str, lease: dict[str, Any]) -> None:
    fence = {"lease_id": lease["lease_id"], "fencing_token": lease["fencing_token"]}
    body = {**fence, "event_id": lease["event"]["event_id"], **REPORT}
    answer = await world.post("/v1/runners/me/reports", body, token)
    assert answer.status_code == 200, answer.text


def path(world: HttpWorld, zombie: dict[str, Any], follow_up_id: str = "") -> str:
    one = f"/{follow_up_id}" if follow_up_id else ""
    return f"{world.ws}/zombies/{zombie['zombie_id']}/follow-ups{one}"


async def items(world: HttpWorld, zombie: dict[str, Any]) -> list[dict[str, Any]]:
    answer = await world.get(path(world, zombie))
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


async def look(world: HttpWorld, zombie: dict[str, Any], pending: int = 0) -> list[str]:
    """Have the scheduler look until that many wait, and give what became of all."""
    with trio.fail_after(PATIENCE_S):
        while True:
            world.system.tell("scheduler", "", Look())
            states = [item["status"] for item in await items(world, zombie)]
            if states.count("pending") == pending:
                return states
            await trio.sleep(0.01)


async def woken(world: HttpWorld, zombie: dict[str, Any]) -> list[dict[str, Any]]:
    answer = await world.get(f"{world.ws}/zombies/{zombie['zombie_id']}/events?actor=follow_up:*")
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


async def test_the_tool_of_a_run_has_its_agent_woken_once_at_the_time(world: HttpWorld) -> None:
    zombie, token, wire = await world.working()
    lease, now = msgspec.convert(wire, Lease, strict=False), world.actors_world.now_ms()
    async with open_http(world.base_url, token, 5.0) as http:
        plane = ControlPlane(http, Outage(trio.current_time))
        tool = ScheduleFollowUp(plane, lease, Redactor({"a": {"b": "canary-secret-1"}}, None))
        wanted = {"message": "is it up? canary-secret-1", "delay_s": 60}
        made, again = await tool.call(wanted), await tool.call(wanted)
        assert made.ok, made.content
        assert again.facts == made.facts

        wrong = await tool.call({"message": "both", "delay_s": 60, "at": now + DAY_MS})
        assert (wrong.ok, wrong.facts) == (False, {"code": "UZ-REQ-001"})
    [shown] = await items(world, zombie)
    assert shown["event_id"] == lease.event.event_id
    assert "canary" not in shown["message"]
    assert shown["at"] == made.facts["at"]

    await report(world, token, wire)
    assert await look(world, zombie, pending=1) == ["pending"]

    world.pass_ms(61_000)
    assert await look(world, zombie) == ["fired"]

    await look(world, zombie)
    following = await world.lease(token)
    event = following["event"]
    assert (event["actor"], event["event_type"]) == (f"follow_up:{lease.event.event_id}", "follow_up")

    request = event["request_json"]
    assert request == {
        "follow_up_id": shown["follow_up_id"],
        "scheduled_at": shown["at"],
        "message": shown["message"],
    }

    [kept] = await woken(world, zombie)
    assert (kept["event_id"], kept["resumes_event_id"]) == (event["event_id"], lease.event.event_id)
    assert code(await world.call("DELETE", path(world, zombie, shown["follow_up_id"]))) == (409, "UZ-REQ-009")


async def test_the_same_call_is_the_same_follow_up_even_when_its_time_is_past(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    at = world.actors_world.now_ms() + 65_000
    first = await ask(world, token, lease, delay_s=None, at=at)
    assert (first.status_code, first.json()["at"]) == (201, at)

    world.pass_ms(20_000)
    assert code(await ask(world, token, lease, "other", delay_s=None, at=at)) == (400, "UZ-REQ-001")

    again = await ask(world, token, lease, message="something else", delay_s=None, at=at)
    assert (again.status_code, again.json()["follow_up_id"]) == (201, first.json()["follow_up_id"])
    assert [item["message"] for item in await items(world, zombie)] == ["look again"]


async def test_what_is_out_of_bounds_is_refused_and_nothing_is_kept(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    now = world.actors_world.now_ms()
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
        assert code(await ask(world, token, lease, **wrong)) == (400, "UZ-REQ-001"), wrong

    assert await items(world, zombie) == []
    assert (await ask(world, token, lease, "full", message="\u00e9" * 4096, delay_s=2_592_000)).is_success


async def test_sixteen_wait_and_no_more_until_one_is_taken_back(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    for number in range(16):
        assert (await ask(world, token, lease, str(number))).status_code == 201
    full = await ask(world, token, lease, "more")
    assert code(full) == (409, "UZ-REQ-009")
    assert full.json()["current_state"] == "full"

    newest = (await items(world, zombie))[0]["follow_up_id"]
    for _ in range(2):
        assert code(await world.call("DELETE", path(world, zombie, newest))) == (204, "")
    assert (await ask(world, token, lease, "more")).status_code == 201

    page = (await world.get(path(world, zombie), params={"limit": "10"})).json()
    rest = await world.get(path(world, zombie), params={"limit": "10", "cursor": page["next_cursor"]})
    shown = [item["follow_up_id"] for item in (*page["items"], *rest.json()["items"])]
    assert (len(shown), len(set(shown)), rest.json()["next_cursor"]) == (17, 17, None)


async def test_only_who_holds_the_lease_asks_and_only_operators_take_back(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    made = (await ask(world, token, lease)).json()["follow_up_id"]
    assert code(await ask(world, await world.enrol("h2"), lease)) == (404, "UZ-RUN-006")

    one = path(world, zombie, made)
    assert code(await world.call("DELETE", one, world.user_token(Role.USER))) == (403, "UZ-AUTH-009")
    assert code(await world.call("DELETE", path(world, zombie, UNKNOWN))) == (404, "UZ-FOLLOWUP-001")

    other = await world.install("other")
    assert code(await world.call("DELETE", path(world, other, made))) == (404, "UZ-FOLLOWUP-001")

    gone = {"zombie_id": UNKNOWN}
    assert code(await world.call("DELETE", path(world, gone, made))) == (404, "UZ-ZMB-009")
    assert code(await world.get(path(world, gone))) == (404, "UZ-ZMB-009")

    world.pass_ms(30_001)
    assert code(await ask(world, token, lease, "late")) == (409, "UZ-RUN-005")
    assert code(await ask(world, token, {"lease_id": UNKNOWN})) == (404, "UZ-RUN-006")


@pytest.mark.parametrize("paused", [False, True])
async def test_one_whose_time_comes_when_its_agent_takes_no_work_is_dropped(
    world: HttpWorld, *, paused: bool
) -> None:
    zombie, token, lease = await world.working()
    agent = f"{world.ws}/zombies/{zombie['zombie_id']}"
    await ask(world, token, lease, "soon")
    await ask(world, token, lease, "later", delay_s=3600)
    await report(world, token, lease)
    for wanted in (True, False):
        status = "stopped" if wanted else "active"
        changed = (
            await world.call("PATCH", world.ws, json={"paused": wanted})
            if paused
            else await world.call("PATCH", agent, json={"status": status})
        )
        assert changed.status_code == 200, changed.text
        world.pass_ms(61_000)
        assert sorted(await look(world, zombie, pending=1)) == ["dropped", "pending"]
    assert await woken(world, zombie) == []

    world.pass_ms(3_600_000)
    assert sorted(await look(world, zombie)) == ["dropped", "fired"]
    assert len(await woken(world, zombie)) == 1


async def test_those_of_an_agent_that_is_killed_are_dropped_at_once(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    await ask(world, token, lease)
    await world.call("PATCH", f"{world.ws}/zombies/{zombie['zombie_id']}", json={"status": "killed"})

    assert [item["status"] for item in await items(world, zombie)] == ["dropped"]


async def test_a_rule_may_stop_a_follow_up_at_a_gate(world: HttpWorld) -> None:
    rule = "{tool: follow_up, action: 'follow_up:*', behavior: approve}"
    zombie, token, lease = await world.working(f"gates: {{rules: [{rule}]}}")
    await ask(world, token, lease)
    await report(world, token, lease)
    world.pass_ms(61_000)

    assert await look(world, zombie) == ["fired"]
    assert [event["status"] for event in await woken(world, zombie)] == ["waiting_approval"]
