"""Batches of the archive in PostgreSQL: collected, read, and deleted once they are the archive's."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from decimal import Decimal
from functools import partial
from typing import Any, Final
from uuid import UUID

from sexton_storage.errors import SumsDiffer
from sexton_storage.postgres.connections.connection import Connection, Row
from sexton_storage.postgres.connections.database import LONG_S, Names
from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.postgres.stores.archive_tables import (
    ALONG_THE_KEY,
    METERING,
    METERING_EVENTS,
    METERING_PAGE,
    READ_DAY,
    READ_EVENTS,
    TABLES,
    ArchivedTable,
    collect_of,
    due_of,
)
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.postgres.stores.event_words import HOLD_PLACE
from sexton_storage.postgres.stores.retention import HOLD_RETENTION, OF_PAIRS
from sexton_storage.records.archives import (
    ArchiveBatch,
    ArchiveBounds,
    ArchiveKind,
    ArchiveStatus,
    DroppedRows,
    RowsDiffer,
    TableSum,
)

BATCHES: Final = Rows(ArchiveBatch)
NOT_ARCHIVED: Final = ("event_words", "workspace_starts", "failure_events")
"""What goes with an event, and is made of it, or is of no use without the database."""
NOTHING: Final = TableSum(0, 0)
_NAMES: Final[Names] = {"archive_has_rows": RowsDiffer, "compaction_keeps_sums": SumsDiffer}
_COLUMNS: Final = BATCHES.columns()
# Ends with the transaction. A deletion may take minutes, and nobody is to wait for its row.
_ALONE: Final = "SELECT pg_try_advisory_xact_lock(1234554321, 60)"
_UNDER_WAY: Final = f"SELECT {_COLUMNS} FROM archive_batches WHERE status <> 'dropped' FOR UPDATE"
_CLAIM: Final = f"""
UPDATE archive_batches SET fence = fence + 1, held_until = sexton_now_ms() + $2, updated_at = sexton_now_ms()
 WHERE number = $1 RETURNING {_COLUMNS}
"""
_BEGIN: Final = f"""
INSERT INTO archive_batches
       (number, id, kind, status, place, workspace_id, source, agents, ids, attempts, fence, held_until,
        created_at, updated_at)
SELECT coalesce(max(number), 0) + 1, $1, $2, 'collected', $3, $4, $5, $6, $7, $8, 1,
       sexton_now_ms() + $9, sexton_now_ms(), sexton_now_ms()
  FROM archive_batches
ON CONFLICT DO NOTHING RETURNING {_COLUMNS}
"""
_AGAIN: Final = f"""
UPDATE archive_batches
   SET kind = $2, place = $3, workspace_id = $4, source = $5, agents = $6, ids = $7, attempts = $8,
       held_until = sexton_now_ms() + $9, updated_at = sexton_now_ms(), fence = fence + 1, manifest = NULL,
       sha256 = NULL
 WHERE number = $1 RETURNING {_COLUMNS}
"""
_ADVANCE: Final = f"""
UPDATE archive_batches
   SET status = $3, manifest = coalesce($4, manifest), sha256 = $5, updated_at = sexton_now_ms()
 WHERE number = $1 AND fence = $2 AND status <> 'dropped' RETURNING {_COLUMNS}
"""
_END: Final = """
UPDATE archive_batches SET status = 'dropped', agents = '{}', ids = '{}', attempts = '{}', manifest = NULL,
       updated_at = sexton_now_ms()
 WHERE number = $1
"""
_HOLD: Final = """
UPDATE archive_batches SET held_until = sexton_now_ms() + $3
 WHERE number = $1 AND fence = $2 AND status <> 'dropped' RETURNING true
"""
_PREVIOUS: Final = """
SELECT number, sha256 FROM archive_batches
 WHERE place = $1 AND status = 'dropped' AND sha256 IS NOT NULL ORDER BY number DESC LIMIT 1
"""
COUNT_ARCHIVED: Final = "SELECT count(*) FROM archive_batches WHERE workspace_id = $1"
"""Batches of a workspace that have objects in an archive, or may have some."""
# As long as a compaction may take, which reads as many rows.
_PATIENTLY: Final = f"SET LOCAL statement_timeout = {int(LONG_S * 1000)}"
_LONGER: Final = "SELECT set_config(name, $1, true) FROM pg_settings WHERE name = 'transaction_timeout'"
_COMPACT: Final = "SELECT * FROM sexton_compact_archived($1, $2, $3, $4, $5, $6)"
_TYPES: Final = """
SELECT a.attname::text, t.typname::text FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
 WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
Found = tuple[UUID | None, str, list[UUID], list[UUID], list[int]]
"""Workspace, source, and the agents, ids and attempts of what is due."""


