"""``sexton approvals``: lists what waits for a person, and approves or denies it."""

import click
import orjson

from sexton_cli.caller import Caller
from sexton_cli.client import Row
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.listing_group import ListingGroup
from sexton_cli.commands.options import calling
from sexton_cli.commands.words import AGENT_WORD, APPROVAL_WORD
from sexton_cli.lookups import agent_id, first_of, walk, workspace_path
from sexton_cli.output import Column, moment, span
from sexton_cli.short_ids import APPROVAL, path_of

GATE = {"gate_id": str, "status": str}
COLUMNS = (
    Column("gate_id", "APPROVAL"),
    Column("zombie_name", "AGENT", elastic=True),
    Column("status", "STATUS"),
    Column("asked", "ASKS FOR", spare=True),
    Column("waits", "WAITS FOR", spare=True),
    Column("requested", "ASKED", spare=True),
)
DECIDED = (
    *COLUMNS[:4],
    Column("by", "BY", elastic=True),
    Column("decided", "DECIDED", spare=True),
    Column("detail", "WHY", spare=True),
)
DECIDED_SHOWN = 100
"""The last decisions, of as many as there may be."""


@noun("approvals", cls=ListingGroup)
def approvals() -> None:
    """List, show, approve and deny what agents ask people for."""


@approvals.command("list")
@click.option(
    "--status",
    type=click.Choice(["pending", "approved", "denied", "timed_out", "auto_killed", "all"]),
    default="pending",
    show_default=True,
    help="Only these.",
)
@click.option("--agent", metavar="NAME", type=AGENT_WORD, help="Only of this agent.")
@click.option("--kind", "gate_kind", help="Only of this kind.")
@click.option(
    "--decided", is_flag=True, help=f"The last {DECIDED_SHOWN} decisions, newest first, of any status."
)
@calling
def list_(caller: Caller, *, status: str, agent: str | None, gate_kind: str | None, decided: bool) -> None:
    """List what waits, oldest first, or what was decided last. The word ``list`` may be left out."""
    with caller.client() as client:
        workspace = workspace_path(caller, client)
        query = {
            "status": None if status == "all" or decided else status,
            "order": "decided" if decided else None,
            "zombie_id": None if agent is None else agent_id(client, workspace, agent),
            "gate_kind": gate_kind,
        }
        path = f"{workspace}/approvals"
        rows = (
            first_of(client, path, query, GATE, DECIDED_SHOWN).items
            if decided
            else list(walk(client, path, query, GATE))
        )
    if caller.output.as_json:
        caller.output.document({"items": rows, "total": len(rows)})
        return
    caller.output.table(DECIDED if decided else COLUMNS, [_shown(row) for row in rows])


def _shown(row: Row) -> dict[str, object]:
    requested, timeout = row.get("requested_at"), row.get("timeout_at")
    # By its own times, so that this machine's clock does not matter.
    given = timeout - requested if isinstance(requested, int) and isinstance(timeout, int) else None
    return {
        **row,
        "asked": row.get("proposed_action") or f"{row.get('tool_name')} {row.get('action_name')}",
        "waits": span(given) if row["status"] == "pending" else None,
        "requested": moment(requested),
        "by": row.get("resolved_by"),
        "decided": moment(row.get("updated_at")),
    }


@approvals.command()
@click.argument("approval", type=APPROVAL_WORD)
@calling
def show(caller: Caller, *, approval: str) -> None:
    """Show the APPROVAL of this id with all that the agent says for it."""
    with caller.client() as client:
        gate = client.get(path_of(caller, client, APPROVAL, approval))
    if caller.output.as_json:
        caller.output.document(gate)
        return
    evidence: Row = gate.get("evidence") or {}
    # A diff or a program is judged line by line, which JSON in one line does not let a person do.
    texts = {name: text for name, text in evidence.items() if isinstance(text, str) and "\n" in text}
    rest = {name: value for name, value in evidence.items() if name not in texts}
    event = evidence if gate.get("gate_kind") == "event" else {}
    caller.output.facts(
        {
            "approval": gate.get("gate_id"),
            "agent": f"{gate.get('zombie_name') or ''} ({gate.get('zombie_id')})".strip(),
            "status": gate.get("status"),
            "tool": gate.get("tool_name") or None,
            "action": gate.get("action_name") or None,
            "kind": gate.get("gate_kind") or None,
            "asks for": gate.get("proposed_action") or None,
            "from": event.get("sender"),
            "message": event.get("message"),
            "link": event.get("url"),
            "reach": gate.get("blast_radius") or None,
            "evidence": orjson.dumps(rest).decode() if rest else None,
            "asked": moment(gate.get("requested_at")),
            "times out": moment(gate.get("timeout_at")) if gate.get("status") == "pending" else None,
            "resolved": moment(gate.get("updated_at")),
            "by": gate.get("resolved_by"),
            "reason": gate.get("detail") or None,
        }
    )
    for name, text in texts.items():
        caller.output.say(f"{name}:")
        for line in text.removesuffix("\n").split("\n"):
            caller.output.say(f"  {line.expandtabs()}")


@approvals.command()
@click.argument("approval", type=APPROVAL_WORD)
@click.option("--reason", default="", help="The reason, for the agent; at most 4096 characters.")
@calling
def approve(caller: Caller, *, approval: str, reason: str) -> None:
    """Let what waits at the APPROVAL of this id go on."""
    _resolve(caller, approval, "approve", reason)


@approvals.command()
@click.argument("approval", type=APPROVAL_WORD)
@click.option("--reason", default="", help="The reason, for the agent; at most 4096 characters.")
@calling
def deny(caller: Caller, *, approval: str, reason: str) -> None:
    """Refuse what waits at the APPROVAL of this id."""
    _resolve(caller, approval, "deny", reason)


def _resolve(caller: Caller, approval: str, verb: str, reason: str) -> None:
    with caller.client() as client:
        path = f"{path_of(caller, client, APPROVAL, approval)}:{verb}"
        outcome = client.post(path, {"reason": reason})
    if caller.output.as_json:
        caller.output.document(outcome)
        return
    caller.output.say(f"Approval {outcome.get('gate_id')} is {outcome.get('outcome')}.")
