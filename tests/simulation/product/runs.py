"""What runners do at the moment, as judges see it from outside."""

from dataclasses import dataclass, field
from uuid import UUID

from tests.simulation.world.processes import Process


@dataclass
class Runs:
    """Kept by the runners of a simulation."""

    at_work: dict[object, tuple[UUID, Process]] = field(default_factory=dict)
    """Each run with its agent and its runner's process."""
    told_lost: list[tuple[UUID, str, int]] = field(default_factory=list)
    """Leases whose renewal was refused for good: the code, and when, by the database's clock in ms."""
