"""``sexton event frames``: shows the raw frames of an event's stream."""

from typing import Final
from urllib.parse import urlencode

import click
import orjson

from sexton_cli.caller import Caller
from sexton_cli.client import Row
from sexton_cli.commands.command import command
from sexton_cli.commands.options import calling
from sexton_cli.commands.words import EVENT_WORD
from sexton_cli.output import moment
from sexton_cli.short_ids import EVENT, path_of

PAGE: Final = 500


@command()
@click.argument("event", type=EVENT_WORD)
@calling
def frames(caller: Caller, *, event: str) -> None:
    """Show the raw frames of the EVENT of this id, the oldest first; they are kept for a day.

    With --json each frame is one document on a line of its own.
    """
    any_frame, cursor = False, None
    with caller.client() as client:
        path = f"{path_of(caller, client, EVENT, event)}/frames"
        while True:
            asked = {"limit": str(PAGE), **({} if cursor is None else {"cursor": cursor})}
            page = client.get(f"{path}?{urlencode(asked)}")
            for frame in page["items"]:
                any_frame = True
                caller.output.item(frame) if caller.output.as_json else caller.output.say(told(frame))
            cursor = page.get("next_cursor")
            if cursor is None:
                break
    if not any_frame:
        caller.output.note("No frame is kept of this event. 'sexton event transcript' may have more.")


def told(frame: Row) -> str:
    """Spell one frame.

    >>> told({"seq": 7, "kind": "chunk", "at_ms": 0, "data": {"text": "done"}})
    '7 1970-01-01 00:00:00Z chunk {"text":"done"}'
    """
    return f"{frame['seq']} {moment(frame['at_ms'])} {frame['kind']} {orjson.dumps(frame['data']).decode()}"
