"""What judges look at, and what they have seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from uuid import UUID

from sexton_engine import ActorSystem
from sexton_storage.memory.tables import Tables
from sexton_storage.records.gates import GateStatus
from sexton_storage.records.leases import Lease
from tests.simulation.product.people import Promises
from tests.simulation.product.runs import Runs
from tests.simulation.product.times import Times
from tests.simulation.world.processes import Process


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
    systems: dict[Process, ActorSystem] = field(default_factory=dict)
    """The actors of each server that was started."""
    runs: Runs = field(default_factory=Runs)
    doubled: dict[UUID, int] = field(default_factory=dict)
    """Agents of which two runs are at work, and at how many looks in a row that was seen."""

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


Judge = Callable[[Record], Iterator[str]]


def hold(record: Record, *judges: Judge) -> None:
    """Raises ``Broken`` with the judge's name, its promise and what it saw."""
    for judge in judges:
        for seen in judge(record):
            raise Broken(f"{judge.__name__}: {judge.__doc__} Seen: {seen}")
