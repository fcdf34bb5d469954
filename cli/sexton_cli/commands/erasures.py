"""``sexton erasures``: counts what a person's value stands in, erases it, and shows the receipts."""

import time
from collections.abc import Mapping
from typing import Any, Final

import click
import orjson

from sexton_cli import short_ids
from sexton_cli.caller import Caller
from sexton_cli.client import Client, Row
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.options import calling, sure, yes as answered
from sexton_cli.lookups import workspace_path
from sexton_cli.output import Column, moment
from sexton_cli.paged_lists import PagedList, paged
from sexton_cli.short_ids import path_of

ERASURE: Final[Mapping[str, type]] = {"erasure_id": str, "status": str, "path": str, "dry_run": bool}
OVER: Final = frozenset({"done", "stopped"})
LOOK_S: Final = 1.0
COLUMNS: Final = (
    Column("erasure_id", "ERASURE"),
    Column("does", "DOES"),
    Column("status", "STATUS"),
    Column("path", "PATH", elastic=True),
    Column("by", "BY", spare=True),
    Column("created", "CREATED", spare=True),
)


def _shown(row: Row, _: Mapping[str, str]) -> Row:
    does = "count" if row.get("dry_run") else "erase"
    by = row.get("created_by_name")
    return {**row, "does": does, "by": by, "created": moment(row.get("created_at"))}


_ERASURES: Final = PagedList("erasures", ERASURE, COLUMNS, _shown)


@noun("erasures")
def erasures() -> None:
    """Count what a person's value stands in, erase it, and see the receipts; for admins."""


@erasures.command("list")
@paged(20)
@calling
def list_(caller: Caller, *, limit: int, cursor: str | None) -> None:
    """List the workspace's erasures, newest first."""
    _ERASURES.tell(caller, limit=limit, cursor=cursor)


@erasures.command()
@click.option("--path", required=True, metavar="KEYS", help="Where requests have the value: customer.email.")
@click.option("--value", help="What is to be erased; it is not kept.")
@click.option("--sha256", metavar="HEX", help="Instead of --value: its SHA-256; with --chars.")
@click.option("--chars", type=click.IntRange(1, 512), help="How many characters the value has.")
@click.option("--erase", is_flag=True, help="Erase, and do not only count. It cannot be undone.")
@answered
@calling
def begin(caller: Caller, *, path: str, erase: bool, yes: bool, **given: Any) -> None:
    """Count what has a value, and with --erase take it out of all that the workspace keeps."""
    if erase:
        sure(caller, "Erase this for good?", yes=yes)
    names = {"value": "value", "sha256": "value_sha256", "chars": "value_chars"}
    body = {names[name]: word for name, word in given.items() if word is not None}
    with caller.client() as client:
        wish = {"path": path, "dry_run": not erase, **body}
        made = client.post(f"{workspace_path(caller, client)}/erasures", wish)
    if caller.output.as_json:
        caller.output.document(made)
        return
    caller.output.note(f"'sexton erasures wait {made.get('erasure_id')}' waits, and tells what was found.")
    caller.output.say(str(made.get("erasure_id")))


@erasures.command()
@click.argument("erasure")
@calling
def show(caller: Caller, *, erasure: str) -> None:
    """Show how far the ERASURE of this id is; of one that is over, its receipt."""
    with caller.client() as client:
        found = client.get(_path(caller, client, erasure))
    _tell(caller, found)


@erasures.command()
@click.argument("erasure")
@calling
def wait(caller: Caller, *, erasure: str) -> None:
    """Wait until an ERASURE is over, and show its receipt."""
    with caller.client() as client:
        path = _path(caller, client, erasure)
        found = client.get(path)
        while found.get("status") not in OVER:
            time.sleep(LOOK_S)
            found = client.get(path)
    _tell(caller, found)


@erasures.command()
@click.argument("erasure")
@calling
def stop(caller: Caller, *, erasure: str) -> None:
    """End an ERASURE that is not over; what is gone stays gone."""
    with caller.client() as client:
        found = client.post(f"{_path(caller, client, erasure)}:stop", {})
    _tell(caller, found)


def _path(caller: Caller, client: Client, erasure: str) -> str:
    return path_of(caller, client, short_ids.ERASURE, erasure)


def _tell(caller: Caller, found: Row) -> None:
    if caller.output.as_json:
        caller.output.document(found)
        return
    caller.output.facts(
        {
            "erasure": found.get("erasure_id"),
            "does": "count" if found.get("dry_run") else "erase",
            "status": found.get("status"),
            "path": found.get("path"),
            "sha256 of the value": found.get("value_sha256"),
            "rows erased": _counts(found.get("erased")),
            "rows that stay": _counts(found.get("kept")),
            "not over yet": found.get("waits"),
            "by": found.get("created_by_name"),
            "created": moment(found.get("created_at")),
            "ended": moment(found.get("ended_at")),
        }
    )


def _counts(counts: object) -> str | None:
    return orjson.dumps(counts).decode() if counts else None
