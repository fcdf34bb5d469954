"""``sexton schedule``: when agents' schedules fire next, what they did last; pauses one, or runs it now."""

from collections.abc import Mapping
from typing import Final

import click

from sexton_cli import short_ids
from sexton_cli.caller import Caller
from sexton_cli.client import Client, Row
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.listing_group import ListingGroup
from sexton_cli.commands.options import calling
from sexton_cli.commands.words import AGENT_WORD
from sexton_cli.exits import FAILED, Fault
from sexton_cli.lookups import agent_id, first_of, workspace_path
from sexton_cli.output import Column, moment
from sexton_cli.short_ids import whole_id

SCHEDULE: Final[Mapping[str, type]] = {"schedule_id": str, "zombie_id": str, "schedule": str, "next": list}
COLUMNS: Final = (
    Column("schedule_id", "SCHEDULE"),
    Column("zombie_name", "AGENT", elastic=True),
    Column("when", "WHEN", elastic=True),
    Column("status", "STATUS"),
    Column("first", "NEXT"),
    Column("latest", "LAST", spare=True),
    Column("lost", "MISSED", spare=True),
)
MOST: Final = 1_000


@noun("schedule", cls=ListingGroup)
def schedule() -> None:
    """List schedules with their next and last firings; pause, resume or run one now."""


@schedule.command("list")
@click.option("--agent", metavar="NAME", type=AGENT_WORD, help="Only of this agent.")
@calling
def list_(caller: Caller, *, agent: str | None) -> None:
    """List the schedules of the workspace. The word ``list`` may be left out."""
    with caller.client() as client:
        found = _schedules(caller, client, agent)
    if caller.output.as_json:
        caller.output.document({"items": found})
        return
    caller.output.table(COLUMNS, [_shown(row) for row in found])


@schedule.command()
@click.argument("schedule")
@calling
def show(caller: Caller, *, schedule: str) -> None:
    """Show the SCHEDULE of this id: when it fires next, what came of it, and what was missed."""
    with caller.client() as client:
        found = client.get(_path(caller, client, schedule))
    shown = _shown(found)
    caller.output.thing(
        found,
        {
            "schedule": found.get("schedule_id"),
            "agent": found.get("zombie_name"),
            "when": shown["when"],
            "message": found.get("message"),
            "status": found.get("status"),
            "next": ", ".join(filter(None, map(moment, found["next"]))) or None,
            "last": shown["latest"] or None,
            "missed": shown["lost"],
            "paused by": found.get("paused_by"),
        },
    )


@schedule.command()
@click.argument("schedule")
@calling
def pause(caller: Caller, *, schedule: str) -> None:
    """Let the SCHEDULE of this id rest; what is due meanwhile is not made up for."""
    _change(caller, schedule, "pause")


@schedule.command()
@click.argument("schedule")
@calling
def resume(caller: Caller, *, schedule: str) -> None:
    """Let the SCHEDULE of this id fire again, from its next time on."""
    _change(caller, schedule, "resume")


@schedule.command()
@click.argument("schedule")
@calling
def run(caller: Caller, *, schedule: str) -> None:
    """Have an agent work as if the SCHEDULE of this id fired now; its next firing stays where it is."""
    with caller.client() as client:
        made = client.post(f"{_path(caller, client, schedule)}:run", {})
    if caller.output.as_json:
        caller.output.document(made)
        return
    caller.output.say(str(made.get("event_id")))


def _change(caller: Caller, schedule: str, verb: str) -> None:
    with caller.client() as client:
        changed = client.post(f"{_path(caller, client, schedule)}:{verb}", {})
    if caller.output.as_json:
        caller.output.document(changed)
        return
    caller.output.say(f"Schedule {schedule}: {changed.get('status')}.")


def _path(caller: Caller, client: Client, schedule: str) -> str:
    """Where the schedule of this id stands: below its agent. Raises Fault."""
    found = _schedules(caller, client, None)
    wanted = whole_id(schedule, short_ids.SCHEDULE, found)
    for row in found:
        if row["schedule_id"] == wanted:
            workspace = workspace_path(caller, client)
            return f"{workspace}/zombies/{row['zombie_id']}/schedules/{wanted}"
    way_out = "'sexton schedule list' shows the schedules of the workspace."
    raise Fault(f"there is no schedule {schedule!r} here", way_out, status=FAILED)


def _schedules(caller: Caller, client: Client, agent: str | None) -> list[Row]:
    workspace = workspace_path(caller, client)
    zombie_id = None if agent is None else agent_id(client, workspace, agent)
    return first_of(client, f"{workspace}/schedules", {"zombie_id": zombie_id}, SCHEDULE, MOST).items


def _shown(row: Row) -> Row:
    last, missed = row.get("last") or [{}], row.get("missed") or {}
    return {
        **row,
        "when": f"{row['schedule']} {row.get('timezone')}",
        "first": moment(row["next"][0]) if row["next"] else None,
        "latest": f"{moment(last[0].get('created_at')) or ''} {last[0].get('status') or ''}".strip(),
        "lost": f"{missed['total']} {missed.get('why')}" if missed.get("total") else None,
    }
