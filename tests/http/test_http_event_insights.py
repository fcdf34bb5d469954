"""One event whole, why it waits, how events are searched, and the stream of a workspace, over HTTP."""

from typing import Any

import pytest

from sexton_actors.periodic.census import Count
from sexton_http.bodies.shapes import MAX_NUMBER
from tests.worlds.event_stream import Listener, listening, retry_ms
from tests.worlds.http import HttpWorld
from tests.worlds.http_agents import report, steer

FAULTS = [
    ({"q": "status:done"}, "q", 7),
    ({"q": 'type:"open'}, "q", 5),
    ({"q": "x " * 40}, "q", 80),
    ({"type": "push,"}, "type", 0),
    ({"after": "soon"}, "after", 0),
    ({"runner": "deploy"}, "runner", 0),
    ({"text": "?!"}, "text", 0),
]


async def _why(world: HttpWorld, event_id: str) -> dict[str, Any]:
    answer = await world.get(f"{world.ws}/events/{event_id}/why")
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


async def test_it_is_told_why_an_event_waits_until_it_runs(world: HttpWorld) -> None:
    zombie = await world.install(tags="gpu")
    first, second = await steer(world, zombie), await steer(world, zombie)

    # Nobody could take it.
    told = await _why(world, first)
    assert [one["kind"] for one in told["reasons"]] == ["no_runner"]
    assert (told["waits"], told["place"], told["place_of_agent"]) == (True, 1, 1)
    assert told["expected_start_at"] is None

    # A runner that could not.
    await world.enrol("plain", labels=["eu"])
    [needs] = (await _why(world, first))["reasons"]
    assert (needs["kind"], needs["names"]) == ("needs", ["gpu"])
    assert needs["says"] == "No runner has gpu (1 enrolled)."
    assert (await world.get(needs["link"])).status_code == 200

    # One that takes the first: the second waits for it.
    token = await world.enrol("able", labels=["gpu"])
    lease = await world.lease(token)
    assert lease["event"]["event_id"] == first

    told = await _why(world, first)
    assert (told["waits"], told["reasons"], told["place"]) == (False, [], None)

    [earlier] = (await _why(world, second))["reasons"]
    assert (earlier["kind"], earlier["event_id"]) == ("earlier_event", first)
    assert (await world.get(earlier["link"])).json()["event_id"] == first

    # How long they have waited, by label, and what the lease has left.
    queue = (await world.get(f"{world.ws}/queue?minutes=2")).json()
    [label] = queue["labels"]
    assert (label["required_tags"], label["events"], len(label["ages_ms"])) == (["gpu"], 1, 2)
    assert label["ages_ms"][-1] == label["oldest_age_ms"] >= 0
    assert (queue["leases"], [band["leases"] for band in queue["slack"]]) == (1, [1])

    [agent] = queue["agents"]
    assert (agent["zombie_name"], agent["events"], agent["oldest_event_id"]) == ("doctor", 1, second)
    assert queue["slack"][0]["from_ms"] <= queue["least_slack_ms"] <= 30_000

    fleet = (await world.get("/v1/fleet/queue", world.admin_token())).json()
    assert (fleet["by_tags"][0]["required_tags"], fleet["slack"]) == (["gpu"], queue["slack"])
    assert fleet["by_tags"][0]["oldest_age_ms"] >= label["oldest_age_ms"]

    # Stopped, and under its agent's path.
    await world.call("PATCH", f"{world.ws}/zombies/{zombie['zombie_id']}", json={"status": "stopped"})
    told = (await world.get(f"{world.ws}/zombies/{zombie['zombie_id']}/events/{second}/why")).json()
    assert [one["kind"] for one in told["reasons"]] == ["agent", "earlier_event"]
    assert told["says"] == "Its agent doctor is stopped."

    await report(world, token, lease)
    assert (await _why(world, first))["says"] == "It waits for nothing: it ended as processed."


async def test_the_fleets_queue_tells_how_long_events_have_waited_in_the_last_hour_by_label(
    world: HttpWorld,
) -> None:
    await world.enrol("able", labels=["gpu"])
    await steer(world, await world.install("sees", tags="gpu"))
    await steer(world, await world.install("gazes", tags="telescope"))
    world.pass_ms(90_000)
    await world.system.ask("census", "", Count())
    hours = (await world.get("/v1/fleet/queue", world.admin_token())).json()["last_hour"]

    assert [hour["required_tags"] for hour in hours] in ([["gpu"], None], [None, ["gpu"]])
    assert all(90_000 <= hour["ages_ms"][-1] < 150_000 for hour in hours)
    assert all(len(hour["ages_ms"]) == 60 and set(hour["ages_ms"][:50]) == {None} for hour in hours)


