"""``sexton score`` and ``sexton scoring``: how runs were scored, and how much of it agents see."""

from typing import Final

import click

from sexton_cli.caller import Caller
from sexton_cli.client import Row, field
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.options import calling
from sexton_cli.commands.words import AGENT_WORD
from sexton_cli.lookups import agent_id, first_of, workspace_path
from sexton_cli.output import Column, dollars, moment
from sexton_cli.paged_lists import paged

SCORE: Final = {"event_id": str, "outcome": str}
COLUMNS: Final = (
    Column("event_id", "EVENT"),
    Column("score", "SCORE"),
    Column("outcome", "OUTCOME"),
    Column("attempts", "TRIES", spare=True),
    Column("denied_gates", "DENIED", spare=True),
    Column("failed_checks", "FAILED CHECKS", spare=True),
    Column("cost", "COST", spare=True),
    Column("created", "CREATED", spare=True),
)


@noun()
def score() -> None:
    """List how an agent's finished runs were scored."""


@score.command("list")
@click.argument("agent", type=AGENT_WORD)
@paged(50)
@calling
def list_(caller: Caller, *, agent: str, limit: int, cursor: str | None) -> None:
    """List the scores of an AGENT's finished runs, newest first."""
    with caller.client() as client:
        zombie_id = agent_id(client, workspace_path(caller, client), agent)
        found = first_of(client, f"/v1/agents/{zombie_id}/scores", {"cursor": cursor}, SCORE, limit)
    rows = [
        {**row, "cost": dollars(row.get("charged_nanos")), "created": moment(row.get("created_at"))}
        for row in found.items
    ]
    caller.output.listing({"items": found.items, "next_cursor": found.next_cursor}, COLUMNS, rows)


@noun()
def scoring() -> None:
    """Show and set how much of their score history the workspace's agents are shown."""


@scoring.command()
@calling
def show(caller: Caller) -> None:
    """Show how many tokens of their score history agents are shown."""
    with caller.client() as client:
        _tell(caller, client.get(f"{workspace_path(caller, client)}/scoring"))


@scoring.command("set")
@click.argument("tokens", type=int)
@calling
def set_(caller: Caller, *, tokens: int) -> None:
    """Have agents be shown at most this many TOKENS of it."""
    with caller.client() as client:
        _tell(caller, client.put(f"{workspace_path(caller, client)}/scoring", {"context_tokens": tokens}))


def _tell(caller: Caller, found: Row) -> None:
    caller.output.thing(found, {"tokens of history": field(found, "context_tokens", int)})
