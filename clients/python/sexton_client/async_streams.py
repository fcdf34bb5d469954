"""Follows what happens, over cuts and restarts of the server, on asyncio and on trio."""

import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing, suppress
from http import HTTPStatus
from types import TracebackType
from typing import Final, Self

import anyio
import httpx2

from sexton_client.errors import NotUnderstood, SextonError
from sexton_client.faults import stream_faults
from sexton_client.frames import MAX_FRAME_BYTES, Frame, Place, check_opened
from sexton_client.messages import Answer, read
from sexton_client.retries import Patience
from sexton_client.streams import MAX_REFUSAL_BYTES

UNWIND_S: Final = 1.0
"""For what takes no time, since the connection is closed."""


class AsyncStream(AsyncIterator[Frame]):
    """Frames, one after the other, until the thing that is followed is gone or ``aclose`` is called.

    It opens itself again wherever it is cut, and goes on after the last frame. Use it as a context manager,
    or close it, to give its connection back; one task at a time may read it.
    """

    def __init__(
        self,
        http: httpx2.AsyncClient,
        base_url: str,
        path: str,
        *,
        headers: Mapping[str, str],
        last_event_id: str | None,
        patience: Patience,
    ) -> None:
        self._http = http
        self._base_url = base_url
        self._path = path
        self._headers = headers
        self._place = Place(last_event_id, patience)
        self._frames = self._follow()
        self._ahead: list[Frame] = []

    def __repr__(self) -> str:
        return f"<AsyncStream of {self._path} after {self._place.last_id}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def __anext__(self) -> Frame:
        while not self._ahead:
            await self._step()
        return self._ahead.pop()

    async def open(self) -> Self:
        """Wait for the first word of the server, so that nothing is missed that happens from now on."""
        with suppress(StopAsyncIteration):
            await self._step()
        return self

    async def _step(self) -> None:
        try:
            frame = await anext(self._frames)
        except (StopAsyncIteration, SextonError):
            raise
        except BaseException:
            # A time limit ends the generator that it meets, but not the stream, which goes on where it was.
            self._frames = self._follow()
            raise
        if frame is not None:
            self._ahead.append(frame)

    @property
    def last_event_id(self) -> str | None:
        """Where a later stream goes on, for ``last_event_id``."""
        return self._place.last_id

    async def aclose(self) -> None:
        """End it; a second time does nothing."""
        await self._frames.aclose()

    async def _follow(self) -> AsyncGenerator[Frame | None]:
        while True:
            fault: SextonError | None = None
            try:
                async with aclosing(self._read()) as frames:
                    async for frame in frames:
                        yield frame
            except SextonError as raised:
                fault = raised
            pause_s = self._place.pause_s(fault, now_s=time.monotonic(), dice=random.random())
            if pause_s is None:
                return
            await anyio.sleep(pause_s)

    async def _read(self) -> AsyncGenerator[Frame | None]:
        with stream_faults(self._base_url):
            async with AsyncExitStack() as stack:
                source = await stack.enter_async_context(
                    self._http.sse(
                        f"{self._base_url}{self._path}",
                        headers={**self._headers, "accept": "text/event-stream", **self._place.headers()},
                        follow_redirects=False,
                        max_event_size=MAX_FRAME_BYTES,
                    )
                )
                response = source.response
                if response.status_code != HTTPStatus.OK:
                    answer = Answer(response.status_code, response.headers, await _refusal(response))
                    read(answer, bytes, self._base_url, now_s=time.time())
                    raise NotUnderstood(f"{self._base_url} answered {answer.status} to a stream.")
                check_opened(response, self._base_url)
                self._place.opened()
                events = aiter(source)
                try:
                    async for event in events:
                        yield self._place.take(event)
                finally:
                    await _unwind(response, events)


async def _unwind(response: httpx2.Response, events: AsyncIterator[httpx2.ServerSentEvent]) -> None:
    """Close the connection, and let the library's generators end by that, as trio asks for."""
    with anyio.move_on_after(UNWIND_S, shield=True), suppress(Exception):
        await response.aclose()
        async for _ in events:
            pass


async def _refusal(response: httpx2.Response) -> bytes:
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > MAX_REFUSAL_BYTES:
            break
    return bytes(body)
