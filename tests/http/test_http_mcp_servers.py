"""A workspace declares MCP servers, agents name them, and runs are given them with what they are sent."""

from typing import Any

import httpx2

from sexton_actors.manifest.known_names import WORKSPACE_SERVERS
from sexton_storage.records.mcp_servers import MAX_SERVERS
from sexton_storage.records.users import Role
from tests.worlds.http import HttpWorld
from tests.worlds.http_agents import at, code
from tests.worlds.samples import agent_files

URL = "https://mcp.example.com/mcp"
HEADERS = {"authorization": "Bearer ${secrets.hub.token}", "x-plain": "1"}
HUB: dict[str, Any] = {"url": URL, "headers": HEADERS, "tools": ["read", "write"]}
USES = "tools: [hub.read]\nmcp_servers: [hub]"


async def put(world: HttpWorld, name: str = "hub", token: str = "", **body: Any) -> httpx2.Response:
    return await world.call("PUT", f"{world.ws}/mcp-servers/{name}", token, json=body)


async def keep(world: HttpWorld, name: str = "hub", **data: Any) -> None:
    hosts = data.pop("hosts", [])
    body = {"name": name, "data": data or {"token": "t0p-secret"}, "hosts": hosts}
    assert (await world.post(f"{world.ws}/credentials", body)).status_code == 201


async def listed(world: HttpWorld, token: str = "") -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = (await world.get(f"{world.ws}/mcp-servers", token)).json()["items"]
    return items


async def ended(world: HttpWorld, runner: str, agent: dict[str, Any]) -> tuple[str, str, str]:
    """Wake the agent, and say how its event ended without a run."""
    assert (await world.post(f"{at(world, agent)}/messages", {"message": "go"})).status_code == 202
    answer = await world.post("/v1/runners/me/leases", {"wait_ms": 300}, runner)
    assert answer.json()["lease"] is None

    event = (await world.get(f"{at(world, agent)}/events")).json()["items"][0]
    return event["status"], event["failure_label"], event["response_text"]


async def test_operators_declare_servers_and_users_read_their_names(world: HttpWorld) -> None:
    user, operator = world.user_token(), world.user_token(Role.OPERATOR)
    refused = await put(world, token=user, **HUB)
    made = await put(world, token=operator, **HUB)
    again = await put(world, **{**HUB, "tools": ["read", "read"]})

    assert (refused.status_code, refused.json()["error_code"]) == (403, "UZ-AUTH-009")
    assert (made.status_code, again.status_code) == (200, 200)
    assert again.json()["tools"] == ["read"]
    assert again.json()["created_at"] == made.json()["created_at"]

    [seen], [shown] = await listed(world, user), await listed(world, operator)
    hidden = {"url", "command", "headers", "env"}

    assert (shown["url"], shown["headers"]) == (URL, HEADERS)
    assert {key: value for key, value in seen.items() if key in hidden} == dict.fromkeys(hidden)
    assert (seen["name"], seen["tools"]) == ("hub", ["read"])

    assert await code(world, "DELETE", f"{world.ws}/mcp-servers/hub", token=user) == (403, "UZ-AUTH-009")

    for name in ("hub", "hub", "%0a"):
        assert await code(world, "DELETE", f"{world.ws}/mcp-servers/{name}") == (204, "")
    assert await listed(world) == []


async def test_what_is_no_declaration_is_refused_with_its_place(world: HttpWorld) -> None:
    await keep(world, "bound", token="t", hosts=["other.example.com"])
    cases: list[tuple[str, dict[str, Any], str]] = [
        ("hub", {}, "/url"),
        ("hub", {"url": "https://u:p@a.example/"}, "/url"),
        ("hub", {"url": "http://mcp.example.com/", "headers": HEADERS}, "/url"),
        ("hub", {"url": URL, "headers": {"x": "${secrets.bound.token}"}}, "/headers"),
        ("hub", {"url": URL, "headers": {"host": "a"}}, "/headers"),
        ("hub", {"command": "files", "env": {"PATH": "/tmp"}}, "/env"),
        ("a%20b", {"url": URL}, "/name"),
    ]
    for name, body, pointer in cases:
        answer = await put(world, name, **body)
        told = answer.json()
        assert (answer.status_code, told["error_code"], told["pointer"]) == (400, "UZ-REQ-001", pointer), body

    for number in range(MAX_SERVERS):
        assert (await put(world, f"s{number}", url=URL)).status_code == 200
    full = await put(world, "one-more", url=URL)

    assert (full.status_code, full.json()["error_code"]) == (409, "UZ-MCP-001")


