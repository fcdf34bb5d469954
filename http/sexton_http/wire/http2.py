"""HTTP/2 by Hypercorn, with its sharp ends covered; none of Hypercorn's private names is used."""

from collections.abc import Callable
from typing import Any, Final

import h2.connection
import h2.events
from hypercorn.config import Config
from hypercorn.protocol.events import Event as StreamEvent
from hypercorn.protocol.h2 import H2Protocol
from hypercorn.protocol.http_stream import HTTPStream
from hypercorn.protocol.ws_stream import WSStream
from hypercorn.typing import ConnectionState

from sexton_http.wire.heads import is_host

MAX_STREAMS: Final = 256
"""The bound of one connection, at once."""
MAX_REQUESTS: Final = 100_000
"""The bound of one connection, one after the other."""


class Http2Config(Config):
    """Hypercorn's settings as this server uses them."""

    errorlog = None
    accesslog = None
    h2_max_concurrent_streams = MAX_STREAMS
    keep_alive_max_requests = MAX_REQUESTS

    def __init__(self, date: Callable[[], list[tuple[bytes, bytes]]]) -> None:
        self._date = date

    def response_headers(self, protocol: str) -> list[tuple[bytes, bytes]]:
        del protocol
        return self._date()


class Http2(H2Protocol):
    """HTTP/2 without CONNECT, where a stream that is over does not take the others with it."""

    def __init__(self, app: Any, config: Config, context: Any, tasks: Any, *rest: Any) -> None:
        """``rest``: whether it is secure, the client, the server, and what to send events with."""
        super().__init__(app, config, context, tasks, ConnectionState({}), *rest)
        made = self.connection
        self.connection = _StrictConnection(config=made.config)
        self.connection.DEFAULT_MAX_INBOUND_FRAME_SIZE = made.DEFAULT_MAX_INBOUND_FRAME_SIZE
        self.connection.local_settings = made.local_settings
        self.streams = _Streams()


class _StrictConnection(h2.connection.H2Connection):
    """Resets the streams that ask for what is not served here; their requests are never seen."""

    def receive_data(self, data: Any) -> list[h2.events.Event]:
        events = super().receive_data(data)
        return [event for event in events if not self._turns_down(event)]

    def _turns_down(self, event: h2.events.Event) -> bool:
        if not isinstance(event, h2.events.RequestReceived) or _is_served(event):
            return False
        self.reset_stream(event.stream_id)
        return True


class _Streams(dict[int, HTTPStream | WSStream]):
    """The open streams. One that is over is replaced by one that drops what still comes.

    Its answer may have gone out before all of its body came in: Hypercorn would look it up in vain, and the
    connection would end with a KeyError. Here it goes on, and gives the client its window back.
    """

    def __missing__(self, stream_id: int) -> Any:
        return _OVER


class _Over:
    """A stream that is over."""

    async def handle(self, event: StreamEvent) -> None:
        """Drop it."""


_OVER: Final = _Over()


def _is_served(request: h2.events.RequestReceived) -> bool:
    pseudo = dict(request.headers or ())
    path = pseudo.get(b":path", b"")
    return (
        pseudo.get(b":method", b"CONNECT") != b"CONNECT"
        and path.startswith(b"/")
        and path.isascii()
        and is_host(pseudo.get(b":authority", b""))
    )
