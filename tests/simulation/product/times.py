"""What judges of days and weeks go by: when each schedule has to fire, and when a server could work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from tests.simulation.product.kept_rows import KeptRows
from tests.simulation.product.schedule_moments import moments
from tests.simulation.product.slow_agents import Planned, SlowAgent

Firing = tuple[UUID, Planned, int]


class Due(NamedTuple):
    """What one schedule has to do in this life, in order."""

    agent: UUID
    of: SlowAgent
    planned: Planned
    moments: list[int]


@dataclass
class Times:
    """What judges of time look at, and what they have seen."""

    kept: KeptRows
    due: list[Due] = field(default_factory=list)
    fired: Counter[Firing] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    """Firings that should not have been."""
    able: list[int] = field(default_factory=list)
    """Looks at which a server could work; the database's clock, ms."""
    read: set[UUID] = field(default_factory=set)
    """Events whose schedules are counted."""
    settled: dict[tuple[UUID, Planned], int] = field(default_factory=dict)
    """How many of the moments of each are judged."""

    def plan(self, agents: Sequence[UUID], said: Sequence[SlowAgent], since_ms: int, until_ms: int) -> None:
        """Count the moments at which each schedule has to fire."""
        for agent, one in zip(agents, said, strict=True):
            for planned in one.planned:
                self.due.append(Due(agent, one, planned, moments(planned, since_ms, until_ms)))
