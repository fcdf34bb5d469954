"""``sexton mcp``: how an assistant connects to the server, and a way there over standard input and output."""

import os
import sys
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlencode

import click
import msgspec

from sexton_cli.caller import Caller
from sexton_cli.commands.command import command
from sexton_cli.commands.options import calling
from sexton_cli.exits import OK
from sexton_cli.lookups import workspace_path
from sexton_cli.mcp_bridge import LINE_BYTES, Bridge
from sexton_cli.variables import TOKEN_VARIABLE

PATH: Final = "/mcp"


@command()
@click.option("--stdio", is_flag=True, help="Be the MCP server of an assistant that starts this command.")
@click.option("--write", is_flag=True, help="Offer tools that change something, too.")
@click.option("--all-tools", is_flag=True, help="Offer every tool that the token may use.")
@calling
def mcp(caller: Caller, *, stdio: bool, write: bool, all_tools: bool) -> None:
    """Say how an assistant connects to the server by MCP; or be its way there, with --stdio.

    With --stdio the assistant uses the sign-in that is kept on this machine, and needs no key of its own.
    Without --write an assistant can look at everything that you can look at, and change nothing.
    """
    options = {"write": "1"} if write else {}
    options |= {"tools": "all"} if all_tools else {}
    if stdio:
        _carry(caller, options)
        return
    words = [*(["--write"] if write else []), *(["--all-tools"] if all_tools else [])]
    document = ways(f"{caller.base_url}{_address(options)}", caller.base_url, words)
    if caller.output.as_json:
        caller.output.document(document)
        return
    caller.output.say(spelled(document))


def ways(url: str, base_url: str, words: list[str]) -> dict[str, Any]:
    """The settings of well-known assistants, each by standard input and output and by the address."""
    args = ["mcp", "--stdio", *words, "--base-url", base_url]
    bearer = "Bearer ${%s}"
    by_address = {"type": "http", "url": url, "headers": {"Authorization": bearer % "input:sexton-key"}}
    ask = {"type": "promptString", "id": "sexton-key", "description": "Sexton API key", "password": True}
    return {
        "url": url,
        "stdio": {"command": "sexton", "args": args},
        "claude_code": {
            "stdio": f"claude mcp add sexton -- sexton {' '.join(args)}",
            "http": f'claude mcp add --transport http sexton "{url}"'
            f' --header "Authorization: Bearer ${TOKEN_VARIABLE}"',
        },
        "vscode": {
            "inputs": [ask],
            "servers": {"sexton": by_address},
        },
        "cursor": {
            "mcpServers": {
                "sexton": {"url": url, "headers": {"Authorization": bearer % f"env:{TOKEN_VARIABLE}"}}
            }
        },
    }


def spelled(document: dict[str, Any]) -> str:
    """The same for a person."""
    code, started = document["claude_code"], document["stdio"]
    return "\n".join(
        [
            f"The MCP endpoint is {document['url']}",
            "",
            "Claude Code, as whoever is signed in on this machine, or with a key:",
            f"  {code['stdio']}",
            f"  {code['http']}",
            "",
            "VS Code, in .vscode/mcp.json:",
            _json(document["vscode"]),
            "",
            "Cursor, in ~/.cursor/mcp.json:",
            _json(document["cursor"]),
            "",
            f"Any other that starts a command: {started['command']} {' '.join(started['args'])}",
        ]
    )


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _address(options: dict[str, str]) -> str:
    return f"{PATH}?{urlencode(options)}" if options else PATH


def _carry(caller: Caller, options: dict[str, str]) -> None:
    """Until the assistant closes standard input."""
    out = sys.stdout.buffer
    with caller.client() as client:
        if caller.given_workspace or caller.kept.workspace_id:
            options["workspace"] = workspace_path(caller, client).rpartition("/")[2]

        def write(message: bytes) -> None:
            out.write(message + b"\n")
            out.flush()

        try:
            Bridge(client, _address(options), write).run(_lines())
        except BrokenPipeError:
            # The assistant is gone; threads may still wait for answers that nobody reads.
            os._exit(OK)


def _lines() -> Iterator[bytes]:
    """Lines of standard input; of one that is too long the rest is read and dropped."""
    source = sys.stdin.buffer
    while line := source.readline(LINE_BYTES + 2):
        whole = line.endswith(b"\n")
        yield line
        while not whole:
            rest = source.readline(LINE_BYTES)
            whole = not rest or rest.endswith(b"\n")