class PostgresArchives(PostgresStore):
    async def claim(self, *, place: str, hold_ms: int) -> ArchiveBatch | None:
        async def work(connection: Connection) -> ArchiveBatch | None:
            if not await connection.fetchval(_ALONE):
                return None
            batch = await _under_way(connection)
            if batch is None or batch.status is ArchiveStatus.COLLECTED:
                return None
            if not await _is_free(connection, batch):
                return None
            if batch.place != place:
                collected = ArchiveStatus.COLLECTED.value
                await connection.fetchrow(_ADVANCE, batch.number, batch.fence, collected, None, None)
                return None
            return BATCHES.maybe(await connection.fetchrow(_CLAIM, batch.number, hold_ms))

        return await self._database.change(work)

    async def collect(
        self,
        kind: ArchiveKind,
        bounds: ArchiveBounds,
        *,
        batch_id: UUID,
        place: str,
        limit: int,
        hold_ms: int,
    ) -> ArchiveBatch | None:
        async def work(connection: Connection) -> ArchiveBatch | None:
            if not await connection.fetchval(_ALONE):
                return None
            under_way = await _under_way(connection)
            if under_way is not None and (
                under_way.status is not ArchiveStatus.COLLECTED or not await _is_free(connection, under_way)
            ):
                return None
            found = await _due(connection, kind, bounds, limit)
            if found is None:
                if under_way is not None and under_way.kind is kind:
                    await connection.execute(_END, under_way.number)  # It is not due any more.
                return None
            values = (kind.value, place, *found, hold_ms)
            if under_way is not None:
                return BATCHES.maybe(await connection.fetchrow(_AGAIN, under_way.number, *values))
            return BATCHES.maybe(await connection.fetchrow(_BEGIN, batch_id, *values))

        return await self._database.change(work, long=True)

    def tables(self, kind: ArchiveKind) -> Sequence[str]:
        if kind is ArchiveKind.METERING:
            return (METERING,)
        return [table.name for table in TABLES[kind]]

    async def lines(self, batch: ArchiveBatch, table: str) -> AsyncGenerator[Sequence[str], None]:
        if batch.kind is ArchiveKind.METERING:
            in_no_day = batch.source in {"metering_slices_rest", "metering_runs"}
            pages = self._of_events(batch) if in_no_day else self._day(batch)
        else:
            pages = self._rows_of(batch, next(one for one in TABLES[batch.kind] if one.name == table))
        async with aclosing(pages):
            async for page in pages:
                yield page

    async def types(self, table: str) -> Mapping[str, str]:
        source = "metering_slices" if table == METERING else table
        return {row[0]: row[1] for row in await self._rows(_TYPES, source)}

    async def hold(self, batch: ArchiveBatch, *, hold_ms: int) -> bool:
        # Holding twice is holding once: no mark is needed.
        return bool(await self._value(_HOLD, batch.number, batch.fence, hold_ms))

    async def previous(self, place: str) -> tuple[int, bytes] | None:
        row = await self._row(_PREVIOUS, place)
        return None if row is None else (row[0], row[1])

    async def written(self, batch: ArchiveBatch, manifest: bytes) -> ArchiveBatch | None:
        return await self._advance(batch, ArchiveStatus.WRITTEN, manifest, None)

    async def verified(self, batch: ArchiveBatch, sha256: bytes | None) -> ArchiveBatch | None:
        return await self._advance(batch, ArchiveStatus.VERIFIED, None, sha256)

    async def again(self, batch: ArchiveBatch) -> bool:
        moved = await self._advance(batch, ArchiveStatus.COLLECTED, None, None)
        return moved is not None and await self.hold(moved, hold_ms=0)

    async def drop(
        self, batch: ArchiveBatch, sums: Mapping[str, TableSum], bounds: ArchiveBounds, *, limit: int
    ) -> DroppedRows | None:
        async def work(connection: Connection) -> DroppedRows | None:
            for lock in (_ALONE, HOLD_RETENTION):
                if not await connection.fetchval(lock):
                    return None  # Another node is at it.
            held = await _under_way(connection)
            if held is None or (held.number, held.fence) != (batch.number, batch.fence):
                return None
            if held.status is not ArchiveStatus.VERIFIED:
                return None
            if batch.kind is ArchiveKind.METERING:
                dropped = await _compact(connection, batch, sums, bounds, limit)
            else:
                dropped = await _delete(connection, batch, sums, bounds)
            if dropped is not None:
                await connection.execute(_END, batch.number)
            return dropped

        return await self._database.change(work, _NAMES, long=True)

    async def _advance(
        self, batch: ArchiveBatch, status: ArchiveStatus, manifest: bytes | None, sha256: bytes | None
    ) -> ArchiveBatch | None:
        args = (batch.number, batch.fence, status.value, manifest, sha256)
        return await self._database.change(lambda c: _one(c, _ADVANCE, *args))

    async def _rows_of(
        self, batch: ArchiveBatch, table: ArchivedTable
    ) -> AsyncGenerator[Sequence[str], None]:
        for first in range(0, len(batch.ids), table.slice):
            these = _arrays(batch, slice(first, first + table.slice))
            after = [-1] * len(table.key)
            while True:
                rows = await self._rows(table.read, *these, *after)
                if rows:
                    yield [row[len(table.key)] for row in rows]
                if len(rows) < table.page or not table.key:
                    break
                after = [rows[-1][place] for place in range(len(table.key))]

    async def _day(self, batch: ArchiveBatch) -> AsyncGenerator[Sequence[str], None]:
        first, last = batch.ids
        after: tuple[Any, ...] = (first, -1, -1)
        while True:
            rows = await self._database.read(partial(_along_the_key, last, after, METERING_PAGE))
            if rows:
                yield [row[3] for row in rows]
            if len(rows) < METERING_PAGE:
                return
            after = rows[-1][0], rows[-1][1], rows[-1][2]

    async def _of_events(self, batch: ArchiveBatch) -> AsyncGenerator[Sequence[str], None]:
        runs = "metering_runs"
        query = READ_EVENTS.format(source=runs if batch.source == runs else "metering_slices")
        for first in range(0, len(batch.ids), METERING_EVENTS):
            yield [
                row[0] for row in await self._rows(query, list(batch.ids[first : first + METERING_EVENTS]))
            ]


