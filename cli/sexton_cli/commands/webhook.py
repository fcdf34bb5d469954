"""``sexton webhook``: the addresses of agents, what came there and why it was refused, and replays."""

import sys
from collections.abc import Mapping
from typing import Final

import click

from sexton_cli import short_ids
from sexton_cli.caller import Caller
from sexton_cli.client import Row
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.listing_group import ListingGroup
from sexton_cli.commands.options import calling
from sexton_cli.commands.table import WEBHOOK
from sexton_cli.commands.words import AGENT_WORD
from sexton_cli.exits import FAILED, Fault
from sexton_cli.lookups import agent_id, first_of, workspace_path
from sexton_cli.output import Column, moment
from sexton_cli.paged_lists import PagedList, paged
from sexton_cli.short_ids import path_of

ADDRESS: Final[Mapping[str, type]] = {"zombie_id": str, "zombie_name": str, "source": str, "url": str}
DELIVERY: Final[Mapping[str, type]] = {"delivery_id": str, "zombie_id": str, "verdict": str, "at": int}
VERDICTS: Final = ("accepted", "duplicate", "ignored", "challenge", "refused", "replayed")
ADDRESSES: Final = (
    Column("zombie_name", "AGENT", elastic=True),
    Column("source", "SOURCE"),
    Column("url", "ADDRESS", elastic=True),
    Column("refused_in_day", "REFUSED IN 24 H"),
    Column("last_code", "LAST CODE", spare=True),
    Column("last", "LAST REFUSED", spare=True),
)
DELIVERIES: Final = (
    Column("delivery_id", "DELIVERY"),
    Column("agent", "AGENT", elastic=True),
    Column("source", "SOURCE", spare=True),
    Column("verdict", "VERDICT"),
    Column("why", "WHY", elastic=True),
    Column("came", "CAME", spare=True),
)


@noun("webhook", cls=ListingGroup, late=WEBHOOK)
def webhook() -> None:
    """List the addresses of webhooks and what came there; show, replay, send or verify a delivery."""


@webhook.command("list")
@click.option("--agent", metavar="NAME", type=AGENT_WORD, help="Only of this agent.")
@click.option("--refusing", is_flag=True, help="Only of agents that refused something in the last 24 hours.")
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="The most to list."
)
@calling
def list_(caller: Caller, *, agent: str | None, refusing: bool, limit: int) -> None:
    """List the addresses of webhooks in the workspace. The word ``list`` may be left out."""
    with caller.client() as client:
        workspace = workspace_path(caller, client)
        zombie_id = None if agent is None else agent_id(client, workspace, agent)
        query = {"zombie_id": zombie_id, "refusing": "true" if refusing else None}
        found = first_of(client, f"{workspace}/webhooks", query, ADDRESS, limit)
    if caller.output.as_json:
        caller.output.document({"items": found.items})
        return
    rows = [{**row, "last": moment(row.get("last_refused_at"))} for row in found.items]
    caller.output.table(ADDRESSES, rows)


@webhook.command()
@click.option("--agent", metavar="NAME", type=AGENT_WORD, help="Only to this agent.")
@click.option("--verdict", type=click.Choice(VERDICTS), help="Only these; without it, all.")
@paged(50)
@calling
def deliveries(caller: Caller, *, limit: int, **filters: str | None) -> None:
    """List what came to the webhooks of the workspace in seven days, newest first."""
    _DELIVERIES.tell(caller, limit=limit, **filters)


@webhook.command()
@click.argument("delivery")
@click.option("--body", is_flag=True, help="Write its body, byte by byte, and nothing else.")
@calling
def show(caller: Caller, *, delivery: str, body: bool) -> None:
    """Show the DELIVERY of this id with its headers; what is secret in them is not shown."""
    with caller.client() as client:
        path = path_of(caller, client, short_ids.DELIVERY, delivery)
        if body:
            for piece in client.download(f"{path}/body"):
                sys.stdout.buffer.write(piece)
            return
        found = client.get(path)
    _tell(caller, found)


@webhook.command()
@click.argument("delivery")
@calling
def replay(caller: Caller, *, delivery: str) -> None:
    """Verify the DELIVERY of this id once more, with the secrets of now; fails unless it wakes the agent."""
    with caller.client() as client:
        path = path_of(caller, client, short_ids.DELIVERY, delivery)
        found = client.post(f"{path}:replay", {})
    _tell(caller, found)
    if found.get("event_id") is None:
        way_out = "Correct what the reason names, such as the credential, and replay it again."
        raise Fault(f"it is {found.get('verdict')}: {_why(found)}", way_out, status=FAILED)


def _tell(caller: Caller, found: Row) -> None:
    if caller.output.as_json:
        caller.output.document(found)
        return
    caller.output.facts(
        {
            "delivery": found.get("delivery_id"),
            "agent": found.get("zombie_id"),
            "source": found.get("source"),
            "verdict": found.get("verdict"),
            "why": _why(found),
            "event": found.get("event_id"),
            "came": moment(found.get("at")),
            "bytes": found.get("size"),
            "replays": found.get("replays"),
        }
    )
    headers = found.get("headers")
    if isinstance(headers, dict):
        caller.output.facts(headers)


def _why(found: Row) -> str:
    return f"{found.get('code') or ''} {found.get('detail') or found.get('reason') or ''}".strip()


def _shown(row: Row, names: Mapping[str, str]) -> Row:
    return {
        **row,
        "agent": names.get(row["zombie_id"], row["zombie_id"]),
        "why": _why(row),
        "came": moment(row.get("at")),
    }


_DELIVERIES: Final = PagedList("webhook-deliveries", DELIVERY, DELIVERIES, _shown)
