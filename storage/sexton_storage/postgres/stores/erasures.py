"""Erasures in PostgreSQL: page by page, each in one transaction with how far it is."""

import asyncio
import codecs
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from sexton_storage.decisions import erasure as take
from sexton_storage.decisions.erasure_steps import (
    REST_MOST_MS,
    REST_MS,
    REST_PART,
    SURFACES,
    Found,
    is_new_pass,
    moved,
    settles,
    stopped,
)
from sexton_storage.decisions.tombstones import again, tombstone_of
from sexton_storage.paging import Page
from sexton_storage.postgres.connections.connection import Connection, Row
from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.postgres.stores.archives import COUNT_ARCHIVED
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.postgres.stores.erasure_surfaces import TABLES, Fate, Surface
from sexton_storage.postgres.stores.event_words import HOLD_PLACE, write_words
from sexton_storage.records.erasures import OVER, Erasure, Needle, Tombstone

ERASURES: Final = Rows(Erasure)
SEARCHED_BYTES: Final = 8 * 1024 * 1024
"""Longer files are not looked through, and counted as such."""
_SELECT = f"SELECT {ERASURES.columns()} FROM erasures"
_OPEN = "status IN ('running', 'waiting')"
_ADD = f"{ERASURES.insert('erasures')} ON CONFLICT (id) DO NOTHING"
_SAVE = """
UPDATE erasures SET status = $2, updated_at = $3, surface = $4, after = $5, passes = $6, waits = $7,
       erased = $8, kept = $9, ended_at = $10, found = $11, confirms = $12 WHERE id = $1
"""
_SAVED: Final = (
    "id",
    "status",
    "updated_at",
    "surface",
    "after",
    "passes",
    "waits",
    "erased",
    "kept",
    "ended_at",
    "found",
    "confirms",
)
_DUE = f"""
SELECT id FROM erasures
 WHERE {_OPEN}
   AND (status = 'running'
        OR updated_at + CASE WHEN waits = 0 THEN {REST_MS} ELSE
             LEAST({REST_MOST_MS}, GREATEST({REST_MS}, (updated_at - created_at) / {REST_PART})) END <= $1)
 ORDER BY created_at, id LIMIT $2
"""
# A transaction that had not ended when a pass began is not below its number: the pass may have missed what
# that one wrote. The number of a row's transaction is the row's ``xmin``, also of rows that were changed.
_NOTE_BEGIN = """
UPDATE erasures SET pass_txid = txid_snapshot_xmin(txid_current_snapshot()) WHERE id = $1
"""
_SETTLE = "UPDATE erasures SET settled_txid = pass_txid WHERE id = $1"
# Restored from a dump: transactions are counted from the start again, and rows have other numbers.
_FORGET_FOREIGN = """
UPDATE erasures SET pass_txid = NULL, settled_txid = NULL
 WHERE id = $1 AND (settled_txid > txid_snapshot_xmax(txid_current_snapshot())
                    OR pass_txid > txid_snapshot_xmax(txid_current_snapshot()))
"""
# None as well where so much has happened since that the ages of rows, which have 32 bits, cannot be trusted.
_SETTLED = f"""
SELECT settled_txid % {1 << 32} FROM erasures
 WHERE id = $1 AND settled_txid > txid_snapshot_xmax(txid_current_snapshot()) - {1 << 30}
"""
_MARK = """
INSERT INTO erasure_events AS m (erasure_id, event_id, whole) SELECT $1, id, $3 FROM unnest($2::uuid[]) u(id)
ON CONFLICT (erasure_id, event_id) DO UPDATE SET whole = true WHERE excluded.whole AND NOT m.whole
"""
_LOST = """
SELECT true FROM workspaces WHERE id = $1 AND NOT EXISTS (SELECT FROM erasures WHERE id = $2)
"""
_REMOVED = """
UPDATE transcripts SET is_removed = true, entries = 0, bytes = 0
 WHERE (zombie_id, event_id, attempt) = ($1::text::uuid, $2::text::uuid, $3::text::integer)
"""
_TELLING: Final = frozenset({"events", "transcripts", "gates"})
"""Surfaces whose rows tell that the value is in an event."""
_ANSWERS = "key_uses WHERE scope = $1 AND status IS NOT NULL AND octet_length(sealed) > 0"


