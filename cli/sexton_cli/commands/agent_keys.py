"""``sexton agent-key``: the keys with which programs outside act for one agent."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import click

from sexton_cli import short_ids
from sexton_cli.caller import Caller
from sexton_cli.client import Client, Row, field, rows
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.options import calling
from sexton_cli.commands.words import AGENT_WORD
from sexton_cli.identity import MAX_PAGES, PAGE_SIZE
from sexton_cli.lookups import agent_id, agent_names, with_query, workspace_path
from sexton_cli.output import Column, moment
from sexton_cli.short_ids import whole_id

KEY: Final[Mapping[str, type]] = {"agent_id": str, "zombie_id": str, "name": str}
COLUMNS: Final = (
    Column("name", "NAME", elastic=True),
    Column("agent_id", "ID"),
    Column("agent", "AGENT", elastic=True),
    Column("created", "CREATED", spare=True),
    Column("used", "LAST USED", spare=True),
)


@noun("agent-key")
def agent_key() -> None:
    """List, make and delete the keys with which programs outside act for one agent."""


@agent_key.command("list")
@click.option("--agent", metavar="NAME", type=AGENT_WORD, help="Only of this agent.")
@calling
def list_(caller: Caller, *, agent: str | None) -> None:
    """List the keys of the workspace's agents, newest first; their values are never shown."""
    with caller.client() as client:
        workspace = workspace_path(caller, client)
        zombie_id = None if agent is None else agent_id(client, workspace, agent)
        found = list(_all(client, workspace, zombie_id))
        wanted = set() if caller.output.as_json else {row["zombie_id"] for row in found}
        names = agent_names(client, workspace, wanted)
    shown = [
        {
            **row,
            "agent": names.get(row["zombie_id"], row["zombie_id"]),
            "created": moment(row.get("created_at")),
            "used": moment(row.get("last_used_at")),
        }
        for row in found
    ]
    caller.output.listing({"items": found, "total": len(found)}, COLUMNS, shown)


@agent_key.command()
@click.argument("agent", type=AGENT_WORD)
@click.argument("name")
@click.option("--description", default="", help="What it is for; at most 256 characters.")
@calling
def create(caller: Caller, *, agent: str, name: str, description: str) -> None:
    """Make a key of this NAME for an AGENT and show it: this once, never again."""
    with caller.client() as client:
        workspace = workspace_path(caller, client)
        body = {"zombie_id": agent_id(client, workspace, agent), "name": name, "description": description}
        made = client.post(f"{workspace}/agent-keys", body)
    if not caller.output.as_json:
        caller.output.note(f"Made key {name} of {agent}. It is shown this once; keep it in a safe place.")
    caller.output.thing(made, field(made, "key", str))


@agent_key.command()
@click.argument("key")
@calling
def delete(caller: Caller, *, key: str) -> None:
    """Delete the KEY of this id; from then on its bearer is nobody."""
    with caller.client() as client:
        workspace = workspace_path(caller, client)
        key_id = whole_id(key, short_ids.AGENT_KEY, _all(client, workspace, None))
        client.delete(f"{workspace}/agent-keys/{key_id}")
    caller.output.thing({"id": key_id, "deleted": True}, f"Deleted key {key_id}.")


def _all(client: Client, workspace: str, zombie_id: str | None) -> Iterator[Row]:
    for page in range(1, MAX_PAGES + 1):
        query: dict[str, Any] = {"zombie_id": zombie_id, "page": page, "page_size": PAGE_SIZE}
        answer = client.get(with_query(f"{workspace}/agent-keys", query))
        yield from rows(answer, KEY)
        if page * PAGE_SIZE >= field(answer, "total", int):
            return
