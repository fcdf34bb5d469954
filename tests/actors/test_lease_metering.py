"""Metering is exact arithmetic from cursors that never go back."""

from uuid import UUID

import msgspec
from hypothesis import given, strategies as st

from sexton_actors.lease.metering import Wait, advance, next_slice, out_of_range, sum_of, waited_ms
from sexton_actors.terms import COUNT_MAX
from sexton_actors.token_counts import Tokens, Usage
from sexton_storage.records.leases import Lease, LeaseStatus, ModelShare, Rates

GATE = UUID(int=1)
CURSORS = ("metered_at", "slice_seq", "input_tokens", "cached_input_tokens", "output_tokens", "run_ms")
MOVING = (*CURSORS, "cache_write_tokens")
TICKS = st.integers(0, 200)

rates = st.builds(Rates, *(st.integers(0, 20_000_000_000) for _ in range(5)))
usages = st.builds(
    Usage,
    st.integers(0, 2_000_000),
    st.integers(0, 2_000_000),
    st.integers(0, 2_000_000),
    st.none() | st.integers(0, 2_000),
    st.integers(0, 2_000_000),
)
tokens = st.builds(Tokens, *(st.integers(0, 2_000_000) for _ in range(4)))
shares = st.builds(
    ModelShare, st.just("p"), st.just("m"), st.booleans(), *(st.integers(0, 20_000_000_000) for _ in range(4))
)


@st.composite
def waits(draw: st.DrawFn) -> tuple[Wait, ...]:
    found = []
    for _ in range(draw(st.integers(0, 4))):
        since = draw(TICKS)
        until = draw(st.none() | st.integers(since, 250))
        found.append(Wait(GATE, since, until))
    return tuple(found)


def lease(billed_by: Rates) -> Lease:
    nobody = UUID(int=0)
    return Lease(
        id=nobody,
        event_id=nobody,
        zombie_id=nobody,
        workspace_id=nobody,
        tenant_id=nobody,
        runner_id=nobody,
        fencing_token=1,
        attempt=1,
        status=LeaseStatus.ACTIVE,
        version=1,
        granted_at=0,
        expires_at=30_000,
        ceiling_at=10**9,
        metered_at=0,
        rates=billed_by,
    )


@given(waits(), TICKS, TICKS)
def test_time_waited_is_the_number_of_milliseconds_within_any_wait(
    waited: tuple[Wait, ...], one: int, other: int
) -> None:
    since, now = sorted((one, other))
    naive = sum(
        any(w.since <= ms < (now if w.until is None else w.until) for w in waited) for ms in range(since, now)
    )

    assert waited_ms(waited, since, now) == naive


@given(rates, st.lists(st.tuples(TICKS, usages), max_size=12), waits())
def test_slices_bill_each_millisecond_and_token_once(
    billed_by: Rates, calls: list[tuple[int, Usage]], waited: tuple[Wait, ...]
) -> None:
    seen: tuple[int, ...] = (0, 0, 0, 0)
    held, now = lease(billed_by), 0
    total = [0, 0, 0, 0, 0]
    for place, (passed, usage) in enumerate(calls):
        now += passed
        billed = next_slice(held, usage, waited, now)
        moved = advance(held, billed, now)
        assert billed.seq == place + 1
        assert min(n for n in msgspec.structs.astuple(billed) if n is not None) >= 0
        assert billed.run_fee_nanos == billed.run_ms * billed_by.run_nanos_per_sec // 1000
        assert billed.token_cost_nanos == (
            billed.d_input_tokens * billed_by.input_nanos_per_mtok // 10**6
            + billed.d_cached_tokens * billed_by.cached_input_nanos_per_mtok // 10**6
            + billed.d_output_tokens * billed_by.output_nanos_per_mtok // 10**6
            + billed.d_cache_write_tokens * billed_by.cache_write_nanos_per_mtok // 10**6
        )
        for cursor in MOVING:
            assert getattr(moved, cursor) >= getattr(held, cursor), cursor
        seen = tuple(max(a, b) for a, b in zip(seen, _counts(usage), strict=True))
        total = [
            t + d
            for t, d in zip(
                total,
                (
                    billed.run_ms,
                    billed.d_input_tokens,
                    billed.d_cached_tokens,
                    billed.d_output_tokens,
                    billed.d_cache_write_tokens,
                ),
                strict=True,
            )
        ]
        held = moved
    assert total[1:] == list(seen), "what is billed is the highest count that was ever said"
    assert total[0] <= now - waited_ms(waited, 0, now)
    assert held.run_ms == total[0], "the cursor of time stands where the bill does"

    if all(usage.run_ms is None for _, usage in calls):
        assert total[0] == now - waited_ms(waited, 0, now), "every millisecond that nobody waited is billed"


