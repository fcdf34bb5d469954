"""``sexton balance``, ``charges`` and ``credit``: a tenant's money."""

import sys
from datetime import UTC, datetime
from uuid import uuid4

import click

from sexton_cli.caller import Caller
from sexton_cli.client import Row, field
from sexton_cli.commands.command import command
from sexton_cli.commands.options import calling
from sexton_cli.exits import USAGE, Fault
from sexton_cli.id_parts import is_id
from sexton_cli.lookups import with_query
from sexton_cli.money import BILLING, nanos_of
from sexton_cli.output import Column, dollars, moment

DAYS = click.DateTime(["%Y-%m-%d"])
TOTALS = (
    Column("what", "WHAT", elastic=True),
    Column("runs", "RUNS"),
    Column("input_tokens", "TOKENS IN", spare=True),
    Column("output_tokens", "TOKENS OUT", spare=True),
    Column("cost", "COST"),
)


@command()
@calling
def balance(caller: Caller) -> None:
    """Show your tenant's balance, and whether it stops work."""
    with caller.client() as client:
        _show(caller, client.get(BILLING))


@command()
@click.argument("dollars")
@click.option("--tenant", metavar="ID", help="The tenant that gets it. [default: your own]")
@click.option(
    "--reason", default="added by hand", show_default=True, help="A note that is kept with the credit."
)
@calling
def credit(caller: Caller, *, dollars: str, tenant: str | None, reason: str) -> None:
    """Add DOLLARS to a tenant's balance; work that waited for it goes on. For platform admins."""
    amount = nanos_of(dollars)
    if tenant is not None and not is_id(tenant):
        raise Fault(f"{tenant!r} is not a tenant id", "'sexton whoami' shows one's own.", status=USAGE)
    with caller.client() as client:
        tenant_id = tenant or field(client.get("/v1/whoami"), "tenant_id", str)
        body = {"amount_nanos": amount, "reason": reason}
        # A key of its own for each call: whoever runs the command twice means it twice.
        after = client.post(f"/v1/admin/tenants/{tenant_id}/credit", body, key=str(uuid4()))
    _show(caller, after)


@command()
@click.option(
    "--by",
    type=click.Choice(["agent", "model", "day"]),
    default="agent",
    show_default=True,
    help="What to add up.",
)
@click.option("--since", type=DAYS, help="Not before this day, in UTC. [default: 31 days back]")
@click.option("--until", type=DAYS, help="Before this day, in UTC. [default: now]")
@click.option("--export", is_flag=True, help="Write every charge, a JSON object each, and add up nothing.")
@calling
def charges(caller: Caller, *, by: str, since: datetime | None, until: datetime | None, export: bool) -> None:
    """Show what your tenant's runs were billed, by agent, model or day."""
    with caller.client() as client:
        if export:
            sys.stdout.flush()
            for piece in client.download(f"{BILLING}/charges/export"):
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
            return
        found = client.get(
            with_query(f"{BILLING}/totals", {"by": by, "since": _ms(since), "until": _ms(until)})
        )
    if caller.output.as_json:
        caller.output.document(found)
        return
    rows = found.get("items") or []
    shown = [
        {
            **row,
            "what": row.get("name") or row.get("key") or "no model",
            "cost": dollars(field(row, "charged_nanos", int)),
        }
        for row in rows
    ]
    caller.output.table(TOTALS, shown)


def _ms(day: datetime | None) -> str | None:
    return None if day is None else str(round(day.replace(tzinfo=UTC).timestamp() * 1000))


def _show(caller: Caller, told: Row) -> None:
    if caller.output.as_json:
        caller.output.document(told)
        return
    caller.output.facts(
        {
            "balance": dollars(field(told, "balance_nanos", int)),
            "limit": "none: work goes on below zero" if told.get("is_unlimited") else "work stops at zero",
            "used up": moment(told.get("exhausted_at")) if told.get("is_exhausted") else None,
            "way out": "a platform admin can run 'sexton billing credit'"
            if told.get("is_exhausted")
            else None,
        }
    )
