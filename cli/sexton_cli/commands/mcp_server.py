"""``sexton mcp-server``: the MCP servers that a workspace declares for its agents."""

from collections.abc import Sequence
from typing import Any

import click

from sexton_cli.caller import Caller
from sexton_cli.client import Row, rows
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.options import calling
from sexton_cli.exits import USAGE, Fault
from sexton_cli.lookups import segment, workspace_path
from sexton_cli.output import Column, moment

SERVER = {"name": str}
COLUMNS = (
    Column("name", "NAME"),
    Column("at", "AT", elastic=True),
    Column("tools", "TOOLS", elastic=True),
    Column("headers", "HEADERS", spare=True),
    Column("updated", "CHANGED", spare=True),
)


@noun("mcp-server")
def mcp_server() -> None:
    """List, set and remove the MCP servers that the workspace gives its agents."""


@mcp_server.command("list")
@calling
def list_(caller: Caller) -> None:
    """List the servers; where they are is shown to operators and above."""
    with caller.client() as client:
        found = rows(client.get(f"{workspace_path(caller, client)}/mcp-servers"), SERVER)
    if caller.output.as_json:
        caller.output.document({"items": found, "total": len(found)})
        return
    caller.output.table(COLUMNS, [_shown(row) for row in found])


@mcp_server.command("set")
@click.argument("name")
@click.option("--url", default="", metavar="URL", help="Where it is, such as https://mcp.example.com/mcp.")
@click.option(
    "--runner-server",
    "command",
    default="",
    metavar="NAME",
    help="In place of a URL: a server that runners offer, which is run in the sandbox.",
)
@click.option(
    "--header",
    "headers",
    metavar="NAME=VALUE",
    multiple=True,
    help="Sent to the URL, such as 'authorization=Bearer ${secrets.tracker.token}'; may be given again.",
)
@click.option("--env", metavar="NAME=VALUE", multiple=True, help="A variable of the server that is run.")
@click.option(
    "--tool", "tools", metavar="TOOL", multiple=True, help="A tool that agents may use. Without it, all."
)
@calling
def set_(
    caller: Caller,
    *,
    name: str,
    url: str,
    command: str,
    headers: tuple[str, ...],
    env: tuple[str, ...],
    tools: tuple[str, ...],
) -> None:
    """Declare the server of this NAME, in place of one that is there.

    Secrets never stand on the command line: name the credential and its field, and the runner's proxy puts it
    in on the way to the server's own host.
    """
    body: dict[str, Any] = {
        "url": url,
        "command": command,
        "headers": _pairs("--header", headers),
        "env": _pairs("--env", env),
        "tools": tools,
    }
    with caller.client() as client:
        kept = client.put(f"{workspace_path(caller, client)}/mcp-servers/{segment(name)}", body)
    if caller.output.as_json:
        caller.output.document(kept)
        return
    caller.output.say(
        f"Declared MCP server {name}. An agent uses it by `mcp_servers: [{name}]` in TRIGGER.md."
    )


@mcp_server.command()
@click.argument("name")
@calling
def remove(caller: Caller, *, name: str) -> None:
    """Remove the server of this NAME; runs of agents that name it do not start any more."""
    with caller.client() as client:
        client.delete(f"{workspace_path(caller, client)}/mcp-servers/{segment(name)}")
    if caller.output.as_json:
        caller.output.document({"name": name, "deleted": True})
        return
    caller.output.say(f"Removed MCP server {name}.")


def _pairs(option: str, given: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise Fault(f"{option} {text!r} is not NAME=VALUE", status=USAGE)
        found[name] = value
    return found


def _shown(row: Row) -> dict[str, Any]:
    at = row.get("url") or (f"runner: {row['command']}" if row.get("command") else "")
    return {
        **row,
        "at": at,
        "tools": ", ".join(row.get("tools") or ()) or "all",
        "headers": ", ".join(row.get("headers") or ()),
        "updated": moment(row.get("updated_at")),
    }
