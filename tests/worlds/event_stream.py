"""Listens to server-sent events over a bare socket."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import trio


class Listener:
    """Reads one chunked answer, line by line."""

    def __init__(self, stream: trio.abc.ReceiveStream) -> None:
        self.stream = stream
        self._raw = b""
        self._text = b""
        self.status = 0
        self.headers: dict[str, str] = {}
        self.ended = False

    async def head(self) -> None:
        while b"\r\n\r\n" not in self._raw:
            await self._read()
        head, _, self._raw = self._raw.partition(b"\r\n\r\n")
        first, *rest = head.decode().split("\r\n")
        self.status = int(first.split(" ")[1])
        self.headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in rest)}

    async def line(self) -> str | None:
        """The next line, None at the end of the answer."""
        while b"\n" not in self._text:
            if not await self._chunk():
                return None
        line, _, self._text = self._text.partition(b"\n")
        return line.decode()

    async def frame(self) -> dict[str, Any]:
        """The next frame: its data, with its id; comments and retry are passed over."""
        fields: dict[str, str] = {}
        while True:
            line = await self.line()
            assert line is not None, "the stream ended"
            if not line and "data" in fields:
                break
            if line and not line.startswith((":", "retry")):
                name, _, value = line.partition(": ")
                fields[name] = value
        data: dict[str, Any] = json.loads(fields["data"])
        assert data["kind"] == fields["event"]
        return {**data, "id": int(fields["id"]) if fields["id"].isdigit() else fields["id"]}

    async def _chunk(self) -> bool:
        while b"\r\n" not in self._raw:
            if not await self._read():
                return False
        size, _, self._raw = self._raw.partition(b"\r\n")
        length = int(size, 16)
        while len(self._raw) < length + 2:
            if not await self._read():
                return False
        self._text += self._raw[:length]
        self._raw = self._raw[length + 2 :]
        self.ended = length == 0
        return length > 0

    async def _read(self) -> bool:
        data = await self.stream.receive_some(65536)
        self._raw += data
        return bool(data)


async def retry_ms(listener: Listener) -> int:
    """What the stream's first line says of when to come back."""
    name, _, value = (await listener.line() or "").partition(": ")
    assert name == "retry", name
    return int(value)


@asynccontextmanager
async def listening(base_url: str, path: str, token: str | None, **headers: str) -> AsyncIterator[Listener]:
    url = urlsplit(base_url)
    stream = await trio.open_tcp_stream(url.hostname or "", url.port or 0)
    async with stream:
        lines = [f"GET {path} HTTP/1.1", "host: x"]
        lines += [] if token is None else [f"authorization: Bearer {token}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await stream.send_all("\r\n".join([*lines, "", ""]).encode())
        listener = Listener(stream)
        await listener.head()
        yield listener
