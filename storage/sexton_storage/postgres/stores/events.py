"""Events in PostgreSQL."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from sexton_storage.globs import LAST_CHARACTER, like_pattern, literal_prefix
from sexton_storage.paging import Page
from sexton_storage.postgres.connections.connection import Row
from sexton_storage.postgres.sql.event_filters import (
    Clause,
    clause_of,
    clauses,
    narrows,
    only_agent,
    only_status,
)
from sexton_storage.postgres.sql.event_words import INDEXED, TAIL, words_query
from sexton_storage.postgres.sql.schema import BLOCKED, EVENTS, LISTED_EVENTS
from sexton_storage.postgres.stores.base import Conditions, PostgresStore
from sexton_storage.records.event_filters import (
    LOOKED_BYTES,
    LOOKED_THROUGH,
    SEARCHED_CHARS,
    EventFilter,
    as_uuid,
)
from sexton_storage.records.event_words import TEXTS_CHANGED
from sexton_storage.records.events import (
    WHOLE_BYTES,
    AgentBacklog,
    Event,
    EventStatus,
    EventWaits,
    Found,
    ListedEvent,
    ReadyAgent,
)
from sexton_storage.terms import DEDUP_WINDOW_MS

_CHARGED_SO_FAR = (
    "CASE WHEN e.status = 'running' THEN (SELECT coalesce(sum(m.charged_nanos), 0)::bigint FROM metering m"
    " WHERE m.event_id = e.id) ELSE e.charged_nanos END"
)
_TOKENS = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens")
_SO_FAR = {
    "charged_nanos": _CHARGED_SO_FAR,
    **{name: f"e.{name} + coalesce(u.{name}, 0)" for name in _TOKENS},
}
"""Columns of an event that grow while it runs, of events with ``_UNDER_WAY``."""
# What its ended leases were billed for stands in the event, and what the live one was in that lease. OFFSET 0
# has it looked up for each event: else the planner joins all leases to a page.
_UNDER_WAY = f"""
  LEFT JOIN LATERAL (
    SELECT {", ".join(f"l.{name}" for name in _TOKENS)}
      FROM live_leases v JOIN leases l ON l.id = v.lease_id
     WHERE e.status = 'running' AND v.workspace_id = e.workspace_id AND v.zombie_id = e.zombie_id
       AND v.event_id = e.id OFFSET 0) u ON true
"""
_COLUMNS = ", ".join(_SO_FAR.get(name, f"e.{name}") for name in EVENTS.names)
_ONE = f"SELECT {_COLUMNS} FROM events e {_UNDER_WAY} WHERE e.id = $1"
_LEFT_OUT = {"checkpoint", "response_text", "evidence"}
_REQUESTS = ", ".join("NULL" if name in _LEFT_OUT else f"e.{name}" for name in EVENTS.names)
_REQUEST_BYTES = "octet_length(e.request_json)"
_RESPONSE_BYTES = "octet_length(e.response_text)"
_EVIDENCE_BYTES = "octet_length(e.evidence::text)"
# The length of a text stands beside it, so that one that is long is not unpacked to be left out.
_LISTED = {
    **_SO_FAR,
    "checkpoint": "NULL",
    "request_json": f"CASE WHEN {_REQUEST_BYTES} > {{whole}} THEN 'null' ELSE e.request_json END",
    "response_text": f"CASE WHEN {_RESPONSE_BYTES} <= {{whole}} THEN e.response_text END",
    "evidence": f"CASE WHEN {_EVIDENCE_BYTES} <= {{whole}} THEN e.evidence END",
    "request_bytes": _REQUEST_BYTES,
    "response_bytes": _RESPONSE_BYTES,
    "evidence_bytes": _EVIDENCE_BYTES,
    "zombie_name": "(SELECT a.name FROM zombies a WHERE a.id = e.zombie_id)",
}
_LISTED_COLUMNS = ", ".join(_LISTED.get(name, f"e.{name}") for name in LISTED_EVENTS.names)
# What has to be looked up of each is looked up of the page alone.
_PAGE = f"""
SELECT {_LISTED_COLUMNS}
  FROM (SELECT e.* FROM {{source}} WHERE {{where}} {{newest}} LIMIT {{limit}}) e {_UNDER_WAY}
 ORDER BY e.created_at DESC, e.arrival DESC
