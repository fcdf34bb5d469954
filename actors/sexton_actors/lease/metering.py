"""What a slice of a run costs: exact integers, from the lease's own cursors."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

import msgspec
from msgspec.structs import replace

from sexton_actors.refusal import Refusal
from sexton_actors.terms import COUNT_MAX
from sexton_actors.token_counts import Tokens
from sexton_storage.records.leases import Lease, ModelShare, Rates
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
    @property
    def cache_write_tokens(self) -> int: ...
    @property
    def fallbacks(self) -> Sequence[Tokens]:
        """What each model after the first has used of those counts; what is left is the first's."""
        ...


COUNTED = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens", "run_ms")


def out_of_range(usage: Counts) -> Refusal | None:
    """None when every count is one that can be billed.

    >>> from sexton_actors.token_counts import Usage
    >>> out_of_range(Usage(0, -1, 0)).detail
    '/cached_input_tokens: between 0 and 1000000000000.'
    """
    if (
        0 <= usage.input_tokens <= COUNT_MAX
        and 0 <= usage.cached_input_tokens <= COUNT_MAX
        and 0 <= usage.cache_write_tokens <= COUNT_MAX
        and 0 <= usage.output_tokens <= COUNT_MAX
        and (usage.run_ms is None or 0 <= usage.run_ms <= COUNT_MAX)
    ):
        return _of_fallbacks(usage) if usage.fallbacks else None
    wrong = next(name for name in COUNTED if not 0 <= (getattr(usage, name) or 0) <= COUNT_MAX)
    return Refusal("UZ-REQ-001", f"/{wrong}: between 0 and {COUNT_MAX}.")


def _of_fallbacks(usage: Counts) -> Refusal | None:
    rest = sum_of(usage.fallbacks)
    for name in Tokens.__struct_fields__:
        if getattr(rest, name) > getattr(usage, name):
            return Refusal("UZ-REQ-001", f"/fallbacks: more {name} together than the whole run has.")
    return None


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


