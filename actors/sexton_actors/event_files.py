"""The files that an event brings, as its request and its lease tell of them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sexton_storage.records.event_files import EventFile
from sexton_storage.records.events import Event

NAMED: Final = '"files":['
STEERED: Final = "steer:"


def names_files(event: Event) -> bool:
    """Whether an event may bring files; only a message does, and says so in its request.

    What others send may say the same, and brings none: it is worth a look in the store and nothing more.
    """
    return event.actor.startswith(STEERED) and NAMED in event.request_json


def request_of(message: str, files: Sequence[EventFile]) -> Mapping[str, Any]:
    """Give what the event says: the message, and the files by name.

    >>> request_of("Look.", ())
    {'message': 'Look.'}
    """
    return {"message": message, **({"files": told(files)} if files else {})}


def told(files: Sequence[EventFile]) -> list[dict[str, Any]]:
    """Give what people, programs and models are told of files."""
    return [
        {
            "name": file.name,
            "media_type": file.media_type,
            "size": file.size,
            "sha256": file.sha256.hex(),
        }
        for file in files
    ]
