"""Nodes and their questions, in memory."""

from collections.abc import Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.memory.base import MemoryStore
from sexton_storage.records.nodes import (
    NODE_KEEP_MS,
    OPEN_MAX,
    QUESTION_KEEP_MS,
    NodeQuestion,
    NodeRecord,
)


class MemoryNodes(MemoryStore):
    async def beat(self, node: NodeRecord) -> None:
        await self._round_trip()
        tables, now = self._tables, self._tables.now()
        before = tables.nodes.get(node.id, node)
        tables.nodes[node.id] = replace(before, heard_at=now)
        for old in [one for one in tables.nodes.values() if one.heard_at < now - NODE_KEEP_MS]:
            del tables.nodes[old.id]
        questions = tables.node_questions
        for past in [one for one in questions.values() if one.asked_at < now - QUESTION_KEEP_MS]:
            del questions[past.id]
            tables.node_answers.pop(past.id, None)

    async def leave(self, node_id: UUID) -> None:
        await self._round_trip()
        self._tables.nodes.pop(node_id, None)

    async def list(self) -> Sequence[NodeRecord]:
        await self._round_trip()
        return sorted(self._tables.nodes.values(), key=lambda one: (-one.heard_at, one.id))

    async def ask(self, question: NodeQuestion) -> bool:
        await self._round_trip()
        tables, now = self._tables, self._tables.now()
        waiting = [
            one
            for one in tables.node_questions.values()
            if one.expires_at > now and tables.node_answers.get(one.id) is None
        ]
        if len(waiting) >= OPEN_MAX:
            return False
        term = question.expires_at - question.asked_at
        tables.node_questions[question.id] = replace(question, asked_at=now, expires_at=now + term)
        return True

    async def take(self, node_id: UUID, *, limit: int) -> Sequence[NodeQuestion]:
        await self._round_trip()
        tables, now = self._tables, self._tables.now()
        waiting = [
            one
            for one in tables.node_questions.values()
            if one.node_id == node_id and one.expires_at > now and one.id not in tables.node_answers
        ]
        taken = sorted(waiting, key=lambda one: (one.asked_at, one.id))[:limit]
        tables.node_answers.update(dict.fromkeys((one.id for one in taken), None))
        return taken

    async def answer(self, question_id: UUID, answer: bytes) -> None:
        await self._round_trip()
        if question_id in self._tables.node_answers:
            self._tables.node_answers[question_id] = answer

    async def collect(self, question_id: UUID) -> bytes | None:
        await self._round_trip()
        answer = self._tables.node_answers.get(question_id)
        if answer is not None:
            del self._tables.node_answers[question_id], self._tables.node_questions[question_id]
        return answer
