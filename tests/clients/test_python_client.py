"""The Python client against a live server: on trio, on asyncio and without an event loop."""

import asyncio
import base64
import tomllib
from collections.abc import AsyncIterator
from importlib.metadata import version
from pathlib import Path

import httpx2
import pytest
import trio

from sexton_client import (
    VERSION,
    AsyncSexton,
    BadRequest,
    Conflict,
    ErrorCode,
    Forbidden,
    NotFound,
    Sexton,
    SextonError,
    Unauthorized,
    WaitedTooLong,
    models,
)
from tests.worlds.http import HttpWorld, open_http_world
from tests.worlds.samples import START_MS, YEARLY, agent_files

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("github", "slack", "linear", "stripe", "sentry", "svix", "standard-webhooks")
SECRET = "whsec_" + base64.b64encode(b"shared by all of them").decode()
OTHER = "whsec_" + base64.b64encode(b"known to nobody").decode()


@pytest.fixture
async def world() -> AsyncIterator[HttpWorld]:
    async with open_http_world() as opened:
        yield opened


async def install(client: AsyncSexton, name: str) -> models.ZombieInstalled:
    return await client.agents.install(**agent_files(name, trigger=YEARLY))


async def finish(client: AsyncSexton, runner: AsyncSexton) -> models.WholeEvent:
    """Carry out the event that is next, as a runner that is written with this client."""
    lease = (await runner.runner.lease(wait_ms=5000)).lease
    assert lease is not None
    renewed = await runner.runner.renew(
        lease.lease_id, input_tokens=1, cached_input_tokens=0, output_tokens=1
    )
    assert renewed.state == "active"
    reported = await runner.runner.report(
        lease_id=lease.lease_id,
        event_id=lease.event.event_id,
        fencing_token=lease.fencing_token,
        outcome="processed",
        response_text="It was the disk.",
        evidence={"found": "disk"},
        input_tokens=1,
        cached_input_tokens=0,
        output_tokens=1,
        telemetry=models.Telemetry(wall_ms=3),
    )
    assert reported.status == models.EventStatus.PROCESSED
    return await client.events.wait(lease.event.event_id, timeout_s=5)


async def test_the_whole_way_of_an_event_goes_through_the_client(world: HttpWorld) -> None:
    async with (
        AsyncSexton(world.base_url, world.api_key) as client,
        AsyncSexton(world.base_url, world.admin_token()) as admin,
    ):
        agent = await install(client, "doctor")
        sent = await client.events.send(agent.zombie_id, message="look", idempotency_key="mine")
        again = await client.events.send(agent.zombie_id, message="look", idempotency_key="mine")
        assert (again.event_id, sent.status) == (sent.event_id, "accepted")

        with pytest.raises(WaitedTooLong, match="received"):
            await client.events.wait(sent.event_id, timeout_s=0.05)

        minted = await admin.runners.enrolment_token()
        async with AsyncSexton(world.base_url, minted.token) as newcomer:
            made = await newcomer.runners.enrol(host_id="h1", sandbox_tier="bubblewrap", labels=[])
        async with AsyncSexton(world.base_url, made.runner_token) as runner:
            event = await finish(client, runner)

        assert (event.event_id, event.status, event.evidence) == (
            sent.event_id,
            models.EventStatus.PROCESSED,
            {"found": "disk"},
        )
        assert [row.host_id async for row in admin.runners.each(page_size=1)] == ["h1"]

        await client.agents.delete(agent.zombie_id)
        with pytest.raises(NotFound) as raised:
            await client.agents.get(agent.zombie_id)
        assert raised.value.code is ErrorCode.UZ_ZMB_009
        assert raised.value.request_id


