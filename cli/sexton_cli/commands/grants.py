"""``sexton grants``: which services an agent may use."""

import click

from sexton_cli.caller import Caller
from sexton_cli.client import Client, Row, field
from sexton_cli.commands.options import calling
from sexton_cli.exits import FAILED, Fault
from sexton_cli.lookups import agent_id, agent_names, agent_path, segment, walk, workspace_path
from sexton_cli.output import Column, moment

GRANT = {"grant_id": str, "zombie_id": str, "service": str, "status": str}
STATUSES = ("pending", "approved", "denied", "revoked")
COLUMNS = (
    Column("grant_id", "GRANT"),
    Column("agent", "AGENT", elastic=True),
    Column("service", "SERVICE", elastic=True),
    Column("status", "STATUS"),
    Column("reason", "REASON", spare=True),
    Column("requested", "ASKED", spare=True),
)


@click.group()
def grants() -> None:
    """List, request, approve, deny and revoke grants of services to agents."""


@grants.command("list")
@click.option("--agent", metavar="NAME", help="Only of this agent.")
@click.option("--status", type=click.Choice(STATUSES), help="Only these.")
@calling
def list_(caller: Caller, *, agent: str | None, status: str | None) -> None:
    """List the workspace's grants."""
    with caller.client() as client:
        workspace = workspace_path(caller, client)
        zombie_id = None if agent is None else agent_id(client, workspace, agent)
        rows = [
            row
            for row in walk(client, f"{workspace}/integration-grants", {}, GRANT)
            if zombie_id in {None, row["zombie_id"]} and status in {None, row["status"]}
        ]
        if caller.output.as_json:
            caller.output.document({"items": rows, "total": len(rows)})
            return
        names = agent_names(client, workspace, {row["zombie_id"] for row in rows})
    shown = [
        {
            **row,
            "agent": names.get(row["zombie_id"], row["zombie_id"]),
            "requested": moment(row.get("requested_at")),
        }
        for row in rows
    ]
    caller.output.table(COLUMNS, shown)


@grants.command()
@click.argument("agent")
@click.argument("service")
@click.option("--reason", required=True, help="Why the agent needs it; up to 512 letters.")
@calling
def request(caller: Caller, *, agent: str, service: str, reason: str) -> None:
    """Ask that an AGENT may use a SERVICE; an operator decides."""
    with caller.client() as client:
        path = f"{agent_path(caller, client, agent)}/integration-requests"
        made = client.post(path, {"service": service, "reason": reason})
    if caller.output.as_json:
        caller.output.document(made)
        return
    caller.output.say(f"Grant {field(made, 'grant_id', str)} is {made.get('status')}.")


@grants.command()
@click.argument("grant")
@calling
def approve(caller: Caller, *, grant: str) -> None:
    """Let the agent use the service of this GRANT."""
    _decide(caller, grant, "approved")


@grants.command()
@click.argument("grant")
@calling
def deny(caller: Caller, *, grant: str) -> None:
    """Refuse what this GRANT asks for."""
    _decide(caller, grant, "denied")


@grants.command()
@click.argument("grant")
@calling
def revoke(caller: Caller, *, grant: str) -> None:
    """Take back the GRANT of this id; the next run is lent nothing any more."""
    _decide(caller, grant, "revoked")


def _decide(caller: Caller, grant: str, status: str) -> None:
    with caller.client() as client:
        workspace = workspace_path(caller, client)
        row = _find(client, workspace, grant)
        path = f"{workspace}/zombies/{row['zombie_id']}/integration-grants/{segment(row['grant_id'])}"
        changed = client.patch(path, {"status": status})
    if caller.output.as_json:
        caller.output.document(changed)
        return
    caller.output.say(f"Grant of {row['service']} is {changed.get('status')}.")


def _find(client: Client, workspace: str, grant: str) -> Row:
    for row in walk(client, f"{workspace}/integration-grants", {}, GRANT):
        if row["grant_id"] == grant.lower():
            return row
    raise Fault(f"there is no grant {grant}", "'sexton grants list' shows them.", status=FAILED)
