"""Opens a system of actors from its supervision tree, and closes it in order."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable, Hashable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from random import Random, SystemRandom
from typing import Any, Final, TypeVar

import trio
from prometheus_client.registry import Collector

from sexton_engine.activation.cell import Cell
from sexton_engine.activation.direct_ask import BatchAsk, SingleAsk, answer_directly
from sexton_engine.activation.kind import ASK_TIMEOUT_S, Environment, Kind
from sexton_engine.activation.lifecycle import kill
from sexton_engine.activation.phase import AWAKE, Phase, Request
from sexton_engine.activation.workers import Workers
from sexton_engine.actor import Actor
from sexton_engine.context import ActorSystem
from sexton_engine.crash_log import CrashLog
from sexton_engine.errors import ActorStopped, EngineFault, MailboxFull
from sexton_engine.loop_lag import LagProbe
from sexton_engine.mail.dead_letters import DeadLetters, Reason
from sexton_engine.mail.deadlines import Deadlines
from sexton_engine.mail.mailbox import Envelope
from sexton_engine.mail.reply import DEFERRED, AdmissionPort, AskPort
from sexton_engine.mail.reply_batch import ReplyBatch
from sexton_engine.message import Lane, Message
from sexton_engine.metrics import EngineCollector
from sexton_engine.recordings import Recordings
from sexton_engine.spec import SupervisorSpec
from sexton_engine.statistics import KindStatistics, MessageStatistics, SystemStatistics, TreeNode
from sexton_engine.supervision.directory import Directory
from sexton_engine.supervision.live_inspection import LiveInspection
from sexton_engine.supervision.nodes import KILL_GRACE_S, Node, NodeListener, mail_age_s
from sexton_engine.supervision.supervisor import SupervisorNode

__all__ = ["open_system"]

R = TypeVar("R")

AT_ONCE_BURST: Final = 64
"""Asks that are answered in the asker's own task before one takes the long way and lets other tasks run."""


class _Root(NodeListener):
    """Stands above the root supervisor."""

    def __init__(self) -> None:
        self.started = trio.Event()
        self.stop_wanted = trio.Event()
        self.fault: BaseException | None = None

    def child_started(self, node: Node) -> None:
        """The whole tree is up."""
        del node
        self.started.set()

    def child_crashed(self, node: Node, exc: BaseException) -> None:
        """The root has given up."""
        del node
        self.fault = exc
        self.stop_wanted.set()

    def child_restart_wanted(self, node: Node) -> None:
        """A supervisor is not restarted by itself."""
        del node

    def child_finished(self, node: Node) -> None:
        """A supervisor does not end by itself."""
        del node


