"""A credential names the hosts that it may go to, and goes out only with runs that could use it."""

from typing import Any

import httpx2
import pytest

from tests.worlds.http import HttpWorld, open_http_world
from tests.worlds.samples import agent_files, command_body

AGENT_CONFIG = "credentials: [hub, github, loose]\nnetwork: {allow: [api.github.com, hub.example.com]}"


async def keep(world: HttpWorld, name: str, **more: Any) -> httpx2.Response:
    return await world.post(f"{world.ws}/credentials", {"name": name, "data": {"token": f"t-{name}"}, **more})


async def test_a_credential_names_its_hosts_and_a_lease_tells_them() -> None:
    async with open_http_world() as world:
        assert (await keep(world, "hub", hosts=["*.example.com"])).status_code == 201

        for name in ("github", "loose"):
            assert (await keep(world, name)).status_code == 201
        items = (await world.get(f"{world.ws}/credentials")).json()["items"]
        assert {item["name"]: item["hosts"] for item in items if item["name"] in {"hub", "loose"}} == {
            "hub": ["*.example.com"],
            "loose": [],
        }

        _, _, lease = await world.working(AGENT_CONFIG)
        assert lease["policy"]["secret_hosts"] == {
            "hub": ["*.example.com"],
            "github": ["api.github.com", "uploads.github.com"],
            "loose": [],
        }


@pytest.mark.parametrize("host", ["", "https://a.com", "a.com/x", "*", "a..b", "a.com:443", "*.*.com"])
async def test_what_is_no_host_is_refused(host: str) -> None:
    async with open_http_world() as world:
        answer = await keep(world, "hub", hosts=[host])
        assert (answer.status_code, answer.json()["error_code"]) == (400, "UZ-REQ-001")


async def test_a_command_is_lent_nothing_since_it_could_use_nothing() -> None:
    async with open_http_world() as world:
        for name in ("hub", "github", "loose"):
            await keep(world, name)
        await world.keep_secret()
        files = agent_files("cmd", f"{AGENT_CONFIG}\nruntime: command", body=command_body("true"))
        made = (await world.post(f"{world.ws}/zombies", files)).json()
        assert (await world.deliver(made["webhook_urls"]["github"])).status_code == 202

        lease = await world.lease(await world.enrol())
        assert lease["runtime"] == "command"
        assert (lease["policy"]["secrets_map"], lease["policy"]["secret_hosts"]) == ({}, {})
