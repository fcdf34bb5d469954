"""One worker: a server without a parent's duties, in a process of its own."""

import pickle
import signal
import socket
import sys
from collections.abc import AsyncIterator
from typing import Any

import structlog
import trio

from sexton_cli.collector import spare_the_collector
from sexton_cli.composition import Share, open_node
from sexton_cli.exits import OK, StartupFault, first_of
from sexton_cli.fault_report import explain
from sexton_cli.workers.order import WorkerOrder
from sexton_http.gateway.request_log import add_request
from sexton_http.identity.tokens import TokenKind
from sexton_http.wire.relay import Relay
from sexton_http.wire.server import Doors
from sexton_http.wire.worker_board import BEAT_S, WorkerBoard, WorkerState
from sexton_runner.logs import configure_logs

ORPHAN_S = 10
"""How long a worker that has lost its parent may take to end."""

log = structlog.get_logger()


class Worker:
    """What one process does, from its order to its end."""

    def __init__(self, order: WorkerOrder) -> None:
        self._order = order
        self._board = WorkerBoard(order.board, order.workers)
        self._state = WorkerState.STARTING
        self._told_to_stop = trio.Event()

    async def run(self) -> None:
        """Serve until told to stop, and end what was begun. Raises StartupFault."""
        order = self._order
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async with trio.open_nursery() as everything:
                everything.start_soon(self._heed, signals, everything.cancel_scope)
                everything.start_soon(self._end_with_parent, everything.cancel_scope)
                everything.start_soon(self._beat)
                putting = [_socket(file) for file in order.putting]
                prefix = TokenKind.RUNNER.value.encode()
                relay = Relay(order.slot, self._board, _socket(order.reading), putting, prefix)
                share = Share(relay, _doors(order), order.node, order.limits, order.metrics)
                async with open_node(order.settings, _say_nothing, share):
                    spare_the_collector()
                    self._become(WorkerState.SERVING)
                    await self._told_to_stop.wait()
                    self._become(WorkerState.DRAINING)
                everything.cancel_scope.cancel()

    def _become(self, state: WorkerState) -> None:
        self._state = state
        self._board.beat(self._order.slot, state)

    async def _beat(self) -> None:
        while True:
            self._board.beat(self._order.slot, self._state)
            await trio.sleep(BEAT_S)

    async def _heed(self, signals: AsyncIterator[int], everything: trio.CancelScope) -> None:
        async for _ in signals:
            if self._told_to_stop.is_set():
                everything.cancel()
            self._told_to_stop.set()

    async def _end_with_parent(self, everything: trio.CancelScope) -> None:
        await trio.lowlevel.wait_readable(self._order.parent)
        log.error("parent_gone")
        # Whatever hangs: nobody else would end this process, and it holds the address.
        signal.alarm(ORPHAN_S)
        everything.cancel()


def _socket(file: int) -> socket.socket:
    return socket.socket(fileno=file)


def _doors(order: WorkerOrder) -> Doors:
    sockets = [trio.socket.from_stdlib_socket(_socket(file)) for file in order.listeners]
    return Doors([trio.SocketListener(one) for one in sockets], order.host, order.port, order.secure)


def _say_nothing(what: str) -> None:
    """The parent has said it."""
    del what


def main() -> int:
    """Entry point: the order comes over standard input, from the parent alone."""
    order: WorkerOrder = pickle.load(sys.stdin.buffer)  # noqa: S301 - the parent's own pipe

    def name_worker(_: Any, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        event["worker"] = order.slot
        return event

    configure_logs(order.settings.log, [add_request, name_worker])
    status = OK
    try:
        trio.run(Worker(order).run)
    except* StartupFault as group:
        status = explain(first_of(group))
    return status


if __name__ == "__main__":
    sys.exit(main())
