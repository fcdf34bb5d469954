"""Keys of agents: shown once, kept as a hash, good for one agent until they are deleted."""

import hashlib
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import httpx2
import msgspec
import pytest

from sexton_http.answers import RequestHead
from sexton_http.authenticator import KEY_USE_MS, Authenticator
from sexton_http.browsers import Browsers
from sexton_http.tokens import digest
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.tenants import PlanTier
from sexton_storage.records.users import Role
from tests.http.bearers import WORKSPACE_B, agent_key
from tests.http.house import House
from tests.http.listening import listening
from tests.http.test_http_idempotency import flaky, named
from tests.http.test_http_provocation import Stage

UNKNOWN = "019363b0-0000-7000-8000-00000000ffff"


def code(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("error_code", "")


def reached(house: House, zombie: dict[str, Any]) -> dict[str, str]:
    """What a key reaches by GET, for its own agent."""
    at = f"{house.ws}/zombies/{zombie['zombie_id']}"
    return {"events": f"{at}/events", "memories": f"{at}/memories"}


async def test_a_key_is_shown_once_and_kept_as_a_hash(house: House) -> None:
    zombie = await house.install()
    made = await agent_key(house, zombie["zombie_id"])
    assert made["key"].startswith("zmb_a_")
    assert len(made["key"]) == len("zmb_a_") + 64
    assert (made["workspace_id"], made["zombie_id"], made["name"]) == (
        str(house.installation.workspace_id),
        zombie["zombie_id"],
        "k",
    )
    [kept] = house.memory.tables.agent_keys.values()
    assert kept.token_hash == hashlib.sha256(made["key"].encode()).digest()
    listed = await house.get(f"{house.ws}/agent-keys")
    assert made["key"] not in listed.text
    [item] = listed.json()["items"]
    assert (item["agent_id"], item["last_used_at"], listed.json()["total"]) == (made["agent_id"], None, 1)


async def test_keys_are_listed_by_agent_and_by_page(house: House) -> None:
    one, other = await house.install(), await house.install("other")
    for n in range(3):
        await agent_key(house, one["zombie_id"], f"k{n}")
    await agent_key(house, other["zombie_id"])
    page = await house.get(f"{house.ws}/agent-keys", params={"page": "2", "page_size": "3"})
    assert ([item["name"] for item in page.json()["items"]], page.json()["total"]) == (["k0"], 4)
    mine = await house.get(f"{house.ws}/agent-keys", params={"zombie_id": one["zombie_id"]})
    assert [item["name"] for item in mine.json()["items"]] == ["k2", "k1", "k0"]


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        ({"zombie_id": UNKNOWN, "name": "k"}, (404, "UZ-ZMB-009")),
        ({"zombie_id": "x", "name": "k"}, (400, "UZ-UUIDV7-009")),
        ({"name": "k"}, (400, "UZ-REQ-001")),
        ({"name": "k\n"}, (400, "UZ-REQ-001")),
        ({"name": "a b"}, (400, "UZ-REQ-001")),
        ({"name": "n" * 65}, (400, "UZ-REQ-001")),
        ({"name": "n", "description": "d" * 257}, (400, "UZ-REQ-001")),
        ({"name": "n", "role": "admin"}, (400, "UZ-REQ-001")),
    ],
)
async def test_what_makes_no_key_is_refused(
    house: House, body: dict[str, Any], answer: tuple[int, str]
) -> None:
    zombie = await house.install()
    filled = {"zombie_id": zombie["zombie_id"], **body} if len(body) > 1 or body["name"] != "k" else body
    assert code(await house.post(f"{house.ws}/agent-keys", filled)) == answer
    assert not house.memory.tables.agent_keys


async def test_a_name_is_taken_once_an_agent_and_a_foreign_agent_is_none(house: House) -> None:
    zombie, other = await house.install(), await house.install("other")
    await agent_key(house, zombie["zombie_id"])
    again = {"zombie_id": zombie["zombie_id"], "name": "k"}
    assert code(await house.post(f"{house.ws}/agent-keys", again)) == (409, "UZ-APIKEY-005")
    await agent_key(house, other["zombie_id"])
    second = (await house.post("/v1/workspaces", {"name": "second"})).json()["workspace_id"]
    elsewhere = f"/v1/workspaces/{second}/agent-keys"
    assert code(await house.post(elsewhere, {**again, "name": "j"})) == (404, "UZ-ZMB-009")


async def test_a_key_is_made_once_under_an_idempotency_key(house: House) -> None:
    zombie = await house.install()
    body = {"zombie_id": zombie["zombie_id"], "name": "k"}
    headers = {"idempotency-key": "once"}
    first = await house.post(f"{house.ws}/agent-keys", body, headers=headers)
    again = await house.post(f"{house.ws}/agent-keys", body, headers=headers)
    assert (again.status_code, again.content) == (201, first.content)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    ("name", "body", "table"),
    [
        ("create_agent_key", {"name": "k"}, "agent_keys"),
        ("request_integration", {"service": "slack", "reason": ""}, "grants"),
    ],
)
async def test_what_died_halfway_is_made_once(
    house: House, name: str, body: dict[str, str], table: str, *, after: bool
) -> None:
    zombie = await house.install()
    stage = Stage(house, zombie, await house.enrol())
    route = flaky(named(name), StorageUnavailable("away"), after=after)
    headers = stage.headers(route) | {b"idempotency-key": b"once"}
    filled = {"zombie_id": zombie["zombie_id"], **body} if table == "agent_keys" else body
    sent = msgspec.json.encode(filled)
    assert await stage.code(route, body=sent, headers=headers) == "UZ-INTERNAL-001"
    assert len(getattr(house.memory.tables, table)) == after
    assert await stage.code(route, body=sent, headers=headers) == ""
    assert len(getattr(house.memory.tables, table)) == 1


