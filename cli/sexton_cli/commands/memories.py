"""``sexton agent memories`` and ``forget``: what an agent remembers."""

import click

from sexton_cli.caller import Caller
from sexton_cli.commands.command import command
from sexton_cli.commands.options import calling, sure, yes
from sexton_cli.commands.words import AGENT_WORD
from sexton_cli.lookups import agent_path, with_query
from sexton_cli.output import Column, moment

COLUMNS = (
    Column("key", "KEY"),
    Column("category", "CATEGORY"),
    Column("content", "CONTENT", elastic=True),
    Column("updated", "UPDATED", spare=True),
)


@command()
@click.argument("name", metavar="AGENT", type=AGENT_WORD)
@click.option("--find", default="", metavar="WORDS", help="Only entries that hold one of these words.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True, help="Entries at most.")
@calling
def memories(caller: Caller, *, name: str, find: str, limit: int) -> None:
    """Show what an agent remembers, newest first."""
    with caller.client() as client:
        query = {"query": find or None, "limit": str(limit)}
        found = client.get(with_query(f"{agent_path(caller, client, name)}/memories", query))
    if caller.output.as_json:
        caller.output.document(found)
        return
    rows = found.get("items") or []
    caller.output.table(COLUMNS, [{**row, "updated": moment(row.get("updated_at"))} for row in rows])


@command()
@click.argument("name", metavar="AGENT", type=AGENT_WORD)
@click.argument("key")
@yes
@calling
def forget(caller: Caller, *, name: str, key: str, yes: bool) -> None:
    """Make an agent forget the entry under this KEY."""
    sure(caller, f"Have agent {name} forget {key!r}?", yes=yes)
    with caller.client() as client:
        client.delete(with_query(f"{agent_path(caller, client, name)}/memories", {"key": key}))
    if caller.output.as_json:
        caller.output.document({"key": key, "deleted": True})
        return
    caller.output.say(f"Agent {name} has forgotten {key!r}.")
