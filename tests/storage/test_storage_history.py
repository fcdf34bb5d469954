"""History stays quick however much of it there is: every filter is served by an index.

A hundred thousand events by default; ``SEXTON_HISTORY_ROWS=1000000`` makes it a million.
"""

import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import orjson
import uuid_utils.compat

from sexton_storage.globs import matches
from sexton_storage.paging import Page
from sexton_storage.portal import open_portal
from sexton_storage.postgres.connections.bounds import MIGRATION_SESSION
from sexton_storage.postgres.connections.connection import Connection, Row
from sexton_storage.postgres.connections.database import Database
from sexton_storage.postgres.connections.dial import connect
from sexton_storage.postgres.connections.outage import Outage
from sexton_storage.postgres.connections.settings import PostgresSettings
from sexton_storage.postgres.stores.events import PostgresEvents
from sexton_storage.records.events import EventStatus

ROWS = int(os.environ.get("SEXTON_HISTORY_ROWS", "100000"))
BEGAN = 1_700_000_000_000
STEP_MS = 1_000
LIMIT = 51
TOUCHED_MAX = 12 * LIMIT
"""Rows that may be looked at for a page; a page that is filtered needs some more than it shows."""
WORKSPACE, OTHER = UUID(int=1), UUID(int=2)
BUSY, QUIET = UUID(int=3), UUID(int=4)
"""Agents: of nearly all events, and of one in a thousand."""

# The rare ones are old, so that whoever looks for them from the newest on has to go all the way.
_FILL = """
INSERT INTO events (id, zombie_id, workspace_id, tenant_id, actor, event_type, status, request_json,
                    created_at, updated_at, completed_at)
SELECT ('01900000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid,
       CASE WHEN i % 1000 = 7 THEN $3::uuid ELSE $2::uuid END,
       CASE WHEN i % 50 = 49 THEN $5::uuid ELSE $1::uuid END, $4,
       CASE WHEN i < 20 THEN 'steer:ann' WHEN i < 40 THEN 'steer:bob' WHEN i % 5 = 0 THEN 'cron:0 * * * *'
            ELSE 'webhook:github' END,
       'push',
       CASE WHEN i < 10 THEN 'dead_lettered' WHEN i < 30 THEN 'received' WHEN i < 40 THEN 'waiting_approval'
            WHEN i % 400 = 0 THEN 'agent_error' ELSE 'processed' END,
       '{}', $6::bigint + i * $7::bigint, $6::bigint + i * $7::bigint, $6::bigint + i * $7::bigint
  FROM generate_series(0, $8::int - 1) AS i
"""


class Explained(PostgresEvents):
    """The store, with the plan of what it asked last."""

    plan: dict[str, Any]

    async def _rows(self, query: str, *args: Any) -> Sequence[Row]:
        explained = await self._value(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {query}", *args)
        self.plan = orjson.loads(explained)[0]["Plan"]
        return await super()._rows(query, *args)

    def nodes(self) -> Iterator[dict[str, Any]]:
        under = [self.plan]
        while under:
            node = under.pop()
            under += node.get("Plans", [])
            yield node

    def touched(self) -> int:
        """Rows that were read from the table, shown or not."""
        return sum(
            round((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"])
            for node in self.nodes()
            if node.get("Relation Name") in {"events", "waiting_events", "live_leases"}
        )


@asynccontextmanager
async def history(dsn: str) -> AsyncIterator[Explained]:
    async with open_portal() as portal:

        async def fill() -> None:
            connection: Connection = await connect(dsn, MIGRATION_SESSION)
            try:
                ids = (WORKSPACE, BUSY, QUIET, UUID(int=5), OTHER)
                await connection.execute(_FILL, *ids, BEGAN, STEP_MS, ROWS)
                await connection.execute("ANALYZE events, waiting_events, live_leases")
            finally:
                await connection.close()

        await portal.run(fill)
        database = Database(portal, dsn, PostgresSettings(), uuid_utils.compat.uuid7, Outage())
        await database.open()
        try:
            yield Explained(database)
        finally:
            await database.close()


def place(row: int) -> Page:
    return Page(BEGAN + row * STEP_MS, UUID(f"01900000-0000-7000-8000-{row:012x}"))


MIDDLE = ROWS // 2
QUESTIONS: dict[str, dict[str, Any]] = {
    "the newest": {},
    "from the middle on": {"before": place(MIDDLE)},
    "since a while ago": {"since": BEGAN + (ROWS - 500) * STEP_MS},
    "since long ago": {"since": BEGAN},
    "of a busy agent": {"zombie_id": BUSY},
    "of a busy agent from the middle on": {"zombie_id": BUSY, "before": place(MIDDLE)},
    "of a quiet agent": {"zombie_id": QUIET},
    "dead letters": {"status": EventStatus.DEAD_LETTERED},
    "what waits": {"status": EventStatus.RECEIVED},
    "what is held at gates": {"status": EventStatus.WAITING_APPROVAL},
    "what failed": {"status": EventStatus.AGENT_ERROR},
    "what failed from the middle on": {"status": EventStatus.AGENT_ERROR, "before": place(MIDDLE)},
    "what went well": {"status": EventStatus.PROCESSED},
    "what runs, which is nothing": {"status": EventStatus.RUNNING},
    "what failed of an agent": {"status": EventStatus.AGENT_ERROR, "zombie_id": BUSY},
    "dead letters of an agent": {"status": EventStatus.DEAD_LETTERED, "zombie_id": BUSY},
    "by one rare name": {"actor_glob": "steer:ann"},
    "by rare names": {"actor_glob": "steer:*"},
    "by some of the rare names": {"actor_glob": "steer:*nn"},
    "by one common name": {"actor_glob": "webhook:github"},
    "by a common name from the middle on": {"actor_glob": "webhook:github", "before": place(MIDDLE)},
    "by common names": {"actor_glob": "webhook:*"},
    "by a name that nobody has": {"actor_glob": "nobody"},
    "by any name": {"actor_glob": "*"},
    "by the end of a common name": {"actor_glob": "*:github"},
    "by a common name of a busy agent": {"actor_glob": "cron:*", "zombie_id": BUSY},
}


async def test_every_question_is_answered_from_an_index_and_looks_at_little_more_than_it_shows(
    postgres_dsn: str,
) -> None:
    wrong = []
    async with history(postgres_dsn) as events:
        for name, filters in QUESTIONS.items():
            found = await events.list(WORKSPACE, limit=LIMIT, **filters)
            assert all(event.workspace_id == WORKSPACE for event in found), name
            assert [e.id for e in found] == sorted((e.id for e in found), reverse=True), name
            glob = filters.get("actor_glob", "*")
            assert all(matches(glob, event.actor) for event in found), name
            kinds = {node["Node Type"] for node in events.nodes()}
            if "Seq Scan" in kinds or events.touched() > TOUCHED_MAX:
                wrong.append(f"{name}: {events.touched()} rows by {sorted(kinds)}")

    assert not wrong, "\n".join(wrong)
