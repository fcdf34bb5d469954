"""Transcripts over HTTP: written under a lease, read by people in pages, and gone with their time."""

from typing import Any

import httpx2
from msgspec.structs import replace

from sexton_actors.periodic.sweeper import PruneTranscripts
from sexton_actors.world import World
from sexton_http.routes.transcripts import MAX_ENTRY_BYTES
from sexton_storage.periods import DAY_MS
from sexton_storage.records.transcripts import TranscriptBounds
from tests.worlds.http import HttpWorld

UNKNOWN = "019363b0-0000-7000-8000-00000000ffff"


def set_bounds(world: HttpWorld, **changes: int) -> None:
    known: World = world.actors_world
    object.__setattr__(known, "transcripts", replace(TranscriptBounds(), **changes))


def entry(number: int, text: str = "it", kind: str = "note") -> dict[str, Any]:
    return {"number": number, "kind": kind, "data": {"text": text}}


async def write(
    world: HttpWorld, token: str, lease: dict[str, Any], *entries: dict[str, Any], **changes: Any
) -> httpx2.Response:
    body = {"fencing_token": lease["fencing_token"], "entries": list(entries), **changes}
    return await world.post(f"/v1/runners/me/leases/{lease['lease_id']}/transcript", body, token)


async def read(world: HttpWorld, lease: dict[str, Any], agents: str = "", **params: str) -> dict[str, Any]:
    path = f"{world.ws}{agents}/events/{lease['event']['event_id']}/transcript"
    answer = await world.get(path, params=params)
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


def code(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("error_code", "")


async def test_a_run_writes_its_transcript_and_people_read_it_page_by_page(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    long = "x" * 5_000
    first = await write(world, token, lease, entry(1, "one"), entry(2, long, "output"), entry(3))
    again = await write(world, token, lease, entry(3, "changed"), entry(5))
    assert (first.status_code, first.json()["accepted"], first.json()["more"]) == (202, 3, True)
    assert again.status_code == 202

    page = await read(world, lease, limit="3")
    assert [(one["number"], one["data"] and one["data"]["text"]) for one in page["items"]] == [
        (1, "one"),
        (2, None),
        (3, "it"),
    ]
    assert [one["truncated"] for one in page["items"]] == [False, True, False]

    (attempt,) = page["attempts"]
    assert (attempt["attempt"], attempt["entries"], attempt["missing"]) == (1, 4, 1)

    rest = await read(world, lease, limit="3", cursor=page["next_cursor"])
    assert [one["number"] for one in rest["items"]] == [5]
    assert rest["next_cursor"] is None

    own = await read(world, lease, f"/zombies/{zombie['zombie_id']}", attempt="1", number="2", whole="true")
    assert own["items"][0]["data"]["text"] == long
    assert own["items"][0]["bytes"] == len('{"text":""}') + len(long)
    assert (await read(world, lease, attempt="2"))["items"] == []


async def test_who_does_not_hold_the_lease_adds_nothing(world: HttpWorld) -> None:
    _, token, lease = await world.working()
    other = await world.enrol("h2")
    path = f"/v1/runners/me/leases/{UNKNOWN}/transcript"

    wrong = await write(world, token, lease, entry(1), fencing_token=lease["fencing_token"] + 1)
    assert code(wrong) == (409, "UZ-RUN-005")
    assert code(await write(world, other, lease, entry(1))) == (404, "UZ-RUN-006")
    assert code(await world.post(path, {"entries": [entry(1)]}, token)) == (404, "UZ-RUN-006")

    for bad in (entry(0), entry(1, kind="cut"), entry(1, "x" * MAX_ENTRY_BYTES)):
        assert code(await write(world, token, lease, bad)) == (400, "UZ-REQ-001")
    assert code(await write(world, token, lease)) == (400, "UZ-REQ-001")

    await write(world, token, lease, entry(1))
    await world.post(f"/v1/runners/me/leases/{lease['lease_id']}/release", {"reason": "drain"}, token)
    again = await world.lease(token)
    assert code(await write(world, token, lease, entry(2), entry(1, "late"))) == (409, "UZ-RUN-005")

    await write(world, token, again, entry(1))
    shown = await read(world, again)
    assert [(one["attempt"], one["number"]) for one in shown["items"]] == [(1, 1), (2, 1)]
    assert world.actors_world.meters.late["transcript"] == 2


async def test_a_place_that_is_not_there_is_said_to_be_none(world: HttpWorld) -> None:
    zombie, _, lease = await world.working()
    event = lease["event"]["event_id"]
    agent = f"{world.ws}/zombies/{zombie['zombie_id']}"
    other = await world.install("other")
    theirs = f"{world.ws}/zombies/{other['zombie_id']}/events/{event}/transcript"
    path = f"{world.ws}/events/{event}/transcript"

    assert code(await world.get(f"{world.ws}/events/{UNKNOWN}/transcript")) == (404, "UZ-EVENT-001")
    assert code(await world.get(f"{agent}/events/{UNKNOWN}/transcript")) == (404, "UZ-EVENT-001")
    assert code(await world.get(theirs)) == (404, "UZ-EVENT-001")

    for params in ({"number": "2"}, {"cursor": "bm8"}, {"limit": "0"}, {"attempt": "1", "number": "0"}):
        assert code(await world.get(path, params=params)) == (400, "UZ-REQ-001"), params
    empty = (await world.get(path)).json()
    assert (empty["items"], empty["attempts"], empty["next_cursor"]) == ([], [], None)


async def test_bounds_cut_a_run_and_time_takes_it_away(world: HttpWorld) -> None:
    _, token, lease = await world.working()
    set_bounds(world, run_bytes=30)
    cut = await write(world, token, lease, entry(1), entry(2), entry(3))
    assert (cut.status_code, cut.json()["more"]) == (202, False)

    page = await read(world, lease)
    assert [one["kind"] for one in page["items"]] == ["note", "note", "cut"]
    assert page["attempts"][0]["cut"] is True
    assert world.registry.get_sample_value("sexton_transcripts_total", {"what": "cut"}) == 1

    world.pass_ms(31 * DAY_MS)
    await world.system.ask("sweeper", "", PruneTranscripts())
    assert (await read(world, lease))["attempts"] == []