async def test_a_run_is_given_the_servers_that_its_agent_names_and_what_they_are_sent(
    world: HttpWorld,
) -> None:
    await keep(world)
    assert (await put(world, **HUB)).status_code == 200
    assert (await put(world, "unused", url=URL)).status_code == 200

    agent = await world.install(config=f"{USES}\nnetwork: {{allow: [a.example.com]}}")
    assert (await world.post(f"{at(world, agent)}/messages", {"message": "go"})).status_code == 202

    older = await world.enrol("older")
    assert (await world.post("/v1/runners/me/leases", {}, older)).json()["lease"] is None

    shown = (await world.get(at(world, agent))).json()
    lease = await world.lease(await world.enrol("newer", offers=[WORKSPACE_SERVERS]))
    policy = lease["policy"]

    assert shown["unmet_needs"] == [WORKSPACE_SERVERS]
    assert policy["mcp_servers"] == [
        {
            "name": "hub",
            "url": URL,
            "command": "",
            "headers": HEADERS,
            "env": {},
            "tools": ["read", "write"],
            "secrets": {"hub.token": "t0p-secret"},
        }
    ]
    assert policy["secrets_map"] == {}, "what a server is sent is no credential of the run's programs"
    assert policy["network_policy"]["allow"] == ["a.example.com"], "nor may they reach the server"


async def test_a_run_whose_server_is_not_to_be_had_does_not_start_and_says_why(world: HttpWorld) -> None:
    runner = await world.enrol(offers=[WORKSPACE_SERVERS, "mcp:files"])
    agent = await world.install(config=USES)
    said = [await ended(world, runner, agent)]
    warned = (await world.post(f"{world.ws}/zombies", agent_files("other", USES))).json()["warnings"]

    await put(world, **HUB)
    said.append(await ended(world, runner, agent))
    await keep(world, other="x")
    said.append(await ended(world, runner, agent))
    await keep(world, token="t", hosts=["elsewhere.example.com"])
    said.append(await ended(world, runner, agent))
    await keep(world)
    await put(world, **{**HUB, "tools": ["write"]})
    said.append(await ended(world, runner, agent))
    await put(world, command="files", env={"KEY": "${secrets.hub.token}"})
    said.append(await ended(world, runner, agent))

    assert any("declares no MCP server `hub`" in warning["message"] for warning in warned)
    assert [(status, label) for status, label, _ in said] == [
        ("agent_error", "invalid_config"),
        ("agent_error", "secret_missing"),
        ("agent_error", "secret_missing"),
        ("agent_error", "policy_deny"),
        ("agent_error", "invalid_config"),
        ("agent_error", "invalid_config"),
    ]

    for text, part in zip(
        [text for _, _, text in said],
        [
            "sexton mcp-server set hub --url URL",
            "The vault has no credential hub, which the MCP server hub is to be sent.",
            "has no text under token in the credential hub",
            "The credential hub may go to elsewhere.example.com only",
            "The workspace does not allow these tools of the MCP server hub: read.",
            "name it in `credentials`",
        ],
        strict=True,
    ):
        assert part in text


async def test_a_user_s_agent_waits_until_an_operator_lends_it_the_server(world: HttpWorld) -> None:
    await keep(world)
    await put(world, **HUB)
    runner, user = await world.enrol(offers=[WORKSPACE_SERVERS]), world.user_token()
    made = await world.post(f"{world.ws}/zombies", agent_files("mine", USES), user)
    assert made.status_code == 201, made.text

    agent = made.json()
    assert (await world.post(f"{at(world, agent)}/messages", {"message": "go"}, user)).status_code == 202

    waits = (await world.post("/v1/runners/me/leases", {"wait_ms": 300}, runner)).json()["lease"]
    [grant] = (await world.get(f"{world.ws}/credential-grants")).json()["items"]
    path = f"{at(world, agent)}/credential-grants/mcp.hub"
    by_user = await code(world, "PATCH", path, token=user, json={"status": "approved"})
    by_operator = await code(world, "PATCH", path, json={"status": "approved"})
    lease = await world.lease(runner)

    assert waits is None
    assert (grant["credential"], grant["status"], grant["tools"]) == ("mcp.hub", "pending", ["hub.read"])
    assert (by_user, by_operator) == ((403, "UZ-AUTH-009"), (200, ""))
    assert lease["policy"]["mcp_servers"][0]["secrets"] == {"hub.token": "t0p-secret"}
