"""Schedules over HTTP: next, last and missed firings, and a schedule that rests or runs now."""

from typing import Any

import pytest
import trio

from sexton_actors.protocol.scheduler import Look
from sexton_actors.refusal import Refusal
from tests.patience import PATIENCE_S
from tests.worlds.http import HttpWorld
from tests.worlds.http_agents import UNKNOWN, at, code, patch, skill
from tests.worlds.samples import trigger_md

HOUR_MS = 3_600_000
CRON = 'type: cron\n    schedule: "0 * * * *"\n    message: look around'
REFUSALS = ("UZ-ZMB-001", "UZ-BILLING-005", "UZ-ENTL-001", "UZ-ENTL-003", "UZ-EVENT-002")


async def listed(world: HttpWorld, **params: Any) -> list[dict[str, Any]]:
    answer = await world.get(f"{world.ws}/schedules", params=params)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


async def passed(world: HttpWorld, hours: int) -> dict[str, Any]:
    """The schedule after these hours, with what is due done."""
    world.pass_ms(hours * HOUR_MS)
    await world.system.ask("scheduler", "", Look())
    with trio.fail_after(PATIENCE_S):
        while (one := (await listed(world))[0])["next"] and one["next"][0] <= world.actors_world.now_ms():
            await trio.sleep(0.01)
            world.pass_ms(6_000)
            await world.system.ask("scheduler", "", Look())
    return one


async def test_a_schedule_tells_its_firings_and_what_was_missed_and_rests_and_runs_now(
    world: HttpWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"source_markdown": skill(), "trigger_markdown": trigger_md("doctor", trigger=CRON)}
    zombie = (await world.post(f"{world.ws}/zombies", files)).json()
    await world.install("other")
    await world.system.ask("scheduler", "", Look())

    [one] = await listed(world)
    now = world.actors_world.now_ms()
    due = now // HOUR_MS * HOUR_MS + HOUR_MS
    assert one["next"] == [due, due + HOUR_MS, due + 2 * HOUR_MS]
    assert (one["status"], one["last"], one["missed"], one["zombie_name"]) == ("active", [], None, "doctor")
    assert await listed(world, zombie_id=zombie["zombie_id"]) == [one]

    late = await passed(world, 4)
    assert [firing["scheduled_at"] - due for firing in late["last"]] == [3 * HOUR_MS]
    assert late["last"][0]["late_ms"] == late["last"][0]["created_at"] - late["last"][0]["scheduled_at"]
    assert (late["missed"]["total"], late["missed"]["why"], late["missed"]["since"]) == (
        3,
        "server_away",
        due,
    )

    path = f"{at(world, zombie)}/schedules/{one['schedule_id']}"
    resting = (await world.post(f"{path}:pause")).json()
    assert (resting["status"], resting["next"]) == ("paused", [])
    assert resting["paused_by"].startswith("api:")

    world.pass_ms(HOUR_MS)
    with trio.fail_after(PATIENCE_S):
        while (still := (await world.get(path)).json())["missed"]["why"] != "schedule_paused":
            await world.system.ask("scheduler", "", Look())
            await trio.sleep(0.01)
    assert (len(still["last"]), still["missed"]["total"]) == (1, 4)

    made = await world.post(f"{path}:run", headers={"idempotency-key": "k1"})
    again = await world.post(f"{path}:run", headers={"idempotency-key": "k1"})
    assert (made.status_code, again.json()["event_id"]) == (202, made.json()["event_id"])
    assert (await world.get(path)).json()["last"][0]["asked_by"]

    assert (await world.post(f"{path}:resume")).json()["status"] == "active"
    assert await code(world, "POST", f"{path}:run", token=world.user_token()) == (403, "UZ-AUTH-009")

    await patch(world, zombie, status="stopped")
    assert (await world.get(path)).json()["status"] == "resting"
    assert await code(world, "POST", f"{path}:run") == (409, "UZ-ZMB-012")

    for verb, rest in (("GET", ""), ("POST", ":pause"), ("POST", ":resume"), ("POST", ":run")):
        nowhere = f"{at(world, zombie)}/schedules/{UNKNOWN}{rest}"
        assert await code(world, verb, nowhere) == (404, "UZ-SCHEDULE-001")
        elsewhere = f"{world.ws}/zombies/{UNKNOWN}/schedules/{one['schedule_id']}{rest}"
        assert await code(world, verb, elsewhere) == (404, "UZ-ZMB-009")
    assert await code(world, "GET", f"{world.ws}/schedules?zombie_id={UNKNOWN}") == (404, "UZ-ZMB-009")

    await patch(world, zombie, status="active")
    for wanted in REFUSALS:

        async def refuse(_tenant: object, wanted: str = wanted) -> Refusal:
            return Refusal(wanted, "no")

        monkeypatch.setattr(world.actors_world.entitlements, "may_ask_for_work", refuse)
        assert (await code(world, "POST", f"{path}:run"))[1] == wanted
