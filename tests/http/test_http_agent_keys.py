"""Keys of agents: shown once, kept as a hash, good for one agent until they are deleted."""

import hashlib
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import httpx2
import msgspec
import pytest

from sexton_http.answers import RequestHead
from sexton_http.identity.authenticator import KEY_USE_MS, Authenticator
from sexton_http.identity.browsers import Browsers
from sexton_http.identity.tokens import digest
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.tenants import PlanTier
from sexton_storage.records.users import Role
from tests.http.test_http_idempotency import flaky, named
from tests.http.test_http_provocation import Stage
from tests.worlds.bearer_tokens import WORKSPACE_B, agent_key
from tests.worlds.event_stream import listening
from tests.worlds.http import HttpWorld

UNKNOWN = "019363b0-0000-7000-8000-00000000ffff"


def code(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("error_code", "")


def reached(world: HttpWorld, zombie: dict[str, Any]) -> dict[str, str]:
    """What a key reaches by GET, for its own agent."""
    at = f"{world.ws}/zombies/{zombie['zombie_id']}"
    return {"events": f"{at}/events", "memories": f"{at}/memories"}


async def test_a_key_is_shown_once_and_kept_as_a_hash(world: HttpWorld) -> None:
    zombie = await world.install()
    made = await agent_key(world, zombie["zombie_id"])
    assert made["key"].startswith("zmb_a_")
    assert len(made["key"]) == len("zmb_a_") + 64
    assert (made["workspace_id"], made["zombie_id"], made["name"]) == (
        str(world.installation.workspace_id),
        zombie["zombie_id"],
        "k",
    )

    [kept] = world.memory.tables.agent_keys.values()
    assert kept.token_hash == hashlib.sha256(made["key"].encode()).digest()

    listed = await world.get(f"{world.ws}/agent-keys")
    assert made["key"] not in listed.text

    [item] = listed.json()["items"]
    assert (item["agent_id"], item["last_used_at"], listed.json()["total"]) == (made["agent_id"], None, 1)


async def test_keys_are_listed_by_agent_and_by_page(world: HttpWorld) -> None:
    one, other = await world.install(), await world.install("other")
    for n in range(3):
        await agent_key(world, one["zombie_id"], f"k{n}")
    await agent_key(world, other["zombie_id"])
    page = await world.get(f"{world.ws}/agent-keys", params={"page": "2", "page_size": "3"})
    assert ([item["name"] for item in page.json()["items"]], page.json()["total"]) == (["k0"], 4)

    mine = await world.get(f"{world.ws}/agent-keys", params={"zombie_id": one["zombie_id"]})
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
    world: HttpWorld, body: dict[str, Any], answer: tuple[int, str]
) -> None:
    zombie = await world.install()
    filled = {"zombie_id": zombie["zombie_id"], **body} if len(body) > 1 or body["name"] != "k" else body

    assert code(await world.post(f"{world.ws}/agent-keys", filled)) == answer
    assert not world.memory.tables.agent_keys


async def test_a_name_is_taken_once_an_agent_and_a_foreign_agent_is_none(world: HttpWorld) -> None:
    zombie, other = await world.install(), await world.install("other")
    await agent_key(world, zombie["zombie_id"])
    again = {"zombie_id": zombie["zombie_id"], "name": "k"}
    assert code(await world.post(f"{world.ws}/agent-keys", again)) == (409, "UZ-APIKEY-005")

    await agent_key(world, other["zombie_id"])
    second = (await world.post("/v1/workspaces", {"name": "second"})).json()["workspace_id"]
    elsewhere = f"/v1/workspaces/{second}/agent-keys"
    assert code(await world.post(elsewhere, {**again, "name": "j"})) == (404, "UZ-ZMB-009")


async def test_a_key_is_made_once_under_an_idempotency_key(world: HttpWorld) -> None:
    zombie = await world.install()
    body = {"zombie_id": zombie["zombie_id"], "name": "k"}
    headers = {"idempotency-key": "once"}
    first = await world.post(f"{world.ws}/agent-keys", body, headers=headers)
    again = await world.post(f"{world.ws}/agent-keys", body, headers=headers)

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
    world: HttpWorld, name: str, body: dict[str, str], table: str, *, after: bool
) -> None:
    zombie = await world.install()
    stage = Stage(world, zombie, await world.enrol())
    route = flaky(named(name), StorageUnavailable("away"), after=after)
    headers = stage.headers(route) | {b"idempotency-key": b"once"}
    filled = {"zombie_id": zombie["zombie_id"], **body} if table == "agent_keys" else body
    sent = msgspec.json.encode(filled)

    assert await stage.code(route, body=sent, headers=headers) == "UZ-INTERNAL-001"
    assert len(getattr(world.memory.tables, table)) == after
    assert await stage.code(route, body=sent, headers=headers) == ""
    assert len(getattr(world.memory.tables, table)) == 1


