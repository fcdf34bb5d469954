"""Erasures over HTTP: counted first, done beside other work, and proved by a receipt without the value."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import trio

from sexton_cli.tombstones import apply_tombstones
from sexton_storage.decisions import erasure_steps
from sexton_storage.decisions.erasure import ERASED_DOCUMENT
from sexton_storage.decisions.tombstones import read, written
from sexton_storage.records.users import Role
from tests.worlds.http import HttpWorld

ANN = "ann@example.org"
UNKNOWN = "019346de-6400-7000-8000-00000000ffff"
WISH = {"path": "message", "value": ANN}


async def receipt(
    world: HttpWorld, until: Collection[str] = ("waiting", "done"), **wish: Any
) -> dict[str, Any]:
    made = await world.post(f"{world.ws}/erasures", {**WISH, **wish})

    assert made.status_code == 202, made.text

    while (found := (await world.get(f"{world.ws}/erasures/{made.json()['erasure_id']}")).json())[
        "status"
    ] not in until:
        await trio.sleep(0.1)
    return dict(found)


async def test_a_value_is_counted_then_erased_and_its_receipt_has_it_nowhere(
    world: HttpWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = await world.install()
    sent = await world.post(f"{world.ws}/zombies/{agent['zombie_id']}/messages", {"message": ANN})
    event_id = sent.json()["event_id"]
    waiting = await receipt(world, dry_run=False)
    await world.post(f"{world.ws}/events/{event_id}/cancel")

    counted = await receipt(world)
    await world.post(f"{world.ws}/erasures/{waiting['erasure_id']}:stop")
    monkeypatch.setattr(erasure_steps, "REST_MS", 0)
    erased = await receipt(world, until=("done",), dry_run=False)

    event = world.memory.tables.events[UUID(event_id)]
    listed = (await world.get(f"{world.ws}/erasures?limit=2")).json()
    older = (await world.get(f"{world.ws}/erasures?limit=2&cursor={listed['next_cursor']}")).json()

    assert (waiting["status"], waiting["erased"].get("events")) == ("waiting", None)
    assert (counted["status"], counted["erased"]["events"], counted["waits"]) == ("done", 1, 0)
    assert (erased["erased"]["events"], erased["passes"]) == (1, 2)
    assert event.request_json == ERASED_DOCUMENT
    assert ANN not in json.dumps(erased)
    assert [one["erasure_id"] for one in listed["items"]] == [erased["erasure_id"], counted["erasure_id"]]
    assert [one["erasure_id"] for one in older["items"]] == [waiting["erasure_id"]]


async def test_what_no_erasure_can_be_is_refused(world: HttpWorld) -> None:
    path = f"{world.ws}/erasures"
    wrong: list[dict[str, Any]] = [
        {"path": "a", "value": "x"},
        {"path": "a..b", "value": ANN},
        {"path": "a", "value": f" {ANN}"},
        {"path": "a", "value": "x" * 513},
        {"path": "a", "value": "a\x00bc"},
        {"path": "a"},
        {"path": "a", "value_sha256": "0" * 64},
        {"path": "a", "value": ANN, "value_chars": 15},
        {"path": "a" * 257, "value": ANN},
    ]

    answers = [await world.post(path, body) for body in wrong]
    operator = await world.post(path, WISH, world.user_token(Role.OPERATOR))
    unknown = await world.get(f"{path}/{UNKNOWN}")

    assert {(one.status_code, one.json()["error_code"]) for one in answers} == {(400, "UZ-REQ-001")}
    assert operator.json()["error_code"] == "UZ-AUTH-009"
    assert unknown.json()["error_code"] == "UZ-ERASURE-001"


async def test_as_many_as_may_be_under_way_are_stopped_one_by_one(world: HttpWorld) -> None:
    agent = await world.install()
    await world.post(f"{world.ws}/zombies/{agent['zombie_id']}/messages", {"message": ANN})
    begun = [await receipt(world, dry_run=False) for _ in range(8)]

    refused = await world.post(f"{world.ws}/erasures", WISH)
    path = f"{world.ws}/erasures/{begun[0]['erasure_id']}:stop"
    stopped = [(await world.post(path)).json()["status"] for _ in range(2)]
    lines = (await world.get("/v1/audit?limit=20", world.admin_token())).json()["items"]
    told = [line["action"] for line in lines if line["action"].startswith("erasure.")]

    assert sorted(told) == ["erasure.begin"] * 8 + ["erasure.stop"]
    assert ANN not in json.dumps(lines)
    assert refused.json()["error_code"] == "UZ-ERASURE-002"
    assert stopped == ["stopped", "stopped"]


async def test_a_start_erases_again_what_an_older_database_brings_back(
    world: HttpWorld, tmp_path: Path
) -> None:
    agent = await world.install()
    done = await receipt(world, dry_run=False)
    storage = world.memory
    stone = (await storage.erasures.tombstones())[0]
    listed = tmp_path / "erasures.jsonl"

    assert await apply_tombstones(storage, listed) == 0

    listed.write_text(json.dumps({**json.loads(written([stone])), "id": agent["zombie_id"]}) + "\n")

    first, again = [await apply_tombstones(storage, listed) for _ in range(2)]

    restored = (await world.get(f"{world.ws}/erasures/{agent['zombie_id']}")).json()

    assert (first, again) == (1, 0)
    assert (restored["status"], restored["restored"]) == ("done", True)
    assert restored["value_sha256"] == done["value_sha256"]
    assert [one.sha256 for one in read(listed.read_bytes())] == [stone.sha256]
