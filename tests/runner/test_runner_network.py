"""Programs of a run reach what their agent may reach, through the run's proxy and in no other way."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from sexton_runner.egress_settings import EgressSettings
from sexton_runner.redact import MASK, forms
from sexton_runner.settings import SandboxTier
from sexton_runner.tool_settings import McpServer, ToolSettings
from tests.fakes.control_plane import Plane, open_plane
from tests.runner.test_runner_mcp import PYTHON, SANDBOXED
from tests.worlds.git_server import CLONE_AND_PUSH, NO_OTHER_NAME, GitServer, open_git_server
from tests.worlds.runner import running, settings_for
from tests.worlds.toolbox import open_bench

TOKEN = "ghp_canary-5e1f0c9a7b3d42"
BACKWARDS = TOKEN[::-1]
"""So that a program can look for the token without having been told it in any form that is masked."""
LOOK_AROUND = """\
Look.
```python
import json, os, socket, urllib.request
def tried(act):
    try:
        return act() or "done"
    except OSError as fault:
        return type(fault).__name__
def connect(family, *address):
    with socket.socket(family) as sock:
        sock.settimeout(1)
        sock.connect(address)
def datagram():
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        sock.sendto(b"x", ("192.0.2.1", 53))
port = int(os.environ["PORT"])
lines = open("/proc/net/dev").read().splitlines()[2:]
print(json.dumps({
    "interfaces": [line.split(":")[0].strip() for line in lines],
    "the server itself": tried(lambda: connect(socket.AF_INET, "127.0.0.1", port)),
    "another address": tried(lambda: connect(socket.AF_INET, "192.0.2.1", 443)),
    "IPv6": tried(lambda: connect(socket.AF_INET6, "2001:db8::1", 443)),
    "a datagram": tried(datagram),
    "a name": tried(lambda: socket.getaddrinfo("example.org", 443)),
    "the door": tried(lambda: connect(socket.AF_UNIX, os.environ["SEXTON_RUN"] + "/network")),
    "the bundle": tried(lambda: open(os.environ["SSL_CERT_FILE"], "a")),
    "the proxy": tried(lambda: connect(socket.AF_INET, "127.0.0.1", 3128)),
}))
```
""".replace("sock.connect(address)", "sock.connect(address if len(address) > 1 else address[0])")

ASK = f"""\
Ask.
```sh
{NO_OTHER_NAME}
for words in "/echo" "/echo" "/shut" "/free" "/free -d x"; do
    set -- $words
    curl -sS -H "Authorization: Bearer $SEXTON_SECRET_HUB" "https://localhost:$PORT$@"; echo
done
```
"""
RULES = [
    {"tool": "http", "action": "POST *", "behavior": "deny"},
    {"tool": "http", "action": "GET localhost", "condition": "path == '/echo'", "behavior": "approve"},
    {"tool": "http", "action": "*", "condition": "path contains 'shut'", "behavior": "approve"},
]


def policy(server: GitServer, **changes: Any) -> dict[str, Any]:
    rule = {"host": "localhost", "ports": [server.port], "methods": ["GET", "POST"], "paths": []}
    return {
        "network_policy": {"allow": [], "rules": [rule]},
        "secrets_map": {"hub": {"token": TOKEN}},
        "secret_hosts": {"hub": ["localhost"]},
        "secret_uses": {"hub": [{"in": "header", "name": "authorization"}, {"in": "basic", "name": None}]},
        "env": {"HUB_TOKEN": "${secrets.hub.token}", "PORT": str(server.port), "BACKWARDS": BACKWARDS},
        **changes,
    }


def reaching(server: GitServer) -> EgressSettings:
    return EgressSettings(private_hosts=frozenset({"localhost"}), ca_bundle=server.certificate)


@asynccontextmanager
async def at_work(
    folder: Path, server: GitServer, tier: SandboxTier = SandboxTier.BUBBLEWRAP
) -> AsyncIterator[Plane]:
    async with (
        open_plane() as plane,
        running(settings_for(plane, folder, egress=reaching(server), sandbox_tier=tier)),
    ):
        yield plane


def has_gates(plane: Plane, count: int) -> bool:
    return len(plane.gates) == count


def said_by(plane: Plane) -> str:
    return "".join(str(frame["text"]) for frame in plane.frames("chunk"))


@pytest.mark.parametrize("tier", [SandboxTier.BUBBLEWRAP, SandboxTier.NONE])
async def test_a_run_clones_and_pushes_with_a_token_that_it_never_has(
    tmp_path: Path, tier: SandboxTier
) -> None:
    async with open_git_server(tmp_path / "server", TOKEN) as server:
        async with at_work(tmp_path, server, tier) as plane:
            plane.give(CLONE_AND_PUSH, policy=policy(server))
            await plane.until(plane.reports)
        (report,) = plane.reports()
        said = said_by(plane)
        assert report.outcome == "processed", (report.response_text, said)

        log = server.log("agent")

    refused = next(line for line in said.splitlines() if line.startswith("{"))
    everything = orjson.dumps([plane.frames(), report.response_text, report.evidence]).decode()
    connections = plane.frames("connection")

    assert log == ["Report", "The first"]
    assert {who.partition(" ")[0] for _, path, who in server.heard if path != "/echo"} == {"", "Basic"}
    assert f"you said Bearer {MASK}" in said, "what the server says back is masked"
    assert orjson.loads(refused)["detail"].startswith("the host elsewhere.example is not in network.allow")
    assert "curl: 56" in said
    assert f"looked for {len(TOKEN)} characters" in said
    assert "found in: []" in said, "the token is in no file, no variable and no answer"
    assert not [form for form in forms(TOKEN) if form in everything]
    assert "SEXTON_SECRET_HUB_TOKEN=sxt_" in said
    assert {(one["host"], one["verdict"]) for one in connections} == {
        ("localhost", "allowed"),
        ("elsewhere.example", "refused"),
    }
    assert {one["path"] for one in connections if one["verdict"] == "refused"} == {"/x", ""}


async def test_nothing_leaves_but_by_the_proxy_and_gates_hold_requests(tmp_path: Path) -> None:
    async with open_git_server(tmp_path / "server", TOKEN) as server, at_work(tmp_path, server) as plane:
        plane.give(LOOK_AROUND, policy=policy(server))
        await plane.until(plane.reports)
        (looked,) = plane.reports()
        plane.give(ASK, policy=policy(server, gates={"rules": RULES}))
        for number, status in ((1, "approved"), (2, "denied")):
            await plane.until(partial(has_gates, plane, number))
            plane.resolve([*plane.gates][-1], status, "said Ann")
        await plane.until(lambda: len(plane.reports()) == 2)

    asks = plane.of("open_gate")
    answers = said_by(plane).splitlines()[-5:]

    assert looked.evidence == {
        "interfaces": ["lo"],
        "the server itself": "ConnectionRefusedError",
        "another address": "OSError",
        "IPv6": "OSError",
        "a datagram": "OSError",
        "a name": "gaierror",
        "the door": "FileNotFoundError",
        "the bundle": "OSError",
        "the proxy": "done",
    }
    assert [(ask.tool_name, ask.action_name, ask.evidence["path"]) for ask in asks] == [
        ("http", "GET localhost", "/echo"),
        ("http", "GET localhost", "/shut"),
    ], "the same request is asked about once"
    assert answers[0] == answers[1]
    assert "you said Bearer" in answers[0]
    assert "a person was asked and said no: said Ann" in orjson.loads(answers[2])["detail"]
    assert "not found" in answers[3].lower() or answers[3] == "", "of what no rule tells nobody is asked"
    assert "a rule of this agent refuses it" in orjson.loads(answers[4])["detail"]
    assert [path for _, path, _ in server.heard] == ["/echo", "/echo", "/free"]


async def test_programs_of_tools_and_servers_in_the_sandbox_reach_the_same(tmp_path: Path) -> None:
    tools = ToolSettings(mcp_servers={"local": McpServer(command=(PYTHON, "-I", "-c", SANDBOXED))})
    async with open_git_server(tmp_path / "server", TOKEN) as server:
        given = policy(server, tools=["shell", "http_request", "mcp:local"])
        given["network_policy"]["rules"][0] |= {"paths": ["/echo"], "methods": ["GET"]}
        async with open_bench(tmp_path, policy=given, settings=tools, egress=reaching(server)) as bench:
            asked = "curl -sS -H 'Authorization: Bearer ${secrets.hub.token}' https://localhost:$PORT"
            echoed = await bench.call("shell", command=f"{NO_OTHER_NAME}\n{asked}/echo")
            again = await bench.call("shell", command=f"{NO_OTHER_NAME}\n{asked}/other")
            variables = await bench.call("local__env_show")
            address = f"https://localhost:{server.port}"
            outside = await bench.box.call("http_request", {"url": f"{address}/other"}, "1")
            posted = await bench.box.call("http_request", {"url": f"{address}/echo", "method": "POST"}, "2")
            offered = bench.box.tools["shell"].description

    assert f"you said Bearer {MASK}" in echoed
    assert "the path /other is not allowed" in again
    assert {"HTTPS_PROXY", "SSL_CERT_FILE", "SEXTON_SECRET_HUB", "HUB_TOKEN"} <= {*variables.split()}
    assert "the path /other is not allowed for GET at localhost" in outside.content
    assert "the method POST is not allowed at localhost" in posted.content
    assert "localhost" in offered
    assert "$HUB_TOKEN" in offered
    assert TOKEN not in offered
    assert [path for _, path, _ in server.heard] == ["/echo"]
