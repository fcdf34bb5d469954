"""``sexton retention``: how many days the workspace keeps what it has, and what would go."""

from typing import Any, Final
from urllib.parse import urlencode

import click

from sexton_cli.caller import Caller
from sexton_cli.client import Row
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.options import calling
from sexton_cli.lookups import workspace_path
from sexton_cli.output import Column, dollars, moment

DAYS: Final = click.IntRange(1, 36_500)
POLICY: Final = (
    Column("what", "WHAT"),
    Column("days", "DAYS"),
    Column("own_days", "WORKSPACE"),
    Column("plan_days", "PLAN"),
    Column("server_days", "SERVER"),
)
DUE: Final = (
    Column("what", "WHAT"),
    Column("days", "DAYS"),
    Column("rows", "ROWS"),
    Column("bytes", "BYTES"),
    Column("oldest", "OLDEST"),
    Column("charged", "CHARGED, STAYS"),
)
CLASSES: Final = ("events", "transcripts", "files", "deliveries")
FIELDS: Final = {name: f"{name.removesuffix('s')}_days" for name in CLASSES[:3]} | {
    "deliveries": "delivery_days"
}


@noun()
def retention() -> None:
    """Show, set and try out how many days the workspace keeps what it has."""


@retention.command()
@calling
def show(caller: Caller) -> None:
    """Show how many days each class is kept, and whether workspace, plan or server says so."""
    with caller.client() as client:
        _policy(caller, client.get(f"{workspace_path(caller, client)}/retention"))


@retention.command("set")
@click.option("--events", type=DAYS, help="Days after an event has ended.")
@click.option("--transcripts", type=DAYS, help="Days of transcripts.")
@click.option("--files", type=DAYS, help="Days of files.")
@click.option("--deliveries", type=DAYS, help="Days of deliveries of webhooks.")
@click.option("--reset", multiple=True, type=click.Choice(CLASSES), help="Keep as plan and server do.")
@click.option("--drop-charged", is_flag=True, help="Events that were charged may go at once.")
@calling
def set_(caller: Caller, *, reset: tuple[str, ...], drop_charged: bool, **days: int | None) -> None:
    """Set days; what is not named stays as it is. Try 'sexton retention preview' first."""
    with caller.client() as client:
        path = f"{workspace_path(caller, client)}/retention"
        now = {str(item["what"]): item.get("own_days") for item in client.get(path)["items"]}
        own = {**now, **{name: one for name, one in days.items() if one is not None}}
        body: dict[str, Any] = {FIELDS[name]: None if name in reset else own[name] for name in CLASSES}
        _policy(caller, client.put(path, {**body, "drop_charged": drop_charged}))


@retention.command()
@click.option("--events", type=DAYS, help="Days after an event has ended.")
@click.option("--transcripts", type=DAYS, help="Days of transcripts.")
@click.option("--files", type=DAYS, help="Days of files.")
@click.option("--deliveries", type=DAYS, help="Days of deliveries of webhooks.")
@calling
def preview(caller: Caller, **days: int | None) -> None:
    """Count what would go with these days, or with those that are set; nothing is deleted."""
    asked = {FIELDS[name]: str(one) for name, one in days.items() if one is not None}
    with caller.client() as client:
        found = client.get(f"{workspace_path(caller, client)}/retention/preview?{urlencode(asked)}")
    shown = [
        {
            **row,
            "days": _words(row["days"]),
            "rows": f"{row['rows']} or more" if row["more"] else row["rows"],
            "oldest": moment(row["oldest_at"]),
            "charged": dollars(row["charged_nanos"]),
        }
        for row in found["items"]
    ]
    caller.output.listing(found, DUE, shown)


def _policy(caller: Caller, found: Row) -> None:
    shown = [{**row, "days": _words(row["days"])} for row in found["items"]]
    caller.output.listing(found, POLICY, shown)


def _words(days: int | None) -> str:
    return "as their agent" if days is None else str(days)
