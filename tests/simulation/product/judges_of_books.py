"""What must hold of money: the ledger, the metered rows and the bills say the same."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final
from uuid import UUID

from sexton_actors.plans import STARTER_CREDIT_NANOS
from sexton_storage.records.leases import Lease
from tests.simulation.product.busy_agents import MODEL
from tests.simulation.product.record import Record

Counts = tuple[int, int, int, int]
"""Tokens: read, read from a cache, written to a cache, written."""
NO_PRICES: Final = (0, 0, 0, 0)
PRICES: Final = (
    MODEL.input_nanos_per_mtok,
    MODEL.cached_input_nanos_per_mtok,
    MODEL.write_rate,
    MODEL.output_nanos_per_mtok,
)
"""What a million tokens of each kind cost the agent whose model has a price, in nanos."""
CLOCKS_APART_MS: Final = 3_000
"""How far two nodes may take the database's clock differently, while the way there is slow."""


def every_cent_once(record: Record) -> Iterator[str]:
    """What is gone from the balance is the sum of the metered rows; an event's charge is that of its own."""
    tables = record.tables
    charged = {
        event: sum(row.charged_nanos for row in rows.values()) for event, rows in tables.metering.items()
    }
    begun = sum(record.first_credit.get(tenant, STARTER_CREDIT_NANOS) for tenant in tables.tenants)
    gone = begun + sum(amount for _, amount, _, _ in tables.credits)
    gone -= sum(tenant.balance_nanos for tenant in tables.tenants.values())
    if sum(charged.values()) != gone:
        yield f"{sum(charged.values())} was metered, {gone} is gone"
    for event in tables.events.values():
        if event.completed_at is not None and event.charged_nanos != charged.get(event.id, 0):
            yield f"event {event.id} says {event.charged_nanos}, its rows {charged.get(event.id, 0)}"


def books_agree(record: Record) -> Iterator[str]:
    """A lease that has ended was billed what its metered rows say, and an agent's day is the sum of them."""
    tables = record.tables
    of_lease: Counter[tuple[UUID, int]] = Counter()
    of_agent: Counter[UUID] = Counter()
    for event_id, rows in tables.metering.items():
        for (attempt, _), row in rows.items():
            of_lease[event_id, attempt] += row.charged_nanos
            if event_id in tables.events:
                of_agent[tables.events[event_id].zombie_id] += row.charged_nanos
    for lease in tables.leases.values():
        if lease.ended_at is None:
            continue
        charge = tables.charges.get(lease.id)
        billed = 0 if charge is None else charge.credit_deducted_nanos
        if billed != of_lease[lease.event_id, lease.attempt]:
            yield f"lease {lease.id} was billed {billed}, metered {of_lease[lease.event_id, lease.attempt]}"
    spent: Counter[UUID] = Counter()
    for (agent, _), nanos in tables.spend.items():
        spent[agent] += nanos
    for agent in of_agent.keys() | spent.keys():
        if spent[agent] != of_agent[agent]:
            yield f"agent {agent} has spent {spent[agent]}, metered {of_agent[agent]}"


def nothing_metered_twice(record: Record) -> Iterator[str]:
    """No lease is metered for longer than it was held, nor for more tokens than its cursors have passed.

    Its bill says the same of tokens and time.
    """
    tables, now = record.tables, record.tables.now()
    for lease in tables.leases.values():
        rows = [row for (n, _), row in tables.metering.get(lease.event_id, {}).items() if n == lease.attempt]
        run_ms = sum(row.run_ms for row in rows)
        held_ms = (lease.ended_at or now) - lease.granted_at
        if run_ms > held_ms + CLOCKS_APART_MS:
            yield f"lease {lease.id} was held {held_ms} ms, and {run_ms} ms were metered"
        metered = _sums(
            (row.d_input_tokens, row.d_cached_tokens, row.d_cache_write_tokens, row.d_output_tokens)
            for row in rows
        )
        passed = _cursors(lease)
        if metered != passed:
            yield f"lease {lease.id} has passed {passed} tokens, and {metered} were metered"
        charge = tables.charges.get(lease.id)
        if charge is None:
            continue
        billed = charge.token_count_input, charge.token_count_output, charge.wall_ms
        if billed != (metered[0] + metered[1] + metered[2], metered[3], run_ms):
            yield f"lease {lease.id} was billed {billed}, and {metered} tokens in {run_ms} ms were metered"


def priced_as_listed(record: Record) -> Iterator[str]:
    """A slice costs its time, and its tokens by the list; all is charged that there is credit for."""
    tables, priced = record.tables, record.priced
    if record.times is not None:
        return  # Rows of a day that is over become one there, and no model has a price.
    for event_id, rows in tables.metering.items():
        known, event = priced.get(event_id, 0), tables.events.get(event_id)
        if known == len(rows) or event is None:
            continue
        priced[event_id] = len(rows)
        lasts = record.first_credit[event.tenant_id] == STARTER_CREDIT_NANOS
        prices = PRICES if event.zombie_id in record.promises.priced else NO_PRICES
        for row in islice(rows.values(), known, None):
            read = row.d_input_tokens, row.d_cached_tokens, row.d_cache_write_tokens, row.d_output_tokens
            cost = sum(count * price // 1_000_000 for count, price in zip(read, prices, strict=True))
            if row.token_cost_nanos != cost:
                yield f"{read} tokens of event {event_id} cost {row.token_cost_nanos}, by the list {cost}"
            whole = row.run_fee_nanos + cost
            if row.charged_nanos > whole or (lasts and row.charged_nanos != whole):
                yield f"a slice of event {event_id} that costs {whole} was charged {row.charged_nanos}"


def _sums(counts: Iterable[Counts]) -> Counts:
    read = cached = cache_written = written = 0
    for one in counts:
        read, cached = read + one[0], cached + one[1]
        cache_written, written = cache_written + one[2], written + one[3]
    return read, cached, cache_written, written


def _cursors(lease: Lease) -> Counts:
    """What a lease has used, as far as it is metered."""
    return lease.input_tokens, lease.cached_input_tokens, lease.cache_write_tokens, lease.output_tokens


def tokens_as_used(record: Record) -> Iterator[str]:
    """No lease is metered for more tokens than its run has used."""
    for lease_id, usage in record.runs.used.items():
        lease = record.tables.leases.get(lease_id)
        if lease is None:
            continue
        metered = _cursors(lease)
        used = (
            usage.input_tokens,
            usage.cached_input_tokens,
            usage.cache_write_tokens,
            usage.output_tokens,
        )
        if any(one > most for one, most in zip(metered, used, strict=True)):
            yield f"lease {lease_id} has used {used} tokens, and {metered} were metered"
