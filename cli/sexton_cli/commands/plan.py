"""``sexton billing``: the plan, single charges and what they are made of, beside balance and totals."""

from typing import Any, Final

import click

from sexton_cli.caller import Caller
from sexton_cli.client import Row, rows
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.options import calling
from sexton_cli.commands.table import BILLING as VERBS
from sexton_cli.commands.words import EVENT_WORD
from sexton_cli.lookups import first_of, workspace_path
from sexton_cli.money import BILLING
from sexton_cli.output import Column, dollars, moment
from sexton_cli.paged_lists import paged
from sexton_cli.short_ids import EVENT, id_in

CHARGE: Final = {"id": str, "event_id": str}
CHARGES: Final = (
    Column("event_id", "EVENT"),
    Column("model", "MODEL", elastic=True),
    Column("posture", "KEY"),
    Column("cost", "COST"),
    Column("token_count_input", "TOKENS IN", spare=True),
    Column("token_count_output", "TOKENS OUT", spare=True),
    Column("at", "ENDED", spare=True),
)
PERIODS: Final = (
    Column("at", "UNTIL"),
    Column("d_input_tokens", "TOKENS IN"),
    Column("d_output_tokens", "TOKENS OUT"),
    Column("run_ms", "MS"),
    Column("cost", "COST"),
)
EVENTS: Final = ("PAYMENT_FAILED", "PAYMENT_RECOVERED", "DOWNGRADE_TO_FREE")


@noun(late=VERBS)
def billing() -> None:
    """Show balance, plan and charges; add credit, change the plan, tell of payments."""


@billing.command("list")
@paged(50)
@calling
def list_(caller: Caller, *, limit: int, cursor: str | None) -> None:
    """List what your tenant's runs were billed, newest first: one line for each lease."""
    with caller.client() as client:
        found = first_of(client, f"{BILLING}/charges", {"cursor": cursor}, CHARGE, limit)
    shown = [
        {**row, "cost": dollars(row.get("credit_deducted_nanos")), "at": moment(row.get("recorded_at"))}
        for row in found.items
    ]
    caller.output.listing({"items": found.items, "next_cursor": found.next_cursor}, CHARGES, shown)


@billing.command()
@click.argument("event", type=EVENT_WORD)
@calling
def periods(caller: Caller, *, event: str) -> None:
    """List the metering rows of the EVENT of this id, oldest first."""
    with caller.client() as client:
        event_id = id_in(client, workspace_path(caller, client), EVENT, event)
        found = client.get(f"{BILLING}/charges/{event_id}/metering-periods")
    shown = [
        {**row, "cost": dollars(row.get("charged_nanos")), "at": moment(row.get("created_at"))}
        for row in rows(found, {})
    ]
    caller.output.listing(found, PERIODS, shown)


@billing.command()
@calling
def plan(caller: Caller) -> None:
    """Show your tenant's plan, what it allows, and how much of that is used today."""
    with caller.client() as client:
        _tell(caller, client.get(f"{workspace_path(caller, client)}/billing"))


@billing.command()
@click.argument("subscription")
@calling
def scale(caller: Caller, *, subscription: str) -> None:
    """Go over to the plan pro by the SUBSCRIPTION of this id, sub_…."""
    with caller.client() as client:
        body = {"subscription_id": subscription}
        _tell(caller, client.post(f"{workspace_path(caller, client)}/billing/scale", body))


@billing.command()
@click.argument("event_type", metavar="TYPE", type=click.Choice(EVENTS))
@click.option("--reason", required=True, help="What the payment provider says of it.")
@calling
def event(caller: Caller, *, event_type: str, reason: str) -> None:
    """Pass on what the payment provider says, in its place; for admins."""
    with caller.client() as client:
        body = {"event_type": event_type, "reason": reason}
        _tell(caller, client.post(f"{workspace_path(caller, client)}/billing/events", body))


def _tell(caller: Caller, found: Row) -> None:
    limits: dict[str, Any] = found.get("limits") or {}
    bounds = {
        f"most {name.replace('_', ' ')}": ", ".join(most) if isinstance(most, list) else most
        for name, most in limits.items()
        if most is not None
    }
    caller.output.thing(
        found,
        {
            "plan": found.get("plan_tier"),
            "status": found.get("billing_status"),
            "subscription": found.get("subscription_id") or None,
            "grace ends": moment(found.get("grace_expires_at")),
            "events today": found.get("events_today"),
            "reason": found.get("reason") or None,
            **bounds,
        },
    )
