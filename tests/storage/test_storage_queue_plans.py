"""What is asked of a long queue looks at each agent that waits once, however many need the same."""

import asyncio
from typing import Any
from uuid import UUID

import asyncpg
import orjson

from sexton_storage.postgres.stores import insights
from sexton_storage.records.insights import AHEAD_CAP

AGENTS = 1_000
"""All with the same needs, and two events each that wait."""
HOME, NOBODY = UUID(int=8), UUID(int=9)
_PLANT = f"""
INSERT INTO tenants (id, name, plan_tier, balance_nanos, created_at, updated_at)
VALUES ('{HOME}', 'queue', 'enterprise', 1, 0, 0);
INSERT INTO workspaces (id, tenant_id, name, paused, created_at)
VALUES ('{HOME}', '{HOME}', 'queue', false, 0);
INSERT INTO config_versions
       (id, zombie_id, revision, status, source_markdown, trigger_markdown, compiled, created_at)
SELECT md5('queue' || n)::uuid, md5('queue' || n)::uuid, 1, 'ACTIVE', '', '', '{{}}', n
  FROM generate_series(1, {AGENTS}) n;
INSERT INTO zombies (id, workspace_id, tenant_id, name, status, version, config_version_id, config_revision,
                     required_tags, approval_token_hash, url_secret_hashes, created_at, updated_at,
                     allows_unsandboxed)
SELECT md5('queue' || n)::uuid, '{HOME}', '{HOME}', 'agent-' || n, 'active', 1, md5('queue' || n)::uuid, 1,
       '{{gpu,eu}}', '', '{{}}', n, n, false
  FROM generate_series(1, {AGENTS}) n;
INSERT INTO agent_heads (zombie_id, workspace_id, tenant_id, status)
SELECT id, workspace_id, tenant_id, 'active' FROM zombies WHERE workspace_id = '{HOME}';
INSERT INTO events (id, zombie_id, workspace_id, tenant_id, actor, event_type, status, request_json,
                    created_at, updated_at)
SELECT md5('queue' || n)::uuid, md5('queue' || 1 + n % {AGENTS})::uuid, '{HOME}', '{HOME}', 'webhook:x',
       'push', 'received', '{{}}', n, n
  FROM generate_series(1, {2 * AGENTS}) n;
ANALYZE zombies, agent_heads, events, waiting_events, workspaces;
"""
# As plans are that are kept, for whatever is asked next.
_KEPT_PLANS = """
SET plan_cache_mode = force_generic_plan;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_seqscan = off;
"""


def literal(value: object) -> str:
    """In SQL."""
    if isinstance(value, list):
        return f"'{{{','.join(value)}}}'"
    return str(value) if isinstance(value, int) else f"'{value}'"


async def looked_at(connection: Any, query: str, *args: Any) -> int:
    """How many rows of agents the query read, those among them that did not fit."""
    await connection.execute(f"DEALLOCATE ALL; PREPARE asked AS {query}")
    given = ", ".join(literal(arg) for arg in args)
    explained = await connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT json) EXECUTE asked ({given})")
    todo, rows = [orjson.loads(explained)[0]["Plan"]], 0.0
    while todo:
        node = todo.pop()
        removed = node.get("Rows Removed by Join Filter", 0) + node.get("Rows Removed by Filter", 0)
        if node.get("Relation Name") == "zombies":
            rows += node["Actual Loops"] * (node["Actual Rows"] + removed)
        todo += node.get("Plans", ())
    return round(rows)


def test_a_place_in_the_queue_and_its_labels_look_at_each_agent_once(postgres_dsn: str) -> None:
    async def look() -> None:
        connection = await asyncpg.connect(postgres_dsn)
        change = connection.transaction()
        await change.start()
        try:
            await connection.execute(_PLANT)
            await connection.execute(_KEPT_PLANS)

            tags = ["eu", "gpu"]
            ahead = (NOBODY, 3 * AGENTS, tags, False, AHEAD_CAP)
            assert await connection.fetchval(insights._AHEAD, *ahead) == 2 * AGENTS
            assert await looked_at(connection, insights._AHEAD, *ahead) == AGENTS

            rows = await connection.fetch(insights._WAITING_NOW, HOME, 20_000)
            assert [tuple(row) for row in rows] == [(["gpu", "eu"], 2 * AGENTS, 1)]
            assert await looked_at(connection, insights._WAITING_NOW, HOME, 20_000) == AGENTS
        finally:
            await change.rollback()
            await connection.close()

    asyncio.run(look())
