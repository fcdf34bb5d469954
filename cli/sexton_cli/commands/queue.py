"""``sexton queue``: how long events wait for a runner, by the labels that they need, and lease slack."""

from collections.abc import Mapping
from typing import Final

import click

from sexton_cli.caller import Caller
from sexton_cli.client import Row, field
from sexton_cli.commands.command import command
from sexton_cli.commands.options import calling
from sexton_cli.lookups import workspace_path
from sexton_cli.output import Column, counted, moment, span

LABEL: Final[Mapping[str, type]] = {"required_tags": list, "events": int, "ages_ms": list}
AGENTS: Final = (
    Column("zombie_name", "AGENT", elastic=True),
    Column("events", "WAITING"),
    Column("oldest_at", "OLDEST CAME"),
    Column("oldest_event_id", "OLDEST EVENT"),
)


@command()
@click.option(
    "--minutes", type=click.IntRange(1, 180), default=60, show_default=True, help="How many to look back."
)
@calling
def queue(caller: Caller, *, minutes: int) -> None:
    """Show how long events wait for a runner, by the labels that they need, and what leases have left."""
    with caller.client() as client:
        found = client.get(f"{workspace_path(caller, client)}/queue?minutes={minutes}")
    if caller.output.as_json:
        caller.output.document(found)
        return
    labels: list[Row] = field(found, "labels", list)
    columns = (
        Column("labels", "LABELS", elastic=True),
        Column("events", "WAITING"),
        Column("oldest", "OLDEST WAITS"),
        Column("longest", f"LONGEST WAIT IN {minutes} MIN"),
    )
    caller.output.table(columns, [_shown(row) for row in labels])
    agents: list[Row] = field(found, "agents", list)
    if agents:
        shown = [{**row, "oldest_at": moment(row.get("oldest_at"))} for row in agents]
        caller.output.table(AGENTS, shown)
        caller.output.note(f"What the oldest waits for: sexton event why {agents[0].get('oldest_event_id')}")
    if not labels:
        caller.output.note(f"Nothing waits, and nothing came in {minutes} minutes.")
    if leases := field(found, "leases", int):
        least = span(found.get("least_slack_ms"))
        held = counted(leases, "live lease", "live leases")
        caller.output.note(f"{held}; the least time left is {least} of 30 s.")


def _shown(row: Row) -> Row:
    for name, kind in LABEL.items():
        field(row, name, kind)
    return {
        "labels": ", ".join(map(str, row["required_tags"])) or "any runner",
        "events": row["events"],
        "oldest": span(row.get("oldest_age_ms")),
        "longest": span(max((age for age in row["ages_ms"] if isinstance(age, int)), default=0) or None),
    }
