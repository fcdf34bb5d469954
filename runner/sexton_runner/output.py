"""Keeps of a run's output what its report may carry: the beginning, the end, and the last line of JSON."""

from typing import Any

import orjson

HEAD_BYTES = 48 * 1024
TAIL_BYTES = 80 * 1024  # Holds the evidence line, which may be 64 KiB long.
SHOWN_TAIL_BYTES = 16 * 1024
MAX_EVIDENCE_BYTES = 64 * 1024
MAX_DEPTH = 32  # The control plane refuses a whole body that is nested deeper than 64.
MAX_OUTPUT_BYTES = 8 << 20  # A run that prints more is stopped.


class Output:
    """The bounded memory of one stream."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def __repr__(self) -> str:
        return f"<Output {self.total} bytes>"

    @property
    def flooded(self) -> bool:
        """Tell whether more came than a run may print."""
        return self.total > MAX_OUTPUT_BYTES

    def feed(self, piece: bytes) -> None:
        """Take the next piece."""
        self.total += len(piece)
        room = HEAD_BYTES - len(self._head)
        self._head += piece[: max(room, 0)]
        self._tail += piece
        del self._tail[:-TAIL_BYTES]

    def text(self) -> str:
        """Give the output, with its middle left out when it is long."""
        if self.total <= HEAD_BYTES:
            return self._head.decode("utf-8", "replace")
        if self.total <= HEAD_BYTES + SHOWN_TAIL_BYTES:
            return (self._head + self._tail[-(self.total - HEAD_BYTES) :]).decode("utf-8", "replace")
        left_out = self.total - HEAD_BYTES - SHOWN_TAIL_BYTES
        middle = f"\n[… {left_out} bytes left out …]\n"
        return (
            self._head.decode("utf-8", "replace")
            + middle
            + self._tail[-SHOWN_TAIL_BYTES:].decode("utf-8", "replace")
        )

    def evidence(self) -> dict[str, Any] | None:
        """Give the last line that is a JSON object of at most 64 KiB; None without one, or if too deep."""
        for line in reversed(bytes(self._tail).split(b"\n")):
            if line.strip().startswith(b"{") and len(line) <= MAX_EVIDENCE_BYTES:
                try:
                    found = orjson.loads(line)
                except orjson.JSONDecodeError:
                    continue
                return dict(found) if shallow(found) else None
        return None


def shallow(value: object, levels: int = MAX_DEPTH) -> bool:
    """Tell whether a JSON value is nested at most ``levels`` deep.

    >>> shallow({"a": [1]}, 2), shallow({"a": [1]}, 1)
    (True, False)
    """
    match value:
        case dict():
            return levels > 0 and all(shallow(inner, levels - 1) for inner in value.values())
        case list():
            return levels > 0 and all(shallow(inner, levels - 1) for inner in value)
        case _:
            return True
