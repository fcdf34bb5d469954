"""``sexton throughput``: how many events came of late, minute by minute, and what became of them."""

from collections.abc import Mapping
from typing import Final

import click

from sexton_cli.caller import Caller
from sexton_cli.client import Row, field
from sexton_cli.commands.command import command
from sexton_cli.commands.options import calling
from sexton_cli.lookups import workspace_path
from sexton_cli.output import Column, dollars, moment

MINUTE: Final[Mapping[str, type]] = {"at": int, "came": int, "failed": int, "charged_nanos": int}
MS_PER_S: Final = 1000
COLUMNS: Final = (
    Column("minute", "MINUTE"),
    Column("came", "CAME"),
    Column("done", "DONE"),
    Column("failed", "FAILED"),
    Column("waited", "LONGEST WAIT"),
    Column("cost", "COST"),
)


@command()
@click.option(
    "--minutes", type=click.IntRange(1, 180), default=60, show_default=True, help="How many to look back."
)
@calling
def throughput(caller: Caller, *, minutes: int) -> None:
    """Show how many events came in each of the last minutes, and what became of them.

    Minutes in which nothing came are left out of the table.
    """
    with caller.client() as client:
        found = client.get(f"{workspace_path(caller, client)}/throughput?minutes={minutes}")
    if caller.output.as_json:
        caller.output.document(found)
        return
    rows: list[Row] = field(found, "minutes", list)
    caller.output.table(COLUMNS, [_shown(row) for row in rows if row["came"]])
    if not any(row["came"] for row in rows):
        caller.output.note("No event came. Wake an agent: sexton event send AGENT MESSAGE")


def _shown(row: Row) -> Row:
    waited = f"{row['longest_wait_ms'] / MS_PER_S:.1f} s" if row["longest_wait_ms"] else ""
    return {**row, "minute": moment(row["at"]), "waited": waited, "cost": dollars(row["charged_nanos"])}
