"""What a parked run leaves for its resumption: which approvals it asked for, and what became of them."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import orjson

from sexton_runner.output import shallow

VERSION = 1
MAX_REMEMBERED_GATES = 256
RESOLVED = ("approved", "denied", "timed_out", "auto_killed")


class Remembered(msgspec.Struct, frozen=True):
    """One gate of the run: ``status`` is ``pending`` while nobody has decided."""

    gate_id: str
    status: str
    detail: str = ""
    by: str = ""


class Checkpoint(msgspec.Struct, frozen=True):
    """All gates of the run, by action id."""

    version: int = VERSION
    gates: dict[str, Remembered] = {}

    def remember(self, action_id: str, gate: Remembered) -> "Checkpoint":
        """Add or replace a gate; of too many the oldest is forgotten, and would be asked for again."""
        gates = {**self.gates, action_id: gate}
        while len(gates) > MAX_REMEMBERED_GATES:
            del gates[next(iter(gates))]
        return Checkpoint(gates=gates)


def encode(checkpoint: Checkpoint) -> dict[str, object]:
    """Give the checkpoint as plain JSON values."""
    plain: dict[str, object] = msgspec.to_builtins(checkpoint)
    return plain


def decode(value: object) -> Checkpoint:
    """Read a lease's checkpoint, an object or its text.

    One that cannot be read counts as none: gates are asked for again.

    >>> decode(None)
    Checkpoint(version=1, gates={})
    """
    try:
        plain = orjson.loads(value) if isinstance(value, str | bytes) else value
        found = msgspec.convert(plain or {}, Checkpoint)
    except (msgspec.ValidationError, orjson.JSONDecodeError):
        return Checkpoint()
    return found if found.version == VERSION else Checkpoint()


@dataclass(frozen=True, slots=True)
class ActionName:
    """What identifies an ask within an event: tool, action, and that it is the ``nth`` such ask, from 0."""

    tool: str
    action: str
    nth: int


def action_id(event_id: str, name: ActionName) -> str:
    """Derive the id of an ask. Evidence and summary are left out: they may differ from run to run.

    >>> action_id("e", ActionName("t", "a", 0)) == action_id("e", ActionName("t", "a", 0))
    True
    >>> action_id("e", ActionName("t", "a", 0)) == action_id("e", ActionName("t", "a", 1))
    False
    """
    words = orjson.dumps([event_id, name.tool, name.action, name.nth])
    return f"act_{hashlib.sha256(words).hexdigest()[:32]}"


def call_action_id(event_id: str, call_id: str, *about: str) -> str:
    """Derive the id of the ask about one call of a model's, which a resumed run calls by the same id.

    ``about`` is what a person is shown: what was decided of one call is no answer to another, though a
    model's server should give both the same id.

    >>> call_action_id("e", "call_1") == call_action_id("e", "call_2")
    False
    >>> call_action_id("e", "call_1", "pay 1") == call_action_id("e", "call_1", "pay 1000")
    False
    """
    words = orjson.dumps([event_id, "call", call_id, *about])
    return f"act_{hashlib.sha256(words).hexdigest()[:32]}"


class Counter:
    """Numbers the asks of one run."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}

    def name(self, tool: str, action: str) -> ActionName:
        """Give the next name for this tool and action."""
        nth = self._counts.get((tool, action), 0)
        self._counts[tool, action] = nth + 1
        return ActionName(tool, action, nth)


def as_object(text: bytes) -> Mapping[str, object]:
    """Read an ask's evidence: a JSON object as it is, else under ``text``, nothing as an empty object.

    >>> as_object(b'{"a": 1}'), as_object(b"plain"), as_object(b"")
    ({'a': 1}, {'text': 'plain'}, {})
    """
    if not text:
        return {}
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    return value if isinstance(value, dict) and shallow(value) else {"text": text.decode("utf-8", "replace")}
