"""What a slice of a run costs: exact integers, from the lease's own cursors."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

import msgspec

from sexton_actors.refusal import Refusal
from sexton_actors.terms import COUNT_MAX
from sexton_storage.records.leases import Lease, Rates
from sexton_storage.records.metering import Slice

TOKENS_PER_MTOK = 1_000_000
MS_PER_SECOND = 1000


class Wait(msgspec.Struct, frozen=True):
    """Time a gate of this lease was pending; ``until`` None while it still is."""

    gate_id: UUID
    since: int
    until: int | None


class Counts(Protocol):
    """A runner's cumulative counts over the lease; ``run_ms`` None when it leaves the time to us."""

    @property
    def input_tokens(self) -> int: ...
    @property
    def cached_input_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...
    @property
    def run_ms(self) -> int | None: ...


class Usage(msgspec.Struct, frozen=True):
    """``Counts`` by themselves."""

    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    run_ms: int | None = None


COUNTED = ("input_tokens", "cached_input_tokens", "output_tokens", "run_ms")


def out_of_range(usage: Counts) -> Refusal | None:
    """None when every count is one that can be billed.

    >>> out_of_range(Usage(0, -1, 0)).detail
    '/cached_input_tokens: between 0 and 1000000000000.'
    """
    if (
        0 <= usage.input_tokens <= COUNT_MAX
        and 0 <= usage.cached_input_tokens <= COUNT_MAX
        and 0 <= usage.output_tokens <= COUNT_MAX
        and (usage.run_ms is None or 0 <= usage.run_ms <= COUNT_MAX)
    ):
        return None
    wrong = next(name for name in COUNTED if not 0 <= (getattr(usage, name) or 0) <= COUNT_MAX)
    return Refusal("UZ-REQ-001", f"/{wrong}: between 0 and {COUNT_MAX}.")


def waited_ms(waits: Sequence[Wait], since: int, now: int) -> int:
    """Milliseconds of ``[since, now]`` that lie within at least one wait, counted once where waits overlap.

    >>> g = UUID(int=1)
    >>> waited_ms([Wait(g, 10, 30), Wait(g, 20, 40), Wait(g, 90, None)], 0, 100)
    40
    >>> waited_ms([Wait(g, 10, 30)], 25, 28)
    3
    """
    total, covered = 0, since
    for wait in sorted(waits, key=lambda w: w.since):
        start = max(wait.since, covered)
        end = now if wait.until is None else min(wait.until, now)
        if end > start:
            total += end - start
            covered = end
    return total


def run_fee(run_ms: int, rates: Rates) -> int:
    """Nanos for the time, floored.

    >>> run_fee(1500, Rates(run_nanos_per_sec=100_000))
    150000
    """
    return run_ms * rates.run_nanos_per_sec // MS_PER_SECOND


def token_cost(d_input: int, d_cached: int, d_output: int, rates: Rates) -> int:
    """Nanos for the tokens: each kind floored by itself.

    >>> token_cost(999_999, 0, 1, Rates(0, input_nanos_per_mtok=3, output_nanos_per_mtok=1_000_000))
    3
    """
    return (
        d_input * rates.input_nanos_per_mtok // TOKENS_PER_MTOK
        + d_cached * rates.cached_input_nanos_per_mtok // TOKENS_PER_MTOK
        + d_output * rates.output_nanos_per_mtok // TOKENS_PER_MTOK
    )


def next_slice(lease: Lease, usage: Counts, waits: Sequence[Wait], now: int) -> Slice:
    """The slice from the lease's cursors to ``now``.

    Counts that go back bill nothing, for the cursor never goes back. Time with a gate pending is not billed.
    A runner that counts its own time is billed at most what it says, and at most what has passed.
    """
    # Each renewal comes here: a comparison costs a fifth of what ``max`` does.
    elapsed = now - lease.metered_at if now > lease.metered_at else 0
    if waits:
        elapsed -= waited_ms(waits, lease.metered_at, lease.metered_at + elapsed)
    if usage.run_ms is not None:
        elapsed = min(elapsed, max(0, usage.run_ms - lease.run_ms))
    d_input = usage.input_tokens - lease.input_tokens
    d_cached = usage.cached_input_tokens - lease.cached_input_tokens
    d_output = usage.output_tokens - lease.output_tokens
    if d_input < 0 or d_cached < 0 or d_output < 0:
        d_input, d_cached, d_output = max(0, d_input), max(0, d_cached), max(0, d_output)
    return Slice(
        lease.slice_seq + 1,
        d_input,
        d_cached,
        d_output,
        elapsed,
        run_fee(elapsed, lease.rates),
        token_cost(d_input, d_cached, d_output, lease.rates),
    )


def advance(lease: Lease, billed: Slice, now: int, **changes: int) -> Lease:
    """The lease with its cursors past ``billed``, and no further, however much more was said.

    ``changes`` are further fields, so that one copy does.
    """
    return msgspec.structs.replace(
        lease,
        metered_at=max(lease.metered_at, now),
        slice_seq=billed.seq,
        input_tokens=lease.input_tokens + billed.d_input_tokens,
        cached_input_tokens=lease.cached_input_tokens + billed.d_cached_tokens,
        output_tokens=lease.output_tokens + billed.d_output_tokens,
        run_ms=lease.run_ms + billed.run_ms,
        **changes,
    )
