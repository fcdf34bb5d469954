"""Is the name server of a test: once it is imported, every name of this process leads to loopback."""

import socket
from typing import Any

LOOPBACK = "127.0.0.1"
_look_up = socket.getaddrinfo


def _here(host: Any, port: Any, *rest: Any, **options: Any) -> Any:
    return _look_up(LOOPBACK if host is not None else host, port, *rest, **options)


socket.getaddrinfo = _here