"""
_SEEN = """
SELECT k.event_id FROM dedup_keys k
 WHERE k.zombie_id = $1 AND k.key IN ($2, $3) AND k.seen_at > $4 AND (k.key = $2 OR NOT k.by_body)
 ORDER BY k.key = $2 DESC LIMIT 1
"""
_READY = """
SELECT z.id, z.workspace_id, z.tenant_id, z.required_tags, z.allows_unsandboxed, e.created_at,
       h.last_runner_id
  FROM {agents}
  JOIN agent_heads h ON h.zombie_id = a.zombie_id AND h.status = 'active' AND h.live_lease_id IS NULL
  JOIN zombies z ON z.id = a.zombie_id
  JOIN workspaces w ON w.id = z.workspace_id AND NOT w.paused
  CROSS JOIN LATERAL (SELECT created_at, retry_at FROM waiting_events r
                       WHERE r.zombie_id = a.zombie_id
                       ORDER BY r.zombie_id, r.arrival LIMIT 1) e
 WHERE e.retry_at IS NULL OR e.retry_at <= (SELECT sexton_now_ms())
"""
# Steps from agent to agent through the index of received events, however many each has; the walk goes only as
# far as the LIMIT pulls it.
_WALK = """
WITH RECURSIVE a AS (
    (SELECT zombie_id FROM waiting_events WHERE zombie_id > $1 ORDER BY zombie_id LIMIT 1)
    UNION ALL
    SELECT n.zombie_id FROM a CROSS JOIN LATERAL (
        SELECT zombie_id FROM waiting_events WHERE zombie_id > a.zombie_id ORDER BY zombie_id LIMIT 1) n
)
"""
READY_PAGE = f"{_WALK} SELECT * FROM ({_READY.format(agents='a')} LIMIT $2) found ORDER BY id"
_READY_ONE = _READY.format(agents="(SELECT $1::uuid AS zombie_id) a")
_BEFORE_ALL = UUID(int=0)
# Of an event that was purged meanwhile the time alone is left to go on from.
_BEFORE = (
    "({row}.created_at, {row}.arrival)"
    " < ({{}}, coalesce((SELECT p.arrival FROM events p WHERE p.id = {{}}), 0))"
)
_SOURCES: Mapping[EventStatus | None, tuple[str, str, str]] = {
    None: ("events e", "e", "true"),
    EventStatus.RECEIVED: ("waiting_events w JOIN events e ON e.id = w.event_id", "w", "true"),
    EventStatus.RUNNING: (
        "live_leases n JOIN events e ON e.id = n.event_id",
        "e",
        "n.workspace_id = $1 AND e.status = 'running'",
    ),
    EventStatus.PROCESSED: ("events e", "e", "e.status = 'processed'"),
}
"""By status: where its events are found, the row there that has their place in the list, and a condition.

Those that are not named are found by ``unusual_status``. Spelled out, all of them: of a parameter the planner
could not tell that the index for what is rare has it.
"""
_NEWEST = "ORDER BY {row}.created_at DESC, {row}.arrival DESC"
_TEXT_BYTES = " + ".join(
    f"least({SEARCHED_CHARS}, coalesce({size}, 0))"
    for size in (_REQUEST_BYTES, _RESPONSE_BYTES, "octet_length(e.evidence::text)")
)
# What is looked through is bounded before the filter is asked, and of each event only its place is kept, so
# that where the search stopped is told even when nothing was found. The filter is asked of one event after
# the other, as far as the LIMIT.
_SEARCH = """
WITH looked AS MATERIALIZED (
    SELECT e.id, e.created_at, row_number() OVER so_far AS place, sum({bytes}) OVER so_far AS upto
      FROM {source} WHERE {where}
    WINDOW so_far AS ({newest} ROWS UNBOUNDED PRECEDING)
     {newest} LIMIT {look_through}
), near AS MATERIALIZED (
    SELECT * FROM looked WHERE upto <= {most} OR place = 1
)
SELECT z.stopped, z.created_at, z.id, {columns}
  FROM (SELECT (SELECT count(*) FROM looked) = {look_through}
               OR EXISTS (SELECT FROM looked WHERE upto > {most}) AS stopped, n.created_at, n.id
          FROM near n ORDER BY n.place DESC LIMIT 1) z
  LEFT JOIN LATERAL (
    SELECT e.*, n.place AS found_at
      FROM (SELECT * FROM near ORDER BY place) n
     CROSS JOIN LATERAL (SELECT * FROM events x WHERE x.id = n.id OFFSET 0) e
     WHERE {picked} ORDER BY n.place LIMIT {limit}) e ON true
  {under_way}
 ORDER BY e.found_at
