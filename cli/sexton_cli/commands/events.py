"""``events``, ``watch``, ``steer``, ``replay`` and ``cancel``: shows and sends events, and follows them."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

import click

from sexton_cli import short_ids
from sexton_cli.caller import Caller
from sexton_cli.client import Client, Row, field
from sexton_cli.commands.command import command
from sexton_cli.commands.jobs import begin, document_of
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.listing_group import ListingGroup
from sexton_cli.commands.options import calling
from sexton_cli.commands.words import AGENT_WORD, EVENT_WORD
from sexton_cli.exits import FAILED, USAGE, Fault
from sexton_cli.file_uploads import send_files
from sexton_cli.lookups import agent_path, workspace_path
from sexton_cli.output import Column, dollars, moment
from sexton_cli.paged_lists import PagedList, paged
from sexton_cli.short_ids import path_of
from sexton_cli.streams import OPENED, Follower, Frame, spell, spell_connection

STATUSES: Final = (
    "received",
    "waiting_approval",
    "running",
    "processed",
    "agent_error",
    "gate_blocked",
    "cancelled",
    "dead_lettered",
)
MAX_MESSAGE_BYTES: Final = 8192
EVENT: Final = {"event_id": str, "zombie_id": str, "status": str}
FILTER_HELP: Final = 'Only what this picks: status:agent_error -actor:cron:* after:2h "connection refused".'
VERSION_HELP: Final = "Under this version of the agent's files, by its number, whichever is active."
COLUMNS = (
    Column("event_id", "EVENT"),
    Column("agent", "AGENT", elastic=True),
    Column("shown", "STATUS", elastic=True),
    Column("actor", "ACTOR", spare=True),
    Column("created", "CREATED", spare=True),
    Column("event_type", "TYPE", spare=True),
    Column("attempts", "TRIES", spare=True),
    Column("cost", "COST", spare=True),
)


@noun("events", cls=ListingGroup)
def events() -> None:
    """List events, newest first; export, replay or cancel many of them."""


@events.command("list")
@click.argument("agent", type=AGENT_WORD, required=False)
@click.option(
    "--actor", metavar="GLOB", help="Only events from this source: webhook:github, steer:*, cron:*."
)
@click.option(
    "--since", metavar="WHEN", help="Only events since then: 15s, 30m, 2h or 7d ago, or an RFC 3339 time."
)
@click.option("--status", type=click.Choice(STATUSES), help="Only these.")
@click.option("--filter", "q", metavar="FILTER", help=FILTER_HELP)
@paged(50)
@calling
def list_(caller: Caller, *, limit: int, **filters: str | None) -> None:
    """List events, newest first: of one AGENT, or of the whole workspace.

    The word ``list`` may be left out.
    """
    _EVENTS.tell(caller, limit=limit, **filters)


def _shown(row: Row, names: Mapping[str, str]) -> Row:
    label = row.get("failure_label")
    return {
        **row,
        "agent": names.get(row["zombie_id"], row["zombie_id"]),
        "shown": f"{row['status']} ({label})" if label else row["status"],
        "created": moment(row.get("created_at")),
        "cost": dollars(row.get("charged_nanos")),
    }


_EVENTS: Final = PagedList("events", EVENT, COLUMNS, _shown)


@command()
@click.argument("agent", type=AGENT_WORD, required=False)
@click.option("--from", "last_id", metavar="ID", help="Begin after this frame; 0: with an agent's oldest.")
@click.option("--count", type=click.IntRange(1), help="End after this many frames.")
@click.option("--filter", "q", metavar="FILTER", help=f"{FILTER_HELP} Of a workspace.")
@calling
def watch(
    caller: Caller, *, agent: str | None, last_id: str | None, count: int | None, q: str | None
) -> None:
    """Show what an AGENT does while it does it, or all agents of the workspace, until Ctrl-C.

    Nothing is missed: when the server goes away and comes back, this goes on behind the last frame it had.
    With --json every frame is one document on a line of its own.
    """
    if agent is not None and q is not None:
        raise Fault("--filter is for a workspace", "Leave the AGENT out, and add agent:NAME.", status=USAGE)
    with caller.client() as client:
        path = workspace_path(caller, client) if agent is None else agent_path(caller, client, agent)
        query = "" if q is None else f"?{urlencode({'q': q})}"
        for frame in islice(_frames(client, f"{path}/events/stream{query}", caller, last_id), count):
            if caller.output.as_json:
                caller.output.item({"id": frame.id, **frame.data})
            else:
                caller.output.say(spell(frame))


def _frames(client: Client, path: str, caller: Caller, last_id: str | None) -> Iterator[Frame]:
    follower = Follower(client, path, last_id=last_id, note=caller.output.note)
    return (frame for frame in follower if frame.kind != OPENED)


# --- messages -----------------------------------------------------------------------------------------------


@command()
@click.argument("agent", type=AGENT_WORD)
@click.argument("message", required=False)
@click.option("--no-wait", is_flag=True, help="Only send it; print the event's id.")
@click.option(
    "--file",
    "files",
    type=click.Path(dir_okay=False, path_type=Path),
    multiple=True,
    help="A file to send along, which the run finds in `in` of its folder. May be given several times.",
)
@click.option("--version", type=click.IntRange(1), help=f"{VERSION_HELP} 'sexton agent versions' lists them.")
@calling
def steer(
    caller: Caller,
    *,
    agent: str,
    message: str | None,
    no_wait: bool,
    files: tuple[Path, ...],
    version: int | None,
) -> None:
    """Wake an AGENT with a MESSAGE and show its answer as it comes.

    Without MESSAGE it is read from standard input. The exit status is 0 when the event was processed.
    """
    text = _message(caller, message)
    with caller.client() as client:
        path = agent_path(caller, client, agent)
        brought = send_files(client, workspace_path(caller, client), files) if files else []
        asked = {} if version is None else {"agent_version": version}
        body: Row = {"message": text, **({"files": brought} if brought else {}), **asked}
        if no_wait:
            sent = client.post(f"{path}/messages", body)
            event_id = field(sent, "event_id", str)
            caller.output.document(sent) if caller.output.as_json else caller.output.say(event_id)
            return
        event = follow_to_the_end(caller, client, path, body)
    if caller.output.as_json:
        caller.output.document(event)
    if event.get("status") != "processed":
        label = event.get("failure_label") or event.get("error_code")
        told = f"the event ended {event.get('status')}" + (f": {label}" if label else "")
        raise Fault(
            told, f"'sexton event list {agent}' shows it.", status=FAILED, code=event.get("error_code")
        )


def _message(caller: Caller, message: str | None) -> str:
    text = _piped(caller) if message is None else message
    if not 1 <= len(text.encode(errors="replace")) <= MAX_MESSAGE_BYTES:
        raise Fault(f"a message has 1 to {MAX_MESSAGE_BYTES} bytes", status=USAGE)
    return text


def _piped(caller: Caller) -> str:
    if caller.interactive:
        caller.output.note("Write the message; Ctrl-D ends it.")
    try:
        # The bound is in bytes; this many characters are enough to know that it is passed.
        text: str = sys.stdin.read(MAX_MESSAGE_BYTES + 1)
    except UnicodeDecodeError as fault:
        raise Fault("the message is not UTF-8", status=USAGE) from fault
    return text


def follow_to_the_end(
    caller: Caller, client: Client, path: str, body: Row, *, sleep: Callable[[float], None] = time.sleep
) -> Row:
    """Send once the stream stands, so that no frame of the answer is missed; the event as it ended."""
    said = False
    event_id: str | None = None
    for frame in Follower(client, f"{path}/events/stream", note=caller.output.note, sleep=sleep):
        if frame.kind == OPENED:
            event_id = field(client.post(f"{path}/messages", body), "event_id", str)
            caller.output.note(f"Event {event_id}.")
        if frame.data.get("event_id") != event_id:
            continue
        if frame.kind == "event_complete":
            break
        if frame.kind == "chunk" and not caller.output.as_json:
            caller.output.piece(str(frame.data.get("text", "")))
            said = True
        elif not caller.output.as_json:
            _tell(caller, frame)
    event = client.get(f"{path}/events/{event_id}")
    if not caller.output.as_json:
        caller.output.piece("\n" if said else f"{event.get('response_text') or ''}\n")
    return event


def _tell(caller: Caller, frame: Frame) -> None:
    """What happens on the way, beside the answer."""
    told = {
        "tool_call_started": f"… {frame.data.get('name')}",
        "gate_pending": f"… waits for a person: sexton approvals show {frame.data.get('gate_id')}",
        "gate_resolved": f"… approval {frame.data.get('gate_id')}: {frame.data.get('status')}",
        "connection": f"… {spell_connection(frame.data)}",
        "lease_reclaimed": "… its runner was lost; another takes over",
    }.get(frame.kind)
    if told is not None:
        caller.output.note(told)


# --- again, or not at all -----------------------------------------------------------------------------------


@command()
@click.argument("event", type=EVENT_WORD)
@click.option("--request", metavar="JSON", help="What the new event asks, in place of what the old one did.")
@click.option("--merge", metavar="JSON", help="What is merged into the old request; null takes away.")
@click.option("--version", type=click.IntRange(1), help=f"{VERSION_HELP} 'sexton agent versions' lists them.")
@calling
def replay(
    caller: Caller, *, event: str, request: str | None, merge: str | None, version: int | None
) -> None:
    """Do the EVENT of this id again, as a new one."""
    asked = {
        "request": document_of("--request", request),
        "merge": document_of("--merge", merge),
        "agent_version": version,
    }
    made = _act(caller, event, "replay", {name: value for name, value in asked.items() if value is not None})
    if caller.output.as_json:
        caller.output.document(made)
        return
    caller.output.say(field(made, "event_id", str))


@command()
@click.argument("event", type=EVENT_WORD)
@calling
def cancel(caller: Caller, *, event: str) -> None:
    """Cancel the EVENT of this id; one that runs is stopped."""
    answer = _act(caller, event, "cancel")
    if caller.output.as_json:
        caller.output.document(answer)
        return
    caller.output.say(f"Event {event}: {answer.get('status')}.")


@events.command("replay")
@click.option("--filter", "picked", required=True, metavar="FILTER", help="Which events: see the reference.")
@click.option("--dry-run", is_flag=True, help="Count, and show some, without replaying any.")
@click.option("--rate", type=click.IntRange(1, 100_000), help="Events a second, at most.")
@click.option("--request", metavar="JSON", help="What the new events ask, in place of what the old ones did.")
@click.option("--merge", metavar="JSON", help="What is merged into each old request; null takes away.")
@click.option("--version", type=click.IntRange(1), help=f"{VERSION_HELP} Each agent has its own.")
@calling
def replay_many(
    caller: Caller,
    *,
    picked: str,
    dry_run: bool,
    rate: int | None,
    request: str | None,
    merge: str | None,
    version: int | None,
) -> None:
    """Do all events again that are over and that a filter picks; a job does it, whose id is printed."""
    asked = {"request": document_of("--request", request), "merge": document_of("--merge", merge)}
    body = {"filter": picked, "dry_run": dry_run, "rate": rate, "agent_version": version, **asked}
    begin(caller, "events:replay", {name: value for name, value in body.items() if value is not None})


@events.command("cancel")
@click.option("--filter", "picked", required=True, metavar="FILTER", help="Which events: see the reference.")
@click.option("--dry-run", is_flag=True, help="Count, and show some, without cancelling any.")
@click.option("--rate", type=click.IntRange(1, 100_000), help="Events a second, at most.")
@calling
def cancel_many(caller: Caller, *, picked: str, dry_run: bool, rate: int | None) -> None:
    """Cancel all events that are not over and that a filter picks; a job does it, whose id is printed."""
    body = {"filter": picked, "dry_run": dry_run, "rate": rate}
    begin(caller, "events:cancel", {name: value for name, value in body.items() if value is not None})


@events.command("export")
@click.option("--filter", "q", metavar="FILTER", help=FILTER_HELP)
@calling
def export(caller: Caller, *, q: str | None) -> None:
    """Write all events, newest first and whole, to standard output, a JSON object a line."""
    query = "" if q is None else f"?{urlencode({'q': q})}"
    with caller.client() as client:
        path = f"{workspace_path(caller, client)}/events/export{query}"
        sys.stdout.flush()
        for piece in client.download(path):
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()


def _act(caller: Caller, event_id: str, verb: str, body: Row | None = None) -> Row:
    with caller.client() as client:
        return client.post(f"{path_of(caller, client, short_ids.EVENT, event_id)}/{verb}", body or {})
