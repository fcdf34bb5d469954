"""Looks at the first request of a connection, to know to whom the connection belongs, before it is served."""

import re
from collections.abc import Sequence
from typing import Final

import ngh2
import trio

from sexton_http.wire import timeouts
from sexton_http.wire.heads import MAX_HEAD_BYTES
from sexton_http.wire.http2_heads import read_head
from sexton_http.wire.http2_session import PREFACE, open_session
from sexton_http.wire.transport import Transport

SETTINGS_S: Final = 0.05
"""How long a client of HTTP/2 is waited for that sends nothing but its preface: it may wait for ours."""
_BEARER: Final = re.compile(rb"\r\nauthorization:[ \t]*bearer[ \t]+([!-~]+)", re.IGNORECASE)


def token_of(first: bytes) -> bytes:
    r"""The bearer token of the first request; empty without one, or where it is not to be seen.

    >>> token_of(b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer zrn_1\r\n\r\n")
    b'zrn_1'
    >>> token_of(b"POST / HTTP/1.1\r\nHost: x\r\n\r\n\r\nAuthorization: Bearer zrn_1")
    b''
    """
    if first.startswith(PREFACE):
        values = [value for name, value in _http2_headers(first) if name == b"authorization"]
        found = _BEARER.match(b"\r\nauthorization:" + values[0]) if values else None
    else:
        found = _BEARER.search(first, 0, max(0, first.find(b"\r\n\r\n")))
    return found[1] if found else b""


def _http2_headers(first: bytes) -> Sequence[tuple[bytes, bytes]]:
    """The first request's in these bytes, by a session that is thrown away."""
    session, _ = open_session()
    try:
        session.receive_data(first)
        events = session.events()
    except (ngh2.NGH2Error, ValueError):
        return ()
    for event in events:
        if isinstance(event, ngh2.RequestReceived):
            return read_head(event.headers).headers
    return ()


def is_enough(first: bytes) -> bool:
    r"""Whether all is there that will be looked at.

    >>> is_enough(b"GET / HTTP/1.1\r\n"), is_enough(b"GET / HTTP/1.1\r\n\r\n"), is_enough(PREFACE[:9])
    (False, True, False)
    """
    if first.startswith(PREFACE):
        return bool(_http2_headers(first))
    return b"\r\n\r\n" in first or len(first) > MAX_HEAD_BYTES


class FirstRequest:
    """The beginning of a connection, as far as its time is concerned."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._scope = trio.CancelScope()
        self._began = trio.current_time()
        self._data = b""

    async def run(self) -> bytes | None:
        """What has come of the connection when its first head is here; None when it is to be closed.

        A client that ends, or that waits for the server's first word, is let through with what it has sent.
        """
        with self._scope:
            while not is_enough(self._data):
                wait_s = SETTINGS_S if self._data.startswith(PREFACE) else timeouts.READ_S
                with trio.move_on_after(wait_s) as patience:
                    data = await self._transport.receive()
                if patience.cancelled_caught and self._data.startswith(PREFACE):
                    break
                if patience.cancelled_caught:
                    continue
                if not data:
                    break
                self._data += data
            return self._data
        return None

    def due(self) -> float:
        return self._began + (timeouts.READ_S if self._data else timeouts.KEEP_ALIVE_S)

    def idle_since(self) -> float:
        return self._began

    def cut(self) -> None:
        self._scope.cancel()

    def close_if_idle(self) -> None:
        if not self._data:
            self._scope.cancel()