def token_cost(
    d_input: int, d_cached: int, d_output: int, rates: Rates | ModelShare, d_write: int = 0
) -> int:
    """Nanos for the tokens: each kind floored by itself.

    >>> token_cost(999_999, 0, 1, Rates(0, input_nanos_per_mtok=3, output_nanos_per_mtok=1_000_000))
    3
    >>> token_cost(0, 0, 0, Rates(0, input_nanos_per_mtok=3, cache_write_nanos_per_mtok=4_000_000), 10)
    40
    """
    return (
        d_input * rates.input_nanos_per_mtok // TOKENS_PER_MTOK
        + d_cached * rates.cached_input_nanos_per_mtok // TOKENS_PER_MTOK
        + d_write * rates.cache_write_nanos_per_mtok // TOKENS_PER_MTOK
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
    if lease.shares is not None:
        return _slice_of_shares(lease, lease.shares, usage, elapsed)
    d_input = usage.input_tokens - lease.input_tokens
    d_cached = usage.cached_input_tokens - lease.cached_input_tokens
    d_write = usage.cache_write_tokens - lease.cache_write_tokens
    d_output = usage.output_tokens - lease.output_tokens
    if d_input < 0 or d_cached < 0 or d_output < 0 or d_write < 0:
        d_input, d_cached, d_output = max(0, d_input), max(0, d_cached), max(0, d_output)
        d_write = max(0, d_write)
    return Slice(
        lease.slice_seq + 1,
        d_input,
        d_cached,
        d_output,
        elapsed,
        run_fee(elapsed, lease.rates),
        token_cost(d_input, d_cached, d_output, lease.rates, d_write),
        d_write,
    )


def _slice_of_shares(lease: Lease, before: Sequence[ModelShare], usage: Counts, elapsed: int) -> Slice:
    """The same where several models were used: each by its own rates, the sums in the slice."""
    said = usage.fallbacks
    shares = [advanced(share, one) for share, one in zip(before[1:], said, strict=False)]
    shares += before[1 + len(shares) :]
    shares.insert(0, advanced(before[0], first_of(usage)))
    after = sum_of(shares)
    return Slice(
        lease.slice_seq + 1,
        after.input_tokens - lease.input_tokens,
        after.cached_input_tokens - lease.cached_input_tokens,
        after.output_tokens - lease.output_tokens,
        elapsed,
        run_fee(elapsed, lease.rates),
        sum(share.token_cost_nanos for share in shares) - sum(share.token_cost_nanos for share in before),
        after.cache_write_tokens - lease.cache_write_tokens,
        tuple(shares),
    )


def first_of(usage: Counts) -> Tokens:
    """What is left for the first model.

    >>> from sexton_actors.token_counts import Usage
    >>> first_of(Usage(10, 0, 7, fallbacks=(Tokens(4, 0, 0, 9),)))
    Tokens(input_tokens=6, cached_input_tokens=0, cache_write_tokens=0, output_tokens=0)
    """
    rest = sum_of(usage.fallbacks)
    return Tokens(
        max(0, usage.input_tokens - rest.input_tokens),
        max(0, usage.cached_input_tokens - rest.cached_input_tokens),
        max(0, usage.cache_write_tokens - rest.cache_write_tokens),
        max(0, usage.output_tokens - rest.output_tokens),
    )


def sum_of(counts: Sequence[Tokens | ModelShare]) -> Tokens:
    return Tokens(
        sum(one.input_tokens for one in counts),
        sum(one.cached_input_tokens for one in counts),
        sum(one.cache_write_tokens for one in counts),
        sum(one.output_tokens for one in counts),
    )


def fallback_counts(lease: Lease) -> tuple[Tokens, ...]:
    """What each model of a lease after the first has used, as far as it is billed."""
    return tuple(sum_of([share]) for share in (lease.shares or ())[1:])


def advanced(share: ModelShare, said: Tokens) -> ModelShare:
    """The share with its cursors at what was said, where that is more, and with what the difference costs.

    >>> share = ModelShare("p", "m", input_nanos_per_mtok=2_000_000, input_tokens=5, output_tokens=3)
    >>> after = advanced(share, Tokens(input_tokens=8, output_tokens=1))
    >>> after.input_tokens, after.output_tokens, after.token_cost_nanos
    (8, 3, 6)
    """
    d_input = max(0, said.input_tokens - share.input_tokens)
    d_cached = max(0, said.cached_input_tokens - share.cached_input_tokens)
    d_write = max(0, said.cache_write_tokens - share.cache_write_tokens)
    d_output = max(0, said.output_tokens - share.output_tokens)
    return replace(
        share,
        input_tokens=share.input_tokens + d_input,
        cached_input_tokens=share.cached_input_tokens + d_cached,
        cache_write_tokens=share.cache_write_tokens + d_write,
        output_tokens=share.output_tokens + d_output,
        token_cost_nanos=share.token_cost_nanos + token_cost(d_input, d_cached, d_output, share, d_write),
    )


def advance(
    lease: Lease, billed: Slice, now: int, *, version: int | None = None, expires_at: int | None = None
) -> Lease:
    """The lease with its cursors past ``billed``, and no further, however much more was said.

    ``version`` and ``expires_at`` are changed with them, so that one copy does; None leaves them.
    """
    # Spelled out: with ``**changes`` the same copy takes more than twice as long.
    return replace(
        lease,
        version=lease.version if version is None else version,
        expires_at=lease.expires_at if expires_at is None else expires_at,
        metered_at=max(lease.metered_at, now),
        slice_seq=billed.seq,
        input_tokens=lease.input_tokens + billed.d_input_tokens,
        cached_input_tokens=lease.cached_input_tokens + billed.d_cached_tokens,
        output_tokens=lease.output_tokens + billed.d_output_tokens,
        run_ms=lease.run_ms + billed.run_ms,
        cache_write_tokens=lease.cache_write_tokens + billed.d_cache_write_tokens,
        shares=billed.shares,
    )
