"""An event that has not ended yet is waited for: by `wait_ms`, or by the header `Prefer`."""

from uuid import UUID

import httpx2
import pytest
import trio

from sexton_http.gateway.services import Services
from tests.http.test_http_event_actions import STATES
from tests.worlds.http import HttpWorld
from tests.worlds.http_agents import UNKNOWN, report, steer

OPEN = {"received", "waiting_approval", "running", "gate_blocked, for credit"}
LONG_MS = 30_000
AT_ONCE_S = 10
WAITERS = 40


async def answered(world: HttpWorld, path: str, answers: list[httpx2.Response], **headers: str) -> None:
    answers.append(await world.get(path, headers=headers))


async def test_an_event_is_told_when_it_ends(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    agent, event_id = f"{world.ws}/zombies/{zombie['zombie_id']}", lease["event"]["event_id"]
    answers: list[httpx2.Response] = []
    with trio.fail_after(AT_ONCE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(answered, world, f"{agent}/events/{event_id}?wait_ms={LONG_MS}", answers)
            nursery.start_soon(answered, world, f"{world.ws}/events/{event_id}?wait_ms={LONG_MS}", answers)
            await trio.sleep(0.2)
            assert answers == []

            activity = f"/v1/runners/me/leases/{lease['lease_id']}/activity"
            await world.post(activity, {"frames": [{"kind": "chunk", "text": "not yet"}]}, token)
            await trio.sleep(0.1)
            assert answers == []

            await report(world, token, lease, response_text="done")
        assert [(one.json()["status"], one.json()["ended"]) for one in answers] == [("processed", True)] * 2
        assert {one.json()["response_text"] for one in answers} == {"done"}

        # One that has ended is told at once.
        again = await world.get(f"{agent}/events/{event_id}", params={"wait_ms": LONG_MS})
        assert again.json()["ended"] is True


async def test_the_header_prefer_asks_for_the_same(world: HttpWorld) -> None:
    zombie = await world.install("quiet")
    event_id = await steer(world, zombie)
    path = f"{world.ws}/events/{event_id}"
    cancel = f"{world.ws}/zombies/{zombie['zombie_id']}/events/{event_id}/cancel"
    answers: list[httpx2.Response] = []
    with trio.fail_after(AT_ONCE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_prefer, world, path, "respond-async, wait=30", answers)
            await trio.sleep(0.2)
            assert answers == []

            await world.post(cancel, {})
    [answer] = answers

    assert (answer.json()["status"], answer.json()["ended"]) == ("cancelled", True)


async def _prefer(world: HttpWorld, path: str, prefer: str, answers: list[httpx2.Response]) -> None:
    answers.append(await world.call("GET", path, headers={"prefer": prefer}))


async def test_when_the_time_is_over_it_is_shown_as_it_is(world: HttpWorld) -> None:
    event_id = await steer(world, await world.install("quiet"))
    path = f"{world.ws}/events/{event_id}"
    shown = await world.get(path, params={"wait_ms": 50})

    assert (shown.status_code, shown.json()["status"], shown.json()["ended"]) == (200, "received", False)
    assert (await world.get(path, params={"wait_ms": LONG_MS + 1})).status_code == 400
    assert (await world.get(f"{world.ws}/events/{UNKNOWN}", params={"wait_ms": LONG_MS})).status_code == 404


@pytest.mark.parametrize("state", STATES)
async def test_what_goes_on_by_itself_has_not_ended(world: HttpWorld, state: str) -> None:
    _, event_id = await STATES[state](world)
    shown = (await world.get(f"{world.ws}/events/{event_id}")).json()

    assert shown["ended"] is (state not in OPEN)


async def test_those_who_wait_take_no_place_at_the_door(services: list[Services], world: HttpWorld) -> None:
    zombie = await world.install("quiet")
    event_id = await steer(world, zombie)
    [inside] = services
    answers: list[httpx2.Response] = []
    with trio.fail_after(AT_ONCE_S):
        async with trio.open_nursery() as nursery:
            for _ in range(WAITERS):
                path = f"{world.ws}/events/{event_id}?wait_ms={LONG_MS}"
                nursery.start_soon(answered, world, path, answers)
            while inside.long_polls.now < WAITERS:
                await trio.sleep(0.01)
            while inside.admission.people.now:
                await trio.sleep(0.01)

            await world.post(f"{world.ws}/zombies/{zombie['zombie_id']}/events/{event_id}/cancel", {})

    assert len(answers) == WAITERS
    assert UUID(answers[0].json()["event_id"]) == UUID(event_id)
