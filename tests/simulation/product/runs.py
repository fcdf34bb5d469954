"""What runners do at the moment, as judges and people see it from outside."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

import trio

from sexton_runner.lease import Usage
from sexton_runner.reports import Report
from tests.simulation.world.processes import Process


@dataclass
class Parkings:
    """Gates of runs that have waited long enough for an answer and are about to park."""

    to_people: trio.MemorySendChannel[UUID]
    at_people: trio.MemoryReceiveChannel[UUID]

    @classmethod
    def none_yet(cls) -> "Parkings":
        return cls(*trio.open_memory_channel[UUID](math.inf))


class Handed(NamedTuple):
    """What a run has begun with."""

    lease_id: UUID
    host: str
    """The machine of its runner."""
    instructions: str


class Told(NamedTuple):
    """Which rejections a run was told of, each with its reason."""

    lease_id: UUID
    reasons: Mapping[UUID, str]


class RefusedUnder(NamedTuple):
    """What was refused under a lease; times by the database's clock, in ms."""

    lease_id: UUID
    what: str
    """The last word of the path: ``renew``, ``gates``, ``activity`` and so on."""
    status: int
    code: str
    asked_ms: int
    answered_ms: int


class AskedGate(NamedTuple):
    """A gate that a run was given for what it asked, before anybody had answered."""

    gate_id: UUID
    lease_id: UUID


@dataclass
class Runs:
    """Kept by the runners of a simulation."""

    now_ms: Callable[[], int] = lambda: 0
    """The database's clock."""

    at_work: dict[object, tuple[UUID, Process]] = field(default_factory=dict)
    """Each run with its agent and its runner's process."""
    told_lost: list[tuple[UUID, str, int]] = field(default_factory=list)
    """Leases whose renewal was refused for good: the code, and when, by the database's clock in ms."""
    used: dict[UUID, Usage] = field(default_factory=dict)
    """Leases with what their runs have used, which grows while they go on."""
    reported: dict[UUID, Report] = field(default_factory=dict)
    """Leases with the newest report of each that its runner has tried to send."""
    handed: list[Handed] = field(default_factory=list)
    refused: list[RefusedUnder] = field(default_factory=list)
    asked_gates: dict[UUID, AskedGate] = field(default_factory=dict)
    """By gate: who was given it last while it was pending."""
    ask_for_more: bool = False
    """Whether runs ask for follow-ups."""
    follow_ups: dict[UUID, int] = field(default_factory=dict)
    """Follow-ups that runs were told they have, and for when; database's clock, ms."""
    propose: bool = False
    """Whether runs propose changes of their agents' files."""
    proposed: dict[UUID, Mapping[str, Any]] = field(default_factory=dict)
    """Leases with what their runs propose in their reports."""
    told: list[Told] = field(default_factory=list)
    """Runs that have begun since the judges looked."""
    parkings: Parkings = field(default_factory=Parkings.none_yet)

    def begin(self, now_ms: Callable[[], int], *, ask_for_more: bool, propose: bool) -> None:
        """Note what is known once there is a database."""
        self.now_ms, self.ask_for_more, self.propose = now_ms, ask_for_more, propose