async def _along_the_key(
    last: UUID, after: Sequence[Any], page: int, connection: Connection
) -> Sequence[Row]:
    await connection.execute(ALONG_THE_KEY)
    rows = await connection.fetch(READ_DAY, last, *after, page)
    await connection.execute("COMMIT")
    return rows


async def _one(connection: Connection, query: str, *args: Any) -> ArchiveBatch | None:
    return BATCHES.maybe(await connection.fetchrow(query, *args))


async def _under_way(connection: Connection) -> ArchiveBatch | None:
    return BATCHES.maybe(await connection.fetchrow(_UNDER_WAY))


async def _is_free(connection: Connection, batch: ArchiveBatch) -> bool:
    now: int = await connection.fetchval("SELECT sexton_now_ms()")
    return batch.held_until <= now


async def _due(connection: Connection, kind: ArchiveKind, bounds: ArchiveBounds, limit: int) -> Found | None:
    if kind is ArchiveKind.METERING:
        if bounds.server is None:
            return None
        row = await connection.fetchrow("SELECT * FROM sexton_slices_due($1, $2)", bounds.server, limit)
        if row is None or row["source"] is None:
            return None
        return None, row["source"], [], row["ids"], []
    rows = await connection.fetch(collect_of(kind), *_of_plans(bounds), bounds.server, limit)
    if not rows:
        return None
    return rows[0][0], "", [row[1] for row in rows], [row[2] for row in rows], [row[3] for row in rows]


def _of_plans(bounds: ArchiveBounds) -> tuple[list[str], list[int]]:
    return [tier.value for tier in bounds.plans], list(bounds.plans.values())


def _arrays(batch: ArchiveBatch, part: slice) -> tuple[list[UUID], list[UUID], list[int]]:
    return list(batch.agents[part]), list(batch.ids[part]), list(batch.attempts[part])


async def _delete(
    connection: Connection, batch: ArchiveBatch, sums: Mapping[str, TableSum], bounds: ArchiveBounds
) -> DroppedRows:
    tables, these = TABLES[batch.kind], _arrays(batch, slice(None))
    own = sums.get(tables[0].name, NOTHING)
    due = await connection.fetchval(due_of(batch.kind), *_of_plans(bounds), bounds.server, *these)
    if due != own.rows:
        raise RowsDiffer(f"{due} of {own.rows} rows that were archived are due")
    if batch.kind is ArchiveKind.EVENTS:
        # No words of an event are written after they were deleted.
        await connection.execute(HOLD_PLACE)
        for name in NOT_ARCHIVED:
            await connection.execute(OF_PAIRS.format(table=name), *these[:2])
    # What belongs to a row goes before it.
    for table in reversed(tables):
        rows, total = await connection.fetchrow(table.delete, *these) or (0, 0)
        if TableSum(rows, int(total)) != sums.get(table.name, NOTHING):
            raise RowsDiffer(f"the rows of {table.name} are not those that were archived")
    return DroppedRows(own.rows, 0)


async def _compact(
    connection: Connection,
    batch: ArchiveBatch,
    sums: Mapping[str, TableSum],
    bounds: ArchiveBounds,
    limit: int,
) -> DroppedRows | None:
    of = sums.get(METERING, NOTHING)
    await connection.execute(_PATIENTLY)
    await connection.execute(_LONGER, str(int(LONG_S * 1000)))
    row = await connection.fetchrow(
        _COMPACT, bounds.server, limit, batch.source, list(batch.ids), of.rows, Decimal(of.sum)
    )
    return None if row is None or row["what"] is None else DroppedRows(of.rows, row["runs"])
