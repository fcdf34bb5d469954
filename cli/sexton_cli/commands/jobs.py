"""``sexton jobs``: shows bulk jobs, pauses, resumes and stops them; and begins them."""

import time
from collections.abc import Mapping
from typing import Any, Final

import click
import orjson

from sexton_cli import short_ids
from sexton_cli.caller import Caller
from sexton_cli.client import Client, Row, field
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.options import calling
from sexton_cli.commands.words import JOB_WORD
from sexton_cli.exits import FAILED, USAGE, Fault
from sexton_cli.lookups import workspace_path
from sexton_cli.output import Column, moment
from sexton_cli.paged_lists import PagedList, paged
from sexton_cli.short_ids import path_of

JOB: Final[Mapping[str, type]] = {"job_id": str, "kind": str, "status": str, "total": int, "done": int}
OVER: Final = frozenset({"done", "stopped", "failed"})
LOOK_S: Final = 1.0
COLUMNS: Final = (
    Column("job_id", "JOB"),
    Column("kind", "DOES"),
    Column("status", "STATUS"),
    Column("total", "TOTAL"),
    Column("done", "DONE"),
    Column("failed", "FAILED"),
    Column("rate", "A SECOND", spare=True),
    Column("filter", "FILTER", elastic=True, spare=True),
    Column("created", "CREATED", spare=True),
)


def _shown(row: Row, _: Mapping[str, str]) -> Row:
    return {**row, "created": moment(row.get("created_at"))}


_JOBS: Final = PagedList("jobs", JOB, COLUMNS, _shown)


@noun("jobs")
def jobs() -> None:
    """List bulk jobs, see how far one is, pause it, let it go on, or stop it."""


@jobs.command("list")
@paged(20)
@calling
def list_(caller: Caller, *, limit: int, cursor: str | None) -> None:
    """List the workspace's bulk jobs, newest first."""
    _JOBS.tell(caller, limit=limit, cursor=cursor)


@jobs.command()
@click.argument("job", type=JOB_WORD)
@calling
def show(caller: Caller, *, job: str) -> None:
    """Show how far the JOB of this id is."""
    with caller.client() as client:
        found = client.get(job_path(caller, client, job))
    _tell(caller, found)


@jobs.command()
@click.argument("job", type=JOB_WORD)
@calling
def pause(caller: Caller, *, job: str) -> None:
    """Have a JOB wait, after the events that it has in hand."""
    _change(caller, job, "pause")


@jobs.command()
@click.argument("job", type=JOB_WORD)
@calling
def resume(caller: Caller, *, job: str) -> None:
    """Let a paused JOB go on where it was."""
    _change(caller, job, "resume")


@jobs.command()
@click.argument("job", type=JOB_WORD)
@calling
def stop(caller: Caller, *, job: str) -> None:
    """End a JOB; what it has done stays done."""
    _change(caller, job, "stop")


@jobs.command()
@click.argument("job", type=JOB_WORD)
@calling
def wait(caller: Caller, *, job: str) -> None:
    """Wait until a JOB is over; fails unless all its events were dealt with."""
    with caller.client() as client:
        path = job_path(caller, client, job)
        found = client.get(path)
        while found.get("status") not in OVER:
            time.sleep(LOOK_S)
            found = client.get(path)
    _tell(caller, found)
    if found.get("status") != "done" or found.get("failed"):
        told = f"the job is {found.get('status')}, and {found.get('failed')} events failed"
        raise Fault(told, f"'sexton jobs show {job}' says why.", status=FAILED)


def begin(caller: Caller, path: str, body: Mapping[str, Any]) -> None:
    """Make a bulk job, or have the server count, and say what came of it."""
    with caller.client() as client:
        made = client.post(f"{workspace_path(caller, client)}/{path}", dict(body))
    if caller.output.as_json:
        caller.output.document(made)
        return
    job = made.get("job")
    if not isinstance(job, dict):
        caller.output.say(f"{field(made, 'total', int)} events.")
        for event_id in made.get("sample") or ():
            caller.output.say(f"  {event_id}")
        return
    total = field(made, "total", int)
    events = "1 event" if total == 1 else f"{total} events"
    caller.output.note(f"{events}. To wait until all have ended: sexton jobs wait {job.get('job_id')}")
    caller.output.say(str(job.get("job_id")))


def document_of(option: str, text: str | None) -> Row | None:
    """Read a JSON object that was given with an option. Raises Fault."""
    if text is None:
        return None
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError as fault:
        raise Fault(f"{option}: {fault}", status=USAGE) from fault
    if not isinstance(found, dict):
        raise Fault(f"{option}: a JSON object is needed", status=USAGE)
    return found


def job_path(caller: Caller, client: Client, job: str) -> str:
    """Where the server has the job of this id, or part of an id. Raises Fault."""
    return path_of(caller, client, short_ids.JOB, job)


def _change(caller: Caller, job: str, verb: str) -> None:
    with caller.client() as client:
        changed = client.post(f"{job_path(caller, client, job)}:{verb}", {})
    if caller.output.as_json:
        caller.output.document(changed)
        return
    caller.output.say(f"Job {job}: {changed.get('status')}.")


def _tell(caller: Caller, found: Row) -> None:
    if caller.output.as_json:
        caller.output.document(found)
        return
    refused = found.get("refused")
    caller.output.facts(
        {
            "job": found.get("job_id"),
            "does": found.get("kind"),
            "filter": found.get("filter"),
            "status": found.get("status"),
            "total": found.get("total"),
            "done": found.get("done"),
            "skipped": found.get("skipped"),
            "failed": found.get("failed"),
            "refused": orjson.dumps(refused).decode() if refused else None,
            "a second": found.get("rate"),
            "waits for": found.get("waits_for"),
            "why": found.get("detail"),
            "created": moment(found.get("created_at")),
            "ended": moment(found.get("ended_at")),
        }
    )