class _System(ActorSystem):
    """The parts of a running system, put together."""

    __slots__ = (
        "_at_once",
        "_deadlines",
        "_directory",
        "_lag",
        "_monotonic",
        "_workers",
        "dead_letters",
        "inspection",
        "root",
        "tree_root",
    )

    def __init__(
        self,
        spec: SupervisorSpec,
        nursery: trio.Nursery,
        root: _Root,
        *,
        ids: Callable[[], str],
        rng: Random,
        monotonic: Callable[[], float],
    ) -> None:
        self.dead_letters = DeadLetters()
        crashes, recordings = CrashLog(), Recordings(monotonic)
        self._monotonic = monotonic
        self._at_once = 0
        self._deadlines = Deadlines(monotonic)
        self._workers = Workers(nursery)
        self._directory = Directory()
        self._lag = LagProbe(monotonic())
        self._deadlines.arm(self._lag)
        self.root = root
        environment: Environment[Cell] = Environment(
            system=self,
            monotonic=monotonic,
            deadlines=self._deadlines,
            dead_letters=self.dead_letters,
            crashes=crashes,
            recordings=recordings,
            nursery=nursery,
            schedule=self._workers.schedule,
            find=self._directory.find,
            rng=rng,
            ids=ids,
        )
        self.tree_root = SupervisorNode(spec, environment, root)
        self._directory.add(self.tree_root)
        self.inspection = LiveInspection(self._directory, environment)
        nursery.start_soon(self._deadlines.run, name="deadlines")

    async def ask(
        self,
        kind: str,
        key: Hashable,
        message: Message[R],
        *,
        timeout: float | None = None,
        lane: Lane = Lane.USER,
    ) -> R:
        """Send, and wait for the reply."""
        cell = self._directory.resolve(kind, key)
        now = self._monotonic()
        until = now + (ASK_TIMEOUT_S if timeout is None else timeout)
        reply: R
        actor = self._at_rest(cell)
        if actor is not None:
            asked = SingleAsk(message, cell, now, until, lane)
            reply = answer_directly(cell, actor, asked)
            return reply if reply is not DEFERRED else await asked.open_port().wait()
        port = AskPort(trio.lowlevel.current_task(), until, self._deadlines, cell.count_late_reply)
        try:
            cell.post(Envelope(message, port, now, lane), may_wait=True)
        except BaseException:
            port.withdraw()
            raise
        reply = await port.wait()
        return reply

    def _at_rest(self, cell: Cell) -> Actor | None:
        """The actor, if it can answer in the asker's own task: idle, and with a handler that cannot wait."""
        actor = cell.actor
        if actor is None or cell.scheduled or cell.phase is not AWAKE or not actor.answers_at_once:
            return None
        if self._at_once == AT_ONCE_BURST:
            self._at_once = 0
            return None
        self._at_once += 1
        return actor

    async def ask_all(
        self, kind: str, asks: Sequence[tuple[Hashable, Message[R]]], *, timeout: float | None = None
    ) -> list[R | Exception]:
        """Ask many at once and wait for all."""
        now = self._monotonic()
        until = now + (ASK_TIMEOUT_S if timeout is None else timeout)
        batch = ReplyBatch(trio.lowlevel.current_task(), until, self._deadlines, len(asks))
        cells = self._directory.kind(kind).cells
        first: Actor | None = None
        at_once = 0
        try:
            for place, (key, message) in enumerate(asks):
                cell = cells.get(key)
                actor = None if cell is None else cell.actor
                if (
                    cell is None
                    or actor is None
                    or cell.scheduled
                    or cell.phase is not AWAKE
                    or not actor.answers_at_once
                ):
                    self._post(batch, place, kind, key, Envelope(message, None, now, Lane.USER))
                else:
                    if first is None:
                        first = actor
                        actor.on_burst_start()
                    reply = answer_directly(cell, actor, BatchAsk(message, cell, now, batch, place))
                    if reply is not DEFERRED:
                        batch.replies[place] = reply
                        at_once += 1
                        now = self._monotonic()  # What this one took is not counted to the next.
        except BaseException:
            batch.withdraw()
            raise
        finally:
            if first is not None:
                first.on_burst_end()
        waits = batch.waiting > 0
        replies = await batch.wait()
        if waits or at_once < AT_ONCE_BURST:
            await trio.lowlevel.checkpoint_if_cancelled()
        else:
            await trio.lowlevel.checkpoint()  # A loop of such questions lets other tasks run too.
        return replies

    def _post(self, batch: ReplyBatch, place: int, kind: str, key: Hashable, envelope: Envelope) -> None:
        """Ask one question of many by way of the mailbox."""
        try:
            cell = self._directory.resolve(kind, key)
        except ActorStopped as stopped:
            batch.replies[place] = stopped
            return
        port = envelope.port = batch.open_port(place, cell.count_late_reply)
        try:
            cell.post(envelope, may_wait=True)
        except (ActorStopped, MailboxFull) as fault:
            port.set(fault)

    def tell(self, kind: str, key: Hashable, message: Message[Any], *, lane: Lane = Lane.USER) -> None:
        """Send without a reply."""
        try:
            cell = self._directory.resolve(kind, key)
        except ActorStopped:
            self._directory.kind(kind).add_dead_letter(key, message, Reason.STOPPED)
            return
        cell.post_quietly(Envelope(message, None, self._monotonic(), lane))

    async def send(self, kind: str, key: Hashable, message: Message[Any]) -> None:
        """Tell, waiting for room if that is the policy."""
        cell = self._directory.resolve(kind, key)
        port = AdmissionPort(trio.lowlevel.current_task())
        envelope = Envelope(message, port, self._monotonic(), Lane.USER)
        cell.post(envelope, may_wait=True)
        if cell.mailbox.is_waiting(envelope):
            await port.wait()
        else:
            envelope.port = None
            await trio.lowlevel.checkpoint()

    async def stop(self, kind: str, key: Hashable) -> bool:
        """End an activation after the message it is handling."""
        cell = self._directory.find(kind, key)
        if cell is None or cell.phase is Phase.OVER:
            await trio.lowlevel.checkpoint()
            return False
        cell.request(Request.STOP)
        with trio.move_on_after(cell.of_kind.shutdown_s) as budget:
            await cell.wait_end()
        if budget.cancelled_caught:
            kill(cell, Request.KILL)
            with trio.move_on_after(KILL_GRACE_S):
                await cell.wait_end()
        return True

    def kill(self, kind: str, key: Hashable) -> bool:
        """End an activation now."""
        cell = self._directory.find(kind, key)
        if cell is None:
            return False
        kill(cell, Request.KILL)
        return True

    def statistics(self) -> SystemStatistics:
        """What the system has done, and what waits now."""
        return SystemStatistics(
            kinds=tuple(self._kind_statistics(kind) for kind in self._directory.kinds()),
            loop_lag_s=self._lag.latest_s,
            loop_lag_peak_s=self._lag.peak_s,
            deadlines=len(self._deadlines),
            workers=self._workers.total,
            workers_idle=self._workers.parked,
        )

    def _kind_statistics(self, kind: Kind[Cell]) -> KindStatistics:
        counters = kind.counters
        return KindStatistics(
            kind=kind.name,
            live=sum(1 for cell in kind.cells.values() if cell.actor is not None),
            mailbox_depth=sum(len(cell.mailbox) for cell in kind.mail),
            mailbox_age_s=mail_age_s(kind),
            messages=tuple(
                MessageStatistics(message.__name__, int(count), seconds)
                for message, (count, seconds) in counters.messages.items()
            ),
            activations=counters.activations,
            passivations=counters.passivations,
            crashes=counters.crashes,
            restarts=counters.restarts,
            escalations=counters.escalations,
            dead_letters={why.value: count for why, count in self.dead_letters.by_reason(kind.name).items()},
        )

    def tree(self) -> TreeNode:
        """The live supervision tree."""
        return self.tree_root.tree()

    def collector(self) -> Collector:
        """A Prometheus collector of the statistics."""
        return EngineCollector(self.statistics)


