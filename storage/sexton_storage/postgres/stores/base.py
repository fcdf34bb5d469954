"""What every PostgreSQL store begins with."""

from collections.abc import Sequence
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from sexton_storage.postgres.connections.connection import Row
from sexton_storage.postgres.connections.database import Database
from sexton_storage.postgres.sql.rows import Rows

R = TypeVar("R", bound=msgspec.Struct)


class Conditions:
    """Collects the WHERE clause of a list from the filters that were given."""

    def __init__(self, first: str, *args: Any) -> None:
        self._clauses = [first]
        self.args = list(args)

    def outer(self) -> "Conditions":
        """Begin the conditions of a query around this one; both have the same parameters."""
        around = Conditions("true")
        around.args = self.args
        return around

    def add(self, clause: str, *args: Any) -> None:
        """Add ``clause``, in which ``{}`` stand for the parameters."""
        self._clauses.append(self.numbered(clause, *args))

    def numbered(self, sql: str, *args: Any) -> str:
        """Give another part of the query, in which ``{}`` stand for the parameters."""
        first = len(self.args) + 1
        self.args.extend(args)
        return sql.format(*(f"${first + i}" for i in range(len(args))))

    def __str__(self) -> str:
        return " AND ".join(self._clauses)


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

    async def _page(
        self, kind: Rows[R], table: str, where: Conditions, order: str, *, page: int, page_size: int
    ) -> tuple[Sequence[R], int]:
        """One page of the rows that fit, and how many fit in all; ``order`` as in ``created_at, id``."""
        query = (
            f"SELECT {kind.columns()} FROM {table} WHERE {where} ORDER BY {order}"
            f" LIMIT {int(page_size)} OFFSET {int((page - 1) * page_size)}"
        )
        rows = await self._rows(query, *where.args)
        return kind.many(rows), await self._value(f"SELECT count(*) FROM {table} WHERE {where}", *where.args)

    async def _move_on(self, table: str, column: str, seen: Sequence[tuple[UUID, int]]) -> None:
        """Note when rows were last used or seen; an earlier time than the one there changes nothing."""
        query = f"""
UPDATE {table} t SET {column} = greatest(t.{column}, v.at)
  FROM (SELECT id, max(at) AS at FROM unnest($1::uuid[], $2::bigint[]) AS u(id, at) GROUP BY id) v
 WHERE t.id = v.id AND v.at > coalesce(t.{column}, 0)
"""
        ids, times = [one for one, _ in seen], [at for _, at in seen]
        # Moving a time forward twice is moving it once: no transaction with a mark is needed.
        await self._database.read(lambda c: c.execute(query, ids, times))
