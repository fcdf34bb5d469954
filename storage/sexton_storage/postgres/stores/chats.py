"""What is shown of gates in a chat, and what is told there once, in PostgreSQL."""

from collections.abc import Sequence
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.postgres.sql.schema import GATES
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.records.chats import ChatInstall, ChatNotice, ChatPost, ChatWork

INSTALLS = Rows(ChatInstall)
POSTS = Rows(ChatPost)
NOTICES = Rows(ChatNotice)
_KEY, _REST = INSTALLS.names[0], INSTALLS.names[1:]
_SAVE = f"""
{INSTALLS.insert("chat_installs")}
ON CONFLICT ({_KEY}) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _REST)}
"""
_WAITING = """
SELECT g.workspace_id FROM gates g
  JOIN chat_installs i ON i.workspace_id = g.workspace_id AND i.revoked_at IS NULL
 WHERE g.status = 'pending' AND NOT EXISTS (SELECT FROM chat_posts p WHERE p.gate_id = g.id)
UNION
SELECT p.workspace_id FROM chat_posts p
  JOIN chat_installs i ON i.workspace_id = p.workspace_id AND i.revoked_at IS NULL
  LEFT JOIN gates g ON g.id = p.gate_id
 WHERE p.due_at <= $1 AND (p.message_id IS NULL OR g.status IS DISTINCT FROM 'pending')
UNION
SELECT n.workspace_id FROM chat_notices n
  JOIN chat_installs i ON i.workspace_id = n.workspace_id AND i.revoked_at IS NULL
 WHERE n.due_at <= $1
 LIMIT $2
"""
_GOOD = "EXISTS (SELECT FROM chat_installs i WHERE i.workspace_id = $1 AND i.revoked_at IS NULL)"
_OLD = f"""
WITH c AS (
    SELECT p.gate_id, p.unsure FROM chat_posts p LEFT JOIN gates g ON g.id = p.gate_id
     WHERE p.workspace_id = $1 AND p.due_at <= $2 AND {_GOOD}
       AND (p.message_id IS NULL OR g.status IS DISTINCT FROM 'pending')
     ORDER BY p.due_at, p.gate_id LIMIT 1 FOR UPDATE OF p SKIP LOCKED
)
UPDATE chat_posts p SET due_at = $3, attempts = p.attempts + 1, unsure = p.message_id IS NULL
  FROM c WHERE p.gate_id = c.gate_id
RETURNING {POSTS.columns("p")}, c.unsure AS was_unsure
"""
# Two nodes that find the same gate both insert, and one is told so: it looks for the next.
_NEW = f"""
INSERT INTO chat_posts ({", ".join(POSTS.names)})
SELECT g.id, g.workspace_id, i.channel_id, NULL, 1, true, $3, $2
  FROM gates g JOIN chat_installs i ON i.workspace_id = g.workspace_id AND i.revoked_at IS NULL
 WHERE g.workspace_id = $1 AND g.status = 'pending'
   AND NOT EXISTS (SELECT FROM chat_posts p WHERE p.gate_id = g.id)
 ORDER BY g.requested_at, g.id LIMIT 1
ON CONFLICT (gate_id) DO NOTHING
RETURNING {POSTS.columns()}, false AS was_unsure
"""
_GATE = f"SELECT {GATES.columns()} FROM gates WHERE id = $1"
_KEEP = """
UPDATE chat_posts SET channel_id = $3, message_id = $4, unsure = $5, due_at = $6
 WHERE gate_id = $1 AND attempts = $2 RETURNING true
"""
_FORGET = "DELETE FROM chat_posts WHERE gate_id = $1 AND attempts = $2 RETURNING true"
_PUT_NOTICE = f"""
INSERT INTO chat_notices ({", ".join(NOTICES.names)})
SELECT {", ".join(f"${number}" for number in range(1, len(NOTICES.names) + 1))}
 WHERE EXISTS (SELECT FROM chat_installs i WHERE i.workspace_id = $3 AND i.revoked_at IS NULL)
"""
_CLAIM_NOTICE = f"""
WITH c AS (
    SELECT n.zombie_id, n.id FROM chat_notices n
     WHERE n.workspace_id = $1 AND n.due_at <= $2 AND {_GOOD}
     ORDER BY n.due_at, n.id LIMIT 1 FOR UPDATE SKIP LOCKED
)
UPDATE chat_notices n SET due_at = $3, attempts = n.attempts + 1
  FROM c WHERE (n.zombie_id, n.id) = (c.zombie_id, c.id)
RETURNING {NOTICES.columns("n")}
"""
_CLAIMED_NOTICE = "zombie_id = $1 AND id = $2 AND attempts = $3 RETURNING true"
_POSTPONE_NOTICE = f"UPDATE chat_notices SET due_at = $4 WHERE {_CLAIMED_NOTICE}"
_FORGET_NOTICE = f"DELETE FROM chat_notices WHERE {_CLAIMED_NOTICE}"


