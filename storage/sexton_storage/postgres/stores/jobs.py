"""Bulk jobs in PostgreSQL, and the events that they are about."""

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from sexton_storage.errors import Conflict
from sexton_storage.paging import Page
from sexton_storage.postgres.connections.connection import Connection
from sexton_storage.postgres.sql.event_filters import clauses
from sexton_storage.postgres.sql.rows import Rows
from sexton_storage.postgres.sql.schema import EVENTS
from sexton_storage.postgres.stores.base import Conditions, PostgresStore
from sexton_storage.records.events import EventStatus
from sexton_storage.records.jobs import Candidate, Job, JobKind, Selection, ShadowPair, Survey
from sexton_storage.terms import EVENTS_COUNTED, JOBS_KEEP_MS

JOBS: Final = Rows(Job)
_SELECT = f"SELECT {JOBS.columns()} FROM bulk_jobs"
_IN_HAND = {"page": "'{}'::uuid[]", "page_agents": "'{}'::uuid[]"}
_LISTED = ", ".join(_IN_HAND.get(name, name) for name in JOBS.names)
_OPEN = "status IN ('waiting', 'running', 'paused', 'stopping')"
_ADD = f"{JOBS.insert('bulk_jobs')} ON CONFLICT (id) DO NOTHING"
_SAVE = """
UPDATE bulk_jobs
   SET version = $2, status = $3, updated_at = $4, done = $5, skipped = $6, failed = $7, refused = $8,
       rate = $9, after_at = $10, after_arrival = $11, page = $12, page_agents = $13, holder = $14,
       held_until = $15, waits_for = $16, started_at = $17, ended_at = $18, detail = $19
 WHERE id = $1 AND version = $2 - 1 RETURNING true
"""
_SAVED: Final = (
    "id",
    "version",
    "status",
    "updated_at",
    "done",
    "skipped",
    "failed",
    "refused",
    "rate",
    "after_at",
    "after_arrival",
    "page",
    "page_agents",
    "holder",
    "held_until",
    "waits_for",
    "started_at",
    "ended_at",
    "detail",
)
# One of a workspace at a time, so that jobs that were asked for one after the other do not mix.
_DUE = """
SELECT id FROM (
    SELECT DISTINCT ON (workspace_id) id, held_until FROM bulk_jobs
     WHERE status IN ('waiting', 'running', 'stopping')
     ORDER BY workspace_id, status = 'waiting', created_at, id
) next WHERE held_until <= $1 ORDER BY held_until LIMIT $2
"""
_SWEEP = "DELETE FROM bulk_jobs WHERE ctid IN (SELECT ctid FROM bulk_jobs WHERE ended_at <= $1 LIMIT $2)"

# --- the events of a job ------------------------------------------------------------------------------------

_RARE = "events e"
_STATUSES: Final[Mapping[EventStatus, tuple[str, str, str]]] = {
    EventStatus.RECEIVED: ("waiting_events p JOIN events e ON e.id = p.event_id", "p", "true"),
    EventStatus.RUNNING: (
        "live_leases n JOIN events e ON e.id = n.event_id",
        "e",
        "n.workspace_id = $1 AND e.status = 'running'",
    ),
    EventStatus.PROCESSED: (_RARE, "e", "e.status = 'processed'"),
    **{
        status: (_RARE, "e", f"e.unusual_status = '{status}' AND e.created_at >= 0")
        for status in EventStatus
        if status not in {EventStatus.RECEIVED, EventStatus.RUNNING, EventStatus.PROCESSED}
    },
}
"""By status: where its events are found, the row that has their place in time, and a condition."""
_ENDED: Final = frozenset(EventStatus) - {
    EventStatus.RECEIVED,
    EventStatus.WAITING_APPROVAL,
    EventStatus.RUNNING,
}
_MAY_BE: Final[Mapping[JobKind, frozenset[EventStatus]]] = {
    JobKind.CANCEL: frozenset(
        {EventStatus.RECEIVED, EventStatus.WAITING_APPROVAL, EventStatus.RUNNING, EventStatus.GATE_BLOCKED}
    ),
    JobKind.REPLAY: _ENDED,
    JobKind.SHADOW: _ENDED,
}
_IS_OVER: Final = "e.completed_at IS NOT NULL AND e.shadow_job IS NULL"
_HAS_ENDED: Final = {
    JobKind.CANCEL: "e.completed_at IS NULL",
    JobKind.REPLAY: _IS_OVER,
    JobKind.SHADOW: _IS_OVER,
}
_FIRST: Final = (-1, 0)


