"""Sockets as trio and the standard library have them, over simulated connections."""

from __future__ import annotations

import errno
import os
import select
import socket
from typing import Any, Self

import trio

from tests.simulation.world.descriptors import Descriptor, Kernel
from tests.simulation.world.network import Address, Blank, End, Listener, Network


class SimulatedSocket(trio.socket.SocketType):
    """What ``trio.socket.socket`` gives in a simulation."""

    def __init__(self, network: Network, number: int) -> None:
        super().__init__()
        self._network = network
        self._kernel = network.kernel
        self._number = number
        self._has_finished = False

    # --- what it is -----------------------------------------------------------------------------------------

    @property
    def family(self) -> Any:
        return socket.AF_INET

    @property
    def type(self) -> Any:
        return socket.SOCK_STREAM

    @property
    def proto(self) -> int:
        return 0

    @property
    def did_shutdown_SHUT_WR(self) -> bool:  # noqa: N802 - trio's name
        return self._has_finished

    def fileno(self) -> int:
        return self._number

    def getsockname(self) -> Any:
        thing = self._kernel.get(self._number)
        if isinstance(thing, Listener):
            return thing.address
        return thing.local if isinstance(thing, End) else ("0.0.0.0", 0)

    def getpeername(self) -> Any:
        end = self._end()
        if end.broken or not end.connected:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        return end.remote

    def getsockopt(self, level: int, optname: int, buflen: int | None = None) -> Any:
        del level, buflen
        is_listener = isinstance(self._kernel.get(self._number), Listener)
        return int(optname == socket.SO_ACCEPTCONN and is_listener)

    def setsockopt(self, *_: Any) -> None:
        """None of them changes what is simulated."""

    def is_readable(self) -> bool:
        return self._kernel.get(self._number).can_read()

    # --- to come into being ---------------------------------------------------------------------------------

    async def bind(self, address: Any) -> None:
        await trio.lowlevel.checkpoint()
        blank = self._kernel.get(self._number)
        assert isinstance(blank, Blank)
        blank.bound = address[0], address[1]

    def listen(self, backlog: int = 0) -> None:
        del backlog
        blank = self._kernel.get(self._number)
        assert isinstance(blank, Blank)
        self._network.listen(self._number, blank.bound[1] if blank.bound else 0)

    async def connect(self, address: Any) -> None:
        end = self._network.connect(self._number, (address[0], address[1]))
        try:
            await trio.lowlevel.wait_writable(self._number)
        except trio.Cancelled:
            self.close()  # As trio's own do: half a connection is of no use.
            raise
        if end.broken:
            raise OSError(end.broken, f"{os.strerror(end.broken)}: {address[0]}:{address[1]}")

    async def accept(self) -> tuple[trio.socket.SocketType, Any]:
        await self.wait_readable()
        listener = self._kernel.get(self._number)
        assert isinstance(listener, Listener)
        end = listener.accept()
        return SimulatedSocket(self._network, self._kernel.open(end)), end.remote

    # --- to be used -----------------------------------------------------------------------------------------

    async def wait_readable(self) -> None:
        await trio.lowlevel.wait_readable(self._number)

    async def wait_writable(self) -> None:
        await trio.lowlevel.wait_writable(self._number)

    async def recv(self, buflen: int, flags: int = 0, /) -> bytes:
        del flags
        await trio.lowlevel.checkpoint_if_cancelled()
        while True:
            try:
                data = self._end().receive(buflen)
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self._number)
            else:
                await trio.lowlevel.cancel_shielded_checkpoint()
                return data

    async def send(self, data: Any, flags: int = 0, /) -> int:
        del flags
        await trio.lowlevel.checkpoint_if_cancelled()
        while True:
            try:
                sent = self._end().send(bytes(data))
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self._number)
            else:
                await trio.lowlevel.cancel_shielded_checkpoint()
                return sent

    def shutdown(self, flag: int) -> None:
        if flag in (socket.SHUT_WR, socket.SHUT_RDWR):
            self._end().finish()
            self._has_finished = True

    def close(self) -> None:
        number, self._number = self._number, -1
        if number != -1:
            shut_quietly(self._kernel, number)

    def detach(self) -> int:
        number, self._number = self._number, -1
        return number

    def _end(self) -> End:
        end = self._kernel.get(self._number)
        if not isinstance(end, End):
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        return end


def shut_quietly(kernel: Kernel, number: int) -> None:
    """Close a number that its program may have lost by then, with its life."""
    try:
        kernel.shut(number)
    except OSError as fault:
        if fault.errno != errno.EBADF:
            raise


class PlainSocket:
    """What ``socket.socket`` gives in a simulation, for a number that is open already."""

    network: Network

    def __init__(self, *_: Any, fileno: int | None = None) -> None:
        if fileno is None:
            raise RuntimeError("a simulation has no real sockets: ask trio for one")
        self._number = fileno

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        return self._number

    def settimeout(self, _seconds: float | None) -> None:
        """It never blocks."""

    def accept(self) -> tuple[PlainSocket, Address]:
        kernel = self.network.kernel
        listener = kernel.get(self._number)
        assert isinstance(listener, Listener)
        end = listener.accept()
        return type(self)(fileno=kernel.open(end)), end.remote

    def detach(self) -> int:
        number, self._number = self._number, -1
        return number

    def close(self) -> None:
        number = self.detach()
        if number != -1:
            shut_quietly(self.network.kernel, number)


class SocketFactory(trio.abc.SocketFactory):
    """Gives trio its sockets."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def socket(self, family: Any = None, type: Any = None, proto: Any = None) -> SimulatedSocket:  # noqa: A002
        del family, type, proto
        return SimulatedSocket(self._network, self._network.open_socket())


class Resolver(trio.abc.HostnameResolver):
    """Knows the machines by their names."""

    def __init__(self, network: Network) -> None:
        self._network = network

    async def getaddrinfo(self, host: Any, port: Any, *_: int, **__: int) -> list[Any]:
        await trio.lowlevel.checkpoint()
        name = host.decode() if isinstance(host, bytes) else host
        found = self._network.find(name)
        if found:
            kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
            return [(*kind, (machine.address, int(port))) for machine in found]
        raise socket.gaierror(socket.EAI_NONAME, f"no machine is named {name}")

    async def getnameinfo(self, sockaddr: Any, flags: int) -> tuple[str, str]:
        del flags
        await trio.lowlevel.checkpoint()
        return str(sockaddr[0]), str(sockaddr[1])


class SimulatedEpoll(Descriptor):
    """What ``select.epoll`` gives in a simulation; it knows hang-ups alone."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self._ends: dict[int, End] = {}
        self._number = kernel.open(self)

    def fileno(self) -> int:
        return self._number

    def register(self, number: int, mask: int) -> None:
        assert mask == select.EPOLLRDHUP, "only hang-ups are simulated"
        end = self.kernel.get(number)
        assert isinstance(end, End)
        self._ends[number] = end
        end.watchers.append(self.wake)
        if end.is_hung_up:
            self.wake()

    def unregister(self, number: int) -> None:
        end = self._ends.pop(number)
        end.watchers.remove(self.wake)

    def poll(self, _timeout: float = 0) -> list[tuple[int, int]]:
        return [(number, select.EPOLLRDHUP) for number, end in self._ends.items() if end.is_hung_up]

    def can_read(self) -> bool:
        return any(end.is_hung_up for end in self._ends.values())

    def close(self) -> None:
        shut_quietly(self.kernel, self._number)
