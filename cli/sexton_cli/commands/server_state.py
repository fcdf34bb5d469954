"""``sexton server health`` and ``sexton fleet queue``: whether a server is well, and what waits on it."""

from typing import Final

from sexton_cli.caller import Caller
from sexton_cli.client import field
from sexton_cli.commands.command import command
from sexton_cli.commands.options import calling
from sexton_cli.exits import UNAVAILABLE, Fault
from sexton_cli.output import Column, counted, span

LABELS: Final = (
    Column("labels", "LABELS", elastic=True),
    Column("agents", "READY AGENTS"),
    Column("events", "WAITING"),
    Column("oldest", "OLDEST WAITS"),
)


@command()
@calling
def health(caller: Caller) -> None:
    """Say whether the server answers and is ready; it asks for no token, and fails unless it is."""
    with caller.nobody() as client:
        alive, ready = client.get("/healthz"), client.get("/readyz")
    caller.output.thing(
        {**alive, **ready},
        {
            "status": alive.get("status"),
            "version": alive.get("version"),
            "ready": field(ready, "ready", bool),
            "database": ready.get("database"),
        },
    )
    if not ready["ready"]:
        raise Fault("the server is not ready", "Try again later.", status=UNAVAILABLE)


@command()
@calling
def queue(caller: Caller) -> None:
    """Show what waits for a runner on the whole platform, by labels; for platform admins."""
    with caller.client() as client:
        found = client.get("/v1/fleet/queue")
    shown = [
        {
            **row,
            "labels": ", ".join(row.get("required_tags") or ()) or "any runner",
            "oldest": span(row.get("oldest_age_ms")),
        }
        for row in field(found, "by_tags", list)
    ]
    caller.output.listing(found, LABELS, shown)
    if not caller.output.as_json:
        depth, leases = field(found, "depth", int), field(found, "leases_active", int)
        waiting = counted(depth, "event waits", "events wait")
        caller.output.note(f"{waiting}, {counted(leases, 'lease is held', 'leases are held')}.")
