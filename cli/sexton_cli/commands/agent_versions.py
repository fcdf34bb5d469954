"""``sexton agent versions``, ``diff`` and ``roll-back``: what an agent's files were, and are again."""

import click

from sexton_cli.caller import Caller
from sexton_cli.client import Client, Row
from sexton_cli.commands.command import command
from sexton_cli.commands.options import calling, sure, yes
from sexton_cli.commands.words import AGENT_WORD
from sexton_cli.exits import USAGE, Fault
from sexton_cli.id_parts import is_id
from sexton_cli.lookups import agent_id, walk, with_query, workspace_path
from sexton_cli.output import Column, moment

VERSION = {"config_version_id": str, "version": int, "status": str}
COLUMNS = (
    Column("version", "VERSION"),
    Column("status", "STATUS"),
    Column("config_version_id", "ID"),
    Column("created", "CREATED", spare=True),
)


@command()
@click.argument("name", metavar="AGENT", type=AGENT_WORD)
@calling
def versions(caller: Caller, *, name: str) -> None:
    """List the versions of an agent's files, newest first."""
    with caller.client() as client:
        workspace = workspace_path(caller, client)
        query = {"agent_id": agent_id(client, workspace, name)}
        rows = list(walk(client, f"{workspace}/harness/versions", query, VERSION))
    if caller.output.as_json:
        caller.output.document({"items": rows, "total": len(rows)})
        return
    caller.output.table(COLUMNS, [{**row, "created": moment(row.get("created_at"))} for row in rows])


@command()
@click.argument("name", metavar="AGENT", type=AGENT_WORD)
@click.argument("version")
@click.option("--against", metavar="VERSION", help="Compare with this one. [default: the active one]")
@click.option("--files", is_flag=True, help="Print its SKILL.md and TRIGGER.md, and compare nothing.")
@calling
def diff(caller: Caller, *, name: str, version: str, against: str | None, files: bool) -> None:
    """Show what a VERSION (its number or id) of an agent's files would change of the active one."""
    with caller.client() as client:
        workspace = workspace_path(caller, client)
        wanted = id_of_version(client, workspace, name, version)
        other = None if against is None else id_of_version(client, workspace, name, against)
        found = client.get(with_query(f"{workspace}/harness/versions/{wanted}", {"against": other}))
    if caller.output.as_json:
        caller.output.document(found)
    elif files:
        caller.output.piece(f"{found.get('source_markdown')}\n{found.get('trigger_markdown')}\n")
    elif found.get("diff"):
        caller.output.changes(str(found.get("diff")))
    else:
        caller.output.say("The files are the same.")


@command(name="roll-back")
@click.argument("name", metavar="AGENT", type=AGENT_WORD)
@click.argument("version")
@yes
@calling
def roll_back(caller: Caller, *, name: str, version: str, yes: bool) -> None:
    """Make a VERSION (its number or id) of an agent's files the active one again, from its next lease on."""
    sure(caller, f"Have agent {name} work by version {version} again?", yes=yes)
    done = make_active(caller, name, version)
    caller.output.thing(done, f"Agent {name} works by version {version} from its next lease on.")


def make_active(caller: Caller, name: str, version: str) -> Row:
    """Have an agent work by a version that is named by its number or id; what the server says of it."""
    with caller.client() as client:
        workspace = workspace_path(caller, client)
        body = {"config_version_id": id_of_version(client, workspace, name, version)}
        return client.post(f"{workspace}/harness/activate", body)


def version_number(caller: Caller, client: Client, name: str, version: str) -> int:
    """The number of a version that is named by its number or id. Raises Fault where there is none."""
    if not is_id(version):
        if version.isascii() and version.isdigit():
            return int(version)
        raise _unknown(name, version)
    workspace = workspace_path(caller, client)
    query = {"agent_id": agent_id(client, workspace, name)}
    for row in walk(client, f"{workspace}/harness/versions", query, VERSION):
        if row["config_version_id"] == version:
            return int(row["version"])
    raise _unknown(name, version)


def id_of_version(client: Client, workspace: str, name: str, version: str) -> str:
    """The id of a version that is named by its number or id. Raises Fault where there is none."""
    if is_id(version):
        return version
    query = {"agent_id": agent_id(client, workspace, name)}
    for row in walk(client, f"{workspace}/harness/versions", query, VERSION):
        if str(row["version"]) == version:
            return str(row["config_version_id"])
    raise _unknown(name, version)


def _unknown(name: str, version: str) -> Fault:
    return Fault(
        f"agent {name} has no version {version!r}",
        f"'sexton agent versions {name}' lists them.",
        status=USAGE,
    )
