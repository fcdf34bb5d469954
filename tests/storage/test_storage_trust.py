"""An agent's standing is read through indexes, however long its history is."""

import asyncpg

from sexton_storage.portal import open_portal
from sexton_storage.postgres.stores.improvement import _RECENT, _TRUST, _UNHEARD
from tests.worlds.storage import new_id

ROWS = 60_000
FILL = f"""
INSERT INTO scores (event_id, zombie_id, outcome, score, attempts, denied_gates, failed_checks, charged_nanos,
                    created_at)
SELECT gen_random_uuid(), $1, CASE WHEN n % 7 = 0 THEN 'agent_error' ELSE 'processed' END, 1, 1, 0, 0, 0, n
  FROM generate_series(1, {ROWS}) n
"""
FILL_PROPOSALS = f"""
INSERT INTO proposals (id, zombie_id, workspace_id, tenant_id, status, title, rationale, diff,
                       base_config_version_id, created_by, created_at, rejection_reason, decided_at, heard_at)
SELECT gen_random_uuid(), $1, $1, $1, CASE WHEN n = 40 THEN 'APPLIED' ELSE 'REJECTED' END, '', '', '', $1,
       '', n, '', n, n
  FROM generate_series(1, {ROWS}) n
"""


def read_rows(plan: str) -> float:
    """The rows that the plan's scans have read, by their loops."""
    read = 0.0
    for line in plan.splitlines():
        if "Scan" in line and "rows=" in line and "actual" in line:
            actual = line[line.index("actual") :]
            read += float(actual.partition("rows=")[2].split()[0]) * float(
                actual.partition("loops=")[2].rstrip(") ")
            )
    return read


async def test_standing_and_lessons_read_a_few_rows_of_a_long_history(postgres_dsn: str) -> None:
    zombie_id = new_id()

    async def work() -> dict[str, str]:
        connection = await asyncpg.connect(postgres_dsn)
        try:
            await connection.execute(FILL, zombie_id)
            await connection.execute(FILL_PROPOSALS, zombie_id)
            await connection.execute("ANALYZE scores, proposals")
            plans = {}
            for name, query, args in (
                ("trust", _TRUST, (zombie_id,)),
                ("unheard", _UNHEARD, (zombie_id,)),
                ("recent", _RECENT, (zombie_id, 200)),
            ):
                rows = await connection.fetch(f"EXPLAIN (ANALYZE, COSTS OFF) {query}", *args)
                plans[name] = "\n".join(row[0] for row in rows)
        finally:
            await connection.close()
        return plans

    async with open_portal() as portal:
        plans = await portal.run(work)
    for name, plan in plans.items():
        assert "Seq Scan on scores" not in plan, plan
        assert "Seq Scan on proposals" not in plan, plan
        print(name, read_rows(plan))  # noqa: T201 - the figure is the evidence

    assert read_rows(plans["unheard"]) == 0
    assert read_rows(plans["recent"]) <= 200, plans["recent"]
    assert read_rows(plans["trust"]) <= ROWS / 100, plans["trust"]
