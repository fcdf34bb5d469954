"""What must hold at every moment: each judge looks at all rows, and says which promise is broken."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final
from uuid import UUID

from sexton_actors.plans import STARTER_CREDIT_NANOS
from sexton_storage.memory.tables import Tables
from sexton_storage.records.gates import GateStatus
from sexton_storage.records.leases import Lease
from tests.simulation.product.people import Promises

TERM_AND_A_SECOND_MS: Final = 31_000
LOOK_MS: Final = 2_000
"""Each node looks once a second for what is over; the judges do as well."""


class Broken(AssertionError):
    """A promise is broken."""


@dataclass
class Record:
    """All that judges look at, and what they have seen."""

    tables: Tables
    promises: Promises
    resolved: dict[UUID, GateStatus] = field(default_factory=dict)
    ended: dict[UUID, tuple[str, str]] = field(default_factory=dict)
    idle_since: dict[UUID, int] = field(default_factory=dict)
    """Agent with something to do and without a lease: since when; database's clock, ms."""

    def leases_by_agent(self) -> dict[UUID, list[Lease]]:
        found: dict[UUID, list[Lease]] = {}
        for lease in self.tables.leases.values():
            found.setdefault(lease.zombie_id, []).append(lease)
        return {agent: sorted(rows, key=lambda row: row.fencing_token) for agent, rows in found.items()}


Judge = Callable[[Record], Iterator[str]]


def one_live_lease(record: Record) -> Iterator[str]:
    """An agent has at most one live lease."""
    live = Counter(row.zombie_id for row in record.tables.leases.values() if row.ended_at is None)
    for agent, count in live.items():
        if count > 1:
            yield f"agent {agent} has {count}"


def fencing_grows(record: Record) -> Iterator[str]:
    """Fencing tokens of an agent grow by one with each lease, and none is used twice."""
    for agent, leases in record.leases_by_agent().items():
        tokens = [row.fencing_token for row in leases]
        if tokens != list(range(1, len(tokens) + 1)):
            yield f"agent {agent} has {tokens}"
        for before, after in pairwise(leases):
            if before.ended_at is None or after.granted_at < before.ended_at:
                yield f"lease {after.id} was granted before lease {before.id} had ended"


def no_old_token(record: Record) -> Iterator[str]:
    """What ended with a lease was written by the newest one: no event ends twice, nor changes its end."""
    reported = Counter(row.event_id for row in record.tables.leases.values() if row.status == "reported")
    for event_id, count in reported.items():
        if count > 1:
            yield f"event {event_id} was reported {count} times"
    for event in record.tables.events.values():
        if event.completed_at is not None:
            now = (event.status.value, event.response_text or "")
            before = record.ended.setdefault(event.id, now)
            if before != now:
                yield f"event {event.id} ended as {before} and is {now}"


def accepted_once(record: Record) -> Iterator[str]:
    """Every acknowledged event is there, exactly once."""
    for event_id, delivery in record.promises.accepted.items():
        if event_id not in record.tables.events:
            yield f"event {event_id} of {delivery} is gone"
    came = Counter(
        (event.zombie_id, event.source_event_id)
        for event in record.tables.events.values()
        if event.source_event_id and event.resumes_event_id is None
    )
    for (agent, delivery), count in came.items():
        if count > 1:
            yield f"{delivery} is there {count} times for agent {agent}"
    fired = Counter(
        (event.zombie_id, event.request_json)
        for event in record.tables.events.values()
        if event.event_type == "cron" and event.resumes_event_id is None
    )
    for (agent, request), count in fired.items():
        if count > 1:
            yield f"agent {agent} was woken {count} times for {request}"


def order_of_agent(record: Record) -> Iterator[str]:
    """Events of an agent begin in the order of their arrival."""
    tables = record.tables
    for agent, leases in record.leases_by_agent().items():
        first = list(dict.fromkeys(row.event_id for row in leases))
        arrivals = [
            tables.arrivals[event_id]
            for event_id in first
            if event_id in tables.events and tables.events[event_id].resumes_event_id is None
        ]
        if arrivals != sorted(arrivals):
            yield f"agent {agent} began {arrivals}"


