"""Users in PostgreSQL."""

from uuid import UUID

from sexton_storage.postgres.sql.schema import USERS
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.records.users import User


class PostgresUsers(PostgresStore):
    async def load(self, user_id: UUID) -> User | None:
        return USERS.maybe(await self._row(f"SELECT {USERS.columns()} FROM users WHERE id = $1", user_id))

    async def find_by_subject(self, subject: str) -> User | None:
        query = f"SELECT {USERS.columns()} FROM users WHERE subject = $1 AND issuer IS NULL"
        return USERS.maybe(await self._row(query, subject))
