"""What an erasure does with one page of a surface: look through its rows, and take the value out of them."""

import asyncio
import codecs
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sexton_storage.decisions import erasure as take
from sexton_storage.decisions.erasure_steps import SURFACES, Found
from sexton_storage.postgres.connections.connection import Connection, Row
from sexton_storage.postgres.stores.archives import COUNT_ARCHIVED
from sexton_storage.postgres.stores.erasure_surfaces import TABLES, Fate, Surface
from sexton_storage.postgres.stores.event_words import HOLD_PLACE, write_words
from sexton_storage.records.erasures import Erasure, Needle

SEARCHED_BYTES: Final = 8 * 1024 * 1024
"""Longer files are not looked through, and counted as such."""
# None as well where so much has happened since that the ages of rows, which have 32 bits, cannot be trusted.
_SETTLED = f"""
SELECT settled_txid % {1 << 32} FROM erasures
 WHERE id = $1 AND settled_txid > txid_snapshot_xmax(txid_current_snapshot()) - {1 << 30}
"""
_MARK = """
INSERT INTO erasure_events AS m (erasure_id, event_id, whole) SELECT $1, id, $3 FROM unnest($2::uuid[]) u(id)
ON CONFLICT (erasure_id, event_id) DO UPDATE SET whole = true WHERE excluded.whole AND NOT m.whole
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


async def look_through_page(connection: Connection, erasure: Erasure) -> Found:
    """Look through the next page, and take out what has the value; the caller saves how far it is."""
    name = SURFACES[erasure.surface]
    surface = TABLES.get(name)
    if surface is None:
        return await _answers(connection, erasure)
    return await _page(connection, erasure, name, surface)


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