def every_cent_once(record: Record) -> Iterator[str]:
    """What is gone from the balance is the sum of the metered rows; an event's charge is that of its own."""
    tables = record.tables
    charged = {
        event: sum(row.charged_nanos for row in rows.values()) for event, rows in tables.metering.items()
    }
    gone = STARTER_CREDIT_NANOS * len(tables.tenants) + sum(amount for _, amount, _, _ in tables.credits)
    gone -= sum(tenant.balance_nanos for tenant in tables.tenants.values())
    if sum(charged.values()) != gone:
        yield f"{sum(charged.values())} was metered, {gone} is gone"
    for event in tables.events.values():
        if event.completed_at is not None and event.charged_nanos != charged.get(event.id, 0):
            yield f"event {event.id} says {event.charged_nanos}, its rows {charged.get(event.id, 0)}"


def gate_once(record: Record) -> Iterator[str]:
    """A gate resolves once, and as the one who decided was told."""
    for gate in record.tables.gates.values():
        if gate.status is GateStatus.PENDING:
            continue
        before = record.resolved.setdefault(gate.id, gate.status)
        if before is not gate.status:
            yield f"gate {gate.id} was {before} and is {gate.status}"
    for gate_id, outcome in record.promises.decided.items():
        gate_now = record.tables.gates.get(gate_id)
        if gate_now is None or gate_now.status.value != outcome:
            yield f"gate {gate_id} was told to be {outcome}"


def stream_without_gap(record: Record) -> Iterator[str]:
    """A stream has no gap and no repeat, and tells each end once."""
    ends: Counter[UUID] = Counter()
    for agent, frames in record.tables.frames.items():
        numbers = [frame.seq for frame in frames]
        if numbers != list(range(1, len(numbers) + 1)):
            yield f"agent {agent} has {numbers}"
        ends.update(frame.event_id for frame in frames if frame.kind == "event_complete" and frame.event_id)
    for event in record.tables.events.values():
        if ends[event.id] != (event.completed_at is not None):
            yield f"the end of event {event.id} is told {ends[event.id]} times"


JUDGES: Final[Sequence[Judge]] = (
    one_live_lease,
    fencing_grows,
    no_old_token,
    accepted_once,
    order_of_agent,
    every_cent_once,
    gate_once,
    stream_without_gap,
)


def nothing_overdue(record: Record) -> Iterator[str]:
    """Once faults have healed, what a dead runner held is taken back within a second after its term."""
    now = record.tables.now()
    for lease in record.tables.leases.values():
        if lease.ended_at is None and lease.expires_at + 1_000 < now - LOOK_MS:
            yield f"lease {lease.id} is over since {now - lease.expires_at} ms"


def nothing_forgotten(record: Record) -> Iterator[str]:
    """Once faults have healed, an agent with an event that is due has a lease within a term and a second."""
    tables, now = record.tables, record.tables.now()
    leased = {row.zombie_id for row in tables.leases.values() if row.ended_at is None}
    for agent, waiting in tables.waiting.items():
        if agent in leased or not waiting - tables.waits_at.keys():
            record.idle_since.pop(agent, None)
        elif record.idle_since.setdefault(agent, now) + TERM_AND_A_SECOND_MS < now:
            yield f"agent {agent} has {len(waiting)} events, and no lease since {record.idle_since[agent]}"


HEALED: Final[Sequence[Judge]] = (nothing_overdue, nothing_forgotten)
"""Those that ask whether all goes on; a while after the last fault."""


def hold(record: Record, *judges: Judge) -> None:
    """Raises ``Broken`` with the judge's name, its promise and what it saw."""
    for judge in judges:
        for seen in judge(record):
            raise Broken(f"{judge.__name__}: {judge.__doc__} Seen: {seen}")