class _Change(NamedTuple):
    """What is to be done to one row."""

    row: Row
    whole: bool
    columns: tuple[str | None, ...] = ()
    """What is left of them; empty where the row is deleted, emptied or only counted."""


class PostgresErasures(PostgresStore):
    async def add(self, erasure: Erasure, *, limit: int) -> bool:
        async def work(connection: Connection) -> bool:
            # Two at once are counted one after the other.
            workspace = "SELECT FROM workspaces WHERE id = $1 FOR NO KEY UPDATE"
            await connection.execute(workspace, erasure.workspace_id)
            others = f"SELECT count(*) FROM erasures WHERE workspace_id = $1 AND {_OPEN} AND id <> $2"
            if await connection.fetchval(others, erasure.workspace_id, erasure.id) >= limit:
                return False
            await connection.execute(_ADD, *ERASURES.values(erasure))
            return True

        return await self._database.change(work)

    async def load(self, erasure_id: UUID) -> Erasure | None:
        return ERASURES.maybe(await self._row(f"{_SELECT} WHERE id = $1", erasure_id))

    async def list(self, workspace_id: UUID, *, limit: int, before: Page | None = None) -> Sequence[Erasure]:
        place = (None, None) if before is None else (before.created_at, before.id)
        query = f"""
{_SELECT} WHERE workspace_id = $1 AND ($3::bigint IS NULL OR (created_at, id) < ($3, $4::uuid))
 ORDER BY created_at DESC, id DESC LIMIT $2
"""
        return ERASURES.many(await self._rows(query, workspace_id, limit, *place))

    async def due(self, *, now: int, limit: int) -> Sequence[UUID]:
        return [row[0] for row in await self._rows(_DUE, now, limit)]

    async def step(self, erasure_id: UUID) -> Erasure | None:
        return await self._database.change(lambda connection: _step(connection, erasure_id), long=True)

    async def stop(self, erasure_id: UUID) -> Erasure | None:
        async def work(connection: Connection) -> Erasure | None:
            found = ERASURES.maybe(
                await connection.fetchrow(f"{_SELECT} WHERE id = $1 FOR UPDATE", erasure_id)
            )
            if found is None:
                return None
            ended = stopped(found, await connection.fetchval("SELECT sexton_now_ms()"))
            if ended is not found:
                await _save(connection, ended)
            return ended

        return await self._database.change(work)

    async def newest_change(self) -> int:
        changes: int = await self._value("SELECT changes FROM erasure_changes")
        return changes

    async def tombstones(self) -> Sequence[Tombstone]:
        query = f"{_SELECT} WHERE status = 'done' AND NOT dry_run ORDER BY ended_at, id"
        return [tombstone_of(one) for one in ERASURES.many(await self._rows(query))]

    async def restore(self, tombstones: Sequence[Tombstone]) -> Sequence[UUID]:
        async def work(connection: Connection) -> Sequence[UUID]:
            now, begun = await connection.fetchval("SELECT sexton_now_ms()"), []
            for one in tombstones:
                if await connection.fetchval(_LOST, one.workspace_id, one.id):
                    await connection.execute(_ADD, *ERASURES.values(again(one, now)))
                    begun.append(one.id)
            return begun

        return await self._database.change(work)


async def _save(connection: Connection, erasure: Erasure) -> None:
    values = dict(zip(ERASURES.names, ERASURES.values(erasure), strict=True))
    await connection.execute(_SAVE, *(values[name] for name in _SAVED))
    if erasure.status in OVER:
        await connection.execute("DELETE FROM erasure_events WHERE erasure_id = $1", erasure.id)


