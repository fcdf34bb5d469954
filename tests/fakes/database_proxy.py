"""A socket between storage and its database that breaks at the moment a test asks for."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path

import trio

_SOCKET = ".s.PGSQL.5432"
_PREPARED_AT_ONCE = re.compile(rb"(\w+)\0SELECT \* FROM pg_temp\.sexton_(?:renew|append)")


class Cut(Enum):
    """What becomes of the next message that commits, and of its connection."""

    BEFORE = auto()
    """It never reaches the database."""
    AFTER = auto()
    """It reaches the database, whose answer never comes back."""


class _Flow:
    """One connection: what it said first, and whether its bytes go through."""

    def __init__(self) -> None:
        self.first = b""
        self.goes = trio.Event()
        self.goes.set()
        self._at_once: set[bytes] = set()
        """The names under which the statements are prepared that do a whole batch in one message."""

    def commits(self, data: bytes | bytearray) -> bool:
        """Whether the transaction ends with this message."""
        if found := _PREPARED_AT_ONCE.search(data):
            self._at_once.add(found[1])
            return False
        return b"COMMIT\0" in data or any(name in data for name in self._at_once)


@dataclass(slots=True)
class Proxy:
    """Forwards every connection; ``dsn`` leads through it."""

    dsn: str
    _target: str
    _cuts: list[Cut] = field(default_factory=list)
    _open: set[trio.CancelScope] = field(default_factory=set)
    _flows: trio.Event = field(default_factory=trio.Event)
    _each: list[_Flow] = field(default_factory=list)
    away: bool = False
    keeps_open: bool = False
    """What the server hangs up stays open on our side."""
    hung_up: int = 0
    """How many the server hung up."""
    on_batch: Callable[[], None] | None = None
    """Called once, before the locks of the journal's next batch about ``batch_of`` are asked for."""
    batch_of: bytes = b""
    cut: int = 0
    """How many were cut."""
    commits: int = 0
    """Messages that were a COMMIT and nothing else."""

    def __post_init__(self) -> None:
        self._flows.set()

    def cut_next_commit(self, how: Cut) -> None:
        self._cuts.append(how)

    def hang_up(self) -> None:
        """Break every connection now."""
        for scope in tuple(self._open):
            scope.cancel()

    def hold(self) -> None:
        """Let nothing through any more, as a cut cable does: nobody is told."""
        self._flows = trio.Event()

    def freeze(self, name: bytes) -> int:
        """Let nothing more through of the open connections that gave this name; give their number."""
        frozen = [flow for flow in self._each if name in flow.first and flow.goes.is_set()]
        for flow in frozen:
            flow.goes = trio.Event()
        return len(frozen)

    def let_go(self) -> None:
        """Let through what was held, and all that comes."""
        self._flows.set()

    async def serve(self, client: trio.SocketStream) -> None:
        async with client:
            if self.away:
                return
            try:
                server = await trio.open_unix_socket(self._target)
            except OSError:
                return  # Nobody listens: its client is told by a connection that ends.
            async with server:
                with trio.CancelScope() as scope:
                    self._open.add(scope)
                    await self._forward(client, server)
                self._open.discard(scope)

    async def _forward(self, client: trio.SocketStream, server: trio.SocketStream) -> None:
        flow = _Flow()
        self._each.append(flow)
        async with trio.open_nursery() as nursery:

            async def back() -> None:
                with suppress(trio.BrokenResourceError):
                    async for data in server:
                        await self._flows.wait()
                        await flow.goes.wait()
                        await client.send_all(data)
                self.hung_up += 1
                if not self.keeps_open:
                    nursery.cancel_scope.cancel()

            nursery.start_soon(back)
            with suppress(trio.BrokenResourceError):
                async for data in client:
                    flow.first = flow.first or bytes(data)
                    await self._flows.wait()
                    await flow.goes.wait()
                    self.commits += b"COMMIT\0" in data
                    if flow.commits(data) and self._cuts:
                        nursery.cancel_scope.cancel()
                        await self._cut(data, client, server)
                        break
                    if self.on_batch is not None and b"EXECUTE sexton_lock" in data and self.batch_of in data:
                        then, self.on_batch = self.on_batch, None
                        # Before its locks are asked for: with the answer the client might commit first.
                        then()
                    await server.send_all(data)
            nursery.cancel_scope.cancel()

    async def _cut(
        self, data: bytes | bytearray, client: trio.SocketStream, server: trio.SocketStream
    ) -> None:
        self.cut += 1
        if self._cuts.pop(0) is Cut.AFTER:
            with trio.CancelScope(shield=True):
                await server.send_all(data)
                await server.receive_some()
        await trio.aclose_forcefully(client)


@asynccontextmanager
async def open_proxy(dsn: str, folder: Path) -> AsyncIterator[Proxy]:
    """A proxy whose socket lies in ``folder``, to the database of ``dsn``."""
    address, _, host = dsn.partition("host=")
    proxy = Proxy(f"{address}host={folder}", f"{host}/{_SOCKET}")
    listening = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_STREAM)
    await listening.bind(str(folder / _SOCKET))
    listening.listen(64)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, proxy.serve, [trio.SocketListener(listening)])
        try:
            yield proxy
        finally:
            nursery.cancel_scope.cancel()