async def test_an_event_by_itself_has_its_attempts_gates_and_links(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    event_id = lease["event"]["event_id"]
    gate = {"action_id": "a1", "tool_name": "deploy", "action_name": "web"}
    await world.post(f"/v1/runners/me/leases/{lease['lease_id']}/gates", gate, token)
    whole = (await world.get(f"{world.ws}/events/{event_id}")).json()
    [attempt] = whole["leases"]
    assert (attempt["lease_id"], attempt["fencing_token"]) == (lease["lease_id"], lease["fencing_token"])
    assert (attempt["status"], attempt["outcome"], attempt["ended_at"]) == ("active", None, None)
    assert [one["action_id"] for one in whole["gates"]] == ["a1"]

    [approval] = (await _why(world, event_id))["reasons"]
    assert (await world.get(approval["link"])).json()["gate_id"] == whole["gates"][0]["gate_id"]

    await world.post(approval["link"] + ":approve", {})
    await report(
        world, token, lease, outcome="agent_error", failure_reason="oom_kill", response_text="no room"
    )
    whole = (await world.get(f"{world.ws}/zombies/{zombie['zombie_id']}/events/{event_id}")).json()
    [attempt] = whole["leases"]
    says = (await _why(world, event_id))["says"]
    assert (attempt["outcome"], attempt["failure_label"]) == ("agent_error", "oom_kill")
    assert attempt["ended_at"] >= attempt["granted_at"]
    assert attempt["charged_nanos"] == whole["charged_nanos"]
    assert says == "It waits for nothing: it ended as agent_error (oom_kill)."

    for name in ("agent", "why", "artefacts", "transcript", "charges"):
        assert (await world.get(whole["links"][name])).status_code == 200, name


async def test_events_are_searched(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    await report(world, token, lease, response_text="connection refused by host")
    waiting = [await steer(world, zombie, f"number {n}") for n in range(3)]

    async def found(**query: Any) -> list[str]:
        answer = await world.get(f"{world.ws}/events", params=query)
        assert answer.status_code == 200, answer.text
        return [one["event_id"] for one in answer.json()["items"]]

    event_id = lease["event"]["event_id"]
    assert await found(q='"Connection refused"') == [event_id]
    assert await found(text="connection refused", q="status:processed after:1h") == [event_id]
    assert await found(q="agent:doctor -status:processed") == waiting[::-1]
    assert await found(agent="nobody") == []
    assert await found(q="number", status="received", actor="steer:*", since="1h") == waiting[::-1]
    assert await found(q=f"before:{MAX_NUMBER} source:steer", zombie_id=zombie["zombie_id"])

    # Page by page, with the same filter.
    seen, cursor = [], None
    while True:
        query = {"q": "number after:1h", "limit": 2} | ({} if cursor is None else {"cursor": cursor})
        page = (await world.get(f"{world.ws}/events", params=query)).json()
        seen += [one["event_id"] for one in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
        other = await world.get(f"{world.ws}/events", params={**query, "q": "other", "cursor": cursor})
        assert other.json()["error_code"] == "UZ-REQ-001"
    assert seen == waiting[::-1]

    for fault, parameter, position in FAULTS:
        refused = await world.get(f"{world.ws}/events", params=fault)
        assert refused.status_code == 400, fault
        assert (refused.json()["parameter"], refused.json()["position"]) == (parameter, position)


async def _kinds(stream: Listener, count: int) -> list[tuple[str, str]]:
    frames = [await stream.frame() for _ in range(count)]
    return [(frame["zombie_id"], frame["kind"]) for frame in frames]


async def test_a_workspace_is_followed_and_resumed(world: HttpWorld) -> None:
    path = f"{world.ws}/events/stream"
    async with listening(world.base_url, path, world.api_key) as stream:
        assert stream.status == 200
        assert await retry_ms(stream) >= 2000

        zombie, token, lease = await world.working()
        doctor, event_id = zombie["zombie_id"], lease["event"]["event_id"]
        assert await _kinds(stream, 2) == [(doctor, "event_received"), (doctor, "event_leased")]

        activity = f"/v1/runners/me/leases/{lease['lease_id']}/activity"
        await world.post(activity, {"frames": [{"kind": "chunk", "text": "hello"}]}, token)
        chunk = await stream.frame()
        assert (chunk["text"], chunk["seq"]) == ("hello", 3)

    # What happens while nobody listens comes first, of all agents, in order.
    other = await world.install("other")
    await report(world, token, lease)
    asked = await steer(world, other)
    async with listening(world.base_url, path, world.api_key, last_event_id=chunk["id"]) as stream:
        frames = [await stream.frame() for _ in range(2)]

        assert [(one["kind"], one["event_id"]) for one in frames] == [
            ("event_complete", event_id),
            ("event_received", asked),
        ]
        assert frames[1]["zombie_id"] == other["zombie_id"]

    # Only what a filter picks.
    picked = f"{path}?q=agent:other&last_event_id={chunk['id']}"
    async with listening(world.base_url, picked, world.api_key) as stream:
        assert (await stream.frame())["event_id"] == asked

    # What is gone is said to be gone, once.
    await world.storage.frames.prune(keep_ms=10**9, keep_frames=1, limit=100)
    async with listening(world.base_url, path, world.api_key, last_event_id=chunk["id"]) as stream:
        assert (await stream.frame())["kind"] == "resync"

        again = await steer(world, other)
        assert (await stream.frame())["event_id"] == again


@pytest.mark.parametrize("place", ["7", "x-y-z", "-1-00000000000000000000000000000000-0"])
async def test_an_id_of_another_stream_is_refused(world: HttpWorld, place: str) -> None:
    answer = await world.get(f"{world.ws}/events/stream", headers={"Last-Event-ID": place})

    assert (answer.status_code, answer.json()["error_code"]) == (400, "UZ-REQ-001")