"""
_STOP_COLUMNS = 3
_WORDS_PLACE = "SELECT txid FROM event_words_place WHERE filled"
# How many events have the words: of very many the newest are found sooner by looking through the events.
MANY_HITS = 5_000
_HITS = f"SELECT count(*) FROM ({INDEXED.format('$1')} LIMIT {MANY_HITS}) hits"
_AGENT_OF_NAME = "SELECT id FROM zombies WHERE workspace_id = $1 AND name = $2"

BACKLOG = """
SELECT zombie_id, workspace_id, count(*), min(created_at) FROM waiting_events
 GROUP BY zombie_id, workspace_id
"""
_WAITS = f"""
SELECT EXISTS (SELECT FROM waiting_events e WHERE e.zombie_id = h.zombie_id),
       EXISTS (SELECT FROM events e
                WHERE e.tenant_id = h.tenant_id AND e.zombie_id = h.zombie_id AND {BLOCKED}),
       EXISTS (SELECT FROM gates g WHERE g.zombie_id = h.zombie_id AND g.status = 'pending'),
       h.live_lease_id IS NOT NULL
  FROM agent_heads h WHERE h.zombie_id = $1
"""


class PostgresEvents(PostgresStore):
    async def load(self, event_id: UUID) -> Event | None:
        return EVENTS.maybe(await self._row(_ONE, event_id))

    async def load_requests(self, event_ids: Sequence[UUID]) -> Sequence[Event]:
        query = f"SELECT {_REQUESTS} FROM events e WHERE e.id = ANY($1)"
        return EVENTS.many(await self._rows(query, list(event_ids)))

    async def list(
        self,
        workspace_id: UUID,
        *,
        limit: int,
        zombie_id: UUID | None = None,
        before: Page | None = None,
        since: int | None = None,
        actor_glob: str | None = None,
        status: EventStatus | None = None,
        whole_bytes: int = WHOLE_BYTES,
    ) -> Sequence[ListedEvent]:
        source, row, where = _narrowed(workspace_id, status, zombie_id, before)
        if since is not None:
            where.add(f"{row}.created_at >= {{}}", since)
        if actor_glob is not None:
            _add_actor(where, actor_glob)
        newest = _NEWEST.format(row=row)
        query = _PAGE.format(
            whole=int(whole_bytes), source=source, where=where, newest=newest, limit=int(limit)
        )
        return LISTED_EVENTS.many(await self._rows(query, *where.args))

    async def search(
        self,
        workspace_id: UUID,
        picked: EventFilter,
        *,
        limit: int,
        zombie_id: UUID | None = None,
        before: Page | None = None,
        look_through: int = LOOKED_THROUGH,
    ) -> Found:
        agent_id = zombie_id or await self._only_agent(workspace_id, picked)
        hits = await self._with_words(workspace_id, picked)
        status = only_status(picked) if hits is None else None
        source, row, where = _narrowed(workspace_id, status, agent_id, before)
        if hits is not None:
            source = where.numbered(f"({hits.sql}) hits JOIN events e ON e.id = hits.event_id", *hits.args)
        for clause in map(clause_of, filter(narrows, picked.terms)):
            where.add(clause.sql, *clause.args)
        outer = where.outer()
        for clause in clauses(picked):
            outer.add(clause.sql, *clause.args)
        query = _SEARCH.format(
            row=row,
            source=source,
            where=where,
            newest=_NEWEST.format(row=row),
            bytes=_TEXT_BYTES if picked.reads_texts() else "0",
            look_through=int(look_through),
            most=LOOKED_BYTES,
            columns=_LISTED_COLUMNS.format(whole=WHOLE_BYTES),
            under_way=_UNDER_WAY,
            picked=outer,
            limit=int(limit),
        )
        rows = await self._rows(query, *where.args)
        events = [LISTED_EVENTS.record(row, _STOP_COLUMNS) for row in rows if row[_STOP_COLUMNS] is not None]
        stopped = bool(rows) and rows[0][0] and len(events) < limit
        return Found(events, Page(rows[0][1], rows[0][2]) if stopped else None)

    async def _with_words(self, workspace_id: UUID, picked: EventFilter) -> Clause | None:
        """Give a query for all events that may have the words.

        None: the filter asks for none, the index has not been filled yet, or very many events have them.
        """
        query = words_query(workspace_id, picked)
        if query is None:
            return None
        # Asked first: what the index gains meanwhile is found in both.
        place = await self._value(_WORDS_PLACE)
        if place is None or await self._value(_HITS, query) >= MANY_HITS:
            return None
        return Clause(f"{INDEXED} UNION {TAIL}", (query, place, list(TEXTS_CHANGED)))

    async def _only_agent(self, workspace_id: UUID, picked: EventFilter) -> UUID | None:
        """Give the one agent whose events are asked for: its index serves. None: it may be several."""
        name = only_agent(picked)
        if name is None:
            return None
        return as_uuid(name) or await self._value(_AGENT_OF_NAME, workspace_id, name)

    async def picked_among(self, event_ids: Sequence[UUID], picked: EventFilter) -> frozenset[UUID]:
        where = Conditions("e.id = ANY($1)", list(event_ids))
        for clause in clauses(picked):
            where.add(clause.sql, *clause.args)
        rows = await self._rows(f"SELECT e.id FROM events e WHERE {where}", *where.args)
        return frozenset(row[0] for row in rows)

    async def seen(
        self, zombie_id: UUID, dedup_key: bytes, body_key: bytes | None, *, now: int
    ) -> UUID | None:
        first: UUID | None = await self._value(_SEEN, zombie_id, dedup_key, body_key, now - DEDUP_WINDOW_MS)
        return first

    async def ready(self, *, after: UUID | None, limit: int) -> Sequence[ReadyAgent]:
        return [_ready(row) for row in await self._rows(READY_PAGE, after or _BEFORE_ALL, limit)]

    async def ready_agent(self, zombie_id: UUID) -> ReadyAgent | None:
        row = await self._row(_READY_ONE, zombie_id)
        return None if row is None else _ready(row)

    async def waits(self, zombie_id: UUID) -> EventWaits:
        row = await self._row(_WAITS, zombie_id)
        return EventWaits() if row is None else EventWaits(*row)

    async def backlog(self) -> Sequence[AgentBacklog]:
        return [AgentBacklog(*row) for row in await self._rows(BACKLOG)]


def _narrowed(
    workspace_id: UUID, status: EventStatus | None, zombie_id: UUID | None, before: Page | None
) -> tuple[str, str, Conditions]:
    """Say where the events are found, which row has their place in the list, and the conditions on it."""
    rare = ("events e", "e", f"e.unusual_status = '{status}' AND e.created_at >= 0")
    source, row, kind = _SOURCES.get(status, rare)
    where = Conditions(f"{row}.workspace_id = $1 AND {kind}", workspace_id)
    if zombie_id is not None:
        where.add(f"{row}.zombie_id = {{}}", zombie_id)
    if before is not None:
        where.add(_BEFORE.format(row=row), before.created_at, before.id)
    return source, row, where


def _add_actor(where: Conditions, glob: str) -> None:
    """By the range of what begins alike, where the glob begins with something, so that an index serves."""
    prefix = literal_prefix(glob)
    if prefix == glob:
        where.add("e.actor = {}", glob)
        return
    if prefix:
        where.add("e.actor ~>=~ {} AND e.actor ~<~ {}", prefix, prefix + LAST_CHARACTER)
    if glob != prefix + "*":
        where.add("e.actor LIKE {}", like_pattern(glob))


def _ready(row: Row) -> ReadyAgent:
    return ReadyAgent(row[0], row[1], row[2], tuple(row[3]), row[4], row[5], row[6])
