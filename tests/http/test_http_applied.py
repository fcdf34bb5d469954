"""Programs that apply folders write down what they do, one at a time, and compare secrets unseen."""

from typing import Any

import httpx2
import msgspec

from sexton_storage.records.applied import APPLYING_TERM_MS
from sexton_storage.records.users import Role
from tests.worlds.http import HttpWorld

ITEMS = {"agent/herald": {"folder": "crew", "fields": {"status": '"active"'}}}


async def put(world: HttpWorld, phase: str, revision: int, holder: str = "a", **more: Any) -> httpx2.Response:
    body = {"phase": phase, "revision": revision, "holder": holder, **more}
    return await world.call("PUT", f"{world.ws}/applied", json=body)


def told(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("error_code", "")


async def test_one_program_at_a_time_writes_down_what_it_applies(world: HttpWorld) -> None:
    before = (await world.get(f"{world.ws}/applied")).json()
    begun = await put(world, "begin", 0, items=ITEMS)
    assert (await world.get(f"{world.ws}/applied")).json()["items"] == ITEMS

    again = await put(world, "begin", 0, items=ITEMS)

    assert (before["revision"], before["applying"], before["age_ms"], before["items"]) == (0, False, 0, {})
    assert begun.status_code == again.status_code == 200
    assert (again.json()["revision"], again.json()["applying"], again.json()["items"]) == (1, True, ITEMS)

    assert told(await put(world, "begin", 0, "b")) == (409, "UZ-APPLY-001")
    assert told(await put(world, "begin", 1, "b")) == (409, "UZ-APPLY-002")
    assert told(await put(world, "end", 1, "b")) == (409, "UZ-APPLY-001")
    assert (await put(world, "renew", 1)).json()["items"] == ITEMS

    ended = (await put(world, "end", 2, items={})).json()
    assert (ended["revision"], ended["applying"], ended["items"]) == (3, False, {})
    assert told(await put(world, "renew", 3)) == (409, "UZ-APPLY-001")


async def test_who_says_nothing_for_too_long_has_lost_their_turn(world: HttpWorld) -> None:
    assert (await put(world, "begin", 0, items=ITEMS)).status_code == 200

    row = await world.storage.applied.load(world.installation.workspace_id)
    assert row is not None

    long_ago = msgspec.structs.replace(row, revision=2, updated_at=row.updated_at - APPLYING_TERM_MS)
    assert await world.storage.applied.save(long_ago)

    taken = await put(world, "begin", 2, "b")
    assert (taken.status_code, taken.json()["items"]) == (200, ITEMS)
    assert told(await put(world, "end", 2)) == (409, "UZ-APPLY-001")


async def test_what_is_no_note_of_a_folder_is_refused(world: HttpWorld) -> None:
    wrong: list[dict[str, Any]] = [
        {"items": {"no kind": {"folder": "crew", "fields": {}}}},
        {"items": {"agent/a": {"folder": "Crew", "fields": {}}}},
        {"items": {"agent/a": {"folder": "crew", "fields": {"x": 1}}}},
        {"items": {"agent/a": {"folder": "crew", "fields": {"x": "y" * 513}}}},
        {"items": {"agent/a": {"folder": "crew", "fields": {"x": "a\nb"}}}},
        {"holder": "a b"},
    ]
    for body in wrong:
        assert told(await put(world, "begin", 0, **body)) == (400, "UZ-REQ-001"), body

    assert (await world.get(f"{world.ws}/applied", world.user_token())).status_code == 403


async def test_a_secret_is_compared_and_never_shown(world: HttpWorld) -> None:
    kept = {"name": "hub", "data": {"token": "t0p", "user": "x"}}
    assert (await world.post(f"{world.ws}/credentials", kept)).status_code == 201

    key = {"provider": "anthropic", "api_key": "t0p"}
    assert (await world.call("PUT", f"{world.ws}/credentials/llm", json=key)).status_code == 204

    asked: list[tuple[str, Any, tuple[bool, bool]]] = [
        ("hub", {"user": "x", "token": "t0p"}, (True, True)),
        ("hub", {"token": "t0p"}, (True, False)),
        ("hut", {"token": "t0p"}, (False, False)),
        ("%00", {"token": "t0p"}, (False, False)),
        ("llm", key, (True, True)),
        ("llm", {"provider": "openai", "api_key": "t0p"}, (True, False)),
    ]
    for name, data, expected in asked:
        answer = await world.post(f"{world.ws}/credentials/{name}:compare", {"data": data})
        assert answer.status_code == 200, answer.text
        assert (answer.json()["exists"], answer.json()["same"]) == expected
        assert "t0p" not in answer.text

    user = world.user_token(Role.USER)
    refused = await world.post(f"{world.ws}/credentials/hub:compare", {"data": {}}, user)
    assert told(refused) == (403, "UZ-AUTH-009")
