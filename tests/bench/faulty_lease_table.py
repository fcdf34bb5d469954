"""A lease service with two faults that leasebench must find: it takes back early, and it fences nothing."""

from bench.leasebench.adapters import plain_sql

ANYBODY = "id = $1 AND $2::bigint IS NOT NULL AND NOT done RETURNING id"


class FaultyTable(plain_sql.PlainSql):
    title = "a faulty table"
    claim_statement = plain_sql.CLAIM.replace("expires_at <", "expires_at - $3::interval / 2 <")
    renew_statement = f"UPDATE jobs SET expires_at = clock_timestamp() + $3 WHERE {ANYBODY}"
    report_statement = f"UPDATE jobs SET done = true WHERE {ANYBODY}"