async def test_operators_make_and_delete_keys(world: HttpWorld) -> None:
    zombie = await world.install()
    user = world.user_token(Role.USER)
    body = {"zombie_id": zombie["zombie_id"], "name": "k"}
    assert code(await world.post(f"{world.ws}/agent-keys", body, user)) == (403, "UZ-AUTH-009")

    made = await agent_key(world, zombie["zombie_id"])
    path = f"{world.ws}/agent-keys/{made['agent_id']}"
    assert code(await world.call("DELETE", path, user)) == (403, "UZ-AUTH-009")
    assert (await world.get(f"{world.ws}/agent-keys", user)).json()["total"] == 1


async def test_a_deleted_key_is_nobodys_at_once(world: HttpWorld) -> None:
    zombie = await world.install()
    made = await agent_key(world, zombie["zombie_id"])
    for path in reached(world, zombie).values():
        assert (await world.get(path, made["key"])).status_code == 200
    path = f"{world.ws}/agent-keys/{made['agent_id']}"
    assert (await world.call("DELETE", path)).status_code == 204

    for where in reached(world, zombie).values():
        assert code(await world.get(where, made["key"])) == (401, "UZ-AUTH-002")
    assert code(await world.call("DELETE", path)) == (404, "UZ-APIKEY-003")
    assert code(await world.call("DELETE", f"{world.ws}/agent-keys/{UNKNOWN}")) == (404, "UZ-APIKEY-003")


async def test_a_key_reaches_its_own_agent_and_no_other_place(world: HttpWorld) -> None:
    zombie, other = await world.install(), await world.install("other")
    key = (await agent_key(world, zombie["zombie_id"]))["key"]
    mine, theirs = reached(world, zombie), reached(world, other)
    assert {(await world.get(path, key)).status_code for path in mine.values()} == {200}
    assert code(await world.get(theirs["events"], key)) == (403, "UZ-AUTH-001")
    assert code(await world.get(theirs["memories"], key)) == (403, "UZ-MEM-001")

    nowhere = f"/v1/workspaces/{WORKSPACE_B}/zombies/{zombie['zombie_id']}"
    for what in ("events", "memories"):
        assert code(await world.get(f"{nowhere}/{what}", key)) == (403, "UZ-AUTH-001")
    for path in ("/v1/api-keys", f"{world.ws}/zombies/{zombie['zombie_id']}", f"{world.ws}/events"):
        assert code(await world.get(path, key)) == (403, "UZ-AUTH-001")
    steer = await world.post(f"{world.ws}/zombies/{zombie['zombie_id']}/messages", {"message": "x"}, key)
    assert code(steer) == (403, "UZ-AUTH-001")


async def test_a_key_follows_the_stream_of_its_agent(world: HttpWorld) -> None:
    zombie, other = await world.install(), await world.install("other")
    key = (await agent_key(world, zombie["zombie_id"]))["key"]
    await world.post(f"{world.ws}/zombies/{zombie['zombie_id']}/messages", {"message": "hello"})
    path = f"{world.ws}/zombies/{zombie['zombie_id']}/events/stream"
    async with listening(world.base_url, path, key, last_event_id="0") as stream:
        assert stream.status == 200
        assert (await stream.frame())["kind"] == "event_received"
    elsewhere = f"{world.ws}/zombies/{other['zombie_id']}/events/stream"

    assert code(await world.get(elsewhere, key)) == (403, "UZ-AUTH-001")


async def test_a_key_that_is_used_says_when_but_writes_it_seldom(
    world: HttpWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    zombie = await world.install()
    made = await agent_key(world, zombie["zombie_id"])
    keys = world.memory.agent_keys
    written: list[tuple[UUID, int]] = []
    real = keys.touch

    async def touch(used: Sequence[tuple[UUID, int]]) -> None:
        written.extend(used)
        await real(used)

    monkeypatch.setattr(keys, "touch", touch)
    authenticator = Authenticator(world.ctx, Browsers(world.ctx))
    head = RequestHead("GET", "/", b"", {b"authorization": f"Bearer {made['key']}".encode()}, "")
    for pass_ms in (0, KEY_USE_MS // 2, KEY_USE_MS // 2):
        world.pass_ms(pass_ms)
        delegate = await authenticator.delegate(head)
        assert delegate is not None
        assert delegate.zombie_id == UUID(zombie["zombie_id"])
        authenticator.forget(digest(made["key"]))
    assert len(written) == 2

    [item] = (await world.get(f"{world.ws}/agent-keys")).json()["items"]
    assert item["last_used_at"] == written[-1][1]


async def test_a_key_is_counted_with_its_workspace(world: HttpWorld) -> None:
    zombie = await world.install()
    key = (await agent_key(world, zombie["zombie_id"]))["key"]
    world.set_plan(PlanTier.FREE)
    answer = await world.get(reached(world, zombie)["events"], key)

    assert answer.headers["ratelimit-policy"].endswith("q=40;w=2")
