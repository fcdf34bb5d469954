"""Tools of servers elsewhere are tools like any other, and no more trusted."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from sexton_runner.__main__ import read_arguments
from sexton_runner.errors import BadSettings
from sexton_runner.tool_settings import McpServer, ToolSettings, read_tool_settings
from tests.fakes.mcp_server import is_up, open_mcp_server
from tests.worlds.runner import eventually, gone
from tests.worlds.toolbox import open_bench

MARKER = "mcp-marker-4711"
PYTHON = str(Path(sys.executable).resolve())
# Speaks the protocol in twenty lines, with the standard library only: it runs inside the sandbox.
SANDBOXED = f"""
import json, os, socket, sys
MARKER = {MARKER!r}
def answer(ask):
    kind = ask["method"]
    if kind == "initialize":
        return dict(protocolVersion=ask["params"]["protocolVersion"], capabilities=dict(tools=dict()),
                    serverInfo=dict(name="t", version="1"))
    if kind == "tools/list":
        one = dict(name="env.show", description="Shows.", inputSchema=dict(type="object"))
        return dict(tools=[one, dict(one, name="net"), dict(one, name="die")])
    if kind == "tools/call":
        name = ask["params"]["name"]
        if name == "die": os._exit(1)
        if name == "net":
            try: socket.create_connection(("127.0.0.1", 80), 1); text = "reached"
            except OSError as fault: text = type(fault).__name__
        else: text = " ".join(sorted(os.environ)) + " secret-canary-9 " + str(ask["params"]["arguments"])
        return dict(content=[dict(type="text", text=text)])
    return dict()
print("this line is no message", flush=True)
for line in sys.stdin:
    ask = json.loads(line)
    if "id" in ask:
        print(json.dumps(dict(jsonrpc="2.0", id=ask["id"], result=answer(ask))), flush=True)
"""
IN_SANDBOX = ToolSettings(mcp_servers={"local": McpServer(command=(PYTHON, "-I", "-c", SANDBOXED))})


@pytest.fixture(scope="module")
def remote() -> Iterator[str]:
    with open_mcp_server() as address:
        yield address


async def test_a_server_in_the_sandbox_gives_its_tools(tmp_path: Path) -> None:
    policy = {"tools": ["mcp:local", "shell"], "secrets_map": {"a": {"b": "secret-canary-9"}}}
    async with open_bench(tmp_path, policy=policy, settings=IN_SANDBOX) as bench:
        assert set(bench.box.tools) == {"local__env_show", "local__net", "local__die", "shell"}

        told = await bench.call("local__env_show", place="x")
        net = await bench.call("local__net")
        await bench.run.shown()
        started = bench.plane.frames("tool_call_started")

    assert "SEXTON" not in told
    assert "{'place': 'x'}" in told
    assert "secret-canary-9" not in told
    assert net != "reached"
    assert [frame["name"] for frame in started] == ["local__env_show", "local__net"]


async def test_only_the_tools_that_are_named_are_there(tmp_path: Path) -> None:
    policy = {"tools": ["local.net", "local.none"]}
    async with open_bench(tmp_path, policy=policy, settings=IN_SANDBOX) as bench:
        assert set(bench.box.tools) == {"local__net"}

        await bench.run.shown()
        text = "".join(frame["text"] for frame in bench.plane.frames("chunk"))

    assert "UZ-TOOL-005: the MCP server local has no tool none" in text


async def test_a_server_that_dies_is_an_answer_not_the_end(tmp_path: Path) -> None:
    policy = {"tools": ["mcp:local", "shell"]}
    async with open_bench(tmp_path, policy=policy, settings=IN_SANDBOX) as bench:
        died = await bench.box.call("local__die", {}, "c1")
        after = await bench.box.call("local__net", {}, "c2")

        assert "alive" in await bench.call("shell", command="echo alive")

    assert not died.ok
    assert not after.ok


async def test_a_server_that_cannot_be_started_is_told_and_done_without(tmp_path: Path) -> None:
    settings = ToolSettings(mcp_servers={"bad": McpServer(command=("/no/such/server",))})
    async with open_bench(tmp_path, policy={"tools": ["mcp:bad", "shell"]}, settings=settings) as bench:
        assert set(bench.box.tools) == {"shell"}

        await bench.run.shown()
        assert "the MCP server bad cannot be used" in bench.plane.frames("chunk")[0]["text"]


async def test_without_the_models_extra_a_server_is_told_and_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sexton_runner.tools.mcp_session", None)
    settings = ToolSettings(mcp_servers={"here": McpServer(command=("/bin/true",))})
    async with open_bench(tmp_path, policy={"tools": ["mcp:here", "shell"]}, settings=settings) as bench:
        assert set(bench.box.tools) == {"shell"}

        await bench.run.shown()
        assert "the extra models" in bench.plane.frames("chunk")[0]["text"]


async def test_a_server_in_the_sandbox_ends_with_the_run(tmp_path: Path) -> None:
    async with open_bench(tmp_path, policy={"tools": ["mcp:local"]}, settings=IN_SANDBOX) as bench:
        await bench.call("local__net")
    await gone(MARKER)


# The SDK leaves streams of the HTTP client to the collector, and trio complains; they are closed by then.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_server_over_http_gives_its_tools(tmp_path: Path, remote: str) -> None:
    await eventually(partial(is_up, remote))
    settings = ToolSettings(mcp_servers={"herons": McpServer(url=remote, headers={"x-key": "k"})})
    async with open_bench(tmp_path, policy={"tools": ["mcp:herons"]}, settings=settings) as bench:
        told = await bench.call("herons__count", place="fens")
        failed = await bench.box.call("herons__fail", {}, "c1")
        unfit = await bench.box.call("herons__count", {"place": 7}, "c2")

    assert told == "4 herons in fens"
    assert not failed.ok
    assert unfit.content.startswith("the arguments do not fit")


async def test_a_rule_stands_before_a_server_s_tool_as_well(tmp_path: Path) -> None:
    rules = {"rules": [{"tool": "local__*", "action": "*", "behavior": "approve"}]}
    policy = {"tools": ["mcp:local"], "gates": rules}
    async with open_bench(tmp_path, policy=policy, settings=IN_SANDBOX) as bench:
        bench.plane.deaf = False
        assert all(not tool.parallel_safe for tool in bench.box.tools.values())


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"a": {}}', '{"a": {"command": ["x"], "url": "http://x"}}', '{"a": {"url": "x"}}',
             '{"a b": {"url": "http://x"}}', '{"a": {"command": "x"}}', '{"a": {"uri": "http://x"}}'],
)  # fmt: skip
def test_servers_that_cannot_be_read_stop_the_runner_before_it_starts(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "servers.json"
    file.write_text(text)
    monkeypatch.setenv("SEXTON_MCP_SERVERS", str(file))
    with pytest.raises(BadSettings):
        read_arguments(["--base-url", "http://x", "--state-dir", str(tmp_path)])


def test_servers_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    file.write_text('{"a": {"command": ["x", "-y"]}, "b": {"url": "http://x", "headers": {"k": "hidden"}}}')
    read = read_tool_settings({"SEXTON_MCP_SERVERS": str(file)})

    assert read.mcp_servers["a"].command == ("x", "-y")
    assert "hidden" not in repr(read)