async def test_lists_are_walked_to_their_end_and_errors_say_what_they_are(world: HttpWorld) -> None:
    async with AsyncSexton(world.base_url, world.api_key) as client:
        names = [f"agent-{number}" for number in range(5)]
        agents = [await install(client, name) for name in names]
        walked = [agent.name async for agent in client.agents.each(limit=2)]
        assert walked == names[::-1]

        for name in names:
            await client.keys.create(key_name=name, role="viewer")
        assert {key.key_name async for key in client.keys.each(page_size=2)} >= {*names}

        with pytest.raises(BadRequest) as malformed:
            await client.agents.get("no-id")
        assert malformed.value.code is ErrorCode.UZ_UUIDV7_009

        await client.agents.change(agents[0].zombie_id, status="stopped")
        with pytest.raises(Conflict) as state:
            await client.agents.change(agents[0].zombie_id, status="stopped")
        assert (state.value.code, state.value.facts["current_state"]) == ("UZ-ZMB-010", "stopped")

        async with AsyncSexton(world.base_url, world.user_token(), workspace="nowhere") as lost:
            with pytest.raises(SextonError, match="nowhere"):
                await lost.agents.list()
            with pytest.raises(Forbidden):
                await lost.fleet.queue()
        async with AsyncSexton(world.base_url) as stranger:
            assert (await stranger.service.health()).status == "ok"
            with pytest.raises(Unauthorized):
                await stranger.service.whoami()


async def test_a_test_event_is_signed_as_each_source_signs(world: HttpWorld) -> None:
    triggers = "\n".join(
        f"  - type: webhook\n    source: {source}\n    signature: {{secret_ref: hook}}" for source in SOURCES
    )
    async with AsyncSexton(world.base_url, world.api_key) as client:
        await client.credentials.put(name="hook", data={"webhook_secret": SECRET})
        agent = await client.agents.install(**agent_files("ears", triggers, trigger=YEARLY))
        for source in SOURCES:
            url, body = agent.webhook_urls[source], {"type": "push", "action": "made", "source": source}
            sent = await client.webhooks.send_test(
                url, source=source, secret=SECRET, event_type="push", body=body, at_s=START_MS // 1000
            )
            assert (source, sent.status) == (source, "accepted")
            with pytest.raises(Unauthorized) as forged:
                await client.webhooks.send_test(
                    url, source=source, secret=OTHER, event_type="push", body=body, at_s=START_MS // 1000
                )
            assert forged.value.code is ErrorCode.UZ_WH_010


async def test_plain_programs_and_asyncio_are_served_the_same(world: HttpWorld) -> None:
    def plain(base_url: str, token: str) -> list[str]:
        with Sexton(base_url, token) as client:
            agent = client.agents.install(**agent_files("plain", trigger=YEARLY))
            with client.events.stream(agent_id=agent.zombie_id) as frames, Sexton(base_url, token) as other:
                sent = client.events.send(agent.zombie_id, message="hello")
                with client.events.stream(agent_id=agent.zombie_id, last_event_id="0") as late:
                    assert next(late).event_id == sent.event_id
                assert other.events.get(sent.event_id).actor.startswith("steer:")
            assert frames.last_event_id is not None
            return [event.event_type for event in client.events.each()]

    async def on_asyncio(base_url: str, token: str) -> list[str]:
        async with AsyncSexton(base_url, token) as client:
            agent = await install(client, "loop")
            async with await client.events.stream() as frames:
                opened = asyncio.create_task(anext(frames))
                sent = await client.events.send(agent.zombie_id, message="hello")
                again = await client.events.stream(agent_id=agent.zombie_id, last_event_id="0")
                async with again as late:
                    assert (await anext(late)).event_id == sent.event_id
                opened.cancel()
                await asyncio.wait([opened])
            return [event.event_type async for event in client.events.each(status="received")]

    def asynchronous(base_url: str, token: str) -> list[str]:
        return asyncio.run(on_asyncio(base_url, token))

    first = await trio.to_thread.run_sync(plain, world.base_url, world.api_key)
    second = await trio.to_thread.run_sync(asynchronous, world.base_url, world.api_key)

    assert (len(first), len(second)) == (1, 2)


def test_the_version_is_that_of_the_product() -> None:
    declared = tomllib.loads((ROOT / "clients/python/pyproject.toml").read_text())["project"]["version"]

    assert declared == VERSION == version("sexton")


def test_the_http_library_is_the_one_that_the_server_has_already() -> None:
    client = tomllib.loads((ROOT / "clients/python/pyproject.toml").read_text())["project"]["dependencies"]
    locked = (ROOT / "requirements/runtime.lock").read_text()

    assert all(f"\n{one.partition('>')[0]}==" in f"\n{locked}" for one in client)
    assert any(one.startswith(httpx2.__name__) for one in client)
