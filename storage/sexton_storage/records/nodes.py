"""The servers that share a database, and what one of them asks another by way of it."""

from collections.abc import Sequence
from typing import Final, Protocol
from uuid import UUID

import msgspec

BEAT_MS: Final = 5_000
"""How often a node writes that it is there."""
SILENT_MS: Final = 16_000
"""A node that has not written for this long (three beats, and a little) is silent."""
NODE_KEEP_MS: Final = 24 * 3_600_000
"""How long a silent node is shown."""
QUESTION_KEEP_MS: Final = 60_000
OPEN_MAX: Final = 64
"""Questions of all nodes that wait for an answer; one more is not asked."""


class NodeRecord(msgspec.Struct, frozen=True, gc=False):
    """One server: its workers are one node together."""

    id: UUID
    host: str
    version: str
    started_at: int
    heard_at: int
    """Unix ms, by the database's clock."""

    def is_silent(self, now: int) -> bool:
        """Whether it has missed its beats.

        >>> node = NodeRecord(UUID(int=1), "a", "1", 0, heard_at=1_000)
        >>> node.is_silent(1_000 + SILENT_MS), node.is_silent(1_001 + SILENT_MS)
        (False, True)
        """
        return now - self.heard_at > SILENT_MS


class NodeQuestion(msgspec.Struct, frozen=True, gc=False):
    """What one node asks another. Its bytes are theirs alone."""

    id: UUID
    node_id: UUID
    """Who is asked."""
    asker_id: UUID
    question: bytes
    asked_at: int
    expires_at: int
    """Whoever has not taken it by then never does."""


class NodeStore(Protocol):
    async def beat(self, node: NodeRecord) -> None:
        """Keep that the node is there now; forget nodes and questions that are past keeping."""
        ...

    async def leave(self, node_id: UUID) -> None:
        """The node ends by itself: it is not silent but gone."""
        ...

    async def list(self) -> Sequence[NodeRecord]:
        """All that are kept, the one that was heard last first."""
        ...

    async def ask(self, question: NodeQuestion) -> bool:
        """Put a question; False when ``OPEN_MAX`` wait already."""
        ...

    async def take(self, node_id: UUID, *, limit: int) -> Sequence[NodeQuestion]:
        """The node's open questions, which nobody else is given any more, the oldest first."""
        ...

    async def answer(self, question_id: UUID, answer: bytes) -> None:
        """Answer one that was taken; nothing happens when nobody knows it any more."""
        ...

    async def collect(self, question_id: UUID) -> bytes | None:
        """The answer, once; None while there is none."""
        ...
