"""A table of leases with a fencing token, in plain SQL: what one would write by hand."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import asyncpg

from bench.leasebench.adapter import Adapter, Lease, Place

TABLE = """
CREATE TABLE jobs (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, holder text, token bigint NOT NULL DEFAULT 0,
  expires_at timestamptz, done boolean NOT NULL DEFAULT false
);
CREATE INDEX ON jobs (id) WHERE NOT done
"""
CLAIM = """
WITH free AS (
  SELECT id FROM jobs WHERE NOT done AND (expires_at IS NULL OR expires_at < clock_timestamp())
  ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED
)
UPDATE jobs SET holder = $2, token = token + 1, expires_at = clock_timestamp() + $3
FROM free WHERE jobs.id = free.id RETURNING jobs.id, token
"""
HELD = "id = $1 AND token = $2 AND NOT done AND expires_at > clock_timestamp() RETURNING id"
RENEW = f"UPDATE jobs SET expires_at = clock_timestamp() + $3 WHERE {HELD}"
REPORT = f"UPDATE jobs SET done = true WHERE {HELD}"


class PlainSql(Adapter):
    title = "a table by hand"
    does_not = ("meters nothing and debits nobody", "keeps no order within a key, and no fairness")
    packages = ("asyncpg",)
    claim_statement, renew_statement, report_statement = CLAIM, RENEW, REPORT

    async def setup(self, place: Place) -> dict[str, Any]:
        connection = await asyncpg.connect(place.dsn)
        await connection.execute(TABLE)
        await connection.close()
        return {}

    async def open(self, place: Place) -> None:
        self.holder, self.term = place.holder, timedelta(seconds=place.term_s)
        self.pool = await asyncpg.create_pool(place.dsn, min_size=1, max_size=min(8, place.workers))

    async def fill(self, jobs: int) -> None:
        await self.pool.execute("INSERT INTO jobs (done) SELECT false FROM generate_series(1, $1)", jobs)

    async def claim(self, most: int) -> list[Lease]:
        rows = await self.pool.fetch(self.claim_statement, most, self.holder, self.term)
        return [Lease(str(row["id"]), row["token"], row["id"]) for row in rows]

    async def renew(self, leases: Sequence[Lease]) -> list[bool]:
        return [
            bool(await self.pool.fetch(self.renew_statement, one.handle, one.token, self.term))
            for one in leases
        ]

    async def report(self, leases: Sequence[Lease]) -> list[bool]:
        return [bool(await self.pool.fetch(self.report_statement, one.handle, one.token)) for one in leases]

    async def close(self) -> None:
        self.pool.terminate()