# --- shadows ------------------------------------------------------------------------------------------------

_EVENTS: Final = f"SELECT {EVENTS.columns()} FROM events"
_SPENT: Final = """
SELECT coalesce(sum(CASE WHEN e.completed_at IS NULL THEN m.nanos ELSE e.charged_nanos END), 0)::bigint
  FROM events e
 CROSS JOIN LATERAL (SELECT sum(p.charged_nanos) AS nanos FROM metering p WHERE p.event_id = e.id) m
 WHERE e.shadow_job = $1
"""
_TOOLS: Final = """
SELECT event_id, coalesce(data ->> 'name', ''), count(*) FROM frames
 WHERE zombie_id = ANY($1) AND event_id = ANY($2) AND kind = 'tool_call_completed' GROUP BY 1, 2 ORDER BY 1, 2
"""
_ASKED: Final = """
SELECT event_id, tool_name, action_name FROM gates WHERE event_id = ANY($1) ORDER BY requested_at, id
"""


class PostgresJobs(PostgresStore):
    async def add(self, job: Job, *, limit: int) -> bool:
        async def work(connection: Connection) -> bool:
            # Two at once are counted one after the other.
            await connection.execute(
                "SELECT FROM workspaces WHERE id = $1 FOR NO KEY UPDATE", job.workspace_id
            )
            open_ones = await connection.fetchval(
                f"SELECT count(*) FROM bulk_jobs WHERE workspace_id = $1 AND {_OPEN} AND id <> $2",
                job.workspace_id,
                job.id,
            )
            if open_ones >= limit:
                return False
            await connection.execute(_ADD, *JOBS.values(job))
            return True

        return await self._database.change(work)

    async def load(self, job_id: UUID) -> Job | None:
        return JOBS.maybe(await self._row(f"{_SELECT} WHERE id = $1", job_id))

    async def save(self, job: Job) -> None:
        values = dict(zip(JOBS.names, JOBS.values(job), strict=True))
        args = [values[name] for name in _SAVED]
        if not await self._database.change(lambda c: c.fetchval(_SAVE, *args)):
            raise Conflict(f"job {job.id} is not at version {job.version - 1}")

    async def list(self, workspace_id: UUID, *, limit: int, before: Page | None = None) -> Sequence[Job]:
        where = Conditions("workspace_id = $1", workspace_id)
        if before is not None:
            where.add("(created_at, id) < ({}, {})", before.created_at, before.id)
        order = f"ORDER BY created_at DESC, id DESC LIMIT {int(limit)}"
        return JOBS.many(
            await self._rows(f"SELECT {_LISTED} FROM bulk_jobs WHERE {where} {order}", *where.args)
        )

    async def due(self, *, now: int, limit: int) -> Sequence[UUID]:
        return [row[0] for row in await self._rows(_DUE, now, limit)]

    async def survey(self, selection: Selection, *, sample: int) -> Survey:
        until: int = await self._value("SELECT last_value FROM events_arrival")
        counted = _Events(selection, _FIRST, until, EVENTS_COUNTED, ordered=False)
        query = f"SELECT count(*) FROM (SELECT FROM ({counted.query}) found LIMIT {EVENTS_COUNTED}) f"
        total: int = await self._database.read(lambda c: c.fetchval(query, *counted.args))
        first = await self.page(selection, after=_FIRST, until_arrival=until, limit=sample)
        return Survey(total, until, tuple(one.event_id for one in first))

    async def page(
        self, selection: Selection, *, after: tuple[int, int], until_arrival: int, limit: int
    ) -> Sequence[Candidate]:
        events = _Events(selection, after, until_arrival, limit)
        query = f"SELECT * FROM ({events.query}) found ORDER BY created_at, arrival LIMIT {int(limit)}"
        return [Candidate(*row) for row in await self._rows(query, *events.args)]

    async def spent(self, job_id: UUID) -> int:
        spent: int = await self._value(_SPENT, job_id)
        return spent

    async def shadows(self, job_id: UUID, *, limit: int, after: Page | None = None) -> Sequence[ShadowPair]:
        where = Conditions("shadow_job = $1", job_id)
        if after is not None:
            where.add("(created_at, id) > ({}, {})", after.created_at, after.id)
        query = f"{_EVENTS} WHERE {where} ORDER BY created_at, id LIMIT {int(limit)}"
        shadows = EVENTS.many(await self._rows(query, *where.args))
        before = [event.resumes_event_id for event in shadows if event.resumes_event_id is not None]
        ids = [*before, *(event.id for event in shadows)]
        originals = {
            event.id: event
            for event in EVENTS.many(await self._rows(f"{_EVENTS} WHERE id = ANY($1)", before))
        }
        agents = list({event.zombie_id for event in shadows})
        tools: dict[UUID, dict[str, int]] = {}
        for event_id, name, count in map(tuple, await self._rows(_TOOLS, agents, ids)):
            tools.setdefault(event_id, {})[name] = count
        asked: dict[UUID, list[str]] = {}
        for event_id, tool, action in map(tuple, await self._rows(_ASKED, ids)):
            asked.setdefault(event_id, []).append(f"{tool} {action}")
        return [
            ShadowPair(
                event,
                originals.get(event.resumes_event_id or event.id),
                tools.get(event.id, {}),
                tools.get(event.resumes_event_id or event.id, {}),
                tuple(asked.get(event.id, ())),
            )
            for event in shadows
        ]

    async def known(self, event_ids: Sequence[UUID]) -> frozenset[UUID]:
        rows = await self._rows("SELECT id FROM events WHERE id = ANY($1)", list(event_ids))
        return frozenset(row[0] for row in rows)