async def test_operators_make_and_delete_keys(house: House) -> None:
    zombie = await house.install()
    user = house.user_token(Role.USER)
    body = {"zombie_id": zombie["zombie_id"], "name": "k"}
    assert code(await house.post(f"{house.ws}/agent-keys", body, user)) == (403, "UZ-AUTH-009")
    made = await agent_key(house, zombie["zombie_id"])
    path = f"{house.ws}/agent-keys/{made['agent_id']}"
    assert code(await house.call("DELETE", path, user)) == (403, "UZ-AUTH-009")
    assert (await house.get(f"{house.ws}/agent-keys", user)).json()["total"] == 1


async def test_a_deleted_key_is_nobodys_at_once(house: House) -> None:
    zombie = await house.install()
    made = await agent_key(house, zombie["zombie_id"])
    for path in reached(house, zombie).values():
        assert (await house.get(path, made["key"])).status_code == 200
    path = f"{house.ws}/agent-keys/{made['agent_id']}"
    assert (await house.call("DELETE", path)).status_code == 204
    for where in reached(house, zombie).values():
        assert code(await house.get(where, made["key"])) == (401, "UZ-AUTH-002")
    assert code(await house.call("DELETE", path)) == (404, "UZ-APIKEY-003")
    assert code(await house.call("DELETE", f"{house.ws}/agent-keys/{UNKNOWN}")) == (404, "UZ-APIKEY-003")


async def test_a_key_reaches_its_own_agent_and_no_other_place(house: House) -> None:
    zombie, other = await house.install(), await house.install("other")
    key = (await agent_key(house, zombie["zombie_id"]))["key"]
    mine, theirs = reached(house, zombie), reached(house, other)
    assert {(await house.get(path, key)).status_code for path in mine.values()} == {200}
    assert code(await house.get(theirs["events"], key)) == (403, "UZ-AUTH-001")
    assert code(await house.get(theirs["memories"], key)) == (403, "UZ-MEM-001")
    nowhere = f"/v1/workspaces/{WORKSPACE_B}/zombies/{zombie['zombie_id']}"
    for what in ("events", "memories"):
        assert code(await house.get(f"{nowhere}/{what}", key)) == (403, "UZ-AUTH-001")
    for path in ("/v1/api-keys", f"{house.ws}/zombies/{zombie['zombie_id']}", f"{house.ws}/events"):
        assert code(await house.get(path, key)) == (403, "UZ-AUTH-001")
    steer = await house.post(f"{house.ws}/zombies/{zombie['zombie_id']}/messages", {"message": "x"}, key)
    assert code(steer) == (403, "UZ-AUTH-001")


async def test_a_key_follows_the_stream_of_its_agent(house: House) -> None:
    zombie, other = await house.install(), await house.install("other")
    key = (await agent_key(house, zombie["zombie_id"]))["key"]
    await house.post(f"{house.ws}/zombies/{zombie['zombie_id']}/messages", {"message": "hello"})
    path = f"{house.ws}/zombies/{zombie['zombie_id']}/events/stream"
    async with listening(house.base_url, path, key, last_event_id="0") as stream:
        assert stream.status == 200
        assert (await stream.frame())["kind"] == "event_received"
    elsewhere = f"{house.ws}/zombies/{other['zombie_id']}/events/stream"
    assert code(await house.get(elsewhere, key)) == (403, "UZ-AUTH-001")


async def test_a_key_that_is_used_says_when_but_writes_it_seldom(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    zombie = await house.install()
    made = await agent_key(house, zombie["zombie_id"])
    keys = house.memory.agent_keys
    written: list[tuple[UUID, int]] = []
    real = keys.touch

    async def touch(used: Sequence[tuple[UUID, int]]) -> None:
        written.extend(used)
        await real(used)

    monkeypatch.setattr(keys, "touch", touch)
    authenticator = Authenticator(house.ctx, Browsers(house.ctx))
    head = RequestHead("GET", "/", b"", {b"authorization": f"Bearer {made['key']}".encode()}, "")
    for pass_ms in (0, KEY_USE_MS // 2, KEY_USE_MS // 2):
        house.pass_ms(pass_ms)
        delegate = await authenticator.delegate(head)
        assert delegate is not None
        assert delegate.zombie_id == UUID(zombie["zombie_id"])
        authenticator.forget(digest(made["key"]))
    assert len(written) == 2
    [item] = (await house.get(f"{house.ws}/agent-keys")).json()["items"]
    assert item["last_used_at"] == written[-1][1]


async def test_a_key_is_counted_with_its_workspace(house: House) -> None:
    zombie = await house.install()
    key = (await agent_key(house, zombie["zombie_id"]))["key"]
    house.set_plan(PlanTier.FREE)
    answer = await house.get(reached(house, zombie)["events"], key)
    assert answer.headers["ratelimit-policy"].endswith("q=40;w=2")
