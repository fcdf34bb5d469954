"""Puts a question to another node of the database, and answers what other nodes ask this one."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final
from uuid import UUID

import structlog
import trio
from msgspec.structs import replace

from sexton_http.answers import Problem
from sexton_http.identity.context import SeenNode
from sexton_storage.errors import StorageError
from sexton_storage.records.nodes import BEAT_MS, OPEN_MAX, NodeQuestion, NodeRecord
from sexton_storage.signals import Signal, Topic
from sexton_storage.stores import Storage

LOOK_S: Final = 1.0
"""How often a node looks for questions that it was not told of."""
COLLECT_S: Final = 0.25
"""How often whoever asks looks for an answer that it was not told of."""
TAKE_MS: Final = 2_000
"""A question that was not taken by then is never answered: nothing is done for somebody who has gone."""
QUESTION_BYTES: Final = 16 * 1024
ANSWER_BYTES: Final = 256 * 1024
AT_ONCE: Final = 16
"""Questions that one process answers at a time."""
LEAVE_S: Final = 1.0
LISTED: Final = 200

Answering = Callable[[bytes], Awaitable[bytes]]

log = structlog.get_logger()


class NodeQuestions:
    """One process's part: its node's beats, its questions, and its share of what its node is asked.

    The workers of a server are one node; whichever of them takes a question answers it.
    """

    def __init__(
        self,
        storage: Storage,
        node: NodeRecord,
        answer: Answering,
        *,
        new_id: Callable[[], UUID],
    ) -> None:
        self._storage = storage
        self._node = node
        self._answer = answer
        self._new_id = new_id
        self._waiting: dict[UUID, trio.Event] = {}
        self._asked = trio.Event()
        self._room = trio.CapacityLimiter(AT_ONCE)
        storage.signals.listen(self._hear)

    def __repr__(self) -> str:
        return f"<NodeQuestions of {self._node.id}>"

    @property
    def node(self) -> UUID:
        """The id of this node."""
        return self._node.id

    async def seen(self) -> Sequence[SeenNode]:
        """All nodes that were heard within a day, this one first."""
        now = self._storage.clock.now_ms()
        others = [row for row in await self._storage.nodes.list() if row.id != self.node]
        rows = [replace(self._node, heard_at=now), *others[: LISTED - 1]]
        return [seen_at(row, now) for row in rows]

    async def ask(self, node_id: UUID, question: bytes, within_s: float) -> bytes:
        """What that node answers.

        Raises Problem: UZ-ACTOR-001 where there is no such node, UZ-ACTOR-003 where it does not answer, and
        UZ-API-003 where too many wait for answers.
        """
        if node_id == self.node:
            return await self._answer(question)
        found = [row for row in await self._storage.nodes.list() if row.id == node_id]
        if len(question) > QUESTION_BYTES:
            raise Problem("UZ-ACTOR-001", "no kind of actor has so long a name")
        if not found:
            raise Problem("UZ-ACTOR-001", f"there is no node {node_id} at this database")
        node = seen_at(found[0], self._storage.clock.now_ms())
        if not node.is_silent:
            answer = await self._answered(node_id, question, within_s)
            if answer is not None:
                return answer
            node = await self._again(node)
        raise Problem("UZ-ACTOR-003", silence(node))

    async def run(self) -> None:
        """Beat and answer, until cancelled; a database that is away is waited for."""
        beat_at = trio.current_time()
        async with trio.open_nursery() as nursery:
            while True:
                self._asked = trio.Event()
                with suppress(StorageError):
                    if trio.current_time() >= beat_at:
                        beat_at = trio.current_time() + BEAT_MS / 1_000
                        await self._storage.nodes.beat(self._node)
                    free = AT_ONCE - self._room.borrowed_tokens
                    for taken in await self._storage.nodes.take(self.node, limit=free) if free else ():
                        self._room.acquire_on_behalf_of_nowait(taken.id)
                        nursery.start_soon(self._reply, taken)
                with trio.move_on_after(LOOK_S):
                    await self._asked.wait()

    async def leave(self) -> None:
        """Say that this node ends by itself, if the database is there to hear it."""
        with trio.CancelScope(shield=True, deadline=trio.current_time() + LEAVE_S), suppress(StorageError):
            await self._storage.nodes.leave(self.node)

    async def _answered(self, node_id: UUID, question: bytes, within_s: float) -> bytes | None:
        store, question_id = self._storage.nodes, self._new_id()
        now = self._storage.clock.now_ms()
        put = NodeQuestion(question_id, node_id, self.node, question, now, now + TAKE_MS)
        if not await store.ask(put):
            detail = f"{OPEN_MAX} questions to nodes wait for their answers; ask again in a moment"
            raise Problem("UZ-API-003", detail, wait_s=1)
        self._storage.signals.send(Signal(Topic.ASKED, node_id, about=question_id))
        try:
            with trio.move_on_after(within_s):
                while True:
                    self._waiting[question_id] = told = trio.Event()
                    answer = await store.collect(question_id)
                    if answer is not None:
                        return answer
                    with trio.move_on_after(COLLECT_S):
                        await told.wait()
            return None
        finally:
            self._waiting.pop(question_id, None)

    async def _again(self, node: SeenNode) -> SeenNode:
        """The node as it is known now: it may have beaten since, or gone."""
        now = self._storage.clock.now_ms()
        rows = [row for row in await self._storage.nodes.list() if row.id == node.node]
        return seen_at(rows[0], now) if rows else node

    async def _reply(self, taken: NodeQuestion) -> None:
        try:
            answer = await self._answer(taken.question)
            if len(answer) > ANSWER_BYTES:
                log.warning("node_answer_too_long", size=len(answer))
                return
            await self._storage.nodes.answer(taken.id, answer)
            self._storage.signals.send(Signal(Topic.ANSWERED, taken.asker_id, about=taken.id))
        except Exception:
            # Whoever asked waits no longer than its time; this node serves on.
            log.exception("node_question_failed")
        finally:
            self._room.release_on_behalf_of(taken.id)

    def _hear(self, signals: Sequence[Signal]) -> None:
        for signal in signals:
            if signal.id != self.node:
                continue
            if signal.topic is Topic.ASKED:
                self._asked.set()
            elif signal.topic is Topic.ANSWERED and signal.about is not None:
                told = self._waiting.get(signal.about)
                if told is not None:
                    told.set()


def seen_at(row: NodeRecord, now: int) -> SeenNode:
    """How a node looks at a moment.

    >>> seen_at(NodeRecord(UUID(int=1), "a", "1.0", 0, heard_at=1_000), 21_000)
    SeenNode(node=UUID('00000000-0000-0000-0000-000000000001'), host='a', version='1.0', started_at=0, \
heard_ago_s=20.0, is_silent=True)
    """
    ago_s = max(0, now - row.heard_at) / 1_000
    return SeenNode(row.id, row.host, row.version, row.started_at, ago_s, row.is_silent(now))


def silence(node: SeenNode) -> str:
    """What is said of a node that does not answer.

    >>> silence(SeenNode(UUID(int=1), "a", "1.0", 0, 20.5, True))
    'node 00000000-0000-0000-0000-000000000001 at a is silent: it was last heard 20.5 s ago'
    >>> silence(SeenNode(UUID(int=1), "a", "1.0", 0, 0.5, False)).partition(" at ")[2]
    'a does not answer in time: it was last heard 0.5 s ago'
    """
    how = "is silent" if node.is_silent else "does not answer in time"
    return f"node {node.node} at {node.host} {how}: it was last heard {node.heard_ago_s:.1f} s ago"
