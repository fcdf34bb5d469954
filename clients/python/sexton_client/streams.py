"""Follows what happens, over cuts and restarts of the server, without an event loop."""

import random
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, suppress
from http import HTTPStatus
from types import TracebackType
from typing import Self

import httpx2

from sexton_client.errors import NotUnderstood, SextonError
from sexton_client.faults import stream_faults
from sexton_client.frames import MAX_FRAME_BYTES, Frame, Place, check_opened
from sexton_client.messages import Answer, read
from sexton_client.retries import Patience

MAX_REFUSAL_BYTES = 1024 * 1024


class Stream(Iterator[Frame]):
    """Frames, one after the other, until the thing that is followed is gone or ``close`` is called.

    It is open when it is made, opens itself again wherever it is cut, and goes on after the last frame. Use
    it as a context manager, or close it, to give its connection back.
    """

    def __init__(
        self,
        http: httpx2.Client,
        base_url: str,
        path: str,
        *,
        headers: Mapping[str, str],
        last_event_id: str | None,
        patience: Patience,
        sleep: Callable[[float], None],
    ) -> None:
        self._http = http
        self._base_url = base_url
        self._path = path
        self._headers = headers
        self._sleep = sleep
        self._place = Place(last_event_id, patience)
        self._frames = self._follow()
        self._ahead: list[Frame] = []
        self._open()

    def __repr__(self) -> str:
        return f"<Stream of {self._path} after {self._place.last_id}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __next__(self) -> Frame:
        while not self._ahead:
            self._step()
        return self._ahead.pop()

    def _open(self) -> None:
        """Wait for the first word of the server, so that nothing is missed that happens from now on."""
        with suppress(StopIteration):
            self._step()

    def _step(self) -> None:
        frame = next(self._frames)
        if frame is not None:
            self._ahead.append(frame)

    @property
    def last_event_id(self) -> str | None:
        """Where a later stream goes on, for ``last_event_id``."""
        return self._place.last_id

    def close(self) -> None:
        """End it; a second time does nothing."""
        self._frames.close()

    def _follow(self) -> Generator[Frame | None]:
        while True:
            fault: SextonError | None = None
            try:
                yield from self._read()
            except SextonError as raised:
                fault = raised
            pause_s = self._place.pause_s(fault, now_s=time.monotonic(), dice=random.random())
            if pause_s is None:
                return
            self._sleep(pause_s)

    def _read(self) -> Generator[Frame | None]:
        with stream_faults(self._base_url), ExitStack() as stack:
            source = stack.enter_context(
                self._http.sse(
                    f"{self._base_url}{self._path}",
                    headers={**self._headers, "accept": "text/event-stream", **self._place.headers()},
                    follow_redirects=False,
                    max_event_size=MAX_FRAME_BYTES,
                )
            )
            response = source.response
            if response.status_code != HTTPStatus.OK:
                answer = Answer(response.status_code, response.headers, _refusal(response.iter_bytes()))
                read(answer, bytes, self._base_url, now_s=time.time())
                raise NotUnderstood(f"{self._base_url} answered {answer.status} to a stream.")
            check_opened(response, self._base_url)
            self._place.opened()
            for event in source:
                yield self._place.take(event)


def _refusal(pieces: Iterator[bytes]) -> bytes:
    body = bytearray()
    for piece in pieces:
        body += piece
        if len(body) > MAX_REFUSAL_BYTES:
            break
    return bytes(body)
