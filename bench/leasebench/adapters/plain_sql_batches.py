"""The same table in plain SQL, many leases a statement."""

from collections.abc import Sequence

from bench.leasebench.adapter import Lease
from bench.leasebench.adapters import plain_sql

MINE = "FROM unnest($1::bigint[], $2::bigint[]) AS mine (id, token)"
HELD = "jobs.id = mine.id AND jobs.token = mine.token AND NOT done AND expires_at > clock_timestamp()"
RENEW = f"UPDATE jobs SET expires_at = clock_timestamp() + $3 {MINE} WHERE {HELD} RETURNING jobs.id"
REPORT = f"UPDATE jobs SET done = true {MINE} WHERE {HELD} RETURNING jobs.id"


class PlainSqlBatches(plain_sql.PlainSql):
    title = "a table by hand, 64 a statement"
    workers = 4
    batch = 64

    async def renew(self, leases: Sequence[Lease]) -> list[bool]:
        rows = await self.pool.fetch(RENEW, *_arrays(leases), self.term)
        return _found(leases, {row["id"] for row in rows})

    async def report(self, leases: Sequence[Lease]) -> list[bool]:
        rows = await self.pool.fetch(REPORT, *_arrays(leases))
        return _found(leases, {row["id"] for row in rows})


def _arrays(leases: Sequence[Lease]) -> tuple[list[int], list[int | None]]:
    return [one.handle for one in leases], [one.token for one in leases]


def _found(leases: Sequence[Lease], ids: set[int]) -> list[bool]:
    return [one.handle in ids for one in leases]
