"""``sexton proposals``: lists and decides what agents propose to change about themselves."""

from pathlib import Path

import click

from sexton_cli import short_ids
from sexton_cli.caller import Caller
from sexton_cli.client import Client, field
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.options import calling
from sexton_cli.commands.words import AGENT_WORD
from sexton_cli.exits import FAILED, Fault
from sexton_cli.lookups import agent_id, walk, workspace_path
from sexton_cli.manifests import Files
from sexton_cli.output import Column, moment
from sexton_cli.short_ids import whole_id

PROPOSAL = {"proposal_id": str, "status": str}
COLUMNS = (
    Column("proposal_id", "PROPOSAL"),
    Column("title", "TITLE", elastic=True),
    Column("status", "STATUS"),
    Column("created", "CREATED", spare=True),
    Column("decided", "DECIDED", spare=True),
    Column("decided_by", "BY", spare=True),
)


@noun()
def proposals() -> None:
    """List, show, make, approve and reject an agent's proposals."""


@proposals.command("list")
@click.argument("agent", type=AGENT_WORD)
@calling
def list_(caller: Caller, *, agent: str) -> None:
    """List the proposals of an AGENT."""
    with caller.client() as client:
        rows = list(walk(client, _path(caller, client, agent), {}, PROPOSAL))
    if caller.output.as_json:
        caller.output.document({"items": rows, "total": len(rows)})
        return
    caller.output.table(
        COLUMNS,
        [
            {**row, "created": moment(row.get("created_at")), "decided": moment(row.get("decided_at"))}
            for row in rows
        ],
    )


@proposals.command()
@click.argument("agent", type=AGENT_WORD)
@click.argument("proposal")
@calling
def show(caller: Caller, *, agent: str, proposal: str) -> None:
    """Show a PROPOSAL of an AGENT: what it would change, line by line, and why."""
    with caller.client() as client:
        found = client.get(_one(caller, client, agent, proposal))
    if caller.output.as_json:
        caller.output.document(found)
        return
    caller.output.facts(
        {
            "proposal": found.get("proposal_id"),
            "title": found.get("title"),
            "status": found.get("status"),
            "why": found.get("rationale"),
            "rejected for": found.get("rejection_reason"),
            "created": moment(found.get("created_at")),
            "decided": moment(found.get("decided_at")),
            "by": found.get("decided_by"),
        }
    )
    caller.output.changes(str(found.get("diff") or ""))


@proposals.command()
@click.argument("agent", type=AGENT_WORD)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
@click.option("--title", required=True, help="What changes, in a few words.")
@click.option("--rationale", default="", help="Why.")
@calling
def create(caller: Caller, *, agent: str, folder: Path, title: str, rationale: str) -> None:
    """Propose that an AGENT gets the files of DIR; somebody else may approve it."""
    body = {"title": title, "rationale": rationale, **Files(folder).body()}
    with caller.client() as client:
        made = client.post(_path(caller, client, agent), body)
    caller.output.thing(made, field(made, "proposal_id", str))


@proposals.command()
@click.argument("agent", type=AGENT_WORD)
@click.argument("proposal")
@calling
def approve(caller: Caller, *, agent: str, proposal: str) -> None:
    """Apply a PROPOSAL to its AGENT, unless the agent has changed since, or it does not compile."""
    with caller.client() as client:
        outcome = client.post(f"{_one(caller, client, agent, proposal)}:approve", {})
    status = field(outcome, "status", str)
    if caller.output.as_json:
        caller.output.document(outcome)
    elif status == "APPLIED":
        caller.output.say(f"Proposal {proposal} is applied.")
    if status == "CONFIG_CHANGED":
        way_out = "Look at the agent as it is now; it may propose again."
        raise Fault("the agent was changed after this was proposed", way_out, status=FAILED)
    if status != "APPLIED":
        raise Fault(f"the proposal is {status}: {outcome.get('rejection_reason')}", status=FAILED)


@proposals.command()
@click.argument("agent", type=AGENT_WORD)
@click.argument("proposal")
@click.option("--reason", required=True, help="Told to the agent with its next work.")
@calling
def reject(caller: Caller, *, agent: str, proposal: str, reason: str) -> None:
    """Reject a PROPOSAL of an AGENT."""
    with caller.client() as client:
        path = f"{_one(caller, client, agent, proposal)}:reject"
        outcome = client.post(path, {"rejection_reason": reason})
    if caller.output.as_json:
        caller.output.document(outcome)
        return
    caller.output.say(f"Proposal {proposal} is rejected.")


def _path(caller: Caller, client: Client, agent: str) -> str:
    return f"/v1/agents/{agent_id(client, workspace_path(caller, client), agent)}/proposals"


def _one(caller: Caller, client: Client, agent: str, proposal: str) -> str:
    """Where the proposal of this id, or of this part of one, stands."""
    path = _path(caller, client, agent)
    return f"{path}/{whole_id(proposal, short_ids.PROPOSAL, walk(client, path, {}, PROPOSAL))}"