def new_urn() -> str:
    """A name for an activation that nothing else has."""
    return uuid.uuid4().urn


@asynccontextmanager
async def open_system(
    tree: SupervisorSpec,
    *,
    ids: Callable[[], str] = new_urn,
    rng: Random | None = None,
    monotonic: Callable[[], float] | None = None,
) -> AsyncIterator[ActorSystem]:
    """Start the tree in order; inside, all singletons are up. Stop it in reverse order at the end.

    ``monotonic`` is a clock in seconds that runs as fast as trio's, by default trio's own. A crash that no
    supervisor bears cancels the body and raises ``EngineFault``. A singleton that could not start because of
    one of its transparent exceptions counts as up, and is tried again.
    """
    root = _Root()
    opened: list[_System] = []
    # The clock itself: trio.current_time looks it up by three calls, and every message reads it twice.
    clock = monotonic or trio.lowlevel.current_clock().current_time
    make = partial(_System, ids=ids, rng=rng or SystemRandom(), monotonic=clock)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_run_system, tree, root, opened, make)
            try:
                await root.started.wait()
                yield opened[0]
            finally:
                root.stop_wanted.set()
    except BaseExceptionGroup as group:
        error = unwrapped(group)
        raise error from error.__cause__


def unwrapped(error: BaseException) -> BaseException:
    """What was raised, if it was one exception only: a nursery wraps even that, and so does one inside it."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


async def _run_system(
    tree: SupervisorSpec,
    root: _Root,
    opened: list[_System],
    make: Callable[[SupervisorSpec, trio.Nursery, _Root], _System],
) -> None:
    # Shielded: when the body is cancelled the actors still stop in order, within their budgets.
    with trio.CancelScope(shield=True):
        async with trio.open_nursery() as nursery:
            system = make(tree, nursery, root)
            opened.append(system)
            system.tree_root.begin()
            await root.stop_wanted.wait()
            await system.tree_root.stop(keep_mail=False)
            nursery.cancel_scope.cancel()
    if isinstance(root.fault, EngineFault):
        raise root.fault
