"""The same request under the same key is done once, whatever happens in between."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import pytest
import trio

from sexton_engine import MailboxFull
from sexton_http.gateway.operations import Auth, Creates, NoBody, Operation
from sexton_http.routes.table import OPERATIONS
from sexton_storage.errors import StorageUnavailable
from sexton_storage.memory import open_memory_storage
from sexton_storage.records.users import Role
from sexton_storage.terms import KEY_KEEP_MS, KEY_OPEN_MS, KEY_SOON_MS, KEY_STALE_MS
from tests.http.test_http_provocation import Stage
from tests.worlds.bearer_tokens import TENANT_B, settle_tenant_b
from tests.worlds.http import HttpWorld, open_http_world_on
from tests.worlds.samples import START_MS, agent_files

KEY = {"idempotency-key": "k-1"}
SECRETS = {"key", "token", "refresh_token", "approval_token", "runner_token", "sign_in_url"}
CREATING = [operation for operation in OPERATIONS if operation.creates is not Creates.NOTHING]


@pytest.fixture
async def stage(world: HttpWorld) -> Stage:
    return Stage(world, await world.install("staged"), await world.enrol())


def bodies(world: HttpWorld) -> dict[str, tuple[str, dict[str, Any], Callable[[], Awaitable[int]]]]:
    """What makes something: the path, the body, and how many there are."""

    async def keys() -> int:
        return len(world.memory.tables.api_keys)

    async def workspaces() -> int:
        return len(world.memory.tables.workspaces)

    async def agents() -> int:
        return len(world.memory.tables.zombies)

    two_files = agent_files("a")
    return {
        "key": ("/v1/api-keys", {"key_name": "k"}, keys),
        "workspace": ("/v1/workspaces", {}, workspaces),
        "agent": (f"{world.ws}/zombies", two_files, agents),
    }


@pytest.mark.parametrize("what", ["key", "workspace", "agent"])
async def test_a_repetition_is_answered_as_the_first_was(world: HttpWorld, what: str) -> None:
    path, body, count = bodies(world)[what]
    first = await world.post(path, body, headers=KEY)
    made = await count()
    again = await world.post(path, body, headers=KEY)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.content == first.content
    assert again.headers["idempotent-replayed"] == "true"
    assert again.headers["x-request-id"] == first.json()["request_id"]
    assert "idempotent-replayed" not in first.headers
    assert await count() == made

    other = await world.post(path, body, headers={"idempotency-key": "k-2"})
    assert other.content != first.content


async def test_what_is_shown_once_is_kept_sealed(world: HttpWorld) -> None:
    made = (await world.post("/v1/api-keys", {"key_name": "k"}, headers=KEY)).json()
    [use] = world.memory.tables.key_uses.values()

    assert made["key"].encode() not in use.sealed
    assert b"k-1" not in use.key_hash


async def test_a_refusal_is_the_first_answer_too(world: HttpWorld) -> None:
    await world.post("/v1/api-keys", {"key_name": "k"})
    first = await world.post("/v1/api-keys", {"key_name": "k"}, headers=KEY)
    listed = (await world.get("/v1/api-keys", params={"sort": "-created_at"})).json()["items"]
    [mine] = [item["id"] for item in listed if item["key_name"] == "k"]
    await world.call("PATCH", f"/v1/api-keys/{mine}", json={"active": False})
    await world.call("DELETE", f"/v1/api-keys/{mine}")
    again = await world.post("/v1/api-keys", {"key_name": "k"}, headers=KEY)

    assert (first.status_code, again.status_code) == (409, 409)
    assert again.content == first.content
    assert again.headers["content-type"] == "application/problem+json"


async def test_another_request_under_the_key_is_refused(world: HttpWorld) -> None:
    await world.post("/v1/api-keys", {"key_name": "k"}, headers=KEY)
    for path, body in (("/v1/api-keys", {"key_name": "other"}), ("/v1/workspaces", {})):
        answer = await world.post(path, body, headers=KEY)
        assert (answer.status_code, answer.json()["error_code"]) == (422, "UZ-REQ-008")
    spelled = await world.call(
        "POST",
        "/v1/api-keys",
        content=b' {"key_name" : "k"}',
        headers={**KEY, "content-type": "application/json"},
    )

    assert spelled.headers["idempotent-replayed"] == "true"


async def test_a_key_is_its_tenants_and_a_secret_in_its_answer_is_for_whoever_sent_it(
    world: HttpWorld,
) -> None:
    body = {"key_name": "k", "role": "admin"}
    first = await world.post("/v1/api-keys", body, headers=KEY)
    lower = await world.post("/v1/api-keys", body, world.user_token(Role.OPERATOR), headers=KEY)
    assert lower.json()["error_code"] == "UZ-REQ-008"

    peer = await world.post("/v1/api-keys", body, world.user_token(Role.ADMIN), headers=KEY)
    assert peer.json().get("error_code") == "UZ-REQ-008"
    assert first.json()["key"] not in peer.text

    own = await world.post("/v1/api-keys", body, headers=KEY)
    assert own.content == first.content

    peers = ("", world.user_token(Role.ADMIN))
    plain = [
        await world.post("/v1/workspaces", {}, token, headers={"idempotency-key": "k-2"}) for token in peers
    ]
    assert plain[0].content == plain[1].content, "what has no secret is the tenant's"

    await settle_tenant_b(world)
    theirs = await world.post(
        "/v1/api-keys", body, world.user_token(Role.ADMIN, tenant_id=TENANT_B), headers=KEY
    )
    assert theirs.status_code == 201
    assert theirs.json()["key"] != first.json()["key"]


def test_every_answer_with_a_secret_is_declared_to_have_one() -> None:
    shown = {
        operation.name: set(
            msgspec.json.schema(operation.answer)["$defs"][operation.answer.__name__]["properties"]
        )
        for operation in CREATING
        if operation.auth is not Auth.PUBLIC and isinstance(operation.answer, type)
    }
    with_secrets = {name for name, fields in shown.items() if fields & SECRETS}

    assert with_secrets == {operation.name for operation in CREATING if operation.secret}


@pytest.mark.parametrize("key", ["", "x" * 256, "caf\u00e9"])
async def test_a_key_that_is_no_key_is_refused(world: HttpWorld, key: str) -> None:
    headers = {"idempotency-key": key.encode("latin-1")}
    answer = await world.post("/v1/workspaces", {}, headers=headers)

    assert (answer.status_code, answer.json()["error_code"]) == (400, "UZ-REQ-001")


async def test_no_route_takes_a_key_that_is_none(stage: Stage) -> None:
    for operation in CREATING:
        headers = stage.headers(operation) | {b"idempotency-key": b""}
        assert await stage.code(replace(operation, body=NoBody), headers=headers) == "UZ-REQ-001"


async def test_a_key_stands_for_its_request_for_a_day(world: HttpWorld) -> None:
    first = await world.post("/v1/workspaces", {}, headers=KEY)
    world.pass_ms(KEY_KEEP_MS)
    later = await world.post("/v1/workspaces", {}, headers=KEY)

    assert later.json()["workspace_id"] != first.json()["workspace_id"]


async def test_an_answer_outlives_its_server() -> None:
    async with open_memory_storage(clock=lambda: START_MS) as memory:
        async with open_http_world_on(memory) as world:
            first = await world.post("/v1/workspaces", {}, world.admin_token(), headers=KEY)
        async with open_http_world_on(memory) as world:
            again = await world.post("/v1/workspaces", {}, world.admin_token(), headers=KEY)
    assert again.content == first.content


async def test_while_the_first_is_under_way_the_next_waits(stage: Stage) -> None:
    """On every route that creates."""
    for operation in CREATING:
        began, go_on = trio.Event(), trio.Event()

        async def handler(call: Any, began: trio.Event = began, go_on: trio.Event = go_on) -> None:
            """Wait."""
            began.set()
            await go_on.wait()

        slow = replace(operation, handler=handler, body=NoBody)
        mine = stage.headers(operation) | {b"idempotency-key": operation.name.encode()}
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(stage.code, slow, headers=mine))
            await began.wait()
            assert await stage.code(slow, headers=mine) == "UZ-REQ-007", operation.path
            assert await stage.code(slow, headers=mine, query=b"a=b") == "UZ-REQ-008", operation.path
            go_on.set()
        assert await stage.code(slow, headers=mine) == ""


def flaky(operation: Operation, fault: Exception, *, after: bool) -> Operation:
    """The route, whose server dies, once, before or after its work."""
    left = [fault]

    async def handler(call: Any) -> Any:
        """Fail once."""
        if left and not after:
            raise left.pop()
        done = await operation.handler(call)
        if left:
            raise left.pop()
        return done

    return replace(operation, handler=handler)


def named(name: str) -> Operation:
    [operation] = [operation for operation in OPERATIONS if operation.name == name]
    return operation


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    ("name", "body"), [("create_workspace", b"{}"), ("create_api_key", b'{"key_name":"k"}')]
)
async def test_what_died_halfway_is_made_once(stage: Stage, name: str, body: bytes, *, after: bool) -> None:
    route = flaky(named(name), StorageUnavailable("away"), after=after)
    headers = stage.headers(route) | {b"idempotency-key": b"k"}
    tables = stage.world.memory.tables
    before = len(tables.workspaces) + len(tables.api_keys)

    assert await stage.code(route, body=body, headers=headers) == "UZ-INTERNAL-001"
    assert len(tables.workspaces) + len(tables.api_keys) == before + after
    assert await stage.code(route, body=body, headers=headers) == ""
    assert len(tables.workspaces) + len(tables.api_keys) == before + 1


@pytest.mark.parametrize("after", [False, True])
async def test_a_message_whose_server_died_is_kept_once_and_a_repeat_gets_its_event(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, *, after: bool
) -> None:
    async def never(_: object) -> None:
        """A server that is dead releases nothing."""

    monkeypatch.setattr(stage.world.memory.key_uses, "release", never)
    route = flaky(named("steer_zombie"), StorageUnavailable("away"), after=after)
    headers = stage.headers(route) | {b"idempotency-key": b"k"}
    events, body = stage.world.memory.tables.events, b'{"message":"go on"}'
    before = len(events)
    assert await stage.code(route, body=body, headers=headers) == "UZ-INTERNAL-001"
    assert len(events) == before + after
    assert await stage.code(route, body=body, headers=headers) == "UZ-REQ-007"

    stage.world.pass_ms(KEY_SOON_MS)

    assert await stage.code(route, body=body, headers=headers) == ""
    assert len(events) == before + 1


async def test_what_cannot_be_done_again_safely_stays_open_for_ten_minutes(stage: Stage) -> None:
    route = flaky(named("mint_enrolment_token"), StorageUnavailable("away"), after=True)
    headers = stage.headers(route) | {b"idempotency-key": b"k"}
    before = len(stage.world.memory.tables.enrolments)
    assert await stage.code(route, headers=headers) == "UZ-INTERNAL-001"

    stage.world.pass_ms(KEY_STALE_MS + 1)
    assert await stage.code(route, headers=headers) == "UZ-REQ-007"
    assert len(stage.world.memory.tables.enrolments) == before + 1

    stage.world.pass_ms(KEY_OPEN_MS)
    assert await stage.code(route, headers=headers) == ""
    assert len(stage.world.memory.tables.enrolments) == before + 2


async def test_what_was_not_begun_leaves_the_key_free(stage: Stage) -> None:
    route = flaky(named("mint_enrolment_token"), MailboxFull("full"), after=False)
    headers = stage.headers(route) | {b"idempotency-key": b"k"}

    assert await stage.code(route, headers=headers) == "UZ-API-003"
    assert await stage.code(route, headers=headers) == ""
