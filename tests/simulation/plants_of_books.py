"""What the judges of money must notice: planted rows for each."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from sexton_runner.lease import Usage
from tests.simulation.product import judges_of_books
from tests.simulation.product.record import Judge, Record


def _a_lost_cent(record: Record) -> None:
    agent = next(iter(record.tables.zombies.values()))
    tenant = record.tables.tenants[agent.tenant_id]
    record.tables.tenants[tenant.id] = replace(tenant, balance_nanos=tenant.balance_nanos - 1)


def _a_lost_bill(record: Record) -> None:
    del record.tables.charges[next(iter(record.tables.charges))]


def _a_minute_twice(record: Record) -> None:
    event_id, rows = next(iter(record.tables.metering.items()))
    place, row = next(iter(rows.items()))
    record.tables.metering[event_id] = {**rows, place: replace(row, run_ms=row.run_ms + 3_600_000)}


def _written_and_not_metered(record: Record) -> None:
    lease = next(lease for lease in record.tables.leases.values() if lease.output_tokens)
    record.tables.leases[lease.id] = replace(lease, output_tokens=lease.output_tokens - 1)


def _a_bill_of_other_tokens(record: Record) -> None:
    charge = next(iter(record.tables.charges.values()))
    record.tables.charges[charge.id] = replace(charge, token_count_input=charge.token_count_input + 1)


def _more_than_used(record: Record) -> None:
    lease = next(lease for lease in record.tables.leases.values() if lease.input_tokens)
    record.runs.used[lease.id] = Usage(lambda: 0.0, input_tokens=lease.input_tokens - 1)


PLANTED: Final[Mapping[Judge, Callable[[Record], None]]] = {
    judges_of_books.every_cent_once: _a_lost_cent,
    judges_of_books.books_agree: _a_lost_bill,
    judges_of_books.nothing_metered_twice: _a_minute_twice,
    judges_of_books.tokens_as_used: _more_than_used,
}
MORE: Final[Sequence[tuple[Judge, Callable[[Record], None]]]] = (
    (judges_of_books.nothing_metered_twice, _written_and_not_metered),
    (judges_of_books.nothing_metered_twice, _a_bill_of_other_tokens),
)
