"""Says no in time: how often one caller may ask."""

from collections.abc import Callable
from typing import Final, Protocol

import msgspec

BURST_S: Final = 2
"""A burst may be twice the rate: what two seconds would allow."""
MAX_BUCKETS: Final = 65_536
EPSILON: Final = 1e-6
"""Rounds 38.9999 of 40 up to 39."""


class Verdict(msgspec.Struct, frozen=True):
    """What a limiter says to one request."""

    allowed: bool
    burst: int
    remaining: int
    reset_s: int
    """Whole seconds until all of the burst is there again."""
    wait_s: int = 0
    """Whole seconds until the next request is allowed; 0 when this one was."""
    window_s: int = BURST_S
    """What the burst is counted over."""


class Quota(msgspec.Struct, frozen=True):
    """At most ``count`` within a window, all at once if need be."""

    count: int
    window_s: int


class Limiter(Protocol):
    """Injected, so that nodes may share one."""

    def admit(self, key: object, rate: int) -> Verdict:
        """One request of ``key``, which may make ``rate`` a second."""
        ...

    def spend(self, key: object, quota: Quota) -> Verdict:
        """Take one of what ``key`` may do within a window."""
        ...


def judge(now: float, empty_at: float, quota: Quota) -> tuple[Verdict, float]:
    """What one request is told whose bucket is empty again at that time; and when it is after the request.

    >>> verdict, after = judge(100.0, 0.0, Quota(4, 2))
    >>> (verdict.allowed, verdict.remaining, after), judge(100.0, 102.0, Quota(4, 2))[0].allowed
    ((True, 3, 100.5), False)
    """
    burst, window = quota.count, quota.window_s
    step = window / burst
    after = max(now, empty_at) + step
    ahead = after - now
    if ahead > window + EPSILON:
        refused = Verdict(
            allowed=False,
            burst=burst,
            remaining=0,
            reset_s=_ceil(ahead - step),
            wait_s=_ceil(ahead - window),
            window_s=window,
        )
        return refused, empty_at
    remaining = int((window - ahead) / step + EPSILON)
    admitted = Verdict(allowed=True, burst=burst, remaining=remaining, reset_s=_ceil(ahead), window_s=window)
    return admitted, after


class Gcra:
    """The generic cell rate algorithm: one number a caller, the moment at which its bucket is empty again."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._empty_at: dict[object, float] = {}

    def __repr__(self) -> str:
        return f"<Gcra {len(self._empty_at)} buckets>"

    def admit(self, key: object, rate: int) -> Verdict:
        return self.spend(key, Quota(rate * BURST_S, BURST_S))

    def spend(self, key: object, quota: Quota) -> Verdict:
        now = self._monotonic()
        verdict, empty_at = judge(now, self._empty_at.get(key, now), quota)
        if verdict.allowed:
            if len(self._empty_at) >= MAX_BUCKETS:
                self._forget(now)
            self._empty_at[key] = empty_at
        return verdict

    def _forget(self, now: float) -> None:
        """Drop buckets that are empty; when none is, all: a flood of callers must not grow without bound."""
        full = {key: at for key, at in self._empty_at.items() if at > now}
        self._empty_at = full if len(full) < MAX_BUCKETS else {}


def _ceil(seconds: float) -> int:
    return -int(-seconds // 1)
