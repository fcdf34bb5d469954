"""``sexton follow-up``: what an agent has asked to be woken for later."""

from typing import Final

import click

from sexton_cli import short_ids
from sexton_cli.caller import Caller
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.options import calling
from sexton_cli.commands.words import AGENT_WORD
from sexton_cli.lookups import agent_path, first_of, walk
from sexton_cli.output import Column, moment
from sexton_cli.paged_lists import paged
from sexton_cli.short_ids import whole_id

FOLLOW_UP: Final = {"follow_up_id": str, "status": str}
COLUMNS: Final = (
    Column("follow_up_id", "FOLLOW-UP"),
    Column("status", "STATUS"),
    Column("due", "AT"),
    Column("message", "MESSAGE", elastic=True),
    Column("event_id", "ASKED BY EVENT", spare=True),
    Column("created", "ASKED", spare=True),
)


@noun("follow-up")
def follow_up() -> None:
    """List and cancel what an agent has asked to be woken for later."""


@follow_up.command("list")
@click.argument("agent", type=AGENT_WORD)
@paged(50)
@calling
def list_(caller: Caller, *, agent: str, limit: int, cursor: str | None) -> None:
    """List the follow-ups of an AGENT, newest first."""
    with caller.client() as client:
        path = f"{agent_path(caller, client, agent)}/follow-ups"
        found = first_of(client, path, {"cursor": cursor}, FOLLOW_UP, limit)
    rows = [
        {**row, "due": moment(row.get("at")), "created": moment(row.get("created_at"))} for row in found.items
    ]
    caller.output.listing({"items": found.items, "next_cursor": found.next_cursor}, COLUMNS, rows)


@follow_up.command()
@click.argument("agent", type=AGENT_WORD)
@click.argument("follow_up", metavar="FOLLOW-UP")
@calling
def cancel(caller: Caller, *, agent: str, follow_up: str) -> None:
    """Take the FOLLOW-UP of this id of an AGENT back, while it waits."""
    with caller.client() as client:
        path = f"{agent_path(caller, client, agent)}/follow-ups"
        wanted = whole_id(follow_up, short_ids.FOLLOW_UP, walk(client, path, {}, FOLLOW_UP))
        client.delete(f"{path}/{wanted}")
    caller.output.thing({"follow_up_id": wanted, "cancelled": True}, f"Cancelled follow-up {wanted}.")
