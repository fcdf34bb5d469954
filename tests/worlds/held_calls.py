"""Stands between a runner and its server, and keeps chosen calls back until they are let go, however late."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import trio

REQUEST = re.compile(rb"(?:GET|POST|PUT|DELETE) \S+")
LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)\r\n", re.IGNORECASE)
END_OF_HEAD = b"\r\n\r\n"
PIECE_BYTES = 1 << 16
GONE = (trio.BrokenResourceError, trio.ClosedResourceError)

Choose = Callable[[str], Awaitable[str]]
"""Gives the name under which a call is kept back, by its method and target; nothing for one that passes."""


@dataclass
class _Link:
    """One connection. ``name`` is that of the call that was kept back on it."""

    name: str = ""
    answered: trio.Event = field(default_factory=trio.Event)


class HeldCalls:
    """A call that is kept back reaches the server as a whole when it is let go, also when its sender is dead.

    ``waiting`` are the names of those that are kept back; ``answers`` is what the server said to them.
    """

    def __init__(self, base_url: str, choose: Choose) -> None:
        self._port = urlsplit(base_url).port or 0
        self._choose = choose
        self.base_url = ""
        self.waiting: set[str] = set()
        self.answers: dict[str, bytes] = defaultdict(bytes)
        self.let_go = trio.Event()

    @property
    def answered(self) -> set[str]:
        """The names of those that the server has answered in full."""
        return {name for name, answer in self.answers.items() if is_whole(answer)}

    async def serve(self, task_status: trio.TaskStatus[None]) -> None:
        async with trio.open_nursery() as nursery:
            listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
            self.base_url = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
            nursery.start_soon(trio.serve_listeners, self._pass_on, listeners)
            task_status.started()

    async def _pass_on(self, near: trio.SocketStream) -> None:
        far, link = await trio.open_tcp_stream("127.0.0.1", self._port), _Link()
        async with near, far, trio.open_nursery() as nursery:
            nursery.start_soon(self._back, far, near, link)
            with suppress(*GONE):
                while piece := await near.receive_some(PIECE_BYTES):
                    line = REQUEST.match(piece)
                    if line and not self.let_go.is_set() and (name := await self._choose(line[0].decode())):
                        link.name = name
                        await far.send_all(await self._kept(near, name, piece))
                    else:
                        await far.send_all(piece)
            if link.name:
                await link.answered.wait()
            nursery.cancel_scope.cancel()

    async def _kept(self, near: trio.SocketStream, name: str, first: bytes | bytearray) -> bytes:
        """Take the whole call in at once, and give it when it is let go."""
        kept = bytearray(first)

        async def take_in() -> None:
            with suppress(*GONE):
                while not is_whole(kept) and (piece := await near.receive_some(PIECE_BYTES)):
                    kept.extend(piece)
            if is_whole(kept):
                self.waiting.add(name)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(take_in)
            await self.let_go.wait()
        return bytes(kept)

    async def _back(self, far: trio.SocketStream, near: trio.SocketStream, link: _Link) -> None:
        with suppress(*GONE):
            while piece := await far.receive_some(PIECE_BYTES):
                if link.name:
                    self.answers[link.name] += piece
                    if is_whole(self.answers[link.name]):
                        link.answered.set()
                # Who asked may be dead by now.
                with suppress(*GONE):
                    await near.send_all(piece)
        link.answered.set()


def is_whole(message: bytes | bytearray) -> bool:
    r"""Tell whether a message has its head, and as much of a body as that says.

    >>> is_whole(b"PUT / HTTP/1.1\r\nContent-Length: 2\r\n\r\na"), is_whole(b"GET / HTTP/1.1\r\nA: b\r\n\r\n")
    (False, True)
    """
    head, end, body = bytes(message).partition(END_OF_HEAD)
    length = LENGTH.search(head + b"\r\n")
    return bool(end) and len(body) >= (int(length[1]) if length else 0)
