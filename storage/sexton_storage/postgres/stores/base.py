"""What every PostgreSQL store begins with."""

from collections.abc import Sequence
from typing import Any

from sexton_storage.postgres.connections.connection import Row
from sexton_storage.postgres.connections.database import Database


class PostgresStore:
    """A view of one record's table; each read is one crossing and one statement."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def _row(self, query: str, *args: Any) -> Row | None:
        return await self._database.read(lambda c: c.fetchrow(query, *args))

    async def _rows(self, query: str, *args: Any) -> Sequence[Row]:
        return await self._database.read(lambda c: c.fetch(query, *args))

    async def _value(self, query: str, *args: Any) -> Any:
        return await self._database.read(lambda c: c.fetchval(query, *args))


class Conditions:
    """Collects the WHERE clause of a list from the filters that were given."""

    def __init__(self, first: str, *args: Any) -> None:
        self._clauses = [first]
        self.args = list(args)

    def add(self, clause: str, *args: Any) -> None:
        """Add ``clause``, in which ``{}`` stand for the parameters."""
        first = len(self.args) + 1
        self._clauses.append(clause.format(*(f"${first + i}" for i in range(len(args)))))
        self.args.extend(args)

    def __str__(self) -> str:
        return " AND ".join(self._clauses)
