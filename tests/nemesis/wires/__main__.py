"""Passes bytes on between clients and servers, until it is told not to.

It is a process of its own, for what goes over its wires would otherwise keep a run busier than all else.
Its first line says which wires there are, and it answers with their ports. Each further line is a word
and the name of a wire.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import sys
from contextlib import suppress
from typing import Any, Final

PIECE_BYTES: Final = 262_144
LOOPBACK: Final = "127.0.0.1"
READ: Final = selectors.EVENT_READ
WRITE: Final = selectors.EVENT_WRITE
Place = str | tuple[str, int]
"""A socket's path, or an address."""


class Loop:
    """All sockets, and what is done when one of them can be read or written."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self.wires: dict[str, Wire] = {}
        self._goes = True

    def run(self) -> None:
        """Until nobody is left who could tell it anything."""
        self._selector.register(sys.stdin.fileno(), READ, self._obey)
        while self._goes:
            for key, events in self._selector.select():
                if key.fd in self._selector.get_map():  # One before may have closed it.
                    key.data(events)

    def watch(self, end: socket.socket, events: int, then: Any) -> None:
        """Be called when it can be read or written, or no more with 0."""
        known = end.fileno() in self._selector.get_map()
        if events and known:
            self._selector.modify(end, events, then)
        elif events:
            self._selector.register(end, events, then)
        elif known:
            self._selector.unregister(end)

    def _obey(self, _events: int) -> None:
        said = os.read(sys.stdin.fileno(), PIECE_BYTES)
        self._goes = bool(said)
        for line in said.decode().splitlines():
            word, _, name = line.partition(" ")
            {"hold": Wire.hold, "let-go": Wire.let_go, "hang-up": Wire.hang_up}[word](self.wires[name])


class Wire:
    """One place where connections are taken, and one to which they lead."""

    def __init__(self, loop: Loop, at: str | None, to: Place) -> None:
        """``at``: a socket's path; None: a port of its own on loopback."""
        self.loop = loop
        self.flows = True
        self.pairs: set[Pair] = set()
        self._to = to
        self._listening = socket.socket(socket.AF_UNIX if at else socket.AF_INET)
        self._listening.bind(at or (LOOPBACK, 0))
        self._listening.listen(512)
        self._listening.settimeout(0)
        self.port = 0 if at else self._listening.getsockname()[1]
        loop.watch(self._listening, READ, self._take)

    def hold(self) -> None:
        """Let nothing through any more, as a cut cable does: nobody is told."""
        self._set(flows=False)

    def let_go(self) -> None:
        """Let through what was held, and all that comes."""
        self._set(flows=True)

    def hang_up(self) -> None:
        """Break every connection now."""
        for pair in tuple(self.pairs):
            pair.close()

    def _set(self, *, flows: bool) -> None:
        self.flows = flows
        for pair in tuple(self.pairs):
            pair.near.watch()
            pair.far.watch()

    def _take(self, _events: int) -> None:
        with suppress(BlockingIOError):
            near = self._listening.accept()[0]
            far = socket.socket(socket.AF_UNIX if isinstance(self._to, str) else socket.AF_INET)
            for end in (near, far):
                end.settimeout(0)
                if end.family is socket.AF_INET:
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pair = Pair(self, near, far)
            try:
                far.connect(self._to)
            except BlockingIOError:
                pass  # What is sent to it meanwhile waits until it is there.
            except OSError:
                pair.close()  # Nobody listens: its client is told by a connection that ends.


class Pair:
    """A connection and the one that it is passed on to; when one ends, so does the other."""

    def __init__(self, wire: Wire, near: socket.socket, far: socket.socket) -> None:
        self.wire = wire
        self.near, self.far = End(self, near), End(self, far)
        self.near.other, self.far.other = self.far, self.near
        wire.pairs.add(self)
        self.near.watch()
        self.far.watch()

    def close(self) -> None:
        self.wire.pairs.discard(self)
        for end in (self.near, self.far):
            if end.socket.fileno() >= 0:
                self.wire.loop.watch(end.socket, 0, None)
                end.socket.close()


class End:
    """One of the two sockets, and what still has to be written to it."""

    other: End

    def __init__(self, pair: Pair, end: socket.socket) -> None:
        self.socket = end
        self._pair = pair
        self._left = b""

    def watch(self) -> None:
        """Be read while the other takes it, be written while something is left."""
        if self.socket.fileno() < 0:
            return
        flows = self._pair.wire.flows
        reads = READ if flows and not self.other._left else 0
        self._pair.wire.loop.watch(self.socket, reads | (WRITE if flows and self._left else 0), self._act)

    def _act(self, events: int) -> None:
        try:
            if events & WRITE:
                self._write(b"")
            if events & READ:
                piece = self.socket.recv(PIECE_BYTES)
                if not piece:
                    raise ConnectionResetError
                self.other._write(piece)
        except BlockingIOError:
            pass
        except OSError:
            self._pair.close()

    def _write(self, piece: bytes) -> None:
        had = bool(self._left)
        self._left += piece
        with suppress(BlockingIOError):
            self._left = self._left[self.socket.send(self._left) :]
        if had or self._left:
            self.watch()
            self.other.watch()


def main() -> None:
    """Until its standard input ends."""
    loop = Loop()
    # Byte by byte up to its end: what comes after it is for the loop.
    with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as file:
        told = json.loads(file.readline())
    for name, (at, to) in told.items():
        loop.wires[name] = Wire(loop, at, to if isinstance(to, str) else tuple(to))
    sys.stdout.write(json.dumps({name: wire.port for name, wire in loop.wires.items()}) + "\n")
    sys.stdout.flush()
    loop.run()


if __name__ == "__main__":
    main()