async def put_notice(connection: Connection, notice: ChatNotice) -> None:
    """Note what the chat is to be told, in the commit of what it tells; nothing where there is no chat."""
    await connection.execute(_PUT_NOTICE, *NOTICES.values(notice))


class PostgresChats(PostgresStore):
    async def load(self, workspace_id: UUID) -> ChatInstall | None:
        query = f"SELECT {INSTALLS.columns()} FROM chat_installs WHERE workspace_id = $1"
        return INSTALLS.maybe(await self._row(query, workspace_id))

    async def save(self, install: ChatInstall) -> None:
        async def work(connection: Connection) -> None:
            await connection.execute(_SAVE, *INSTALLS.values(install))
            for table in ("chat_posts", "chat_notices"):
                query = f"UPDATE {table} SET due_at = 0 WHERE workspace_id = $1"
                await connection.execute(query, install.workspace_id)

        await self._database.change(work)

    async def revoke(self, workspace_id: UUID, now: int) -> None:
        query = "UPDATE chat_installs SET revoked_at = $2 WHERE workspace_id = $1 AND revoked_at IS NULL"
        await self._database.change(lambda c: c.execute(query, workspace_id, now))

    async def remove(self, workspace_id: UUID) -> bool:
        async def work(connection: Connection) -> bool:
            for table in ("chat_posts", "chat_notices"):
                await connection.execute(f"DELETE FROM {table} WHERE workspace_id = $1", workspace_id)
            query = "DELETE FROM chat_installs WHERE workspace_id = $1 RETURNING true"
            return bool(await connection.fetchval(query, workspace_id))

        return await self._database.change(work)

    async def waiting(self, now: int, *, limit: int) -> Sequence[UUID]:
        return [row[0] for row in await self._rows(_WAITING, now, limit)]

    async def claim(self, workspace_id: UUID, now: int, until: int) -> ChatWork | None:
        async def work(connection: Connection) -> ChatWork | None:
            row = await connection.fetchrow(_OLD, workspace_id, now, until)
            if row is None:
                row = await connection.fetchrow(_NEW, workspace_id, now, until)
            if row is None:
                return None
            post = replace(POSTS.record(row), unsure=row["was_unsure"])
            return ChatWork(post, GATES.maybe(await connection.fetchrow(_GATE, post.gate_id)))

        return await self._database.change(work)

    async def keep(self, post: ChatPost) -> bool:
        args = (post.gate_id, post.attempts, post.channel_id, post.message_id, post.unsure, post.due_at)
        return bool(await self._database.change(lambda c: c.fetchval(_KEEP, *args)))

    async def forget(self, post: ChatPost) -> bool:
        return bool(await self._database.change(lambda c: c.fetchval(_FORGET, post.gate_id, post.attempts)))

    async def claim_notice(self, workspace_id: UUID, now: int, until: int) -> ChatNotice | None:
        return NOTICES.maybe(
            await self._database.change(lambda c: c.fetchrow(_CLAIM_NOTICE, workspace_id, now, until))
        )

    async def postpone_notice(self, notice: ChatNotice) -> bool:
        args = (notice.zombie_id, notice.id, notice.attempts, notice.due_at)
        return bool(await self._database.change(lambda c: c.fetchval(_POSTPONE_NOTICE, *args)))

    async def forget_notice(self, notice: ChatNotice) -> bool:
        args = (notice.zombie_id, notice.id, notice.attempts)
        return bool(await self._database.change(lambda c: c.fetchval(_FORGET_NOTICE, *args)))
