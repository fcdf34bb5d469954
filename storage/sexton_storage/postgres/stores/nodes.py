"""Nodes and their questions, in PostgreSQL."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.records.nodes import (
    NODE_KEEP_MS,
    OPEN_MAX,
    QUESTION_KEEP_MS,
    NodeQuestion,
    NodeRecord,
)

NODES: Final = Rows(NodeRecord)
QUESTIONS: Final = Rows(NodeQuestion)
_BEAT = """
INSERT INTO nodes (id, host, version, started_at, heard_at) VALUES ($1, $2, $3, $4, sexton_now_ms())
ON CONFLICT (id) DO UPDATE SET heard_at = greatest(nodes.heard_at, excluded.heard_at)
"""
_FORGET_NODES = "DELETE FROM nodes WHERE heard_at < sexton_now_ms() - $1"
_FORGET_QUESTIONS = "DELETE FROM node_questions WHERE asked_at < sexton_now_ms() - $1"
# Times are the database's: what a node may still take does not depend on its own clock.
_ASK = """
INSERT INTO node_questions (id, node_id, asker_id, question, asked_at, expires_at)
SELECT $1, $2, $3, $4, sexton_now_ms(), sexton_now_ms() + $5
WHERE (SELECT count(*) FROM node_questions WHERE answer IS NULL AND expires_at > sexton_now_ms()) < $6
ON CONFLICT (id) DO UPDATE SET id = excluded.id
RETURNING true
"""
_TAKE = f"""
UPDATE node_questions SET taken_at = sexton_now_ms() WHERE id IN (
    SELECT id FROM node_questions WHERE node_id = $1 AND taken_at IS NULL AND expires_at > sexton_now_ms()
    ORDER BY asked_at, id LIMIT $2 FOR UPDATE SKIP LOCKED)
RETURNING {QUESTIONS.columns()}
"""
_ANSWER = "UPDATE node_questions SET answer = $2 WHERE id = $1 AND taken_at IS NOT NULL"
_COLLECT = "DELETE FROM node_questions WHERE id = $1 AND answer IS NOT NULL RETURNING answer"


class PostgresNodes(PostgresStore):
    async def beat(self, node: NodeRecord) -> None:
        async def work(connection: Connection) -> None:
            await connection.execute(_BEAT, node.id, node.host, node.version, node.started_at)
            await connection.execute(_FORGET_NODES, NODE_KEEP_MS)
            await connection.execute(_FORGET_QUESTIONS, QUESTION_KEEP_MS)

        # To say twice that it is there is to say it once: no transaction with a mark is needed.
        await self._database.read(work)

    async def leave(self, node_id: UUID) -> None:
        await self._database.read(lambda c: c.execute("DELETE FROM nodes WHERE id = $1", node_id))

    async def list(self) -> Sequence[NodeRecord]:
        query = f"SELECT {NODES.columns()} FROM nodes ORDER BY heard_at DESC, id"
        return NODES.many(await self._rows(query))

    async def ask(self, question: NodeQuestion) -> bool:
        one = question
        args = (one.id, one.node_id, one.asker_id, one.question, one.expires_at - one.asked_at, OPEN_MAX)
        return bool(await self._value(_ASK, *args))

    async def take(self, node_id: UUID, *, limit: int) -> Sequence[NodeQuestion]:
        # One that is taken on a connection which is lost then stays unanswered, and is never done twice.
        taken = QUESTIONS.many(await self._rows(_TAKE, node_id, limit))
        return sorted(taken, key=lambda one: (one.asked_at, one.id))

    async def answer(self, question_id: UUID, answer: bytes) -> None:
        await self._database.read(lambda c: c.execute(_ANSWER, question_id, answer))

    async def collect(self, question_id: UUID) -> bytes | None:
        answer: bytes | None = await self._value(_COLLECT, question_id)
        return answer
