"""Counts what a run takes of the network, and says which bound it has reached."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

import trio

from sexton_runner.egress.policy import Bounds
from sexton_runner.egress.refusals import Refusal, Refused
from sexton_runner.egress.seen import Reason, Verdict

MAX_PACE_S = 10.0
"""A request whose turn would come later is refused instead of waiting."""
BURST_S = 2.0
"""The rate may be exceeded by what this time would allow."""
RAISE_IT = "The operator of the runner sets this bound"


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What the run has taken so far."""

    connections: int
    connections_total: int
    requests: int
    bytes_out: int
    bytes_in: int
    reached: Reason


class Meter:
    """Holds one run to its bounds."""

    def __init__(self, bounds: Bounds, clock: Callable[[], float] = trio.current_time) -> None:
        self.bounds = bounds
        self._clock = clock
        self._connections = self._connections_total = self._requests = 0
        self._bytes_out = self._bytes_in = 0
        self._next_request = -math.inf
        self._reached = Reason.NONE

    def __repr__(self) -> str:
        return f"<Meter {self.statistics()}>"

    def statistics(self) -> Taken:
        """Give the counts; ``reached`` is the bound that was reached last."""
        return Taken(
            connections=self._connections,
            connections_total=self._connections_total,
            requests=self._requests,
            bytes_out=self._bytes_out,
            bytes_in=self._bytes_in,
            reached=self._reached,
        )

    def open_connection(self) -> None:
        """Count a connection in; raises ``Refused``, and then it is not counted."""
        if self._connections_total >= self.bounds.connections_total:
            raise self._full(
                Reason.CONNECTIONS_TOTAL,
                f"the run has opened {self.bounds.connections_total} connections, which is all it may",
            )
        if self._connections >= self.bounds.connections:
            raise self._full(
                Reason.CONNECTIONS,
                f"the run has {self.bounds.connections} connections open, which is all it may have",
            )
        self._connections += 1
        self._connections_total += 1

    def close_connection(self) -> None:
        """Count a connection out."""
        self._connections -= 1

    def count_out(self, count: int) -> None:
        """Count bytes before they are sent; raises ``Refused``, and then they must not be."""
        if self._bytes_out + count > self.bounds.bytes_out:
            raise self._full(
                Reason.BYTES_OUT, f"the run would have sent more than {self.bounds.bytes_out} bytes"
            )
        self._bytes_out += count

    def count_in(self, count: int) -> None:
        """Count bytes that came, before they are passed on; raises ``Refused``."""
        if self._bytes_in + count > self.bounds.bytes_in:
            raise self._full(
                Reason.BYTES_IN, f"the run would have received more than {self.bounds.bytes_in} bytes"
            )
        self._bytes_in += count

    async def pace(self) -> None:
        """Wait for the turn of one more request; raises ``Refused`` when that would take too long."""
        now, rate = self._clock(), self.bounds.requests_per_s
        turn = max(self._next_request, now - BURST_S)
        if turn - now > MAX_PACE_S:
            raise self._full(Reason.RATE, f"the run makes more than {rate:g} requests a second")
        self._next_request = turn + 1 / rate
        self._requests += 1
        await trio.sleep(max(0.0, turn - now))

    def too_late(self, *, idle: bool) -> Refusal:
        """Say that a connection was cut for its time."""
        bounds = self.bounds
        if idle:
            why, reason = f"no byte moved on the connection for {bounds.idle_s:g} s", Reason.IDLE
        else:
            why, reason = f"the connection has lived for {bounds.life_s:g} s", Reason.LIFE
        self._reached = reason
        return Refusal(
            status=HTTPStatus.GATEWAY_TIMEOUT,
            reason=reason,
            why=why,
            advice="Open another one",
            verdict=Verdict.BOUND,
        )

    def _full(self, reason: Reason, why: str) -> Refused:
        self._reached = reason
        return Refused(
            Refusal(
                status=HTTPStatus.TOO_MANY_REQUESTS,
                reason=reason,
                why=why,
                advice=RAISE_IT,
                verdict=Verdict.BOUND,
            )
        )
