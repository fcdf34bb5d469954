"""Keys of agents, in PostgreSQL."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.errors import NameTaken
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.postgres.stores.agent_lock import Hold, lock_agent
from sexton_storage.postgres.stores.base import Conditions, PostgresStore
from sexton_storage.records.agent_keys import AgentKey

KEYS = Rows(AgentKey)
NAMES = {"agent_keys_name_taken": NameTaken}
_SELECT = f"SELECT {KEYS.columns()} FROM agent_keys"
_TOUCH = """
UPDATE agent_keys k SET last_used_at = greatest(k.last_used_at, v.at)
  FROM (SELECT id, max(at) AS at FROM unnest($1::uuid[], $2::bigint[]) AS u(id, at) GROUP BY id) v
 WHERE k.id = v.id AND v.at > coalesce(k.last_used_at, 0)
"""


class PostgresAgentKeys(PostgresStore):
    async def find_by_hash(self, token_hash: bytes) -> AgentKey | None:
        return KEYS.maybe(await self._row(f"{_SELECT} WHERE token_hash = $1", token_hash))

    async def load(self, workspace_id: UUID, key_id: UUID) -> AgentKey | None:
        query = f"{_SELECT} WHERE workspace_id = $1 AND id = $2"
        return KEYS.maybe(await self._row(query, workspace_id, key_id))

    async def create(self, key: AgentKey) -> bool:
        async def work(connection: Connection) -> bool:
            # Locked, so that a key is never made for an agent that is being purged.
            if await lock_agent(connection, key.zombie_id) is Hold.GONE:
                return False
            await connection.execute(KEYS.insert("agent_keys"), *KEYS.values(key))
            return True

        return await self._database.change(work, NAMES)

    async def list(
        self, workspace_id: UUID, *, zombie_id: UUID | None, page: int, page_size: int
    ) -> tuple[Sequence[AgentKey], int]:
        where = Conditions("workspace_id = $1", workspace_id)
        if zombie_id is not None:
            where.add("zombie_id = {}", zombie_id)
        total = await self._value(f"SELECT count(*) FROM agent_keys WHERE {where}", *where.args)
        query = (
            f"{_SELECT} WHERE {where} ORDER BY created_at DESC, id DESC"
            f" LIMIT {int(page_size)} OFFSET {int((page - 1) * page_size)}"
        )
        return KEYS.many(await self._rows(query, *where.args)), total

    async def delete(self, workspace_id: UUID, key_id: UUID) -> bool:
        query = "DELETE FROM agent_keys WHERE workspace_id = $1 AND id = $2 RETURNING id"
        return await self._database.change(lambda c: c.fetchval(query, workspace_id, key_id)) is not None

    async def touch(self, used: Sequence[tuple[UUID, int]]) -> None:
        # Moving a time forward twice is moving it once: no transaction with a mark is needed.
        ids, times = [key_id for key_id, _ in used], [at for _, at in used]
        await self._database.read(lambda c: c.execute(_TOUCH, ids, times))
