"""``sexton workspace``: the tenant's workspaces, and which of them is in use."""

import click
import msgspec

from sexton_cli.caller import Caller
from sexton_cli.client import Client, Row, field
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.options import calling
from sexton_cli.commands.table import WORKSPACE
from sexton_cli.commands.words import WORKSPACE_WORD
from sexton_cli.id_parts import is_id
from sexton_cli.identity import pick_workspace, workspace_in_use, workspaces_of
from sexton_cli.output import Column, moment

COLUMNS = (
    Column("in_use", ""),
    Column("name", "NAME", elastic=True),
    Column("workspace_id", "ID"),
    Column("plan_tier", "PLAN", spare=True),
    Column("paused", "PAUSED", spare=True),
    Column("created", "CREATED", spare=True),
)


@noun(late=WORKSPACE)
def workspace() -> None:
    """List, make, choose, show, rename and pause workspaces, and make them as files say."""


@workspace.command("list")
@calling
def list_(caller: Caller) -> None:
    """List the workspaces that the token reaches."""
    with caller.client() as client:
        rows = workspaces_of(client)
    in_use = workspace_in_use(rows, given=caller.given_workspace, kept=caller.kept.workspace_id)
    used = set() if in_use is None else {in_use["workspace_id"]}
    if caller.output.as_json:
        items = [{**row, "in_use": row["workspace_id"] in used} for row in rows]
        caller.output.document({"items": items, "total": len(items)})
        return
    shown = [
        {
            **row,
            "in_use": "*" if row["workspace_id"] in used else "",
            "created": moment(row.get("created_at")),
        }
        for row in rows
    ]
    caller.output.table(COLUMNS, shown)


@workspace.command()
@click.argument("name", required=False)
@click.option("--use", "then_use", is_flag=True, help="Use it from now on.")
@calling
def create(caller: Caller, *, name: str | None, then_use: bool) -> None:
    """Make a workspace; without NAME the server makes one up."""
    with caller.client() as client:
        made = client.post("/v1/workspaces", {} if name is None else {"name": name})
    workspace_id = field(made, "workspace_id", str)
    if then_use:
        _keep(caller, workspace_id)
    if caller.output.as_json:
        caller.output.document({**made, "in_use": then_use})
        return
    used = ", now in use" if then_use else ""
    caller.output.say(f"Made workspace {made.get('name')} ({workspace_id}){used}.")


@workspace.command()
@click.argument("name", type=WORKSPACE_WORD)
@calling
def use(caller: Caller, *, name: str) -> None:
    """Use the workspace of this NAME or id from now on."""
    with caller.client() as client:
        row = _find(client, name)
    _keep(caller, str(row["workspace_id"]))
    if caller.output.as_json:
        caller.output.document({"workspace_id": row["workspace_id"], "name": row.get("name")})
        return
    caller.output.say(f"Using workspace {row.get('name')} ({row['workspace_id']}).")


@workspace.command()
@click.argument("name", type=WORKSPACE_WORD)
@calling
def show(caller: Caller, *, name: str) -> None:
    """Show the workspace of this NAME or id."""
    with caller.client() as client:
        found = client.get(f"/v1/workspaces/{_find(client, name)['workspace_id']}")
    _tell(caller, found)


@workspace.command()
@click.argument("name", type=WORKSPACE_WORD)
@click.argument("new_name")
@calling
def rename(caller: Caller, *, name: str, new_name: str) -> None:
    """Give the workspace of this NAME or id a NEW_NAME."""
    _change(caller, name, {"name": new_name})


@workspace.command()
@click.argument("name", type=WORKSPACE_WORD)
@calling
def pause(caller: Caller, *, name: str) -> None:
    """Let nothing new start in the workspace of this NAME or id; its events wait."""
    _change(caller, name, {"paused": True})


@workspace.command()
@click.argument("name", type=WORKSPACE_WORD)
@calling
def resume(caller: Caller, *, name: str) -> None:
    """Let the workspace of this NAME or id go on."""
    _change(caller, name, {"paused": False})


def _change(caller: Caller, name: str, body: Row) -> None:
    with caller.client() as client:
        changed = client.patch(f"/v1/workspaces/{_find(client, name)['workspace_id']}", body)
    _tell(caller, changed)


def _tell(caller: Caller, found: Row) -> None:
    caller.output.thing(
        found,
        {
            "workspace": f"{found.get('name')} ({found.get('workspace_id')})",
            "plan": found.get("plan_tier"),
            "paused": found.get("paused"),
            "created": moment(found.get("created_at")),
        },
    )


def _find(client: Client, wanted: str) -> Row:
    """The server itself says what it thinks of an id; a name is looked up."""
    if is_id(wanted):
        found = client.get(f"/v1/workspaces/{wanted}")
        field(found, "workspace_id", str)
        return found
    return pick_workspace(workspaces_of(client), wanted)


def _keep(caller: Caller, workspace_id: str) -> None:
    caller.keep(lambda kept: msgspec.structs.replace(kept, workspace_id=workspace_id))
