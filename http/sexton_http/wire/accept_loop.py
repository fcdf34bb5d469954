"""Takes connections from a listening socket, several in a turn of the loop, and a bounded number of them."""

import errno
import socket
from collections.abc import Awaitable, Callable
from typing import Final

import structlog
import trio

Handler = Callable[[trio.SocketStream], Awaitable[None]]

AT_ONCE: Final = 16
"""How many are taken in one turn. With one, a busy loop would keep those behind it waiting for as many turns;
with all, a flood of them would make one long turn."""
AGAIN_S: Final = 0.1
"""After which time it is tried again when the process, or the machine, has no room for another."""
_NO_ROOM: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
_FATAL: Final = frozenset({errno.EBADF, errno.EINVAL, errno.ENOTSOCK, errno.EOPNOTSUPP})
"""The listening socket is no such thing, or not any more. Else the newcomer has gone again."""

log = structlog.get_logger()


async def accept_all(listener: trio.SocketListener, handle: Handler, nursery: trio.Nursery) -> None:
    """Have each handled by a task in ``nursery``, until cancelled; then the listener is closed.

    Raises OSError when it fails.
    """
    # Trio's own loop takes one connection in a turn. The copy shares the queue, and closes with it.
    async with listener:
        with socket.socket(fileno=socket.dup(listener.socket.fileno())) as door:
            door.settimeout(0)
            while True:
                await trio.lowlevel.wait_readable(door)
                try:
                    _take_some(door, handle, nursery)
                except OSError as fault:
                    if fault.errno not in _NO_ROOM:
                        raise
                    log.warning("accept_failed", fault=repr(fault), again_s=AGAIN_S)
                    await trio.sleep(AGAIN_S)


def _take_some(door: socket.socket, handle: Handler, nursery: trio.Nursery) -> None:
    for _ in range(AT_ONCE):
        try:
            taken, _ = door.accept()
        except BlockingIOError:
            return
        except OSError as fault:
            if fault.errno in _NO_ROOM | _FATAL:
                raise
            continue
        nursery.start_soon(handle, trio.SocketStream(trio.socket.from_stdlib_socket(taken)))
