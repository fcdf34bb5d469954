"""Metering is exact arithmetic from cursors that never go back."""

from uuid import UUID

import msgspec
from hypothesis import given, strategies as st

from sexton_actors.lease.metering import Usage, Wait, advance, next_slice, out_of_range, waited_ms
from sexton_actors.terms import COUNT_MAX
from sexton_storage.records.leases import Lease, LeaseStatus, Rates

GATE = UUID(int=1)
CURSORS = ("metered_at", "slice_seq", "input_tokens", "cached_input_tokens", "output_tokens", "run_ms")
TICKS = st.integers(0, 200)

rates = st.builds(Rates, *(st.integers(0, 20_000_000_000) for _ in range(4)))
usages = st.builds(
    Usage,
    st.integers(0, 2_000_000),
    st.integers(0, 2_000_000),
    st.integers(0, 2_000_000),
    st.none() | st.integers(0, 2_000),
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
    held, now, seen = lease(billed_by), 0, Usage(0, 0, 0)
    total = [0, 0, 0, 0]
    for place, (passed, usage) in enumerate(calls):
        now += passed
        billed = next_slice(held, usage, waited, now)
        moved = advance(held, billed, now)
        assert billed.seq == place + 1
        assert min(msgspec.structs.astuple(billed)) >= 0
        assert billed.run_fee_nanos == billed.run_ms * billed_by.run_nanos_per_sec // 1000
        assert billed.token_cost_nanos == (
            billed.d_input_tokens * billed_by.input_nanos_per_mtok // 10**6
            + billed.d_cached_tokens * billed_by.cached_input_nanos_per_mtok // 10**6
            + billed.d_output_tokens * billed_by.output_nanos_per_mtok // 10**6
        )
        for cursor in CURSORS:
            assert getattr(moved, cursor) >= getattr(held, cursor), cursor
        seen = Usage(*(max(a, b) for a, b in zip(_counts(seen), _counts(usage), strict=True)))
        total = [
            t + d
            for t, d in zip(
                total,
                (billed.run_ms, billed.d_input_tokens, billed.d_cached_tokens, billed.d_output_tokens),
                strict=True,
            )
        ]
        held = moved
    assert total[1:] == list(_counts(seen)), "what is billed is the highest count that was ever said"
    assert total[0] <= now - waited_ms(waited, 0, now)
    assert held.run_ms == total[0], "the cursor of time stands where the bill does"

    if all(usage.run_ms is None for _, usage in calls):
        assert total[0] == now - waited_ms(waited, 0, now), "every millisecond that nobody waited is billed"


def _counts(usage: Usage) -> tuple[int, int, int]:
    return usage.input_tokens, usage.cached_input_tokens, usage.output_tokens


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


@given(st.integers(-5, COUNT_MAX + 5), st.integers(0, 3))
def test_only_counts_in_range_are_billed(count: int, place: int) -> None:
    counts: list[int] = [0, 0, 0, 0]
    counts[place] = count
    refused = out_of_range(Usage(*counts)) is not None

    assert refused == (not 0 <= count <= COUNT_MAX)
