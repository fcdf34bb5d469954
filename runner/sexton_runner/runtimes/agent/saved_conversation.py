"""What a run leaves for the next: the conversation when it was parked, a note when its window was full."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import orjson

from sexton_runner.providers.base import Message, ToolAnswer
from sexton_runner.runtimes.agent.window import answers_in, windowed

VERSION = 1
KEY = "agent"
MAX_KEPT_BYTES = 1 << 20  # The control plane takes bodies of 2 MB, with the rest of the checkpoint in them.


class TooLarge(Exception):
    """Even without old tool results the conversation is larger than a checkpoint may be."""


class SavedConversation(msgspec.Struct, frozen=True):
    """The model's side of a checkpoint.

    ``answered`` are answers to the tool uses of the last message that were there when a person had to be
    waited for; the others are still to be carried out, under the same ids.
    """

    version: int = VERSION
    stage: int = 1
    note: str = ""
    calls: int = 0
    messages: tuple[Message, ...] = ()
    answered: tuple[ToolAnswer, ...] = ()
    pieces: tuple[str, ...] = ()
    """What was said of an answer that is being gone on with."""


def encode(saved: SavedConversation) -> dict[str, Any]:
    """Give it as a member of a checkpoint, old tool results shortened if need be; raises ``TooLarge``."""
    keep = answers_in(saved.messages)
    while True:
        plain = msgspec.to_builtins(saved)
        if len(orjson.dumps(plain)) <= MAX_KEPT_BYTES:
            return {KEY: plain}
        if keep == 0:
            raise TooLarge(f"the conversation has more than {MAX_KEPT_BYTES} bytes")
        keep //= 2
        saved = msgspec.structs.replace(saved, messages=tuple(windowed(saved.messages, keep)))


def decode(checkpoint: object) -> SavedConversation:
    """Read it from a lease's checkpoint; one that cannot be read counts as none.

    >>> decode({"gates": {}}).messages
    ()
    """
    try:
        plain = orjson.loads(checkpoint) if isinstance(checkpoint, str | bytes) else checkpoint
        found = msgspec.convert(
            (plain or {}).get(KEY, {}) if isinstance(plain, Mapping) else {}, SavedConversation
        )
    except (msgspec.ValidationError, orjson.JSONDecodeError):
        return SavedConversation()
    return found if found.version == VERSION and _sound(found.messages) else SavedConversation()


def _sound(messages: Sequence[Message]) -> bool:
    """Whether sides take turns, a user's first: nothing else can be asked."""
    return all(message.role == ("user", "assistant")[place % 2] for place, message in enumerate(messages))
