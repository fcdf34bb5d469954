"""The activity stream, frame by frame."""

import trio

from tests.patience import PATIENCE_S
from tests.worlds.event_stream import listening, retry_ms
from tests.worlds.http import HttpWorld, open_http_world
from tests.worlds.http_agents import report, steer


async def test_it_replays_what_was_missed_and_then_follows(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    path = f"{world.ws}/zombies/{zombie['zombie_id']}/events/stream"
    async with listening(world.base_url, path, world.api_key, last_event_id="0") as stream:
        assert stream.status == 200
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.headers["x-accel-buffering"] == "no"
        assert await retry_ms(stream) >= 2000
        assert [(await stream.frame())["kind"] for _ in range(2)] == ["event_received", "event_leased"]

        activity = f"/v1/runners/me/leases/{lease['lease_id']}/activity"
        await world.post(activity, {"frames": [{"kind": "chunk", "text": "hello"}]}, token)
        frame = await stream.frame()
        assert (frame["kind"], frame["text"], frame["id"]) == ("chunk", "hello", 3)
        assert frame["zombie_id"] == zombie["zombie_id"]
    async with listening(world.base_url, f"{path}?last_event_id=2", world.api_key) as stream:
        assert (await stream.frame())["text"] == "hello"


async def test_without_an_id_it_begins_with_what_happens_next(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    path = f"{world.ws}/zombies/{zombie['zombie_id']}/events/stream"
    async with listening(world.base_url, path, world.api_key) as stream:
        assert await retry_ms(stream) >= 2000

        activity = f"/v1/runners/me/leases/{lease['lease_id']}/activity"
        await world.post(activity, {"frames": [{"kind": "chunk", "text": "now"}]}, token)
        assert (await stream.frame())["text"] == "now"


async def test_who_is_cut_off_before_the_first_frame_knows_where_to_go_on(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    path = f"{world.ws}/zombies/{zombie['zombie_id']}/events/stream"
    async with listening(world.base_url, path, world.api_key) as stream:
        assert await retry_ms(stream) >= 2000
        name, _, last_id = (await stream.line() or "").partition(": ")
    assert name == "id"

    activity = f"/v1/runners/me/leases/{lease['lease_id']}/activity"
    await world.post(activity, {"frames": [{"kind": "chunk", "text": "missed"}]}, token)
    async with listening(world.base_url, path, world.api_key, last_event_id=last_id) as stream:
        assert (await stream.frame())["text"] == "missed"


async def test_what_is_older_than_is_kept_comes_as_one_resync(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    activity = f"/v1/runners/me/leases/{lease['lease_id']}/activity"
    await world.post(activity, {"frames": [{"kind": "chunk", "text": "kept"}]}, token)
    await world.storage.frames.prune(keep_ms=10**9, keep_frames=1, limit=100)
    path = f"{world.ws}/zombies/{zombie['zombie_id']}/events/stream"
    async with listening(world.base_url, path, world.api_key, last_event_id="1") as stream:
        resync = await stream.frame()

        assert (resync["kind"], resync["id"]) == ("resync", 2)
        assert (await stream.frame())["text"] == "kept"


async def test_a_quiet_stream_is_kept_open_by_comments() -> None:
    async with open_http_world(stream_heartbeat_s=0.05) as world:
        await world.keep_secret()
        zombie = await world.install()
        path = f"{world.ws}/zombies/{zombie['zombie_id']}/events/stream"
        async with listening(world.base_url, path, world.api_key) as stream:
            assert await retry_ms(stream) >= 2000
            assert await stream.line() == "id: 0"
            assert await stream.line() == ""
            assert await stream.line() == ": keep"


async def test_it_ends_when_the_server_stops(world: HttpWorld) -> None:
    zombie = await world.install()
    path = f"{world.ws}/zombies/{zombie['zombie_id']}/events/stream"
    async with listening(world.base_url, path, world.api_key) as stream:
        assert await retry_ms(stream) >= 2000

        world.stop.set()
        assert await stream.line() == "id: 0"
        assert await stream.line() == ""
        assert await stream.line() is None
        assert stream.ended


async def test_more_streams_than_the_server_may_hold_are_turned_away() -> None:
    async with open_http_world(max_streams=1) as world:
        zombie = await world.install()
        path = f"{world.ws}/zombies/{zombie['zombie_id']}/events/stream"
        async with listening(world.base_url, path, world.api_key) as stream:
            assert await retry_ms(stream) >= 2000

            refused = await world.get(path)
            assert (refused.status_code, refused.json()["error_code"]) == (503, "UZ-API-002")
            assert int(refused.headers["retry-after"]) >= 1
        with trio.fail_after(PATIENCE_S):
            while (
                await world.http.head(path, headers={"authorization": f"Bearer {world.api_key}"})
            ).is_error:
                await trio.sleep(0.01)


async def test_an_id_that_is_none_of_the_streams_is_refused(world: HttpWorld) -> None:
    zombie = await world.install()
    path = f"{world.ws}/zombies/{zombie['zombie_id']}/events/stream"
    for bad in ("x", "-1", "1.5", "9" * 40):
        answer = await world.get(path, headers={"last-event-id": bad})
        assert (answer.status_code, answer.json()["error_code"]) == (400, "UZ-REQ-001")
        answer = await world.get(path, params={"last_event_id": bad})
        assert (answer.status_code, answer.json()["error_code"]) == (400, "UZ-REQ-001")


async def test_since_begins_with_the_end_of_an_event_that_has_just_ended(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    path = f"{world.ws}/zombies/{zombie['zombie_id']}/events/stream"
    activity = f"/v1/runners/me/leases/{lease['lease_id']}/activity"
    async with listening(world.base_url, f"{path}?since=1m", world.api_key) as stream:
        assert stream.status == 200
        # The last event has not ended: the stream begins with what happens next.
        assert await retry_ms(stream) >= 2000

        await world.post(activity, {"frames": [{"kind": "chunk", "text": "next"}]}, token)
        assert (await stream.frame())["text"] == "next"
    await report(world, token, lease)
    for since in ("1m", "1970-01-01T00:00:01Z"):
        async with listening(world.base_url, f"{path}?since={since}", world.api_key) as stream:
            with trio.fail_after(
                PATIENCE_S
            ):  # Nothing more happens: a stream that begins later waits for ever.
                frame = await stream.frame()
            assert (frame["kind"], frame["event_id"]) == ("event_complete", lease["event"]["event_id"])
    async with listening(world.base_url, f"{path}?since=1m", world.api_key, last_event_id="0") as stream:
        assert (await stream.frame())["kind"] == "event_received"


async def test_since_passes_over_an_event_that_ended_before(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    path = f"{world.ws}/zombies/{zombie['zombie_id']}/events/stream"
    await report(world, token, lease)
    world.pass_ms(61_000)
    async with listening(world.base_url, f"{path}?since=60s", world.api_key) as stream:
        assert await retry_ms(stream) >= 2000

        await steer(world, zombie)
        assert (await stream.frame())["kind"] == "event_received"
    refused = await world.get(f"{path}?since=yesterday")

    assert (refused.status_code, refused.json()["error_code"]) == (400, "UZ-REQ-001")
