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
            "github": ["api.github.com", "uploads.github.com", "github.com"],
            "loose": [],
        }


@pytest.mark.parametrize("host", ["", "https://a.com", "a.com/x", "*", "a..b", "a.com:443", "*.*.com"])
async def test_what_is_no_host_is_refused(host: str) -> None:
    async with open_http_world() as world:
        answer = await keep(world, "hub", hosts=[host])
        assert (answer.status_code, answer.json()["error_code"]) == (400, "UZ-REQ-001")


async def test_a_credential_says_where_in_a_request_it_stands_and_a_lease_tells_it() -> None:
    usual = [{"in": "header", "name": "authorization"}, {"in": "basic", "name": None}]
    own = [{"in": "header", "name": "x-api-key"}, {"in": "query", "name": "key"}]
    async with open_http_world() as world:
        given = [{"in": "header", "name": "X-Api-Key"}, {"in": "query", "name": "key"}]
        assert (await keep(world, "hub", hosts=["*.example.com"], use=given)).status_code == 201

        for name in ("github", "loose"):
            assert (await keep(world, name)).status_code == 201

        items = (await world.get(f"{world.ws}/credentials")).json()["items"]
        assert {i["name"]: i["use"] for i in items if i["name"] in {"hub", "github"}} == {
            "hub": own,
            "github": usual,
        }

        _, _, lease = await world.working(AGENT_CONFIG)
        assert lease["policy"]["secret_uses"] == {"hub": own, "github": usual, "loose": usual}

        for wrong, says in (
            ({"in": "query"}, "needs a name"),
            ({"in": "basic", "name": "x"}, "has no name"),
            ({"in": "cookie"}, "/use/0/in"),
            ({"in": "header", "name": "a b"}, "/use/0/name"),
            ({"in": "header", "name": "a", "more": 1}, "/use/0"),
        ):
            answer = await keep(world, "hub", use=[wrong])
            assert (answer.status_code, answer.json()["error_code"]) == (400, "UZ-REQ-001")
            assert says in answer.json()["detail"]


async def test_a_command_is_lent_what_it_can_use_and_a_lease_tells_its_network() -> None:
    part = "{host: git.example.com, methods: [GET]}"
    async with open_http_world() as world:
        for name in ("hub", "github", "loose"):
            await keep(world, name)
        await world.keep_secret()
        runner = await world.enrol()
        policies = {}
        for name, network in (("reaching", f"network: {{allow: [a.example.com, {part}]}}"), ("shut", "")):
            config = (
                f"credentials: [hub]\n{network}\nruntime: command\nenv: {{TOKEN: '${{secrets.hub.token}}'}}"
            )
            made = await world.post(
                f"{world.ws}/zombies", agent_files(name, config, body=command_body("true"))
            )
            assert (await world.deliver(made.json()["webhook_urls"]["github"])).status_code == 202

            lease = await world.lease(runner)
            assert lease["runtime"] == "command"

            policies[name] = lease["policy"]

    reaching, shut = policies["reaching"], policies["shut"]
    rule = {"host": "git.example.com", "ports": [], "methods": ["GET"], "paths": []}

    assert reaching["network_policy"] == {"allow": ["a.example.com"], "rules": [rule]}
    assert reaching["secrets_map"] == {"hub": {"token": "t-hub"}}
    assert reaching["env"] == {"TOKEN": "${secrets.hub.token}"}
    assert shut["network_policy"] == {"allow": [], "rules": []}
    assert (shut["secrets_map"], shut["secret_hosts"]) == ({}, {})
