"""Fills the index of the words of events in PostgreSQL, behind the events."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple
from uuid import UUID

from sexton_storage.event_filter.lexemes import lexemes_of
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.stores.base import PostgresStore
from sexton_storage.records.event_filters import SEARCHED_CHARS
from sexton_storage.records.event_words import NOTHING, TEXTS_CHANGED, Indexed

WALK_AGAIN_MS: Final = 24 * 3_600_000
"""A walk finds what the frames did not tell, such as events whose frames were pruned while no server ran."""
WALK_PAGES: Final = 5
"""A page of the walk is greater than one of news: most events that it comes to are in the index."""
ROUND_BYTES: Final = 4 * 1024 * 1024
"""Texts of one round; a single commit, or a single event of the walk, may have more."""
CHUNK_BYTES: Final = 64 * 1024
"""Texts that are taken apart at one go: other work of the process waits so long."""
IDLE_COMMITS: Final = 5_000
"""While nothing is new the place moves on by this many at a time: a quiet database is not written to."""

HOLD_PLACE: Final = "SELECT FROM event_words_place FOR UPDATE"
_PLACE = """
SELECT p.txid, p.walked_to, p.walked_at, txid_snapshot_xmin(txid_current_snapshot()),
       txid_snapshot_xmax(txid_current_snapshot()), sexton_now_ms()
  FROM event_words_place p
"""
_SIZE = """
octet_length(e.request_json) + coalesce(octet_length(e.response_text), 0)
    + coalesce(octet_length(e.evidence::text), 0)
"""
_NEWS = f"""
SELECT f.event_id, coalesce({_SIZE}, 0), f.txid, f.at_ms
  FROM (SELECT txid, event_id, at_ms FROM frames
         WHERE txid >= $1 AND txid < $2 AND kind = ANY($3::text[]) AND event_id IS NOT NULL
         ORDER BY txid LIMIT $4) f LEFT JOIN events e ON e.id = f.event_id
 ORDER BY f.txid
"""
_NEWS_OF_COMMIT = f"""
SELECT f.event_id, {_SIZE}, f.txid, f.at_ms FROM frames f JOIN events e ON e.id = f.event_id
 WHERE f.txid >= $1 AND f.txid <= $1 AND f.kind = ANY($2::text[])
"""
_WALK = f"""
SELECT e.id, s.event_id IS NULL OR s.completed_at IS DISTINCT FROM e.completed_at AS missing, {_SIZE}
  FROM (SELECT * FROM events WHERE id > $1 ORDER BY id LIMIT $2) e
  LEFT JOIN event_words s ON s.zombie_id = e.zombie_id AND s.event_id = e.id
 ORDER BY e.id
"""
_TEXTS = f"""
SELECT e.id, e.zombie_id, e.workspace_id, e.completed_at, left(e.request_json, {SEARCHED_CHARS}),
       left(e.response_text, {SEARCHED_CHARS}), left(e.evidence::text, {SEARCHED_CHARS})
  FROM events e WHERE e.id = ANY($1)
"""
_KEEP = """
INSERT INTO event_words AS s (zombie_id, event_id, completed_at, words)
SELECT v.zombie_id, v.event_id, v.completed_at, array_to_tsvector(string_to_array(v.words, ' '))
  FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::text[]) v(zombie_id, event_id, completed_at, words)
