"""Many tenants' live leases, put in by hand, and how the journal and pgbench renew them."""

import re
import subprocess
import tempfile

import msgspec

from bench.machine import plain_environment, program, query
from sexton_storage.records.leases import Lease
from sexton_storage.records.metering import Slice
from sexton_storage.writes import RenewLease

BALANCE_NANOS = 10**17
"""More than any run uses up."""
RUN_NANOS_PER_SEC = 100_000
DAY_MS = 86_400_000

# Ids are counted, so that pgbench can name a row by its number; families differ in their first digits.
_ID = "('{family}-0000-7000-8000-' || lpad(to_hex({number}), 12, '0'))::uuid"
_FILL = """
INSERT INTO tenants (id, name, plan_tier, balance_nanos, created_at, updated_at)
SELECT {tenant}, 'tenant {family} ' || n, 'enterprise', {balance}, sexton_now_ms(), sexton_now_ms()
  FROM generate_series(1, {tenants}) n
ON CONFLICT DO NOTHING;
INSERT INTO leases (id, event_id, zombie_id, workspace_id, tenant_id, runner_id, fencing_token, attempt,
                    status, version, granted_at, expires_at, ceiling_at, metered_at, run_nanos_per_sec,
                    input_nanos_per_mtok, cached_input_nanos_per_mtok, output_nanos_per_mtok)
SELECT {lease}, {event}, {zombie}, {workspace}, {lease_tenant}, {runner}, 1, 1, 'active', 1,
       sexton_now_ms(), sexton_now_ms() + {term_ms}, sexton_now_ms() + {day_ms}, sexton_now_ms(), {rate},
       0, 0, 0
  FROM generate_series({first}, {last}) n;
"""
# What the journal does to a batch, written as well as it can be for one row: one statement, one round
# trip, one commit. With no order of arrival to keep and nothing to sum, it is simpler than the journal's own.
_RENEW_ONE = """\\set n random(1, {leases})
WITH renewed AS (
    UPDATE leases l
       SET version = l.version + 1, expires_at = greatest(l.expires_at, sexton_now_ms() + 30000),
           metered_at = greatest(l.metered_at, sexton_now_ms()), slice_seq = l.slice_seq + 1,
           input_tokens = l.input_tokens + 7, output_tokens = l.output_tokens + 3
     WHERE l.id = {lease} AND l.status IN ('active', 'cancelling') AND l.expires_at > sexton_now_ms()
    RETURNING l.event_id, l.attempt, l.slice_seq, l.zombie_id, l.workspace_id, l.tenant_id, l.metered_at,
              l.metered_at - old.metered_at AS run_ms,
              (l.metered_at - old.metered_at) * l.run_nanos_per_sec / 1000 AS fee
), debited AS (
    UPDATE tenants t
       SET balance_nanos = t.balance_nanos - least(r.fee, t.balance_nanos), updated_at = r.metered_at
      FROM renewed r WHERE t.id = r.tenant_id
    RETURNING t.id, t.balance_nanos
), metered AS (
    INSERT INTO metering_slices (event_id, attempt, slice_seq, zombie_id, workspace_id, tenant_id,
                                 d_input_tokens, d_cached_tokens, d_output_tokens, run_ms, run_fee_nanos,
                                 token_cost_nanos, charged_nanos, created_at)
    SELECT event_id, attempt, slice_seq, zombie_id, workspace_id, tenant_id, 7, 0, 3, run_ms, fee, 0, fee,
           metered_at
      FROM renewed
), spent AS (
    INSERT INTO spend (zombie_id, day, nanos)
    SELECT zombie_id, (metered_at / 86400000)::int, fee FROM renewed
    ON CONFLICT (zombie_id, day) DO UPDATE SET nanos = spend.nanos + excluded.nanos
)
SELECT r.fee, d.balance_nanos FROM renewed r JOIN debited d ON d.id = r.tenant_id;
"""


def identity(family: str, number: str) -> str:
    """SQL for the id of that number."""
    return _ID.format(family=family, number=number)


