"""One live lease as the runner sees it: how much it has used, until when it is ours, and why it must end."""

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import trio

from sexton_runner.timing import Clock
from sexton_runner.wire import Lease


class Halt(enum.Enum):
    """Why a run is stopped from outside. The first reason stands."""

    LOST = "lost"  # Another runner may have it: nothing more is said about it.
    CANCELLED = "cancelled"
    BALANCE_EXHAUSTED = "balance_exhausted"
    BUDGET_EXCEEDED = "budget_exceeded"
    CEILING = "ceiling"
    PARKED = "parked"
    RELEASED = "released"


REFUSALS: dict[str, Halt] = {
    "UZ-RUN-010": Halt.CEILING,
    "UZ-RUN-012": Halt.BALANCE_EXHAUSTED,
    "UZ-ZMB-001": Halt.BUDGET_EXCEEDED,
}


def halt_for(error_code: str) -> Halt:
    """Say what a refused renewal means.

    A refusal that is not understood ends the run: that is the closed side.

    >>> halt_for("UZ-RUN-012"), halt_for("UZ-RUN-011")
    (<Halt.BALANCE_EXHAUSTED: 'balance_exhausted'>, <Halt.LOST: 'lost'>)
    """
    return REFUSALS.get(error_code, Halt.LOST)


@dataclass(slots=True)
class Usage:
    """Cumulative use of one lease. Time at a pending gate is not run time."""

    clock: Clock
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    changed: trio.Event = field(default_factory=trio.Event)
    """Set when the time begins to run or to stand."""
    _ran_s: float = 0.0
    _since: float | None = None
    _told_ms: int = 0

    def go(self) -> None:
        """Let the time run."""
        if self._since is None:
            self._since = self.clock()
            self.changed.set()

    def rest(self) -> None:
        """Let the time stand."""
        if self._since is not None:
            self._ran_s += self.clock() - self._since
            self._since = None
            self.changed.set()

    @property
    def resting(self) -> bool:
        """Tell whether the time stands."""
        return self._since is None

    @property
    def run_ms(self) -> int:
        """Run time so far, in ms; never goes back."""
        running = 0.0 if self._since is None else self.clock() - self._since
        self._told_ms = max(self._told_ms, int((self._ran_s + running) * 1000))
        return self._told_ms

    def adopt(
        self,
        run_ms: int,
        *,
        resting: bool,
        input_tokens: int,
        cached_input_tokens: int,
        output_tokens: int,
    ) -> None:
        """Take over what another process has counted up to this moment."""
        self.input_tokens = max(self.input_tokens, input_tokens)
        self.cached_input_tokens = max(self.cached_input_tokens, cached_input_tokens)
        self.output_tokens = max(self.output_tokens, output_tokens)
        self._ran_s, self._since = run_ms / 1000, None if resting else self.clock()

    def tokens(self) -> dict[str, int]:
        """Give the three counters under their wire names."""
        return {
            "input_tokens": self.input_tokens,
            "cached_input_tokens": self.cached_input_tokens,
            "output_tokens": self.output_tokens,
        }


class LiveLease:
    """A lease that a task of this runner works on.

    ``deadline`` is on our own clock, never later than the database's.
    """

    def __init__(self, lease: Lease, clock: Clock, term_s: float, reason: str = "") -> None:
        self.lease = lease
        self.usage = Usage(clock)
        self.deadline = clock() + term_s
        self.scope = trio.CancelScope()
        self.halted: Halt | None = None
        self.reason = reason
        self.begun = False
        self.account: Callable[[], dict[str, Any]] | None = None
        """Set by a run that can say at any time what it has done, for the report of one that is stopped."""

    def __repr__(self) -> str:
        return f"<LiveLease {self.lease.lease_id} {self.halted or 'running'}>"

    def halt(self, why: Halt, reason: str = "") -> None:
        """Stop the run; only the first call counts."""
        if self.halted is None:
            self.halted, self.reason = why, reason
            self.scope.cancel()

    def renewal(self) -> dict[str, int]:
        """Give the body of a renewal: cumulative counters."""
        return {**self.usage.tokens(), "run_ms": self.usage.run_ms}