class _Events:
    """The query for the events of a selection: the parts that have them, each in order of time."""

    def __init__(
        self,
        selection: Selection,
        after: tuple[int, int],
        until_arrival: int,
        limit: int,
        *,
        ordered: bool = True,
    ) -> None:
        where = Conditions(
            "e.workspace_id = $1 AND e.arrival <= $4", selection.workspace_id, *after, until_arrival
        )
        where.add(_HAS_ENDED[selection.kind])
        for clause in clauses(selection.filter):
            where.add(f"({clause.sql})", *clause.args)
        if selection.failure_id is not None:
            where.add("p.group_id = {}", selection.failure_id)
        order = f"ORDER BY {{row}}.created_at, {{row}}.arrival LIMIT {int(limit)}" if ordered else ""
        parts = [
            f"(SELECT e.id, e.zombie_id, e.created_at, e.arrival, octet_length(e.request_json) FROM {source}"
            f" WHERE {kind} AND {row}.workspace_id = $1 AND ({row}.created_at, {row}.arrival) > ($2, $3)"
            f" AND {where} {order.format(row=row)})"
            for source, row, kind in _sources(selection)
        ]
        self.query = " UNION ALL ".join(parts)
        self.args = where.args


def _sources(selection: Selection) -> Sequence[tuple[str, str, str]]:
    if selection.failure_id is not None:
        return [("failure_events p JOIN events e ON e.id = p.event_id", "p", "true")]
    asked = selection.filter.statuses()
    may_be = _MAY_BE[selection.kind]
    statuses = may_be if asked is None else may_be & frozenset(map(EventStatus, asked))
    if asked is None and selection.kind is not JobKind.CANCEL:
        return [("events e", "e", "true")]
    if not statuses:
        return [("events e", "e", "false")]
    return [_STATUSES[status] for status in sorted(statuses)]


async def sweep_jobs(connection: Connection, now: int, limit: int) -> int:
    """Delete those that are over for long; how many rows."""
    done = await connection.execute(_SWEEP, now - JOBS_KEEP_MS, limit)
    return int(done.split()[-1])