class Leases:
    """Leases 1..count of a family of ids, spread over the tenants; ``family`` is a hex digit."""

    def __init__(self, database_url: str, family: str, *, count: int, tenants: int) -> None:
        self._url = database_url
        self._family = family
        self._count = count
        self._tenants = tenants

    def _kind(self, kind: str) -> str:
        return f"{self._family}{kind:0>7}"

    @property
    def runner_id(self) -> str:
        return f"{self._kind('6')}-0000-7000-8000-000000000001"

    def ids(self) -> list[str]:
        return [f"{self._kind('2')}-0000-7000-8000-{number:012x}" for number in range(1, self._count + 1)]

    def fill(self, *, term_ms: int, first: int = 1, last: int | None = None) -> None:
        """Make them, or those of these numbers, live for so long unless they are renewed."""
        by_number = {"lease": "2", "event": "3", "zombie": "4"}
        ids = {name: identity(self._kind(kind), "n") for name, kind in by_number.items()}
        sql = _FILL.format(
            **ids,
            tenant=identity(self._kind("1"), "n"),
            lease_tenant=identity(self._kind("1"), f"1 + n % {self._tenants}"),
            workspace=identity(self._kind("5"), f"1 + n % {self._tenants}"),
            runner=f"'{self.runner_id}'::uuid",
            family=self._family,
            balance=BALANCE_NANOS,
            tenants=self._tenants,
            first=first,
            last=last or self._count,
            term_ms=term_ms,
            day_ms=DAY_MS,
            rate=RUN_NANOS_PER_SEC,
        )
        query(self._url, sql)

    def metered(self) -> tuple[int, int]:
        """Metering rows of these leases, and what they charged in sum."""
        mine = f"tenant_id::text LIKE '{self._kind('1')}-%'"
        rows, charged = (
            query(
                self._url,
                f"SELECT count(*) || ' ' || coalesce(sum(charged_nanos), 0) FROM metering WHERE {mine}",
            )
            .strip()
            .split()
        )
        return int(rows), int(charged)

    def gone(self) -> int:
        """Nanos that the tenants do not have any more."""
        mine = f"id::text LIKE '{self._kind('1')}-%'"
        left = query(self._url, f"SELECT sum(balance_nanos) FROM tenants WHERE {mine}")
        return self._tenants * BALANCE_NANOS - int(left)

    def renew_by_pgbench(self, *, clients: int, seconds: float) -> tuple[int, float]:
        """Renewals that pgbench made in this many whole seconds, and how many a second."""
        script = _RENEW_ONE.format(leases=self._count, lease=identity(self._kind("2"), "cast(:n AS int)"))
        with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
            file.write(script)
            file.flush()
            words = [
                "-n",
                "-M",
                "prepared",
                "-c",
                str(clients),
                "-j",
                "2",
                "-T",
                str(max(1, round(seconds))),
                "-f",
                file.name,
            ]
            done = subprocess.run(
                [program("pgbench"), *words, self._url],
                check=True,
                capture_output=True,
                text=True,
                env=plain_environment(),
            )
        return _count(done.stdout), _rate(done.stdout)


def _count(said: str) -> int:
    found = re.search(r"number of transactions actually processed: (\d+)", said)
    failed = re.search(r"number of failed transactions: (\d+)", said)
    assert found is not None, said
    assert failed is None or failed[1] == "0", said
    return int(found[1])


def _rate(said: str) -> float:
    found = re.search(r"tps = ([\d.]+) \(without initial connection time\)", said)
    assert found is not None, said
    return float(found[1])


def next_renewal(lease: Lease, now: int) -> RenewLease:
    """What its runner would have written next, with some tokens used."""
    run_ms = max(0, now - lease.metered_at)
    part = Slice(lease.slice_seq + 1, 7, 0, 3, run_ms, run_ms * RUN_NANOS_PER_SEC // 1000, 0)
    renewed = msgspec.structs.replace(
        lease,
        version=lease.version + 1,
        expires_at=max(lease.expires_at, now + 30_000),
        metered_at=max(lease.metered_at, now),
        slice_seq=lease.slice_seq + 1,
        input_tokens=lease.input_tokens + 7,
        output_tokens=lease.output_tokens + 3,
    )
    return RenewLease(renewed, part, now)


def tidy(database_url: str) -> None:
    """Fresh statistics and no dead rows, before anything is measured."""
    query(database_url, "VACUUM ANALYZE")
