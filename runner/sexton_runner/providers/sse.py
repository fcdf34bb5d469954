"""Takes server-sent events apart: their data, one by one, as it comes in."""

from collections.abc import AsyncGenerator, AsyncIterable

import httpx2

MAX_LINE_BYTES = 4 << 20


class EventData:
    r"""Cuts bytes into the data of events; names, ids and comments are nothing that a model's answer needs.

    >>> EventData().feed(b": ping\n\nevent: x\ndata: 1\r\ndata:2\r\n\r\nda")
    [b'1\n2']
    """

    def __init__(self) -> None:
        self._held = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> list[bytes]:
        """Take the next piece and give the data of each event that it ends; raises ``httpx2.ReadError``."""
        # A piece may end between a CR and its LF: the line is then known to be whole with the next one.
        text = self._held + piece
        cut = len(text) - 1 if text.endswith(b"\r") else len(text)
        *lines, rest = text[:cut].replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._held = rest + text[cut:]
        if len(self._held) > MAX_LINE_BYTES:
            raise httpx2.ReadError(f"a line has more than {MAX_LINE_BYTES} bytes")
        return [data for line in lines if (data := self._line(line)) is not None]

    def _line(self, line: bytes) -> bytes | None:
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        if line or not self._data:
            return None
        data, self._data = b"\n".join(self._data), []
        return data


async def event_data(pieces: AsyncIterable[bytes]) -> AsyncGenerator[bytes, None]:
    """Give the data of each event; an event that was not ended is none."""
    events = EventData()
    async for piece in pieces:
        for data in events.feed(piece):
            yield data