ON CONFLICT (zombie_id, event_id) DO UPDATE SET completed_at = excluded.completed_at, words = excluded.words
"""
_MOVE = """
UPDATE event_words_place SET txid = $1, walked_to = $2, walked_at = $3, filled = filled OR $2::uuid IS NULL
"""
_BEGIN = """
INSERT INTO event_words_place (txid, walked_to) VALUES (txid_snapshot_xmin(txid_current_snapshot()), $1)
ON CONFLICT (only_one) DO UPDATE SET txid = excluded.txid, walked_to = $1, walked_at = NULL, filled = false
"""
_FIRST: Final = UUID(int=0)


class _Place(NamedTuple):
    """How far the index is, and how far it could be."""

    txid: int
    walked_to: UUID | None
    walked_at: int | None
    horizon: int
    """Below it every commit is there to be read."""
    next_txid: int
    now: int

    @property
    def walk_rests(self) -> bool:
        return self.walked_to is None and self.now < (self.walked_at or 0) + WALK_AGAIN_MS

    @property
    def is_foreign(self) -> bool:
        """Restored from a dump: transactions are counted from the start again, frames have old numbers."""
        return self.txid > self.next_txid


class PostgresEventWords(PostgresStore):
    async def index(self, *, limit: int) -> Indexed:
        # Whatever is indexed twice is the same: no mark is needed.
        return await self._database.read(lambda connection: _index(connection, limit))


async def _index(connection: Connection, limit: int) -> Indexed:
    row = await connection.fetchrow(_PLACE)
    place = None if row is None else _Place(*row)
    if place is None or place.is_foreign:
        await connection.execute(_BEGIN, _FIRST)
        return Indexed(0, more=True, behind_ms=0)
    if await _is_idle(connection, place):
        return NOTHING
    async with connection.transaction():
        row = await connection.fetchrow(f"{_PLACE} FOR UPDATE SKIP LOCKED")
        return NOTHING if row is None else await _round(connection, _Place(*row), limit)


async def _is_idle(connection: Connection, place: _Place) -> bool:
    if not place.walk_rests or place.horizon - place.txid > IDLE_COMMITS:
        return False
    return not await connection.fetch(_NEWS, place.txid, place.horizon, list(TEXTS_CHANGED), 1)


async def _round(connection: Connection, place: _Place, limit: int) -> Indexed:
    news, upto = await _news(connection, place, limit)
    await _write(connection, news)
    if upto < place.horizon or place.walk_rests:
        await connection.execute(_MOVE, upto, place.walked_to, place.walked_at)
        behind_ms = place.now - news[-1].at_ms if news and upto < place.horizon else 0
        return Indexed(len(news), upto < place.horizon, max(0, behind_ms))
    walked = await connection.fetch(_WALK, place.walked_to or _FIRST, WALK_PAGES * limit)
    missing = _bounded([_News(row[0], row[2]) for row in walked if row[1]])[:limit]
    await _write(connection, missing)
    if len(missing) < sum(row[1] for row in walked):
        walked_to = missing[-1].event_id
    elif len(walked) == WALK_PAGES * limit:
        walked_to = walked[-1][0]
    else:
        await connection.execute(_MOVE, upto, None, place.now)
        return Indexed(len(news) + len(missing), more=False, behind_ms=0)
    await connection.execute(_MOVE, upto, walked_to, place.walked_at)
    return Indexed(len(news) + len(missing), more=True, behind_ms=0)


class _News(NamedTuple):
    """An event whose words are to be written."""

    event_id: UUID
    size: int
    """Bytes of its texts."""
    txid: int = 0
    at_ms: int = 0


async def _news(connection: Connection, place: _Place, limit: int) -> tuple[Sequence[_News], int]:
    """The news of whole commits, and below which number they are all here."""
    rows = await connection.fetch(_NEWS, place.txid, place.horizon, list(TEXTS_CHANGED), limit)
    if not rows:
        return (), place.horizon
    news = [_News(*row) for row in rows]
    fit = _bounded(news)
    if len(fit) == len(news) < limit:
        return news, place.horizon
    first, last = fit[0].txid, (news[-1] if len(fit) == len(news) else news[len(fit)]).txid
    if first < last:
        return [one for one in fit if one.txid < last], last
    rows = await connection.fetch(_NEWS_OF_COMMIT, first, list(TEXTS_CHANGED))
    return [_News(*row) for row in rows], first + 1


def _bounded(news: Sequence[_News]) -> Sequence[_News]:
    """Give the first ones, at least one, up to the bytes of a round.

    >>> half = _News(UUID(int=1), ROUND_BYTES // 2)
    >>> len(_bounded([half] * 3)), len(_bounded([half._replace(size=ROUND_BYTES + 1)])), len(_bounded([]))
    (2, 1, 0)
    """
    sizes = accumulate(one.size for one in news)
    return news[: max(1, sum(size <= ROUND_BYTES for size in sizes))]


async def _write(connection: Connection, news: Sequence[_News]) -> None:
    chunk: list[UUID] = []
    size = 0
    for event_id, length in {one.event_id: one.size for one in news}.items():
        if chunk and size + length > CHUNK_BYTES:
            await write_words(connection, chunk)
            chunk, size = [], 0
        chunk.append(event_id)
        size += length
    if chunk:
        await write_words(connection, chunk)


async def write_words(connection: Connection, event_ids: Sequence[UUID]) -> None:
    """Write the words of these events, as their texts are now; whoever calls holds the place."""
    rows = await connection.fetch(_TEXTS, event_ids)
    await connection.execute(
        _KEEP,
        [row[1] for row in rows],
        [row[0] for row in rows],
        [row[3] for row in rows],
        [lexemes_of(row[2], row[4:7]) for row in rows],
    )