def _counts(usage: Usage) -> tuple[int, ...]:
    return usage.input_tokens, usage.cached_input_tokens, usage.output_tokens, usage.cache_write_tokens


@given(st.lists(shares, min_size=2, max_size=4), st.lists(st.lists(tokens, max_size=4), max_size=8))
def test_each_model_of_a_run_is_billed_by_its_own_rates_to_the_nano(
    models: list[ModelShare], said: list[list[Tokens]]
) -> None:
    held, cost = msgspec.structs.replace(lease(Rates(0)), shares=tuple(models)), 0
    most = [Tokens()] * len(models)
    for counts in said:
        most = [highest(one, counts[place : place + 1]) for place, one in enumerate(most)]
        whole = sum_of(most)
        usage = Usage(
            whole.input_tokens,
            whole.cached_input_tokens,
            whole.output_tokens,
            None,
            whole.cache_write_tokens,
            tuple(most[1:]),
        )
        assert out_of_range(usage) is None
        billed = next_slice(held, usage, (), 0)
        cost += billed.token_cost_nanos
        held = advance(held, billed, 0)
        by_hand = [token_cost_of(model, one) for model, one in zip(models, most, strict=True)]
        assert held.shares is not None
        assert [sum_of([share]) for share in held.shares] == most, "nothing is counted for another model"
        assert sum_of([*held.shares]) == sum_of([own_counts(held)])
        assert sum(share.token_cost_nanos for share in held.shares) == cost
        # Each slice rounds down each kind of each model by itself, so that much less it may be.
        assert 0 <= sum(by_hand) - cost <= 4 * len(models) * held.slice_seq


def highest(one: Tokens, said: list[Tokens]) -> Tokens:
    pairs = [msgspec.structs.astuple(each) for each in (one, *said)]
    return Tokens(*(max(counts) for counts in zip(*pairs, strict=True)))


def own_counts(held: Lease) -> Tokens:
    return Tokens(held.input_tokens, held.cached_input_tokens, held.cache_write_tokens, held.output_tokens)


def token_cost_of(model: ModelShare, used: Tokens) -> int:
    return (
        used.input_tokens * model.input_nanos_per_mtok // 10**6
        + used.cached_input_tokens * model.cached_input_nanos_per_mtok // 10**6
        + used.cache_write_tokens * model.cache_write_nanos_per_mtok // 10**6
        + used.output_tokens * model.output_nanos_per_mtok // 10**6
    )


def test_models_that_used_more_together_than_the_run_are_refused() -> None:
    refused = out_of_range(Usage(5, 0, 0, fallbacks=(Tokens(3), Tokens(3))))

    assert refused is not None
    assert refused.detail == "/fallbacks: more input_tokens together than the whole run has."


@given(rates, usages, TICKS)
def test_a_clock_that_goes_back_bills_nothing(billed_by: Rates, usage: Usage, back: int) -> None:
    held = msgspec.structs.replace(lease(billed_by), metered_at=1000)
    billed = next_slice(held, usage, (), 1000 - back)

    assert (billed.run_ms, billed.run_fee_nanos) == (0, 0)
    assert advance(held, billed, 1000 - back).metered_at == 1000


@given(rates, st.lists(st.tuples(TICKS, st.integers(0, 10**9)), min_size=1, max_size=12))
def test_time_said_too_much_once_is_billed_no_later_than_it_passes(
    billed_by: Rates, calls: list[tuple[int, int]]
) -> None:
    held, now = lease(billed_by), 0
    for passed, too_much in calls:
        now += passed
        usage = Usage(0, 0, 0, now + too_much)
        held = advance(held, next_slice(held, usage, (), now), now)
    # From here on it says the truth, and is billed for all of it.
    assert held.run_ms == now

    billed = next_slice(held, Usage(0, 0, 0, now + 7), (), now + 7)
    assert billed.run_ms == 7


@given(st.integers(-5, COUNT_MAX + 5), st.integers(0, 4))
def test_only_counts_in_range_are_billed(count: int, place: int) -> None:
    a, b, c, d, e = (count if at == place else 0 for at in range(5))
    refused = out_of_range(Usage(a, b, c, d, e)) is not None

    assert refused == (not 0 <= count <= COUNT_MAX)
