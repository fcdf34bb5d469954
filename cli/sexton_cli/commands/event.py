"""``sexton event``: shows one event with all that lists leave out."""

from typing import Any

import click
import orjson

from sexton_cli.caller import Caller
from sexton_cli.client import Row
from sexton_cli.commands.options import calling
from sexton_cli.lookups import segment, workspace_path
from sexton_cli.output import dollars, moment


@click.group()
def event() -> None:
    """Show one event whole."""


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


def _status(found: Row) -> str:
    label = found.get("failure_label")
    return f"{found.get('status')} ({label})" if label else str(found.get("status"))


def _spelled(document: Any) -> str | None:
    return None if document is None else orjson.dumps(document).decode()
