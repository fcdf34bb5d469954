"""The statement that pgbench runs beside the lease actors does what a renewal does, on today's schema."""

import trio

from bench.leases_by_hand import Leases
from sexton_storage.postgres import PostgresStorage

TERM_MS = 60_000


async def test_each_renewal_by_pgbench_has_its_slice_and_takes_its_price_from_the_balance(
    postgres_storage: PostgresStorage, postgres_dsn: str
) -> None:
    leases = Leases(postgres_dsn, "a", count=8, tenants=2)
    leases.fill(term_ms=TERM_MS)

    renewals, rate = await trio.to_thread.run_sync(lambda: leases.renew_by_pgbench(clients=1, seconds=1))
    slices, charged = leases.metered()

    assert rate > 0
    assert slices == renewals > 0
    assert charged == leases.gone() > 0
