"""A worker's way to the other workers of its server, and theirs to it."""

import socket
from collections.abc import Callable, Sequence
from typing import Final

import structlog
import trio

from sexton_http.wire.worker_board import WorkerBoard
from sexton_http.wire.worker_mail import Parcel, drop, put, take

Handler = Callable[[Parcel], None]

log = structlog.get_logger()


class Relay:
    """One for a worker. Whoever knows a kind of parcel says what is done with it, without waiting."""

    def __init__(
        self, slot: int, board: WorkerBoard, reading: socket.socket, putting: Sequence[socket.socket]
    ) -> None:
        self.slot: Final = slot
        self.board: Final = board
        self._reading = trio.socket.from_stdlib_socket(reading)
        self._putting = putting
        self._handlers: dict[bytes, Handler] = {}

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
