"""The transcript of a run: what it said and did, numbered and redacted, on its way to the control plane."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from sexton_runner.frames import Frame
from sexton_runner.redact import Redactor
from sexton_runner.wire import MAX_ENTRIES_PER_CALL

Record = Callable[[str, Mapping[str, Any]], None]
"""Takes the kind of an entry and what it tells; never waits."""

PIECE_CHARS: Final = 3_400
"""Each piece of a long text is an entry, short enough to be shown whole in a list."""
MAX_DATA_BYTES: Final = 192 * 1024
"""The most of what has no text to be cut into pieces, such as arguments; beyond it they are shortened."""
MAX_KEPT_BYTES: Final = 1024
"""The longest field that is kept of what is shortened; of the whole, the beginning is shown."""
MAX_QUEUED_BYTES: Final = 4 << 20
MAX_CALL_BYTES: Final = 512 * 1024
OUTPUT: Final = "output"
PIECED: Final = {
    "output": "text",
    "model": "text",
    "prompt": "text",
    "note": "text",
    "tool_result": "content",
}
"""The field of each kind that is cut into pieces."""
STEP_KINDS: Final = {"tool_call_started": "begin", "tool_call_completed": "end"}


def unrecorded(kind: str, data: Mapping[str, Any]) -> None:
    """Take an entry where no transcript is kept."""
    del kind, data


@dataclass(slots=True)
class _Entry:
    number: int
    kind: str
    at_ms: int
    data: dict[str, Any]
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = len(orjson.dumps(self.data))

    @property
    def body(self) -> dict[str, Any]:
        return {"number": self.number, "kind": self.kind, "at_ms": self.at_ms, "data": self.data}


class Transcript:
    """The entries of one run that are not sent yet.

    What is said while the queue is full is numbered and left out, so that the gap shows.
    """

    def __init__(self, redactor: Redactor, now: Callable[[], float] | None = None) -> None:
        self._redactor, self._now = redactor, now or time.time
        self._entries: deque[_Entry] = deque()
        self._bytes = 0
        self._last = 0
        self.closed = False

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, kind: str, data: Mapping[str, Any]) -> None:
        """Add what was said; a long text becomes several entries, neighbouring output one."""
        if self.closed:
            return
        safe = self._redactor.json(plain(data))
        for piece in pieces(kind, safe):
            if not (kind == OUTPUT and self._joined(piece)):
                self._append(kind, piece)

    def take(self) -> list[dict[str, Any]]:
        """Remove what one call may carry: at most 256 entries and about 512 KiB, but at least one entry."""
        taken: list[dict[str, Any]] = []
        size = 0
        while self._entries and len(taken) < MAX_ENTRIES_PER_CALL:
            size += self._entries[0].size
            if taken and size > MAX_CALL_BYTES:
                break
            entry = self._entries.popleft()
            self._bytes -= entry.size
            taken.append(entry.body)
        return taken

    def close(self) -> None:
        """Keep nothing from now on."""
        self.closed = True
        self._entries.clear()
        self._bytes = 0

    def _append(self, kind: str, data: dict[str, Any]) -> None:
        self._last += 1
        if self._bytes <= MAX_QUEUED_BYTES:
            entry = _Entry(self._last, kind, int(self._now() * 1000), data)
            self._entries.append(entry)
            self._bytes += entry.size

    def _joined(self, data: Mapping[str, Any]) -> bool:
        last = self._entries[-1] if self._entries else None
        if last is None or last.number != self._last or last.kind != OUTPUT:
            return False
        text = last.data["text"] + data["text"]
        if last.data["stream"] != data["stream"] or len(text) > PIECE_CHARS:
            return False
        self._bytes -= last.size
        last.data["text"] = text
        last.size = len(orjson.dumps(last.data))
        self._bytes += last.size
        return True


def steps(show: Callable[[Frame], None], record: Record) -> Callable[[Frame], None]:
    """Show frames, and record those that begin and end a step."""

    def told(frame: Frame) -> None:
        show(frame)
        if (what := STEP_KINDS.get(frame["kind"])) is not None:
            facts = {name: frame[name] for name in ("name", "ms", "ok") if name in frame}
            record("step", {"what": what, **facts})

    return told


def pieces(kind: str, data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Cut what an entry tells into what one entry may hold.

    >>> list(pieces("note", {"text": "x" * 3401}))[1]
    {'text': 'x'}
    >>> next(pieces("tool_call", {"id": "1", "arguments": {"a": "x" * 200_000}}))["shortened_from"]
    200031
    """
    name = PIECED.get(kind, "")
    text = data.get(name)
    if isinstance(text, str) and len(text) > PIECE_CHARS:
        same: dict[str, Any] = {key: data[key] for key in ("id", "stream") if key in data}
        yield from pieces(kind, {**data, name: text[:PIECE_CHARS]})
        for start in range(PIECE_CHARS, len(text), PIECE_CHARS):
            yield {**same, name: text[start : start + PIECE_CHARS]}
        return
    spelled = orjson.dumps(data)
    size = len(spelled)
    if size <= MAX_DATA_BYTES:
        yield data
        return
    short = {key: value for key, value in data.items() if len(orjson.dumps(value)) <= MAX_KEPT_BYTES}
    begins = spelled[:PIECE_CHARS].decode("utf-8", "ignore")
    yield {**short, "begins": begins, "shortened_from": size}


def plain(value: object) -> Any:
    r"""Give JSON that can be spelled: no half of a character, no key but a text, no number without an end.

    >>> plain({1: ["a\ud800", float("nan"), 2**70]})
    {'1': ['a?', 'nan', '1180591620717411303424']}
    """
    match value:
        case bool() | None:
            return value
        case str():
            return value if value.isascii() else value.encode("utf-8", "replace").decode()
        case int():
            return value if -(2**63) <= value < 2**63 else str(value)
        case float():
            return value if value - value == 0 else str(value)
        case Mapping():
            return {plain(str(key)): plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [plain(inner) for inner in value]
        case _:
            return plain(str(value))
