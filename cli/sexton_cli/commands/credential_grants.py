"""``sexton credentials grants``: which agents may be lent which credentials, and the word on it."""

import click

from sexton_cli.caller import Caller
from sexton_cli.commands.grants import STATUSES
from sexton_cli.commands.options import calling
from sexton_cli.lookups import agent_id, agent_names, agent_path, segment, walk, workspace_path
from sexton_cli.output import Column, moment

GRANT = {"zombie_id": str, "credential": str, "status": str}
COLUMNS = (
    Column("agent", "AGENT", elastic=True),
    Column("credential", "CREDENTIAL", elastic=True),
    Column("status", "STATUS"),
    Column("hosts", "HOSTS", elastic=True),
    Column("tools", "TOOLS", spare=True),
    Column("requested", "ASKED", spare=True),
)


@click.group()
def grants() -> None:
    """List, approve, deny and revoke the lending of credentials to agents."""


@grants.command("list")
@click.option("--agent", metavar="NAME", help="Only of this agent.")
@click.option("--status", type=click.Choice(STATUSES), help="Only these.")
@calling
def list_(caller: Caller, *, agent: str | None, status: str | None) -> None:
    """List which agents may be lent which credentials, and which ask for it."""
    with caller.client() as client:
        workspace = workspace_path(caller, client)
        query = {
            "zombie_id": None if agent is None else agent_id(client, workspace, agent),
            "status": status,
        }
        rows = list(walk(client, f"{workspace}/credential-grants", query, GRANT))
        if caller.output.as_json:
            caller.output.document({"items": rows, "total": len(rows)})
            return
        names = agent_names(client, workspace, {row["zombie_id"] for row in rows})
    shown = [
        {
            **row,
            "agent": names.get(row["zombie_id"], row["zombie_id"]),
            "hosts": ", ".join(row.get("hosts", ())),
            "tools": ", ".join(row.get("tools", ())),
            "requested": moment(row.get("requested_at")),
        }
        for row in rows
    ]
    caller.output.table(COLUMNS, shown)


@grants.command()
@click.argument("agent")
@click.argument("credential")
@calling
def approve(caller: Caller, *, agent: str, credential: str) -> None:
    """Let an AGENT be lent a CREDENTIAL for the hosts and tools that its files name now."""
    _decide(caller, agent, credential, "approved")


@grants.command()
@click.argument("agent")
@click.argument("credential")
@calling
def deny(caller: Caller, *, agent: str, credential: str) -> None:
    """Refuse an AGENT the CREDENTIAL that it asks for."""
    _decide(caller, agent, credential, "denied")


@grants.command()
@click.argument("agent")
@click.argument("credential")
@calling
def revoke(caller: Caller, *, agent: str, credential: str) -> None:
    """Take a CREDENTIAL back from an AGENT; its next events wait."""
    _decide(caller, agent, credential, "revoked")


def _decide(caller: Caller, agent: str, credential: str, status: str) -> None:
    with caller.client() as client:
        path = f"{agent_path(caller, client, agent)}/credential-grants/{segment(credential)}"
        changed = client.patch(path, {"status": status})
    if caller.output.as_json:
        caller.output.document(changed)
        return
    caller.output.say(f"Grant of {credential} to {agent} is {changed.get('status')}.")
