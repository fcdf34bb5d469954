"""``sexton transcript``: shows what the attempts at an event said and did."""

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlencode

import click
import orjson

from sexton_cli.caller import Caller
from sexton_cli.client import Client, Row
from sexton_cli.commands.command import command
from sexton_cli.commands.options import calling
from sexton_cli.commands.words import EVENT_WORD
from sexton_cli.output import moment
from sexton_cli.short_ids import EVENT, path_of

PAGE: Final = 200
SHOWN: Final = {"output": "text", "model": "text", "prompt": "text", "note": "text", "tool_result": "content"}
"""The field of each kind that is shown as text, the rest beside it."""


@command()
@click.argument("event", type=EVENT_WORD)
@click.option("--attempt", type=click.IntRange(1), help="Only this one; all of them otherwise.")
@calling
def transcript(caller: Caller, *, event: str, attempt: int | None) -> None:
    """Show what the attempts at the EVENT of this id said and did, in order.

    With --json each entry is one document on a line of its own.
    """
    with caller.client() as client:
        path = f"{path_of(caller, client, EVENT, event)}/transcript"
        attempts: list[Row] = []
        for page in _pages(client, path, attempt):
            attempts = page["attempts"]
            for entry in page["items"]:
                if caller.output.as_json:
                    caller.output.item(entry)
                else:
                    caller.output.piece(f"{told(entry)}\n")
    for row in attempts:
        if attempt in {None, row["attempt"]} and (word := _lacking(row)):
            caller.output.note(f"Attempt {row['attempt']}: {word}.")
    if not attempts:
        caller.output.note("Nothing is kept of this event's runs: none began yet, or it was too long ago.")


def _pages(client: Client, path: str, attempt: int | None) -> Iterator[Row]:
    cursor: str | None = None
    while True:
        asked = {"attempt": attempt, "whole": "true", "limit": PAGE, "cursor": cursor}
        page = client.get(f"{path}?{urlencode({k: v for k, v in asked.items() if v is not None})}")
        yield page
        cursor = page.get("next_cursor")
        if cursor is None:
            return


def told(entry: Row) -> str:
    """Spell one entry, with its head on a line of its own.

    >>> print(
    ...     told(
    ...         {
    ...             "attempt": 1,
    ...             "number": 2,
    ...             "kind": "output",
    ...             "at_ms": 0,
    ...             "data": {"stream": "stdout", "text": "done"},
    ...         }
    ...     )
    ... )
    1.2 output 1970-01-01 00:00:00Z {"stream":"stdout"}
    done
    """
    data: dict[str, Any] = dict(entry.get("data") or {})
    text = data.pop(SHOWN.get(entry["kind"], ""), None)
    place = f"{entry['attempt']}.{entry['number']}"
    facts = f" {orjson.dumps(data).decode()}" if data else ""
    head = f"{place} {entry['kind']} {moment(entry['at_ms'])}{facts}"
    return head if not text else f"{head}\n{text}"


def _lacking(row: Row) -> str:
    words = []
    if row["removed"]:
        words.append("its entries made room for newer ones")
    if row["cut"]:
        words.append("it reached the bound of a run, so its end is not kept")
    if row["missing"]:
        words.append(f"{row['missing']} entries were lost on their way")
    return "; ".join(words)
