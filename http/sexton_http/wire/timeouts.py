"""Bounds on what a connection may keep waiting, for HTTP/1.1 and HTTP/2, with and without TLS."""

from typing import Final

HANDSHAKE_S: Final = 30.0
"""From the connection to the end of its TLS handshake."""
READ_S: Final = 30.0
"""A request must have arrived whole within this time of its first byte."""
KEEP_ALIVE_S: Final = 75.0
"""A connection without a request is kept for this long."""
WRITE_S: Final = 20.0
"""A client that takes no bytes for this long is cut."""
DRAIN_BYTES: Final = 4 * 1024 * 1024
"""At most this much of an unread body is thrown away before an early answer, to keep the connection."""
DRAIN_S: Final = 5.0
LINGER_S: Final = 2.0
"""How long an unread body is read after the last answer, which a reset would otherwise destroy."""
GONE_S: Final = 5.0
"""After the client of an HTTP/2 connection has gone, nothing of the connection lives longer than this."""
IDLE_S: Final = 1.0
"""A connection that has been idle for this long may have to make room for another."""
RESERVED_S: Final = 5.0
"""A connection that was let in to ask after the server's health lives no longer."""
WATCH_S: Final = 1.0
"""How late a connection may be cut."""
GRACE_S: Final = 10.0
"""How long requests that still run have to end once the server was told to stop."""
