"""Servers that a workspace declares: reached by a proxy that holds their secrets, or no run at all."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest

from sexton_runner.egress_settings import EgressSettings
from sexton_runner.errors import ToolsMissing
from sexton_runner.redact import MASK, forms
from sexton_runner.tool_settings import McpServer, ToolSettings
from tests.fakes.mcp_server import is_up, open_mcp_server
from tests.fakes.model_servers import Call, Say, open_model
from tests.runner.test_runner_mcp import PYTHON, SANDBOXED
from tests.worlds.runner import eventually
from tests.worlds.runner_agents import give, reported, runner_with
from tests.worlds.toolbox import Bench, open_bench

TOKEN = "canary-3f8a1c77d2e94b"
OFFERED = ToolSettings(mcp_servers={"local": McpServer(command=(PYTHON, "-I", "-c", SANDBOXED))})
# The SDK leaves streams of the HTTP client to the collector, and trio complains; they are closed by then.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with open_mcp_server(TOKEN) as url:
        yield url


def declared(url: str, **changes: Any) -> dict[str, Any]:
    return {
        "name": "herons",
        "url": url,
        "headers": {"authorization": "Bearer ${secrets.hub.token}"},
        "secrets": {"hub.token": TOKEN},
        **changes,
    }


def reaching(url: str) -> EgressSettings:
    return EgressSettings(private_hosts=frozenset({urlsplit(url).netloc}))


def using(server: dict[str, Any], *tools: str, **more: Any) -> dict[str, Any]:
    return {"tools": [*(tools or ("mcp:herons",))], "mcp_servers": [server], **more}


async def why_not(folder: Path, policy: dict[str, Any], egress: EgressSettings) -> str:
    """Say why the run did not begin."""
    folder.mkdir()
    fault: BaseException | None = None
    try:
        async with open_bench(folder, policy=policy, egress=egress):
            pass
    except* ToolsMissing as group:
        fault = group
    while isinstance(fault, BaseExceptionGroup):
        fault = fault.exceptions[0]
    return str(fault)


async def everything_of(bench: Bench) -> str:
    await bench.run.shown()
    return orjson.dumps(bench.plane.frames()).decode()


async def test_the_server_is_sent_its_secret_which_no_part_of_the_run_has(
    tmp_path: Path, address: str
) -> None:
    await eventually(partial(is_up, address))
    rules = {"rules": [{"tool": "herons__fail", "action": "*", "behavior": "deny"}]}
    policy = using(declared(address, tools=["count", "who_am_i", "fail"]), "mcp:herons", "shell", gates=rules)
    async with open_bench(tmp_path, policy=policy, egress=reaching(address)) as bench:
        told = await bench.call("herons__count", place="fens")
        echoed = await bench.call("herons__who_am_i")
        denied = await bench.box.call("herons__fail", {}, "c1")
        assert bench.run.servers is not None

        headers = str(bench.run.servers.headers)
        shell = await bench.call("shell", command="env; cat /run/sexton/* 2>/dev/null; cat /proc/net/dev")
        everything = await everything_of(bench)
        connections = bench.plane.frames("connection")
        names = set(bench.box.tools)

    assert names == {"herons__count", "herons__who_am_i", "herons__fail", "shell"}
    assert told == "4 herons in fens"
    assert f"Bearer {MASK}" in echoed
    assert f"({len(TOKEN) + len('Bearer ')} characters)" in echoed, "the very secret came to the server"
    assert "a rule of this agent refuses it" in denied.content
    assert "Bearer sxt_" in headers
    assert "proxy" not in shell.lower(), "what the server is reached by is not the programs'"
    assert not [form for form in forms(TOKEN) if form in everything + told + echoed + shell + headers]
    assert {(one["host"], one["path"], one["verdict"]) for one in connections} == {
        ("127.0.0.1", "/mcp", "allowed")
    }


async def test_a_run_without_its_server_does_not_begin_and_says_why(tmp_path: Path, address: str) -> None:
    await eventually(partial(is_up, address))
    nobody = "http://127.0.0.1:9/mcp"
    lent = declared(address)
    whys = [
        await why_not(tmp_path / "a", using(declared(nobody)), reaching(nobody)),
        await why_not(tmp_path / "b", using(lent), EgressSettings()),
        await why_not(tmp_path / "c", using({**lent, "secrets": {"hub.token": "wrong"}}), reaching(address)),
        await why_not(tmp_path / "d", using(lent, "herons.count", "herons.none"), reaching(address)),
        await why_not(tmp_path / "e", using({**lent, "tools": ["count"]}, "herons.fail"), reaching(address)),
        await why_not(tmp_path / "f", using({**lent, "secrets": {"hub.token": "a\nb"}}), reaching(address)),
        await why_not(tmp_path / "g", using({"name": "herons", "command": "no-such"}), EgressSettings()),
    ]

    for why, part in zip(
        whys,
        [
            "the MCP server herons cannot be used: no connection to 127.0.0.1:9",
            "which a run must not reach",
            "it answered HTTP 401",
            "UZ-TOOL-005: the MCP server herons has no tool none",
            "UZ-TOOL-005: the MCP server herons has no tool fail",
            "holds what no header can hold",
            "this runner does not offer the MCP server no-such",
        ],
        strict=True,
    ):
        assert part in why
        assert TOKEN not in why


async def test_a_command_is_run_with_what_the_workspace_says_and_placeholders_only(tmp_path: Path) -> None:
    server = {
        "name": "mine",
        "command": "local",
        "env": {"LEVEL": "debug", "KEY": "${secrets.hub.token}"},
        "tools": ["env.show"],
    }
    policy = using(
        server,
        "mcp:mine",
        secrets_map={"hub": {"token": TOKEN}},
        secret_hosts={"hub": ["a.example.com"]},
        network_policy={"allow": ["a.example.com"]},
    )
    async with open_bench(tmp_path, policy=policy, settings=OFFERED) as bench:
        names = set(bench.box.tools)
        variables = await bench.call("mine__env_show")

    assert names == {"mine__env_show"}
    assert {"LEVEL", "KEY"} <= {*variables.split()}


async def test_a_runner_asks_no_model_before_the_servers_of_the_run_are_there(
    tmp_path: Path, address: str
) -> None:
    await eventually(partial(is_up, address))
    asking = (Say(calls=[Call("herons__who_am_i", {})]), Say("Done."))
    async with (
        open_model("anthropic", *asking) as model,
        runner_with(model, tmp_path, egress=reaching(address)) as plane,
    ):
        give(plane, model, policy=using(declared("http://127.0.0.1:9/mcp")))
        lacking = await reported(plane)
        assert model.asked == []

        give(plane, model, policy=using(declared(address)))
        done = await reported(plane, 2)
        said = str(model.asked)

    assert (lacking.outcome, lacking.failure_reason) == ("agent_error", "run_start")
    assert "the MCP server herons cannot be used" in lacking.response_text
    assert (done.outcome, done.response_text) == ("processed", "Done.")
    assert MASK in said
    assert f"({len(TOKEN) + len('Bearer ')} characters)" in said
    assert TOKEN not in said
