"""How long it takes to look for events, and to say why one waits, among 100,000 events of 10,000 agents.

The rows are written by SQL, straight into an empty database; then the index of words is filled. What is
measured is the stores' own reads, one after the other, each figure the median of some.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter, process_time
from uuid import UUID

import asyncpg
import trio

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that the file also runs by itself

from bench import harness, machine
from bench.database import open_database
from sexton_actors.failures.messages import digest_of
from sexton_actors.periodic.failure_rounds import SORT_PAGE
from sexton_actors.periodic.word_indexer import INDEX_PAGE
from sexton_storage.event_filter.parse import parse_filter
from sexton_storage.postgres import PostgresStorage, open_postgres_storage
from sexton_storage.records.failures import Sorted
from sexton_storage.records.frames import FramePlace

AGENTS = harness.size("SEARCH_AGENTS", 10_000)
EVENTS = harness.size("SEARCH_EVENTS", 100_000)
ROUNDS = 7
TENANT_ID, WORKSPACE = UUID(int=1), UUID(int=2)
FILTERS = {
    "failed of an agent": "agent:agent-17 status:agent_error",
    "a status": "status:dead_lettered",
    "a common code": "code:UZ-EXEC-013",
    "words that stand in every event": '"connection refused"',
    "a word of one event, far back": "word7",
    "words that stand in none": "absent",
    "a path": "request.pull.number:77777",
    "words of one agent": "agent:agent-17 refused",
}
TENANT = """
INSERT INTO tenants (id, name, plan_tier, balance_nanos, created_at, updated_at)
VALUES ('{tenant}', 't', 'enterprise', 1000000000000, 0, 0);
INSERT INTO workspaces (id, tenant_id, name, paused, created_at)
VALUES ('{workspace}', '{tenant}', 'w', false, 0);
"""
PLANT = """
INSERT INTO config_versions
       (id, zombie_id, revision, status, source_markdown, trigger_markdown, compiled, created_at)
SELECT md5('c' || n)::uuid, md5('z' || n)::uuid, 1, 'ACTIVE', '', '', '{{}}', n
  FROM generate_series(1, {agents}) n;
INSERT INTO zombies (id, workspace_id, tenant_id, name, status, version, config_version_id,
                     config_revision, required_tags, approval_token_hash, url_secret_hashes, created_at,
                     updated_at, allows_unsandboxed)
SELECT md5('z' || n)::uuid, '{workspace}', '{tenant}', 'agent-' || n, 'active',
       1, md5('c' || n)::uuid, 1, '{{gpu}}', '', '{{}}', n, n, false
  FROM generate_series(1, {agents}) n;
INSERT INTO agent_heads (zombie_id, workspace_id, tenant_id, status)
SELECT id, workspace_id, tenant_id, 'active' FROM zombies ON CONFLICT DO NOTHING;
INSERT INTO events (id, zombie_id, workspace_id, tenant_id, actor, event_type, status, request_json,
                    created_at, updated_at, response_text, failure_label, error_code, completed_at)
SELECT md5('e' || n)::uuid, md5('z' || (n % {agents} + 1))::uuid, '{workspace}',
       '{tenant}', 'webhook:github', 'push',
       CASE WHEN n % 10 = 0 THEN 'received' WHEN n % 10 = 1 THEN 'agent_error'
            WHEN n % 1000 = 2 THEN 'dead_lettered' ELSE 'processed' END,
       '{{"pull": {{"number": ' || n || '}}, "text": "word' || n || ' '
           || repeat('lorem ipsum dolor sit ', 40) || '"}}',
       1700000000000 + n, 0, repeat('sed do eiusmod tempor ', 40) || 'connection refused',
       CASE WHEN n % 10 = 1 THEN 'agent_run' END, CASE WHEN n % 10 = 1 THEN 'UZ-EXEC-013' END, 0
  FROM generate_series(1, {events}) n;
