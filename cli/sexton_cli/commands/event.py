"""``sexton event``: shows one event with all that lists leave out, and waits for its end."""

import math
import time
from typing import Any, Final

import click
import orjson

from sexton_cli.caller import Caller
from sexton_cli.client import Row
from sexton_cli.commands.options import calling
from sexton_cli.exits import FAILED, Fault
from sexton_cli.lookups import segment, workspace_path
from sexton_cli.output import dollars, moment

WAIT_MS: Final = 20_000
"""How long one call waits; the server lets it be 30 s."""


@click.group()
def event() -> None:
    """Show one event whole, or wait for its end."""


@event.command()
@click.argument("event")
@calling
def show(caller: Caller, *, event: str) -> None:
    """Show the EVENT of this id: its request, its answer and its evidence, however long they are."""
    with caller.client() as client:
        found = client.get(f"{workspace_path(caller, client)}/events/{segment(event)}")
    if caller.output.as_json:
        caller.output.document(found)
        return
    caller.output.facts(
        {
            "event": found.get("event_id"),
            "agent": found.get("zombie_id"),
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
    if found.get("response_text"):
        caller.output.piece(f"\n{found['response_text']}\n")


@event.command()
@click.argument("event")
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
        path = f"{workspace_path(caller, client)}/events/{segment(event)}"
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


def _status(found: Row) -> str:
    label = found.get("failure_label")
    return f"{found.get('status')} ({label})" if label else str(found.get("status"))


def _spelled(document: Any) -> str | None:
    return None if document is None else orjson.dumps(document).decode()
