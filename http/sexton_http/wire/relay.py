"""A worker's way to the other workers of its server, and theirs to it."""

import socket
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import trio

from sexton_http.wire.transport import Ends
from sexton_http.wire.worker_board import WorkerBoard
from sexton_http.wire.worker_mail import Parcel, drop, put, take

CONNECTION: Final = b"C"
"""A parcel with an open connection."""
FINISH: Final = b"F"
"""Asks that a connection that came through another worker's TLS be ended at the next occasion."""
Handler = Callable[[Parcel], None]
TunnelName = tuple[int, int]
"""The worker that has the client's end, and its number there."""


class Handed(msgspec.Struct, frozen=True, array_like=True):
    """A connection on its way to another worker."""

    first: bytes
    """What has been read of it."""
    ends: Ends | None = None
    """The client's and the server's, for one that comes through a tunnel and has others itself."""
    tunnel: TunnelName | None = None


def owner_of(token: bytes, up: Sequence[int], slots: int) -> int:
    """The worker that a runner's connections go to: always the same, as long as it is up. One has to be.

    >>> mine = owner_of(b"zrn_1", (0, 1, 2), 3)
    >>> [owner_of(b"zrn_1", up, 3) == mine for up in ((0, 1, 2), (mine,), (mine, (mine + 1) % 3))]
    [True, True, True]
    >>> owner_of(b"zrn_1", [slot for slot in range(3) if slot != mine], 3) != mine
    True
    """
    number = zlib.crc32(token)
    home = number % slots
    return home if home in up else up[number // slots % len(up)]


class Relay:
    """One for a worker. Whoever knows a kind of parcel says what is done with it, without waiting."""

    def __init__(
        self,
        slot: int,
        board: WorkerBoard,
        reading: socket.socket,
        putting: Sequence[socket.socket],
        prefix: bytes,
    ) -> None:
        """``prefix``: what the tokens begin with whose connections belong together."""
        self.slot: Final = slot
        self.board: Final = board
        self.handed: Counter[str] = Counter({"runner": 0, "drain": 0})
        """Connections given to another worker, by why."""
        self._reading = trio.socket.from_stdlib_socket(reading)
        self._putting = putting
        self._prefix = prefix
        self._handlers: dict[bytes, Handler] = {}
        self._tunnels = 0

    def __repr__(self) -> str:
        return f"<Relay of worker {self.slot}>"

    def on(self, kind: bytes, handler: Handler) -> None:
        """What is done with parcels of this kind. The handler closes their files."""
        self._handlers[kind] = handler

    def put(self, slot: int, parcel: Parcel) -> bool:
        """Whether that worker has it in its inbox."""
        return put(self._putting[slot], parcel)

    def others_up(self) -> list[int]:
        return [slot for slot in self.board.up() if slot != self.slot]

    def home_of(self, token: bytes) -> int:
        """The worker that a connection with this first token belongs to; this one, if it does not matter."""
        if not token.startswith(self._prefix):
            return self.slot
        up = self.board.up()
        return owner_of(token, up, self.board.slots) if up else self.slot

    def heir_of(self, token: bytes) -> int | None:
        """Who takes a connection over that this worker cannot keep; None: there is nobody."""
        others = self.others_up()
        return owner_of(token, others, self.board.slots) if others else None

    def hand(self, slot: int, file: int, why: str, handed: Handed) -> bool:
        """Give an open connection to that worker; the file here is still to be closed."""
        given = self.put(slot, Parcel(CONNECTION, msgspec.msgpack.encode(handed), (file,)))
        if given:
            self.handed[why] += 1
        return given

    def name_tunnel(self) -> TunnelName:
        self._tunnels += 1
        return self.slot, self._tunnels

    def finish(self, slot: int, tunnel: TunnelName) -> bool:
        """Ask the worker that serves a tunnel's connection to let it end."""
        return self.put(slot, Parcel(FINISH, msgspec.msgpack.encode(tunnel)))

    async def run(self) -> None:
        """Take what comes, until cancelled."""
        while True:
            try:
                parcel = await take(self._reading)
            except OSError:
                return
            handler = self._handlers.get(parcel.kind)
            if handler is None:
                drop(parcel)
            else:
                handler(parcel)
