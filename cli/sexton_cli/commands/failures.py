"""``sexton failures``: what fails alike, in groups; marks them as known, mutes them, has them done again."""

import time
from collections.abc import Mapping
from typing import Any, Final

import click

from sexton_cli import short_ids
from sexton_cli.caller import Caller
from sexton_cli.client import Client, Row
from sexton_cli.commands.jobs import begin
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.listing_group import ListingGroup
from sexton_cli.commands.options import calling
from sexton_cli.commands.words import AGENT_WORD
from sexton_cli.lookups import workspace_path
from sexton_cli.output import Column, moment
from sexton_cli.paged_lists import PagedList, paged
from sexton_cli.short_ids import id_in, path_of

FAILURE: Final[Mapping[str, type]] = {"failure_id": str, "zombie_id": str, "status": str, "count": int}
HOUR_MS: Final = 3_600_000
COLUMNS: Final = (
    Column("failure_id", "FAILURE"),
    Column("agent", "AGENT", elastic=True),
    Column("count", "COUNT"),
    Column("today", "IN 24 H"),
    Column("shown", "WHAT", elastic=True),
    Column("status", "STATUS", spare=True),
    Column("last", "LAST SEEN", spare=True),
)


@noun("failures", cls=ListingGroup)
def failures() -> None:
    """List what fails alike, the last seen first; mark it as known, mute it, or have it done again."""


@failures.command("list")
@click.option(
    "--status", type=click.Choice(["open", "acknowledged", "muted"]), help="Only these; without it, all."
)
@click.option("--agent", metavar="NAME", type=AGENT_WORD, help="Only of this agent.")
@paged(50)
@calling
def list_(caller: Caller, *, limit: int, **filters: str | None) -> None:
    """List what fails alike in the workspace, the last seen first. The word ``list`` may be left out."""
    _FAILURES.tell(caller, limit=limit, **filters)


@failures.command()
@click.argument("failure")
@calling
def show(caller: Caller, *, failure: str) -> None:
    """Show the FAILURE of this id: what fails alike, how often, since when, and an event of it."""
    with caller.client() as client:
        found = client.get(_path(caller, client, failure))
    caller.output.thing(
        found,
        {
            "failure": found.get("failure_id"),
            "agent": found.get("zombie_name"),
            "what": found.get("error_code") or found.get("failure_label"),
            "message": found.get("message"),
            "count": found.get("count"),
            "status": found.get("status"),
            "first seen": moment(found.get("first_seen_at")),
            "last seen": moment(found.get("last_seen_at")),
            "event": found.get("sample_event_id"),
            "known to": found.get("acknowledged_by"),
            "muted until": moment(found.get("muted_until")),
        },
    )


@failures.command()
@click.argument("failure")
@calling
def acknowledge(caller: Caller, *, failure: str) -> None:
    """Mark the FAILURE of this id as known; with its next event it is open again."""
    _change(caller, failure, "acknowledge", {})


@failures.command()
@click.argument("failure")
@click.option("--hours", type=click.IntRange(1, 8_760), default=24, show_default=True, help="For how long.")
@click.option("--off", is_flag=True, help="Mute it no longer.")
@calling
def mute(caller: Caller, *, failure: str, hours: int, off: bool) -> None:
    """Mute a FAILURE for a while."""
    until = None if off else round(time.time() * 1000) + hours * HOUR_MS
    _change(caller, failure, "mute", {"until": until})


@failures.command()
@click.argument("failure")
@click.option("--dry-run", is_flag=True, help="Count, and show some, without replaying any.")
@click.option("--rate", type=click.IntRange(1, 100_000), help="Events a second, at most.")
@calling
def replay(caller: Caller, *, failure: str, dry_run: bool, rate: int | None) -> None:
    """Have every event of a FAILURE worked on once more, by a bulk job."""
    body: dict[str, Any] = {"dry_run": dry_run} | ({} if rate is None else {"rate": rate})
    with caller.client() as client:
        wanted = id_in(client, workspace_path(caller, client), short_ids.FAILURE, failure)
    begin(caller, f"failures/{wanted}:replay", body)


def _change(caller: Caller, failure: str, verb: str, body: Mapping[str, Any]) -> None:
    with caller.client() as client:
        changed = client.post(f"{_path(caller, client, failure)}:{verb}", dict(body))
    if caller.output.as_json:
        caller.output.document(changed)
        return
    caller.output.say(f"Failure {failure}: {changed.get('status')}.")


def _path(caller: Caller, client: Client, failure: str) -> str:
    return path_of(caller, client, short_ids.FAILURE, failure)


def _shown(row: Row, names: Mapping[str, str]) -> Row:
    label = row.get("error_code") or row.get("failure_label") or ""
    trend = row.get("trend")
    return {
        **row,
        "agent": names.get(row["zombie_id"], row["zombie_id"]),
        "shown": f"{label} {row.get('message') or ''}".strip(),
        "today": sum(trend) if isinstance(trend, list) else None,
        "last": moment(row.get("last_seen_at")),
    }


_FAILURES: Final = PagedList("failures", FAILURE, COLUMNS, _shown)
