"""What is shown of gates in a chat, and what is told there once, in memory."""

from collections.abc import Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.memory.base import MemoryStore
from sexton_storage.memory.tables import Tables
from sexton_storage.records.chats import ChatInstall, ChatNotice, ChatPost, ChatWork
from sexton_storage.records.gates import Gate, GateStatus


def put_notice(tables: Tables, notice: ChatNotice) -> None:
    """Note what the chat is to be told; nothing where there is no chat."""
    install = tables.chat_installs.get(notice.workspace_id)
    if install is not None and install.revoked_at is None:
        tables.chat_notices[notice.id] = notice


class MemoryChats(MemoryStore):
    async def load(self, workspace_id: UUID) -> ChatInstall | None:
        await self._round_trip()
        return self._tables.chat_installs.get(workspace_id)

    async def save(self, install: ChatInstall) -> None:
        await self._round_trip()
        self._tables.chat_installs[install.workspace_id] = install
        for post in self._posts_of(install.workspace_id):
            self._tables.chat_posts[post.gate_id] = replace(post, due_at=0)
        for notice in self._notices_of(install.workspace_id):
            self._tables.chat_notices[notice.id] = replace(notice, due_at=0)

    async def revoke(self, workspace_id: UUID, now: int) -> None:
        await self._round_trip()
        install = self._good(workspace_id)
        if install is not None:
            self._tables.chat_installs[workspace_id] = replace(install, revoked_at=now)

    async def remove(self, workspace_id: UUID) -> bool:
        await self._round_trip()
        for post in self._posts_of(workspace_id):
            del self._tables.chat_posts[post.gate_id]
        for notice in self._notices_of(workspace_id):
            del self._tables.chat_notices[notice.id]
        return self._tables.chat_installs.pop(workspace_id, None) is not None

    async def waiting(self, now: int, *, limit: int) -> Sequence[UUID]:
        await self._round_trip()
        found = [
            workspace_id
            for workspace_id in self._tables.chat_installs
            if self._good(workspace_id)
            and (
                self._due(workspace_id, now)
                or self._unshown(workspace_id)
                or self._due_notices(workspace_id, now)
            )
        ]
        return found[:limit]

    async def claim(self, workspace_id: UUID, now: int, until: int) -> ChatWork | None:
        await self._round_trip()
        install, posts, gates = self._good(workspace_id), self._tables.chat_posts, self._tables.gates
        if install is None:
            return None
        due = self._due(workspace_id, now)
        if due:
            old = due[0]
            again = replace(old, attempts=old.attempts + 1, due_at=until, unsure=old.message_id is None)
            posts[old.gate_id] = again
            return ChatWork(replace(again, unsure=old.unsure), gates.get(old.gate_id))
        unshown = self._unshown(workspace_id)
        if not unshown:
            return None
        gate = unshown[0]
        new = ChatPost(
            gate_id=gate.id,
            workspace_id=workspace_id,
            channel_id=install.channel_id,
            message_id=None,
            attempts=1,
            unsure=True,
            due_at=until,
            created_at=now,
        )
        posts[gate.id] = new
        return ChatWork(replace(new, unsure=False), gate)

    async def keep(self, post: ChatPost) -> bool:
        await self._round_trip()
        old = self._claimed(post)
        if old is None:
            return False
        self._tables.chat_posts[post.gate_id] = replace(post, created_at=old.created_at)
        return True

    async def forget(self, post: ChatPost) -> bool:
        await self._round_trip()
        if self._claimed(post) is None:
            return False
        del self._tables.chat_posts[post.gate_id]
        return True

    async def claim_notice(self, workspace_id: UUID, now: int, until: int) -> ChatNotice | None:
        await self._round_trip()
        due = self._due_notices(workspace_id, now)
        if not due or self._good(workspace_id) is None:
            return None
        claimed = replace(due[0], attempts=due[0].attempts + 1, due_at=until)
        self._tables.chat_notices[claimed.id] = claimed
        return claimed

    async def postpone_notice(self, notice: ChatNotice) -> bool:
        await self._round_trip()
        if not self._holds(notice):
            return False
        self._tables.chat_notices[notice.id] = notice
        return True

    async def forget_notice(self, notice: ChatNotice) -> bool:
        await self._round_trip()
        if not self._holds(notice):
            return False
        del self._tables.chat_notices[notice.id]
        return True

    def _holds(self, notice: ChatNotice) -> bool:
        kept = self._tables.chat_notices.get(notice.id)
        return kept is not None and kept.attempts == notice.attempts

    def _notices_of(self, workspace_id: UUID) -> list[ChatNotice]:
        return [one for one in self._tables.chat_notices.values() if one.workspace_id == workspace_id]

    def _due_notices(self, workspace_id: UUID, now: int) -> list[ChatNotice]:
        due = [notice for notice in self._notices_of(workspace_id) if notice.due_at <= now]
        return sorted(due, key=lambda notice: (notice.due_at, notice.id))

    def _claimed(self, post: ChatPost) -> ChatPost | None:
        old = self._tables.chat_posts.get(post.gate_id)
        return old if old is not None and old.attempts == post.attempts else None

    def _good(self, workspace_id: UUID) -> ChatInstall | None:
        install = self._tables.chat_installs.get(workspace_id)
        return install if install is not None and install.revoked_at is None else None

    def _posts_of(self, workspace_id: UUID) -> list[ChatPost]:
        return [post for post in self._tables.chat_posts.values() if post.workspace_id == workspace_id]

    def _due(self, workspace_id: UUID, now: int) -> list[ChatPost]:
        due = [
            post
            for post in self._posts_of(workspace_id)
            if post.due_at <= now and (post.message_id is None or not self._is_pending(post.gate_id))
        ]
        return sorted(due, key=lambda post: (post.due_at, post.gate_id))

    def _is_pending(self, gate_id: UUID) -> bool:
        gate = self._tables.gates.get(gate_id)
        return gate is not None and gate.status is GateStatus.PENDING

    def _unshown(self, workspace_id: UUID) -> list[Gate]:
        gates = [
            gate
            for gate in self._tables.gates.values()
            if gate.workspace_id == workspace_id
            and gate.status is GateStatus.PENDING
            and gate.id not in self._tables.chat_posts
        ]
        return sorted(gates, key=lambda gate: (gate.requested_at, gate.id))
