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
        order = "created_at DESC, id DESC"
        return await self._page(KEYS, "agent_keys", where, order, page=page, page_size=page_size)

    async def delete(self, workspace_id: UUID, key_id: UUID) -> bool:
        query = "DELETE FROM agent_keys WHERE workspace_id = $1 AND id = $2 RETURNING id"
        return await self._database.change(lambda c: c.fetchval(query, workspace_id, key_id)) is not None

    async def touch(self, used: Sequence[tuple[UUID, int]]) -> None:
        await self._move_on("agent_keys", "last_used_at", used)
