"""Lists and replays are bounded in bytes: what is long stands in the single event, and comes page by page."""

import json
from contextlib import aclosing
from typing import Any
from uuid import UUID

import pytest

from sexton_http.answers import RequestHead
from sexton_http.bodies.sse import PIECE_BYTES
from sexton_http.ceilings import Claim
from sexton_http.gateway.services import Services
from sexton_http.routes import events, stream as stream_module
from sexton_storage.records.frames import PAGE_BYTES, NewFrame
from sexton_storage.writes import AppendFrames
from tests.http.test_http_stream_crowd import count_reads
from tests.worlds.event_stream import listening
from tests.worlds.http import HttpWorld, open_http_world
from tests.worlds.http_agents import UNKNOWN, at, report, skill, steer

LONG = 4097
SECRETLY_LONG = {"pad": "x" * LONG}


async def get(world: HttpWorld, path: str, status: int = 200, **query: Any) -> dict[str, Any]:
    answer = await world.get(path, params=query)
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_what_is_long_is_left_out_of_lists_and_whole_in_the_single_event(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    await report(world, token, lease, response_text="é" * LONG, evidence={"ok": True})
    delivered = await world.deliver(zombie["webhook_urls"]["github"], SECRETLY_LONG)
    answered, long = lease["event"]["event_id"], delivered.json()["event_id"]

    for path in (at(world, zombie), world.ws):
        listed = {item["event_id"]: item for item in (await get(world, f"{path}/events"))["items"]}
        assert listed[long]["request_json"] is None
        assert listed[long]["truncated"] is True
        assert listed[long]["request_bytes"] > LONG
        assert listed[answered]["response_text"] is None
        assert (listed[answered]["truncated"], listed[answered]["response_bytes"]) == (True, 2 * LONG)
        assert (listed[answered]["evidence"], listed[answered]["evidence_bytes"]) == ({"ok": True}, 11)
        assert listed[answered]["request_json"]["raw"]["action"] == "completed"

        whole = await get(world, f"{path}/events/{long}")
        assert whole["request_json"]["raw"] == SECRETLY_LONG
        sizes = ("request_bytes", "response_bytes", "evidence_bytes")
        assert [whole[name] for name in sizes] == [listed[long][name] for name in sizes]
        assert (await get(world, f"{path}/events/{answered}"))["response_text"] == "é" * LONG
        whole = await get(world, f"{path}/events/{answered}")
        assert whole["truncated"] is False
        assert whole.keys() > {*listed[answered], "request_id", "leases", "gates"}

    other = await world.install("other")
    for path in (f"{world.ws}/events/{UNKNOWN}", f"{at(world, other)}/events/{long}"):
        assert (await get(world, path, 404))["error_code"] == "UZ-EVENT-001"
    missing = f"{world.ws}/zombies/{UNKNOWN}/events/{long}"

    assert (await get(world, missing, 404))["error_code"] == "UZ-ZMB-009"


async def test_a_page_ends_with_its_bytes_and_the_next_goes_on(
    world: HttpWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    zombie = await world.install()
    sent = [await steer(world, zombie, f"{n}" * 1000) for n in range(7)]
    whole = await get(world, f"{world.ws}/events")
    longest = max(len(json.dumps(item)) for item in whole["items"])
    monkeypatch.setattr(events, "PAGE_BYTES", 3 * longest)

    pages: list[list[str]] = []
    query: dict[str, Any] = {"limit": 6}
    while True:
        page = await get(world, f"{world.ws}/events", **query)
        pages.append([item["event_id"] for item in page["items"]])
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert [len(page) for page in pages] == [3, 3, 1]
    assert [event_id for page in pages for event_id in page] == sent[::-1]

    monkeypatch.setattr(events, "PAGE_BYTES", 1)
    assert len((await get(world, f"{world.ws}/events"))["items"]) == 1, "a page is never empty"


async def test_a_replay_is_read_by_bytes_and_nothing_before_the_last_page_is_sent(
    monkeypatch: pytest.MonkeyPatch, services: list[Services]
) -> None:
    async with open_http_world() as world:
        zombie, _, _ = await world.working()
        await append(world, zombie["zombie_id"], "x" * 60_000, 20)
        reads = count_reads(world, monkeypatch)
        path = f"{at(world, zombie)}/events/stream"
        async with listening(world.base_url, path, world.api_key, last_event_id="2") as stream:
            for number in range(20):
                assert (await stream.frame())["id"] == number + 3
        assert reads[:5] == [2, 6, 10, 14, 18]

        reads.clear()
        replays = services[0].replays
        agent, sent = UUID(zombie["zombie_id"]), 0
        head = RequestHead("GET", path, b"", {b"authorization": f"Bearer {world.api_key}".encode()}, "")
        caller = await services[0].authenticator.member(head)
        watch = stream_module.SignInWatch(services[0], caller, head)
        reader = stream_module.Reader(agent, Claim(principal="ann"), after=2, newest=22, oldest=1)
        async with aclosing(stream_module.follow(services[0], watch, reader)) as chunks:
            assert (await anext(chunks)).startswith(b"retry")
            while sent < 3 * PAGE_BYTES:
                chunk = await anext(chunks)
                assert len(chunk) <= PIECE_BYTES, "of what all share a reader has no more for himself"
                sent += len(chunk)
                # Each page has four of these frames.
                assert len(reads) == 1 + (sent - 1) // (4 * 60_200)
                assert replays.budget.now < PAGE_BYTES
        assert replays.budget.now == 0


async def append(world: HttpWorld, zombie_id: str, text: str, count: int) -> None:
    agent = UUID(zombie_id)
    now = world.actors_world.now_ms()
    frames = tuple(NewFrame(agent, None, "chunk", now, {"text": text}) for _ in range(count))
    await world.storage.journal.write(AppendFrames(agent, frames))


async def test_answers_that_find_no_room_are_turned_away_and_small_ones_go_on(
    services: list[Services],
) -> None:
    async with open_http_world(max_answer_bytes=8 * 2**20) as world:
        zombie, _, _ = await world.working()
        await append(world, zombie["zombie_id"], "x" * 60_000, 2)
        events_path, stream_path = f"{world.ws}/events", f"{at(world, zombie)}/events/stream"
        assert len((await get(world, events_path))["items"]) == 1

        [inside] = services
        inside.answer_bytes.count(Claim(principal="others"), 4 * 2**20)
        inside.replays.budget.count(Claim(principal="others"), 4 * 2**20)
        for path, headers in ((events_path, {}), (stream_path, {"last-event-id": "0"})):
            refused = await world.get(path, headers=headers)
            assert (refused.status_code, refused.json()["error_code"]) == (503, "UZ-API-003")
            assert int(refused.headers["retry-after"]) >= 1
        assert (await world.get(at(world, zombie))).status_code == 200

        async with listening(world.base_url, stream_path, world.api_key) as stream:
            assert stream.status == 200, "who has missed nothing needs no room"

        inside.answer_bytes.give_back(Claim(principal="others"), 4 * 2**20)
        inside.replays.budget.give_back(Claim(principal="others"), 4 * 2**20)
        assert (await world.get(events_path)).status_code == 200
        assert inside.answer_bytes.now == 0


async def test_while_too_much_is_unread_nothing_is_changed_and_what_was_changed_is_told(
    services: list[Services],
) -> None:
    async with open_http_world(max_answer_bytes=8 * 2**20) as world:
        zombie = await world.install()
        [inside] = services
        inside.answer_bytes.count(Claim(principal="others"), 4 * 2**20)
        large = {"source_markdown": skill(body="x" * 30_000)}
        told = await world.call("PATCH", at(world, zombie), json=large)
        inside.answer_bytes.give_back(Claim(principal="others"), 4 * 2**20)
        before = (await world.get(at(world, zombie))).json()

        inside.answer_bytes.count(Claim(principal="others"), 4 * 2**20 + 1)
        change = {"source_markdown": skill(body="y")}
        refused = await world.call("PATCH", at(world, zombie), json=change)
        inside.answer_bytes.give_back(Claim(principal="others"), 4 * 2**20 + 1)
        after = (await world.get(at(world, zombie))).json()

    assert told.status_code == 200, "all is taken, but no more than there is"
    assert (refused.status_code, refused.json()["error_code"]) == (503, "UZ-API-003")
    assert {**after, "request_id": ""} == {**before, "request_id": ""}, "it was not begun"