async def _step(connection: Connection, erasure_id: UUID) -> Erasure | None:
    free = f"{_SELECT} WHERE id = $1 AND {_OPEN} FOR UPDATE SKIP LOCKED"
    erasure = ERASURES.maybe(await connection.fetchrow(free, erasure_id))
    if erasure is None:
        return None
    await connection.execute(_FORGET_FOREIGN, erasure_id)
    if is_new_pass(erasure):
        await connection.execute(_NOTE_BEGIN, erasure_id)
    name = SURFACES[erasure.surface]
    surface = TABLES.get(name)
    found = await (
        _answers(connection, erasure) if surface is None else _page(connection, erasure, name, surface)
    )
    now = await connection.fetchval("SELECT sexton_now_ms()")
    # A restart of the clock must not let it seem older than it is.
    after = moved(erasure, found, max(now, erasure.updated_at))
    await _save(connection, after)
    if after.passes > erasure.passes and settles(after):
        await connection.execute(_SETTLE, erasure_id)
    if found.erased and not erasure.dry_run:
        await connection.execute("UPDATE erasure_changes SET changes = changes + 1")
    return after


async def _answers(connection: Connection, erasure: Erasure) -> Found:
    """Empty the answers that are saved under idempotency keys: they are sealed, so that all are taken."""
    scope = erasure.tenant_id
    count = await connection.fetchval(f"SELECT count(*) FROM {_ANSWERS}", scope)
    if not erasure.dry_run:
        where = _ANSWERS.removeprefix("key_uses ")
        await connection.execute(f"UPDATE key_uses SET sealed = '' {where}", scope)
    # What has left the database is not looked through: the receipt says how much may have the value.
    archives = await connection.fetchval(COUNT_ARCHIVED, erasure.workspace_id)
    return Found(None, {"saved_answers": count} if count else {}, {"archives": archives} if archives else {})


async def _page(connection: Connection, erasure: Erasure, name: str, surface: Surface) -> Found:
    if name == "events" and not erasure.dry_run:
        # First of all, as whoever deletes events does: no older words are written behind ours.
        await connection.execute(HOLD_PLACE)
    rows = await _rows(connection, erasure, surface)
    if not rows:
        return Found(None, {}, {})
    last = tuple(rows[-1][f"k{n}"] for n in range(len(surface.keys)))
    rows = [row for row in rows if row["is_read"]]
    # Beside the loop: hashes of a page take some tenths of a second.
    changes = await asyncio.to_thread(_look, erasure.needle, name, surface, rows)
    kept: Counter[str] = Counter()
    if surface.blob:
        changes += await _look_into_files(connection, erasure.needle, rows, changes, kept)
    ready = [one for one in changes if not one.row["is_open"]]
    waits = len(changes) - len(ready)
    if name in _TELLING:
        await _mark(connection, erasure, ready)
    if surface.fate is Fate.COUNTED:
        kept[name] += len(ready)
        return Found(last, {}, kept, waits)
    if not erasure.dry_run:
        for one in ready:
            await _do(connection, name, surface, one)
        if name == "events":
            await write_words(connection, [one.row["of_event"] for one in ready])
    return Found(last, {name: len(ready)} if ready else {}, kept, waits)


async def _rows(connection: Connection, erasure: Erasure, surface: Surface) -> Sequence[Row]:
    """Read the next rows of a surface; of a pass that confirms, those that may be other than they were."""
    arguments = (erasure.workspace_id, erasure.id, list(erasure.after))
    settled = await connection.fetchval(_SETTLED, erasure.id) if erasure.confirms else None
    if settled is None:
        return await connection.fetch(surface.page(), *arguments)
    return await connection.fetch(surface.page_of_written(), *arguments, str(settled))


def _look(needle: Needle, name: str, surface: Surface, rows: Sequence[Row]) -> list[_Change]:
    """Which rows have the value, or belong to an event of the person."""
    found: list[_Change] = []
    for row in rows:
        if row["whole"] or _is_persons(needle, name, row):
            if not _is_empty(name, surface, row):
                found.append(_Change(row, whole=True))
            continue
        if name == "frames" and row["whole"] is not None:
            # The value may be parted among the pieces of an answer, so all of them go.
            rest: tuple[str | None, ...] = (take.emptied(row["c0"]),)
        else:
            rest = tuple(_rest(needle, surface, n, row[f"c{n}"]) for n in range(len(surface.columns)))
        if any(left != row[f"c{n}"] for n, left in enumerate(rest)):
            found.append(_Change(row, whole=False, columns=rest))
    return found


