"""A server of several workers: what is done once for all of them, and what they share."""

import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

import trio

from sexton_cli.composition import RUNNER_DIED
from sexton_cli.ground import Ground, Node, open_ground
from sexton_cli.node_storage import Progress, room_for_connections
from sexton_cli.settings import NodeSettings
from sexton_cli.workers.crew import Crew, MakeOrder
from sexton_cli.workers.order import PARENT_POOL, WorkerOrder, part_of, pool_within
from sexton_http.gateway.shared_limits import make_table
from sexton_http.wire.worker_board import WorkerBoard
from sexton_http.wire.worker_mail import Inbox, Parcel, make_inbox, put


class _Shared(NamedTuple):
    """What all workers of a server hold together."""

    board: WorkerBoard
    inboxes: Sequence[Inbox]
    limits: int
    metrics: tuple[int, ...]


@asynccontextmanager
async def open_workers(
    settings: NodeSettings, progress: Progress, hastened: trio.Event
) -> AsyncIterator[Node]:
    """A server of several workers; all is let down in reverse order.

    What is done once for a server is done here: database, schema, doors, first tenant. Raises StartupFault.
    """
    async with AsyncExitStack() as stack:
        ground = await open_ground(stack, replace(settings, database_pool=PARENT_POOL), progress)
        database_url = ground.dsn
        allowed = await room_for_connections(settings, database_url)
        pool = pool_within(allowed, settings.workers, settings.database_pool)
        part = part_of(settings, database_url=database_url, pool=pool)
        board = WorkerBoard.create(settings.workers)
        stack.callback(board.close)
        inboxes = [make_inbox() for _ in range(settings.workers)]
        for inbox in inboxes:
            stack.callback(_close, inbox)
        limits = make_table()
        metrics = [os.memfd_create("sexton-metrics") for _ in inboxes]
        for file in (limits, *metrics):
            stack.callback(os.close, file)
        shared = _Shared(board, inboxes, limits, tuple(metrics))
        make_order, files = _orders(ground, part, shared)
        crew = Crew(board, make_order, files, hastened)

        def take_back(lease_id: UUID) -> None:
            for slot in board.up():
                if put(inboxes[slot].putting, Parcel(RUNNER_DIED, lease_id.bytes)):
                    return

        progress(f"starting {settings.workers} workers")
        async with trio.open_nursery() as nursery:
            await nursery.start(crew.run)
            nursery.start_soon(_heed, crew, settings.tls is not None)
            try:
                yield replace(ground.node(take_back), worker_pids=lambda: crew.pids)
            finally:
                nursery.cancel_scope.cancel()


async def _heed(crew: Crew, has_certificate: bool) -> None:  # noqa: FBT001 - for start_soon
    numbers = (signal.SIGUSR1, signal.SIGHUP) if has_certificate else (signal.SIGUSR1,)
    with trio.open_signal_receiver(*numbers) as signals:
        async with trio.open_nursery() as nursery:
            async for number in signals:
                if number == signal.SIGHUP:
                    crew.tell_all(signal.SIGHUP)
                else:
                    nursery.start_soon(crew.restart_one_by_one)


def _orders(ground: Ground, part: NodeSettings, shared: _Shared) -> tuple[MakeOrder, list[int]]:
    """How a worker's order is made, and what all of them inherit."""
    doors = ground.doors
    board, inboxes, limits, metrics = shared
    listeners = tuple(listener.socket.fileno() for listener in doors.listeners)
    putting = tuple(inbox.putting.fileno() for inbox in inboxes)
    reading = tuple(inbox.reading.fileno() for inbox in inboxes)
    node = ground.world.new_id()

    def make(slot: int, parent: int) -> WorkerOrder:
        return WorkerOrder(
            settings=part,
            node=node,
            slot=slot,
            host=doors.host,
            port=doors.port,
            secure=doors.secure,
            listeners=listeners,
            board=board.file,
            workers=board.slots,
            parent=parent,
            reading=reading[slot],
            putting=putting,
            limits=limits,
            metrics=metrics,
        )

    return make, [*listeners, board.file, limits, *metrics, *putting, *reading]


def _close(inbox: Inbox) -> None:
    for end in inbox:
        end.close()
