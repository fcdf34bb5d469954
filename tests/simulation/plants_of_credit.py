"""What the judges of credit and of prices must notice: planted rows for each."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from sexton_storage.records.events import EventStatus
from sexton_storage.records.tenants import Tenant
from tests.simulation.product import judges_of_books, judges_of_credit
from tests.simulation.product.record import Exhausted, Judge, Record

GRANT: Final = "grant-of-nobody"


def _tenant(record: Record) -> Tenant:
    agent = next(iter(record.tables.zombies.values()))
    return record.tables.tenants[agent.tenant_id]


def _change(record: Record, **changed: Any) -> Tenant:
    tenant = record.tables.tenants[_tenant(record).id] = replace(_tenant(record), **changed)
    return tenant


def _a_credit_twice(record: Record) -> None:
    row = (_tenant(record).id, 5, GRANT, "admin")
    record.promises.granted = {**record.promises.granted, GRANT: 5}
    record.tables.credits = [*record.tables.credits, row, row]


def _a_lost_credit(record: Record) -> None:
    record.promises.credited = {*record.promises.credited, GRANT}


def _exhausted_with_credit(record: Record) -> None:
    _change(record, exhausted_at=record.tables.now())


def _nothing_left_and_not_exhausted(record: Record) -> None:
    _change(record, balance_nanos=0, exhausted_at=None)


def _exhausted_too_early(record: Record) -> None:
    paid = [
        row.created_at
        for rows in record.tables.metering.values()
        for row in rows.values()
        if row.charged_nanos
    ]
    _change(record, balance_nanos=0, exhausted_at=min(paid))


def _exhausted_since_then_and_now(record: Record) -> None:
    tenant = _change(record, balance_nanos=0, exhausted_at=2)
    credits_before = sum(tenant_id == tenant.id for tenant_id, *_ in record.tables.credits)
    record.exhausted = {tenant.id: Exhausted(1, credits_before)}


def _a_lease_for_nothing(record: Record) -> None:
    _exhausted_since_then_and_now(record)
    record.leased -= 1


def _set_aside_with_credit(record: Record) -> None:
    event = next(iter(record.tables.events.values()))
    tenant = record.tables.tenants[event.tenant_id]
    record.tables.tenants[tenant.id] = replace(tenant, balance_nanos=1, exhausted_at=None)
    record.tables.events[event.id] = replace(
        event, status=EventStatus.GATE_BLOCKED, failure_label="balance_exhausted", completed_at=None
    )


def _change_a_slice(record: Record, **added: int) -> None:
    """As if a slice that has tokens of a priced model had been priced or charged otherwise."""
    for event_id, rows in record.tables.metering.items():
        for place, row in rows.items():
            if row.token_cost_nanos:
                changed = {name: getattr(row, name) + more for name, more in added.items()}
                record.tables.metering[event_id] = {**rows, place: replace(row, **changed)}
                record.priced.clear()
                return


def _another_price(record: Record) -> None:
    _change_a_slice(record, token_cost_nanos=1, charged_nanos=1)


def _not_all_charged(record: Record) -> None:
    _change_a_slice(record, charged_nanos=-1)


PLANTED: Final[Mapping[Judge, Callable[[Record], None]]] = {
    judges_of_credit.credited_once: _a_credit_twice,
    judges_of_credit.exhausted_since: _exhausted_with_credit,
    judges_of_credit.nothing_for_nothing: _a_lease_for_nothing,
    judges_of_credit.credit_frees_all: _set_aside_with_credit,
    judges_of_books.priced_as_listed: _another_price,
}
MORE: Final[Sequence[tuple[Judge, Callable[[Record], None]]]] = (
    (judges_of_books.priced_as_listed, _not_all_charged),
    (judges_of_credit.credited_once, _a_lost_credit),
    (judges_of_credit.exhausted_since, _nothing_left_and_not_exhausted),
    (judges_of_credit.exhausted_since, _exhausted_too_early),
    (judges_of_credit.exhausted_since, _exhausted_since_then_and_now),
)