ANALYZE;
"""
"""Agents and events of a workspace that is there."""


async def timed(ask: Callable[[], Awaitable[object]]) -> harness.Spread:
    """In ms."""
    samples = []
    for _ in range(ROUNDS + 1):
        began = perf_counter()
        await ask()
        samples.append((perf_counter() - began) * 1000)
    return harness.Spread.of(samples[1:])


async def measure(storage: PostgresStorage, dsn: str) -> list[harness.Figure]:
    """Every filter, one page; then the rest."""
    figures = await indexed(storage, dsn)
    await _grouped(storage)
    listed = storage.events.list
    figures += [
        harness.Figure("a page of the list", await timed(lambda: listed(WORKSPACE, limit=51)), "ms"),
        harness.Figure("a page of failures", await timed(lambda: _failures(storage)), "ms"),
    ]
    for name, text in FILTERS.items():
        picked = parse_filter(text, now=0)
        value = await timed(lambda picked=picked: storage.events.search(WORKSPACE, picked, limit=51))  # type: ignore[misc] # of this round
        figures.append(harness.Figure(name, value, "ms"))
    waiting = await storage.events.search(WORKSPACE, parse_filter("status:received", now=0), limit=1)
    event_id = waiting.events[0].id
    place = await storage.frames.workspace_head()
    figures += [
        harness.Figure("why an event waits", await timed(lambda: storage.insights.situation(event_id)), "ms"),
        harness.Figure("what became of it", await timed(lambda: storage.insights.history(event_id)), "ms"),
        harness.Figure(
            "a quiet look of a workspace's stream", await timed(lambda: _look(storage, place)), "ms"
        ),
    ]
    return figures


async def indexed(storage: PostgresStorage, dsn: str) -> list[harness.Figure]:
    """Have the index of words filled, as a server does behind the events, and count what that takes."""
    before = [*await trio.to_thread.run_sync(_spent, dsn), 1e6 * process_time()]
    began, events, more = perf_counter(), 0, True
    while more:
        done = await storage.event_words.index(limit=INDEX_PAGE)
        events, more = events + done.events, done.more
    took = perf_counter() - began
    after = [*await trio.to_thread.run_sync(_spent, dsn), 1e6 * process_time()]
    wal, database, process = ((now - then) / events for now, then in zip(after, before, strict=True))
    return [
        harness.Figure("words indexed", harness.once(events / took), "events a second"),
        harness.Figure("an event indexed: the database's processor time", harness.once(database), "µs"),
        harness.Figure("an event indexed: this process's", harness.once(process), "µs"),
        harness.Figure("an event indexed: WAL", harness.once(wal), "bytes"),
    ]


def _spent(dsn: str) -> tuple[float, float]:
    """Bytes of WAL, and µs of the processes that serve the database."""
    wal = float(machine.query(dsn, "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn"))
    query = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    pids = machine.query(machine.superuser(dsn), query).split()
    return wal, sum(float(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids) / 1000


async def _grouped(storage: PostgresStorage) -> None:
    while found := await storage.failures.unsorted(limit=SORT_PAGE):
        await storage.failures.sort(
            [Sorted(one, digest_of(one.failure_label, one.error_code, ""), "", one.event_id) for one in found]
        )


async def _failures(storage: PostgresStorage) -> None:
    await storage.failures.list(WORKSPACE, limit=51, now=storage.clock.now_ms())


async def _look(storage: PostgresStorage, place: FramePlace) -> None:
    await storage.frames.read_workspace(WORKSPACE, after=place, limit=256)


async def main() -> None:
    async with open_database() as database:
        async with open_postgres_storage(database.dsn):
            harness.tell(f"writing {EVENTS:,} events of {AGENTS:,} agents")
        await trio.to_thread.run_sync(plant, database.dsn, TENANT + PLANT, TENANT_ID, WORKSPACE)
        async with open_postgres_storage(database.dsn) as storage:
            print(
                harness.line(harness.report("searches", database.about, await measure(storage, database.dsn)))
            )


def plant(dsn: str, statements: str, tenant_id: UUID, workspace_id: UUID) -> None:
    """Write agents and events by hand, as many as this benchmark has."""

    async def write() -> None:
        connection = await asyncpg.connect(dsn)
        try:
            await connection.execute(
                statements.format(agents=AGENTS, events=EVENTS, tenant=tenant_id, workspace=workspace_id)
            )
        finally:
            await connection.close()

    asyncio.run(write())


if __name__ == "__main__":
    trio.run(main)
