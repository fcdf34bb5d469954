"""Notes what comes to the addresses of webhooks, beside the answers: bounded, whoever sends however much."""

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

import msgspec

from sexton_storage.records.deliveries import HOUR_MS, DeliveryVerdict

ROWS_MAX: Final = 512
"""Deliveries that wait to be written."""
BYTES_MAX: Final = 8 * 1024 * 1024
"""Bytes of their bodies."""
AGENTS_MAX: Final = 4_096
"""Agents whose refusals are counted at once; of more, nothing is told until these are written."""


class Allowance:
    """Admits a number at once, and then one at each interval.

    >>> few = Allowance(burst=2, each_ms=100)
    >>> [few.admits(at) for at in (0, 0, 0, 100, 100)]
    [True, True, False, True, False]
    """

    __slots__ = ("_each_ms", "_full_at", "_span_ms")

    def __init__(self, burst: int, each_ms: int) -> None:
        self._each_ms = each_ms
        self._span_ms = burst * each_ms
        self._full_at = 0

    def __repr__(self) -> str:
        return f"<Allowance {self._full_at}>"

    def admits(self, now: int) -> bool:
        full_at = max(self._full_at, now) + self._each_ms
        if full_at - now > self._span_ms:
            return False
        self._full_at = full_at
        return True


class Arrival(msgspec.Struct, frozen=True, gc=False):
    """A delivery as it came, and what was answered."""

    zombie_id: UUID
    workspace_id: UUID | None
    """Only needed of what was refused, which is counted by it."""
    at: int
    segment: str | None
    multisig: bool
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes | None
    """None: it was not read, or is not to be kept."""
    size: int
    verdict: DeliveryVerdict
    code: str | None = None
    reason: str = ""
    detail: str = ""
    event_id: UUID | None = None


class Tally(msgspec.Struct):
    """Refusals of an agent in an hour that are not written yet."""

    workspace_id: UUID
    refused: int = 0
    unkept: int = 0
    last_at: int = 0
    last_code: str = ""
    last_reason: str = ""


class Noted(msgspec.Struct, frozen=True):
    """What is to be written."""

    arrivals: Sequence[Arrival]
    tallies: Mapping[tuple[UUID, int], Tally]
    """By agent and hour."""


class DeliveryLog:
    """One for a node. What it has noted and nobody has written yet is lost with the process.

    Anybody may send what is refused, so that has bounds of its own, for an agent and for all together: a
    flood takes neither memory nor the place of what others are sent. What is over them is counted.
    Accepted deliveries are events; beyond a few a second nothing more is kept of them.
    """

    def __init__(self) -> None:
        self._arrivals: list[Arrival] = []
        self._bytes = 0
        self._tallies: dict[tuple[UUID, int], Tally] = {}
        self._woken = Allowance(burst=50, each_ms=50)
        self._refused = Allowance(burst=200, each_ms=25)
        self._of_agents: dict[UUID, Allowance] = {}

    def __repr__(self) -> str:
        return f"<DeliveryLog, {len(self._arrivals)} to be written>"

    def note(self, arrival: Arrival) -> None:
        """Keep it to be written, if there is room."""
        if arrival.verdict is not DeliveryVerdict.REFUSED:
            if len(self._arrivals) < ROWS_MAX and self._woken.admits(arrival.at):
                self._keep(arrival)
            return
        kept = len(self._arrivals) < ROWS_MAX and self._may_keep(arrival)
        if kept:
            self._keep(arrival)
        self._count(arrival, kept=kept)

    def take(self) -> Noted:
        """Hand over what is to be written; there is room for as much again."""
        noted = Noted(self._arrivals, self._tallies)
        self._arrivals, self._tallies, self._bytes = [], {}, 0
        return noted

    def _keep(self, arrival: Arrival) -> None:
        size = len(arrival.body or b"")
        if self._bytes + size > BYTES_MAX:
            arrival, size = msgspec.structs.replace(arrival, body=None), 0
        self._bytes += size
        self._arrivals.append(arrival)

    def _may_keep(self, arrival: Arrival) -> bool:
        own = self._of_agents.get(arrival.zombie_id)
        if own is None:
            if len(self._of_agents) >= AGENTS_MAX:
                self._of_agents.clear()
            own = self._of_agents[arrival.zombie_id] = Allowance(burst=20, each_ms=500)
        return own.admits(arrival.at) and self._refused.admits(arrival.at)

    def _count(self, arrival: Arrival, *, kept: bool) -> None:
        key = (arrival.zombie_id, arrival.at // HOUR_MS)
        tally = self._tallies.get(key)
        if tally is None:
            if arrival.workspace_id is None or len(self._tallies) >= AGENTS_MAX:
                return
            tally = self._tallies[key] = Tally(arrival.workspace_id)
        tally.refused += 1
        tally.unkept += not kept
        tally.last_at, tally.last_code = arrival.at, arrival.code or ""
        tally.last_reason = arrival.reason
