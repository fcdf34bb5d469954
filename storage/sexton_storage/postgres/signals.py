"""Signals between nodes, by NOTIFY over one connection that also listens."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol
from uuid import UUID

from sexton_storage.portal import Portal
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.connections.outage import Part
from sexton_storage.postgres.connections.settings import BACKOFF_FIRST_S, BACKOFF_MAX_S
from sexton_storage.signals import Hear, Signal, merged, pack, unpack
from sexton_storage.statistics import SignalStatistics

CHANNEL: Final = "sexton"
GATHER_S: Final = 0.001
"""The least time between two notifications of a node: what is told meanwhile goes with the next."""
PENDING_MAX: Final = 4_096
"""Signals that wait; one more is dropped, and seen by the other nodes' next look."""
BEACON_S: Final = 5.0
"""How often a node says that it is there; the same words prove that its connection carries any."""
PEER_GONE_S: Final = 16.0
"""A node silent for this long (three beacons, and a little) is no longer notified."""
STATEMENT_S: Final = 3.0
"""How long without an answer until the connection is taken for lost."""
_NOTIFY = f"SELECT pg_notify('{CHANNEL}', p) FROM unnest($1::text[]) p"
log = logging.getLogger("sexton.storage")

Callback = Callable[[object, int, str, object], None]


class Listening(Connection, Protocol):
    """A connection that can listen."""

    async def add_listener(self, channel: str, callback: Callback) -> None: ...


class PostgresSignals:
    """See ``signals.Signals``. Who is alone tells nobody anything, and says now and then that it is there.

    Notifications never ride in the journal's transactions: PostgreSQL lets those that notify commit one after
    the other. They are sent afterwards, by a transaction of their own, at most one in ``GATHER_S``.
    """

    def __init__(
        self, portal: Portal, node: UUID, *, connect: Callable[[], Awaitable[Listening]], outage: Part
    ) -> None:
        self._portal = portal
        self._node = node
        self._connect = connect
        self._outage = outage
        self._listeners: list[Hear] = []
        self._pending: deque[Signal] = deque()
        self._asleep = False
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._peers: dict[UUID, float] = {}
        self._greets = False
        self._echoed = True
        self._deaf = False
        self._sent = self._heard = self._dropped = self._lost = 0

    # --- in trio's thread -----------------------------------------------------------------------------------

    def send(self, *signals: Signal) -> None:
        if not self._peers or self._task is None:
            return
        if len(self._pending) >= PENDING_MAX:
            self._dropped += len(signals)
            return
        self._pending.extend(signals)
        # As in a lane: the task says that it sleeps before it looks for the last time.
        if self._asleep:
            self._asleep = False
            self._portal.send(self._wake.set)

    def listen(self, hear: Hear) -> None:
        self._listeners.append(hear)

    def statistics(self) -> SignalStatistics:
        return SignalStatistics(len(self._peers), self._sent, self._heard, self._dropped, self._lost)

    def _deliver(self, signals: Sequence[Signal]) -> None:
        for hear in self._listeners:
            try:
                hear(signals)
            except Exception:
                log.exception("a listener of signals failed")

    def _count_outstanding(self, change: int) -> None:
        # While trio is never idle, the thread that listens would not get the interpreter's lock.
        self._portal.outstanding += change

    # --- in the asyncio thread ------------------------------------------------------------------------------

    async def open(self) -> None:
        """Begin; a database that does not let this in is waited for, and meanwhile nobody is told."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Stop listening."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def _run(self) -> None:
        pause = BACKOFF_FIRST_S
        while True:
            connection: Listening | None = None
            try:
                connection = await self._connected()
                pause = BACKOFF_FIRST_S
                await self._tell(connection)
            except Exception as error:  # noqa: BLE001 - it only saves waiting: tried again until it is closed
                self._outage.begin(error)
            finally:
                self._lose_peers()
                if connection is not None:
                    self._lost += 1
                    connection.terminate()
            await asyncio.sleep(pause)
            pause = min(2 * pause, BACKOFF_MAX_S)

    async def _connected(self) -> Listening:
        connection = await self._connect()
        try:
            async with asyncio.timeout(STATEMENT_S):
                await connection.add_listener(CHANNEL, self._notified)
        except BaseException:
            connection.terminate()
            raise
        return connection

    async def _tell(self, connection: Listening) -> None:
        """Send what there is to tell, and at each beacon that this node is there, until that fails."""
        beacon_at = 0.0
        while True:
            now = time.monotonic()
            says_hello = self._greets or now >= beacon_at
            if says_hello:
                if beacon_at and not self._greets:
                    self._check_echo()
                self._greets = False
                beacon_at = now + BEACON_S
                self._forget_silent(now)
            pending = self._take_pending()
            if pending or says_hello:
                payloads = list(pack(self._node, merged(pending)))
                async with asyncio.timeout(STATEMENT_S):
                    await connection.fetch(_NOTIFY, payloads)
                self._sent += len(pending)
                self._outage.end()
                await asyncio.sleep(GATHER_S)
            await self._sleep(beacon_at - time.monotonic())

    def _take_pending(self) -> Sequence[Signal]:
        # One by one: the other thread may be adding to it.
        taken: list[Signal] = []
        while self._pending:
            taken.append(self._pending.popleft())
        return taken

    async def _sleep(self, at_most_s: float) -> None:
        self._wake.clear()
        self._asleep = True
        if self._pending or self._greets:
            self._asleep = False
            return
        try:
            async with asyncio.timeout(max(0.0, at_most_s)):
                await self._wake.wait()
        except TimeoutError:
            pass
        self._asleep = False

    def _notified(self, _: object, _pid: int, _channel: str, payload: object) -> None:
        heard = unpack(str(payload))
        if heard is None:
            return
        if heard.node == self._node:
            self._echoed = True
            return
        if heard.node not in self._peers:
            # It does not know of this node either, and is answered at once.
            self._greets = True
            self._wake.set()
            self._portal.post(lambda: self._count_outstanding(1))
        self._peers[heard.node] = time.monotonic()
        if heard.signals:
            self._heard += len(heard.signals)
            self._portal.post(lambda: self._deliver(heard.signals))

    def _forget_silent(self, now: float) -> None:
        for node in [node for node, at in self._peers.items() if now - at > PEER_GONE_S]:
            self._lose(node)

    def _lose_peers(self) -> None:
        for node in tuple(self._peers):
            self._lose(node)

    def _lose(self, node: UUID) -> None:
        del self._peers[node]
        self._portal.post(lambda: self._count_outstanding(-1))

    def _check_echo(self) -> None:
        deaf, self._echoed = not self._echoed, False
        if deaf and not self._deaf:
            log.warning(
                "the database does not deliver notifications (LISTEN does not pass a pooler of transactions):"
                " other nodes' work is seen at the next look"
            )
        self._deaf = deaf
