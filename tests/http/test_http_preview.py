"""The preview, from a request to a model server on loopback and back as a stream."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal
from urllib.parse import urlsplit

import orjson
import pytest
import trio
from msgspec.structs import replace

from sexton_actors.catalogue import Catalogue, Model
from sexton_cli.model_previews import ModelPreviewer
from sexton_runner.providers.retries import Patience
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.providers import PlatformKey, ProviderMode, TenantProvider
from tests.fakes.model_servers import KEY, Call, Fail, ModelServer, Say, open_model
from tests.patience import PATIENCE_S
from tests.worlds.http import HttpWorld, open_http_world

Protocol = Literal["anthropic", "openai"]
PATIENCE = Patience(tries=2, wait_first_s=0.001, wait_max_s=0.01)
CATALOGUE = Catalogue(
    "2026-11-20",
    [Model("m-1", "anthropic", 200_000, 1, 1, 1), Model("g-1", "openai", 100_000, 1, 1, 1)],
)
ASK = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Draft a heron."}]
TOOL = {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}


@asynccontextmanager
async def world_before(model: ModelServer, **settings: Any) -> AsyncIterator[HttpWorld]:
    """A server whose previews reach ``model``."""
    previewer = ModelPreviewer({model.protocol: model.base_url}, random.Random(1), PATIENCE)
    async with open_http_world(catalogue=CATALOGUE, previewer=previewer, **settings) as world:
        yield world


async def set_up(world: HttpWorld, protocol: str, key: str = KEY) -> None:
    """Give the workspace a key of its own."""
    body = {"name": f"{protocol}_api_key", "data": {"api_key": key}}
    assert (await world.post(f"{world.ws}/credentials", body)).status_code == 201
    await prefer(world, protocol, ProviderMode.PLATFORM)


async def prefer(world: HttpWorld, protocol: str, mode: ProviderMode, ref: str | None = None) -> None:
    """Choose the tenant's provider."""
    tenant_id, workspace_id = world.installation.tenant_id, world.installation.workspace_id
    model = "m-1" if protocol == "anthropic" else "g-1"
    await world.storage.providers.put(
        TenantProvider(tenant_id, mode, protocol, model, 9_000, ref, workspace_id if ref else None, 1)
    )
    world.actors_world.providers.forget_all()


