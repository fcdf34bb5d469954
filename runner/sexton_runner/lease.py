"""One live lease as the runner sees it: how much it has used, until when it is ours, and why it must end."""

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import trio

from sexton_runner.providers.base import Usage as TokenCounts
from sexton_runner.timing import LEASE_SAFETY_S, Clock
from sexton_runner.wire import Lease


class Halt(enum.Enum):
    """Why a run is stopped from outside. The first reason stands."""

    LOST = "lost"  # Another runner may have it: nothing more is said about it.
    CANCELLED = "cancelled"
    BALANCE_EXHAUSTED = "balance_exhausted"
    BUDGET_EXCEEDED = "budget_exceeded"
    CEILING = "ceiling"
    PARKED = "parked"
    GIVEN_BACK = "given_back"  # By the run itself, until a time: nothing more is said about it.
    RELEASED = "released"


CACHE_WRITES, FALLBACKS, RETRY_AFTER = "cache_write_tokens", "fallbacks", "retry_after_ms"
"""Additions to the interface, by the names under which a lease says that its control plane takes them."""
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
    cache_write_tokens: int = 0
    fallbacks: list[TokenCounts] = field(default_factory=list)
    """What each model after the first has used of those counts."""
    understood: frozenset[str] = frozenset()
    """Additions to the counters that the control plane takes."""
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
        counted: TokenCounts,
        fallbacks: Sequence[TokenCounts] = (),
    ) -> None:
        """Take over what another process has counted up to this moment."""
        self.count(counted, fallbacks)
        self._ran_s, self._since = run_ms / 1000, None if resting else self.clock()

    def count(self, counted: TokenCounts, fallbacks: Sequence[TokenCounts] = ()) -> None:
        """Take cumulative counts: of all models together, and of those after the first. None goes back."""
        most = self.counted().at_least(counted)
        self.input_tokens, self.cached_input_tokens = most.input_tokens, most.cached_input_tokens
        self.output_tokens, self.cache_write_tokens = most.output_tokens, most.cache_write_tokens
        self.fallbacks += [TokenCounts()] * (len(fallbacks) - len(self.fallbacks))
        for place, said in enumerate(fallbacks):
            self.fallbacks[place] = self.fallbacks[place].at_least(said)

    def counted(self) -> TokenCounts:
        """Give what all models together have used."""
        return TokenCounts(
            self.input_tokens, self.cached_input_tokens, self.output_tokens, self.cache_write_tokens
        )

    def tokens(self) -> dict[str, Any]:
        """Give the counters under their wire names, as this control plane takes them.

        >>> usage = Usage(lambda: 0.0)
        >>> usage.count(TokenCounts(5, 0, 2, 3), [TokenCounts(1, 0, 1, 0)])
        >>> usage.tokens()
        {'input_tokens': 8, 'cached_input_tokens': 0, 'output_tokens': 2}
        >>> usage.understood = frozenset({"cache_write_tokens"})
        >>> usage.tokens()
        {'input_tokens': 5, 'cached_input_tokens': 0, 'output_tokens': 2, 'cache_write_tokens': 3}
        """
        told = self.counted()
        if CACHE_WRITES not in self.understood:
            # Which bills them as what they are beside, input.
            read = told.input_tokens + told.cache_write_tokens
            told = TokenCounts(read, told.cached_input_tokens, told.output_tokens)
        spelt: dict[str, Any] = {
            "input_tokens": told.input_tokens,
            "cached_input_tokens": told.cached_input_tokens,
            "output_tokens": told.output_tokens,
        }
        if CACHE_WRITES in self.understood:
            spelt[CACHE_WRITES] = told.cache_write_tokens
        if FALLBACKS in self.understood and self.fallbacks:
            spelt[FALLBACKS] = [msgspec.structs.asdict(one) for one in self.fallbacks]
        return spelt


class LiveLease:
    """A lease that a task of this runner works on.

    ``deadline`` is on our own clock, never later than the database's. It counts from ``granted``, the
    earliest time on that clock at which the lease can have been granted; from now where a server is silent.
    """

    def __init__(
        self, lease: Lease, clock: Clock, term_s: float, reason: str = "", *, granted: float | None = None
    ) -> None:
        self.lease = lease
        self.usage = Usage(clock, understood=frozenset(lease.policy.understands))
        self.deadline = clock() + term_s if granted is None else granted + term_s - LEASE_SAFETY_S
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

    def renewal(self) -> dict[str, Any]:
        """Give the body of a renewal: cumulative counters."""
        return {**self.usage.tokens(), "run_ms": self.usage.run_ms}
