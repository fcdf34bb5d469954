"""Takes connections from a listening socket, several in a turn of the loop, and a bounded number of them."""

import errno
import resource
import socket
from collections.abc import Awaitable, Callable
from typing import Final

import structlog
import trio

from sexton_http.wire.first_glance import FirstGlance
from sexton_http.wire.newcomers import Newcomers, Rank, newcomers_within

Handler = Callable[[trio.SocketStream], Awaitable[None]]

AGAIN_S: Final = 0.1
"""After which time it is tried again when the process, or the machine, has no room for another."""
_NO_ROOM: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
_FATAL: Final = frozenset({errno.EBADF, errno.EINVAL, errno.ENOTSOCK, errno.EOPNOTSUPP})
"""The listening socket is no such thing, or not any more. Else the newcomer has gone again."""

log = structlog.get_logger()


async def accept_all(
    listener: trio.SocketListener, handle: Handler, nursery: trio.Nursery, glance: FirstGlance | None = None
) -> None:
    """Have each handled by a task in ``nursery``, until cancelled; then the listener is closed.

    ``glance`` tells who of them goes first. Raises OSError when the listener fails.
    """

    def begin(taken: socket.socket) -> None:
        nursery.start_soon(handle, trio.SocketStream(trio.socket.from_stdlib_socket(taken)))

    newcomers = Newcomers(begin, newcomers_within(resource.getrlimit(resource.RLIMIT_NOFILE)[0]))
    # Trio's own loop takes one connection in a turn. The copy shares the queue, and closes with it.
    async with listener:
        with socket.socket(fileno=socket.dup(listener.socket.fileno())) as door:
            door.settimeout(0)
            try:
                while True:
                    if newcomers:
                        await trio.lowlevel.checkpoint()
                    else:
                        await trio.lowlevel.wait_readable(door)
                    try:
                        _take_some(door, newcomers, glance)
                    except OSError as fault:
                        if fault.errno not in _NO_ROOM:
                            raise
                        log.warning("accept_failed", fault=repr(fault), again_s=AGAIN_S)
                        newcomers.begin_all()
                        await trio.sleep(AGAIN_S)
                    newcomers.begin_some()
            finally:
                newcomers.begin_all()


def _take_some(door: socket.socket, newcomers: Newcomers, glance: FirstGlance | None) -> None:
    if glance is not None:
        glance.look_again()
    for _ in range(newcomers.room):
        try:
            taken, _ = door.accept()
        except BlockingIOError:
            return
        except OSError as fault:
            if fault.errno in _NO_ROOM | _FATAL:
                raise
            continue
        newcomers.put(taken, Rank.IN_TURN if glance is None else glance(taken))
