"""``sexton lease``: what runners hold."""

from collections.abc import Mapping
from typing import Final

import click

from sexton_cli.caller import Caller
from sexton_cli.client import field, rows
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.listing_group import ListingGroup
from sexton_cli.commands.options import calling
from sexton_cli.output import Column, moment, span

LEASE: Final[Mapping[str, type]] = {"lease_id": str, "event_id": str, "runner_id": str, "slack_ms": int}
COLUMNS: Final = (
    Column("lease_id", "LEASE"),
    Column("event_id", "EVENT"),
    Column("zombie_name", "AGENT", elastic=True, spare=True),
    Column("host", "HOST", elastic=True),
    Column("attempt", "TRY"),
    Column("left", "LEFT"),
    Column("renewed", "RENEWED"),
    Column("granted", "GRANTED", spare=True),
)


@noun("lease", cls=ListingGroup)
def lease() -> None:
    """List the leases that runners hold; for platform admins."""


@lease.command("list")
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True, help="Leases at most.")
@calling
def list_(caller: Caller, *, limit: int) -> None:
    """List the leases that are held, those with the least time left first."""
    with caller.client() as client:
        document = client.get(f"/v1/fleet/leases?limit={limit}")
    if caller.output.as_json:
        caller.output.document(document)
        return
    now = field(document, "now", int)
    caller.output.table(
        COLUMNS,
        [
            {
                **row,
                "host": row.get("host_id") or row["runner_id"],
                "left": "cancelling" if row.get("cancelling") else f"{row['slack_ms'] / 1000:.1f} s",
                "renewed": _ago(row.get("renewed_at"), now),
                "granted": moment(row.get("granted_at")),
            }
            for row in rows(document, LEASE)
        ],
    )


def _ago(at: object, now: int) -> str:
    """How long ago.

    >>> _ago(None, 5), _ago(1_000, 61_000)
    ('not yet', '1 min 0 s')
    """
    return span(now - at) or "" if isinstance(at, int) else "not yet"