async def preview(world: HttpWorld, body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    answer = await world.post(f"{world.ws}/spec/preview", body)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    frames = []
    for frame in filter(None, answer.text.strip().split("\n\n")):
        kind, data = frame.split("\n")
        frames.append((kind.removeprefix("event: "), orjson.loads(data.removeprefix("data: "))))
    return frames


async def refused(world: HttpWorld, body: dict[str, Any]) -> tuple[int, str]:
    answer = await world.post(f"{world.ws}/spec/preview", body)
    return answer.status_code, answer.json()["error_code"]


@pytest.mark.parametrize("protocol", ["anthropic", "openai"])
async def test_words_and_tool_uses_are_streamed_and_the_end_tells_what_was_used(protocol: Protocol) -> None:
    say = Say(
        "A grey bird.", (Call("look", {"at": "nest"}, id="t1"),), input_tokens=9, cached=3, output_tokens=4
    )
    async with open_model(protocol, say) as model, world_before(model) as world:
        await set_up(world, protocol)
        frames = await preview(world, {"messages": ASK, "tools": [TOOL]})
    assert "".join(data["text"] for kind, data in frames if kind == "text_delta") == "A grey bird."
    assert len([kind for kind, _ in frames if kind == "text_delta"]) == 3
    assert frames[-2] == ("tool_use", {"id": "t1", "name": "look", "input": {"at": "nest"}})

    usage = {"input_tokens": 9, "cached_input_tokens": 3, "output_tokens": 4}
    asked = model.asked[0]["model"]
    assert frames[-1] == ("done", {"usage": usage, "provider": protocol, "model": asked})
    assert asked == ("m-1" if protocol == "anthropic" else "g-1")
    assert "Be brief." in str(model.asked[0])
    assert model.asked[0]["max_tokens"] == 4096


async def test_roles_and_bounds_are_checked_before_anybody_is_asked() -> None:
    async with open_model("openai") as model, world_before(model) as world:
        await set_up(world, "openai")
        user = {"role": "user", "content": "x"}
        for messages in (
            [],
            [{"role": "tool", "content": "x"}],
            [{"role": "user", "content": ""}],
            [{"role": "user"}],
            [{"role": "user", "content": ["x"]}],
            [{"role": "system", "content": "x"}],
            [user, {"role": "assistant", "content": "x"}],
            [user] * 201,
        ):
            assert await refused(world, {"messages": messages}) == (400, "UZ-REQ-001"), messages
        tool = {**TOOL, "name": "no name"}

        assert await refused(world, {"messages": [user], "tools": [tool]}) == (400, "UZ-REQ-001")
    assert model.asked == []


async def test_what_is_missing_is_said_before_the_stream_begins() -> None:
    async with open_model("openai") as model, world_before(model) as world:
        assert await refused(world, {"messages": ASK}) == (400, "UZ-RELAY-001")

        await prefer(world, "openai", ProviderMode.SELF_MANAGED, "gone")
        assert await refused(world, {"messages": ASK}) == (503, "UZ-CRED-001")

        await prefer(world, "openai", ProviderMode.PLATFORM)
        assert await refused(world, {"messages": ASK}) == (503, "UZ-CRED-003")
    async with open_http_world(catalogue=CATALOGUE) as world:
        await set_up(world, "openai")
        assert await refused(world, {"messages": ASK}) == (400, "UZ-RELAY-001")


async def lend(world: HttpWorld) -> str:
    """Lend the workspace's key to the whole tenant; where another workspace asks for previews."""
    own = {"name": "openai_api_key", "data": {"api_key": KEY}}
    assert (await world.post(f"{world.ws}/credentials", own)).status_code == 201
    tenant_id, workspace_id = world.installation.tenant_id, world.installation.workspace_id
    key = PlatformKey(tenant_id, "openai", workspace_id, shared=False, updated_at=1)
    await world.storage.providers.put_platform_key(key)
    await prefer(world, "openai", ProviderMode.PLATFORM)
    other = (await world.post("/v1/workspaces", {"name": "other"})).json()["workspace_id"]
    return f"/v1/workspaces/{other}/spec/preview"


async def test_on_the_platforms_key_a_tenant_needs_credit_and_on_its_own_it_does_not() -> None:
    async with open_model("openai", otherwise=Say("Yes.")) as model, world_before(model) as world:
        path = await lend(world)
        assert (await world.post(path, {"messages": ASK})).status_code == 200

        tenants, tenant_id = world.memory.tables.tenants, world.installation.tenant_id
        tenants[tenant_id] = replace(tenants[tenant_id], balance_nanos=0)
        world.actors_world.entitlements.forget(tenant_id)
        broke = await world.post(path, {"messages": ASK})
        assert (broke.status_code, broke.json()["error_code"]) == (402, "UZ-BILLING-005")
        assert (await preview(world, {"messages": ASK}))[-1][0] == "done"


async def test_a_plan_that_cannot_be_read_lends_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_model("openai") as model, world_before(model) as world:
        path = await lend(world)

        async def away(_: object) -> None:
            raise StorageUnavailable("away")

        world.actors_world.entitlements.forget(world.installation.tenant_id)
        monkeypatch.setattr(world.actors_world.entitlements._tenants, "load", away)
        answer = await world.post(path, {"messages": ASK})

    assert (answer.status_code, answer.json()["error_code"]) == (503, "UZ-ENTL-001")
    assert model.asked == []


@pytest.mark.parametrize(
    ("answer", "key", "code"),
    [
        (Fail(529, "overloaded_error"), KEY, "UZ-EXEC-013"),
        (Say("It is a", cut_after=4), KEY, "UZ-EXEC-013"),
        (Fail(404, "not_found_error", "model: m-1"), KEY, "UZ-EXEC-012"),
        (None, "sk-wrong-canary-1", "UZ-EXEC-012"),
    ],
)
async def test_what_goes_wrong_on_the_way_ends_the_stream_with_an_error(
    answer: Say | Fail | None, key: str, code: str
) -> None:
    async with open_model("anthropic", otherwise=answer) as model, world_before(model) as world:
        await set_up(world, "anthropic", key)
        frames = await preview(world, {"messages": ASK})

    assert (frames[-1][0], frames[-1][1]["code"]) == ("error", code)
    assert key not in str(frames)
    # What was shown cannot be taken back, so a broken answer is not begun again.
    assert [kind for kind, _ in frames].count("error") == 1


async def test_a_model_that_was_away_for_a_moment_is_asked_again() -> None:
    script = (Fail(529, "overloaded_error"), Say("Yes."))
    async with open_model("anthropic", *script) as model, world_before(model) as world:
        await set_up(world, "anthropic")
        frames = await preview(world, {"messages": ASK})

    assert frames[-1][0] == "done"


async def test_a_client_that_leaves_ends_the_call_of_the_model() -> None:
    async with (
        open_model("openai", Say("A long story.", hang_after=3)) as model,
        world_before(model) as world,
    ):
        await set_up(world, "openai")
        body = orjson.dumps({"messages": ASK})
        stream = await trio.open_tcp_stream("127.0.0.1", urlsplit(world.base_url).port or 0)
        async with stream:
            await stream.send_all(head_of(world, body) + body)
            seen = b""
            while b"text_delta" not in seen:
                seen += await stream.receive_some(4096)
        await model.until(lambda: model.left == 1)


async def test_while_the_model_is_silent_the_stream_shows_that_it_lives() -> None:
    async with (
        open_model("openai", Say("A long story.", hang_after=3)) as model,
        world_before(model, stream_heartbeat_s=0.05) as world,
    ):
        await set_up(world, "openai")
        body = orjson.dumps({"messages": ASK})
        stream = await trio.open_tcp_stream("127.0.0.1", urlsplit(world.base_url).port or 0)
        async with stream:
            await stream.send_all(head_of(world, body) + body)
            seen = b""
            with trio.fail_after(PATIENCE_S):
                while seen.count(b": keep\n\n") < 3 or b"event: text_delta" not in seen:
                    got = await stream.receive_some(4096)
                    assert got, seen
                    seen += got
        await model.until(lambda: model.left == 1)


def head_of(world: HttpWorld, body: bytes) -> bytes:
    lines = (
        f"POST {world.ws}/spec/preview HTTP/1.1",
        "host: x",
        f"authorization: Bearer {world.api_key}",
        "content-type: application/json",
        f"content-length: {len(body)}",
    )
    return "\r\n".join([*lines, "", ""]).encode()


async def test_heartbeats_lose_and_change_nothing_of_what_a_model_says() -> None:
    say = Say("A grey bird.", input_tokens=9, output_tokens=4)
    async with open_model("openai", say) as model, world_before(model, stream_heartbeat_s=0.0001) as world:
        await set_up(world, "openai")
        answer = await world.post(f"{world.ws}/spec/preview", {"messages": ASK})
        frames = [frame for frame in answer.text.split("\n\n") if frame and frame != ": keep"]
    words = [orjson.loads(frame.partition("data: ")[2])["text"] for frame in frames[:-1]]

    assert ("".join(words), frames[-1].startswith("event: done")) == ("A grey bird.", True)


async def test_a_server_that_stops_ends_its_previews() -> None:
    async with (
        open_model("openai", Say("A long story.", hang_after=3)) as model,
        world_before(model) as world,
    ):
        await set_up(world, "openai")
        async with trio.open_nursery() as nursery:

            async def ask() -> None:
                frames = await preview(world, {"messages": ASK})
                assert {kind for kind, _ in frames} <= {"text_delta"}

            nursery.start_soon(ask)
            await model.until(lambda: model.asked)
            world.stop.set()
        await model.until(lambda: model.left == 1)