def _rest(needle: Needle, surface: Surface, number: int, text: str | None) -> str | None:
    column = surface.columns[number]
    is_json = column in surface.documents or column == "request_json"
    taken = take.without_json if is_json else take.without_text
    return None if text is None else taken(needle, text)


def _is_persons(needle: Needle, name: str, row: Row) -> bool:
    if name == "events":
        return take.is_at_path(needle, row["c0"])
    if name == "webhook_deliveries" and row["raw"] is not None:
        text = row["raw"].decode(errors="replace")
        return (
            take.is_at_path(needle, text)
            or take.without_json(needle, take.without_text(needle, text)) != text
        )
    return False


def _is_empty(name: str, surface: Surface, row: Row) -> bool:
    """Whether all of it went before, in an earlier pass."""
    match name:
        case "events":
            return bool(row["c0"] == take.ERASED_DOCUMENT)
        case "frames":
            return bool(take.emptied(row["c0"]) == row["c0"])
        case "webhook_deliveries":
            return bool(row["c1"] == "{}" and row["raw"] is None)
        case _:
            return bool(surface.whole) and row["c0"] == take.ERASED


async def _mark(connection: Connection, erasure: Erasure, changes: Sequence[_Change]) -> None:
    for whole in (True, False):
        # Each once, however many rows of it a page has: one command may not write a mark twice.
        events = {
            one.row["of_event"] for one in changes if one.whole is whole and one.row["of_event"] is not None
        }
        if events:
            await connection.execute(_MARK, erasure.id, list(events), whole)


async def _do(connection: Connection, name: str, surface: Surface, change: _Change) -> None:
    row = change.row
    key = [row[f"k{n}"] for n in range(len(surface.keys))]
    if name == "frames" and change.whole:
        await connection.execute(surface.put(), take.emptied(row["c0"]), *key)
    elif change.whole or surface.fate is Fate.DELETED:
        await connection.execute(surface.empty(), *key)
        if name == "webhook_deliveries":
            await connection.execute("DELETE FROM webhook_bodies WHERE delivery_id = $1::text::uuid", *key)
        elif name == "transcripts":
            await connection.execute(_REMOVED, *key[:3])
    else:
        await connection.execute(surface.put(), *change.columns, *key)


async def _look_into_files(
    connection: Connection, needle: Needle, rows: Sequence[Row], known: Sequence[_Change], kept: Counter[str]
) -> list[_Change]:
    """Look into the contents of the rows' files; those that cannot be looked into are counted."""
    done = {id(one.row) for one in known}
    found: list[_Change] = []
    for row in rows:
        if id(row) in done:
            continue
        place, size = await connection.fetchrow(
            "SELECT place, size FROM blobs WHERE id = $1", row["blob_id"]
        ) or ("", 0)
        if place != "database" or size > SEARCHED_BYTES:
            kept["files_not_searched"] += 1
        elif await _is_in_file(connection, needle, row["blob_id"]):
            found.append(_Change(row, whole=False))
    return found


async def _is_in_file(connection: Connection, needle: Needle, blob_id: Any) -> bool:
    decoder, number, tail = codecs.getincrementaldecoder("utf-8")(), 0, ""
    query = "SELECT content FROM blob_chunks WHERE blob_id = $1 AND number = $2"
    while (chunk := await connection.fetchval(query, blob_id, number)) is not None:
        try:
            text = tail + decoder.decode(chunk)
        except UnicodeDecodeError:
            return False
        if await asyncio.to_thread(take.without_text, needle, text) != text:
            return True
        # What begins in this chunk may end in the next; with it, the character before.
        tail, number = text[-needle.chars - 1 :], number + 1
    return False
