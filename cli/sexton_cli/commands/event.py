"""``sexton event``: shows one event whole, says why it waits, and waits for its end; other verbs are late."""

import math
import time
from typing import Any, Final

import click
import orjson

from sexton_cli.caller import Caller
from sexton_cli.client import Row
from sexton_cli.commands.late_group import noun
from sexton_cli.commands.options import calling
from sexton_cli.commands.table import VERBS
from sexton_cli.commands.words import EVENT_WORD
from sexton_cli.exits import FAILED, Fault
from sexton_cli.output import Column, dollars, moment
from sexton_cli.short_ids import EVENT, path_of

LEASES: Final = (
    Column("attempt", "ATTEMPT"),
    Column("runner_id", "RUNNER", spare=True),
    Column("fencing_token", "TOKEN"),
    Column("became", "BECAME", elastic=True),
    Column("granted", "GRANTED", spare=True),
    Column("ended", "ENDED", spare=True),
    Column("cost", "COST"),
)
REASONS: Final = (
    Column("kind", "WAITS FOR"),
    Column("says", "WHY", elastic=True),
    Column("advice", "DO", elastic=True),
)
FAILURES: Final = frozenset({"agent_error", "gate_blocked", "dead_lettered"})
"""Ends of which the event's answer says more."""
WAIT_MS: Final = 20_000
"""How long one call waits; the server lets it be 30 s."""


@noun(late=VERBS["event"])
def event() -> None:
    """List, send, show, watch, replay and cancel events; say why one waits, or wait for its end."""


@event.command()
@click.argument("event", type=EVENT_WORD)
@calling
def show(caller: Caller, *, event: str) -> None:
    """Show the EVENT of this id: its request, its answer and its evidence, however long they are."""
    with caller.client() as client:
        found = client.get(path_of(caller, client, EVENT, event))
    if caller.output.as_json:
        caller.output.document(found)
        return
    caller.output.facts(
        {
            "event": found.get("event_id"),
            "agent": _agent(found),
            "status": _status(found),
            "actor": found.get("actor"),
            "type": found.get("event_type"),
            "tries": found.get("attempts"),
            "cost": dollars(found.get("charged_nanos")),
            "created": moment(found.get("created_at")),
            "completed": moment(found.get("completed_at")),
            "request": _spelled(found.get("request_json")),
            "evidence": _spelled(found.get("evidence")),
        }
    )
    if found.get("leases"):
        caller.output.table(LEASES, [_lease(row) for row in found["leases"]])
    if found.get("response_text"):
        caller.output.piece(f"\n{found['response_text']}\n")


@event.command()
@click.argument("event", type=EVENT_WORD)
@calling
def why(caller: Caller, *, event: str) -> None:
    """Say why the EVENT of this id waits, what to do about it, and when it may start."""
    with caller.client() as client:
        found = client.get(f"{path_of(caller, client, EVENT, event)}/why")
    if caller.output.as_json:
        caller.output.document(found)
        return
    caller.output.facts(
        {
            "event": found.get("event_id"),
            "status": found.get("status"),
            "why": found.get("says"),
            "answer": f"'sexton event show {event}' shows it" if found.get("status") in FAILURES else None,
            "place in the queue": found.get("place"),
            "place at its agent": found.get("place_of_agent"),
            "may start": moment(found.get("expected_start_at")),
        }
    )
    if found.get("reasons"):
        caller.output.table(REASONS, found["reasons"])


@event.command()
@click.argument("event", type=EVENT_WORD)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Give up then. [default: never]",
)
@calling
def wait(caller: Caller, *, event: str, timeout: float | None) -> None:
    """Wait until the EVENT of this id has ended, and say how; fails unless it was processed."""
    give_up_at = math.inf if timeout is None else time.monotonic() + timeout
    with caller.client() as client:
        path = path_of(caller, client, EVENT, event)
        while True:
            left_ms = (give_up_at - time.monotonic()) * 1000
            found = client.get(f"{path}?wait_ms={int(max(0, min(WAIT_MS, left_ms)))}")
            if found["ended"]:
                break
            if left_ms <= WAIT_MS:
                what = f"the event has not ended after {timeout:g} s; it is {_status(found)}"
                raise Fault(what, f"'sexton event show {event}' shows what it does.", status=FAILED)
    if caller.output.as_json:
        caller.output.document(found)
    else:
        caller.output.facts({"event": found.get("event_id"), "status": _status(found)})
    if found.get("status") != "processed":
        raise Fault(
            f"the event ended as {_status(found)}",
            f"'sexton event show {event}' shows its answer.",
            status=FAILED,
        )


def _lease(row: Row) -> Row:
    label = row.get("failure_label")
    became = row.get("outcome") or row.get("status")
    return {
        **row,
        "became": f"{became} ({label})" if label else became,
        "granted": moment(row.get("granted_at")),
        "ended": moment(row.get("ended_at")),
        "cost": dollars(row.get("charged_nanos")),
    }


def _agent(found: Row) -> str | None:
    # A server of an older release tells only its id.
    name, id_ = found.get("zombie_name"), found.get("zombie_id")
    return f"{name} ({id_})" if name else id_


def _status(found: Row) -> str:
    label = found.get("failure_label")
    return f"{found.get('status')} ({label})" if label else str(found.get("status"))


def _spelled(document: Any) -> str | None:
    return None if document is None else orjson.dumps(document).decode()
