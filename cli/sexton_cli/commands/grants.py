"""``sexton grants``: which services an agent may use."""

from collections.abc import Sequence

import click

from sexton_cli import short_ids
from sexton_cli.caller import Caller
from sexton_cli.client import Client, field
from sexton_cli.commands.grant_decisions import add_decisions, add_list
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.options import calling
from sexton_cli.commands.words import AGENT_WORD
from sexton_cli.exits import FAILED, Fault
from sexton_cli.lookups import agent_path, segment, walk, workspace_path
from sexton_cli.output import Column
from sexton_cli.short_ids import id_in

GRANT = {"grant_id": str, "zombie_id": str, "service": str, "status": str}
COLUMNS = (
    Column("grant_id", "GRANT"),
    Column("agent", "AGENT", elastic=True),
    Column("service", "SERVICE", elastic=True),
    Column("status", "STATUS"),
    Column("reason", "REASON", spare=True),
    Column("requested", "ASKED", spare=True),
)


@noun()
def grants() -> None:
    """List, request, approve, deny and revoke grants of services to agents."""


@grants.command()
@click.argument("agent", type=AGENT_WORD)
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


def _find(caller: Caller, client: Client, given: Sequence[str]) -> tuple[str, str]:
    """Raises Fault."""
    [grant] = given
    workspace = workspace_path(caller, client)
    wanted = id_in(client, workspace, short_ids.GRANT, grant)
    for row in walk(client, f"{workspace}/integration-grants", {}, GRANT):
        if row["grant_id"] == wanted:
            path = f"{workspace}/zombies/{row['zombie_id']}/integration-grants/{segment(row['grant_id'])}"
            return path, str(row["service"])
    raise Fault(f"there is no grant {grant}", "'sexton grants list' shows them.", status=FAILED)


add_list(grants, "integration-grants", GRANT, COLUMNS, "List the workspace's grants.")
add_decisions(
    grants,
    ("grant",),
    _find,
    {
        "approve": "Let the agent use the service of this GRANT.",
        "deny": "Refuse what this GRANT asks for.",
        "revoke": "Take back the GRANT of this id; the next run is lent nothing any more.",
    },
)
