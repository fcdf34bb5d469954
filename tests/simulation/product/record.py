"""What judges look at, and what they have seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple
from uuid import UUID

from sexton_engine import ActorSystem
from sexton_storage.memory.tables import Tables
from sexton_storage.records.events import Event
from sexton_storage.records.follow_ups import FollowUpStatus
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.records.improvement import Proposal
from sexton_storage.records.leases import Lease
from tests.simulation.product.customers import parts_of
from tests.simulation.product.deliveries import delivery_in
from tests.simulation.product.people import Promises
from tests.simulation.product.runs import Runs
from tests.simulation.product.times import Times
from tests.simulation.world.processes import Process


class Broken(AssertionError):
    """A promise is broken."""


class Request(NamedTuple):
    """What an event asked when it was seen first: an erasure may take it away later."""

    customer: str
    named: str
    """Another customer whom it names."""
    job: str | None
    """The mark of the bulk job that made the event."""
    delivery: str | None
    """The delivery that made it."""
    was_erased: bool
    """It was seen too late."""


@dataclass
class Streaks:
    """Runs of each agent that were processed in a row, as the judges count them."""

    read: int = 0
    """How many leases have been looked at."""
    going_on: dict[UUID, list[UUID]] = field(default_factory=dict)
    """Agent to its leases that had not ended at the last look, in their order."""
    counted: Counter[UUID] = field(default_factory=Counter)
    """By agent."""


@dataclass
class RunTimes:
    """How long the runs of each event took, as the judges add it up."""

    read: int = 0
    """How many leases have been looked at."""
    going_on: list[UUID] = field(default_factory=list)
    """Leases that had not ended at the last look."""
    ran_ms: Counter[UUID] = field(default_factory=Counter)
    """By event."""
    seen: dict[UUID, Event] = field(default_factory=dict)
    """Events as they were when they were compared last."""


class Exhausted(NamedTuple):
    """A tenant with nothing left, as the judges saw it."""

    since: int | None
    credits: int
    """How many it had been granted by then."""


@dataclass
class FollowUpsSeen:
    """What judges have seen of follow-ups."""

    events: int = 0
    """How many of the events were looked at."""
    woken: dict[UUID, UUID] = field(default_factory=dict)
    """Follow-up to the event that it has made."""
    ended: dict[UUID, FollowUpStatus] = field(default_factory=dict)


@dataclass
class DeliveriesSeen:
    """What judges have seen of deliveries."""

    read: int = 0
    """How many of the events were looked at."""
    events: dict[tuple[UUID, str], UUID] = field(default_factory=dict)
    """Agent and delivery to the event that it has made."""


@dataclass
class ProposalsSeen:
    """What judges have seen of proposals."""

    read: int = 0
    """How many of them were looked at."""
    made: dict[UUID, UUID] = field(default_factory=dict)
    """Event to the proposal that its run has made."""
    rows: dict[UUID, Proposal] = field(default_factory=dict)
    applied: dict[UUID, UUID] = field(default_factory=dict)
    """Proposal to the version that it has become."""
    in_force: dict[UUID, int] = field(default_factory=dict)
    """Agent to the newest revision that a proposal has become, at the last look."""
    leases: int = 0
    """How many leases there were then."""
    told: dict[UUID, set[UUID]] = field(default_factory=dict)
    """Leases whose runs go on, with the rejections that they were told of."""
    heard: dict[UUID, int] = field(default_factory=dict)
    """Proposal to the token of the run that was told of its rejection and processed."""
    rejected: dict[UUID, dict[UUID, int]] = field(default_factory=dict)
    """By agent: proposals, with its newest token when they were first seen to be rejected."""


@dataclass
class Record:
    """All that judges look at, and what they have seen."""

    tables: Tables
    promises: Promises
    resolved: dict[UUID, GateStatus] = field(default_factory=dict)
    ended: dict[UUID, tuple[str, str]] = field(default_factory=dict)
    put_off: dict[UUID, tuple[int, int]] = field(default_factory=dict)
    """Events given back for later: until when, by the database's clock in ms, and by which attempt."""
    idle_since: dict[UUID, int] = field(default_factory=dict)
    """Agent with something to do and without a lease: since when; database's clock, ms."""
    systems: dict[Process, ActorSystem] = field(default_factory=dict)
    """The actors of each server that was started."""
    runs: Runs = field(default_factory=Runs)
    doubled: dict[UUID, int] = field(default_factory=dict)
    """Agents of which two runs are at work, and at how many looks in a row that was seen."""

    requests: dict[UUID, Request] = field(default_factory=dict)
    """By event; kept by ``read_requests``."""
    before: dict[UUID, int] = field(default_factory=dict)
    """Erasure to how many events had arrived before its last pass began, at least."""
    passes: dict[UUID, int] = field(default_factory=dict)
    """Erasure to its passes whose transcripts were looked at."""
    arrived: int = 0
    """How many events had arrived when the judges last looked for erasures."""

    as_reported: dict[UUID, Event] = field(default_factory=dict)
    """Leases with their events, as these were when they were compared with the reports."""
    streaks: Streaks = field(default_factory=Streaks)
    run_times: RunTimes = field(default_factory=RunTimes)

    first_credit: dict[UUID, int] = field(default_factory=dict)
    """What tenants began with that did not begin with what is usual."""
    exhausted: dict[UUID, Exhausted] = field(default_factory=dict)
    """By tenant, at the last look."""
    set_aside: set[UUID] = field(default_factory=set)
    """Events that have waited for credit."""
    leased: int = 0
    """How many leases there were at the last look."""
    settled_at: int | None = None
    """Since when all are known to be able to go on, after the last fault; None while things go wrong."""
    gates: dict[UUID, Gate] = field(default_factory=dict)
    """Gates that are resolved, as they were seen first; kept by ``resolved_gates_stay``."""

    follow_ups: FollowUpsSeen = field(default_factory=FollowUpsSeen)
    proposals: ProposalsSeen = field(default_factory=ProposalsSeen)

    deliveries: DeliveriesSeen = field(default_factory=DeliveriesSeen)
    priced: dict[UUID, int] = field(default_factory=dict)
    """Event to how many of its metering rows were held against the list of prices."""
    answered: set[UUID] = field(default_factory=set)
    """Gates before a first lease whose events were looked at once the gate was resolved."""

    late_ms: int = 0
    """By how much servers that look rarely may be late."""
    resting: set[UUID] = field(default_factory=set)
    """Agents that get no lease because their budget is spent."""
    times: Times | None = None
    """What judges of time look at, where a life is long enough for them."""

    def leases_by_agent(self) -> dict[UUID, list[Lease]]:
        found: dict[UUID, list[Lease]] = {}
        for lease in self.tables.leases.values():
            found.setdefault(lease.zombie_id, []).append(lease)
        return {agent: sorted(rows, key=lambda row: row.fencing_token) for agent, rows in found.items()}

    def read_requests(self) -> dict[UUID, Request]:
        """What each event asked, those included that have come since this was asked last."""
        for event in islice(self.tables.events.values(), len(self.requests), None):
            customer, named, rest = parts_of(event.request_json)
            job, delivery = rest.get("job"), delivery_in(rest)
            self.requests[event.id] = Request(customer, named, job, delivery, "erased" in rest)
        return self.requests


Judge = Callable[[Record], Iterator[str]]


def hold(record: Record, *judges: Judge) -> None:
    """Raises ``Broken`` with the judge's name, its promise and what it saw."""
    for judge in judges:
        for seen in judge(record):
            raise Broken(f"{judge.__name__}: {judge.__doc__} Seen: {seen}")
