"""Trials of versions as pure decisions: how they begin and end, who is on which side, what a guard says."""

from collections import Counter
from uuid import UUID

from hypothesis import given, settings, strategies as st
from msgspec.structs import replace

from sexton_actors.canaries.guard import Promote, Withdraw, judge
from sexton_actors.canaries.record import Canary, CanaryStatus, Guard, canary_of, canary_on_trial, kept_as
from sexton_actors.canaries.sides import side_of
from sexton_actors.canaries.transitions import Ending, end
from sexton_actors.refusal import Refusal
from sexton_storage.records.canaries import Tallies, Tally
from tests.thorough import examples

TRIAL = UUID(int=5)
CANARY = Canary(
    id=TRIAL,
    config_version_id=UUID(int=6),
    version=2,
    base_version=1,
    share=30,
    guard=Guard(min_runs=3, max_failure_percent=20, max_cost_nanos=10),
    promote_after=4,
    status=CanaryStatus.ON_TRIAL,
    started_at=1,
    started_by="user:1",
)


@st.composite
def tallies(draw: st.DrawFn) -> Tally:
    runs = draw(st.integers(0, 60))
    return Tally(
        runs=runs,
        failed=draw(st.integers(0, runs)),
        charged_nanos=draw(st.integers(0, 2_000)),
        scored=runs,
        score_sum=runs * draw(st.integers(0, 100)) / 100,
    )


OPTIONAL_PERCENT = st.none() | st.integers(0, 100)
GUARDS = st.builds(
    Guard,
    min_runs=st.integers(1, 30),
    max_failure_percent=OPTIONAL_PERCENT,
    failure_margin_percent=OPTIONAL_PERCENT,
    max_cost_nanos=st.none() | st.integers(0, 100),
    cost_margin_percent=OPTIONAL_PERCENT,
    min_score=st.none() | st.floats(0, 1),
    score_margin=st.none() | st.floats(0, 1),
)


@settings(max_examples=examples(200))
@given(GUARDS, st.none() | st.integers(1, 60), tallies(), tallies())
def test_a_guard_judges_nothing_early_and_promotes_nothing_that_is_worse(
    guard: Guard, promote_after: int | None, candidate: Tally, stable: Tally
) -> None:
    verdict = judge(guard, promote_after, Tallies(candidate, stable))
    without = judge(Guard(min_runs=guard.min_runs), promote_after, Tallies(candidate, stable))

    assert candidate.runs >= guard.min_runs or verdict is None
    assert not isinstance(verdict, Promote) or candidate.runs - candidate.failed >= (promote_after or 0)
    assert not isinstance(verdict, Withdraw) or verdict.why in {"failures", "cost", "score"}
    assert not isinstance(verdict, Promote) or verdict == without
    assert not isinstance(without, Withdraw), "without bounds nothing is worse"


@settings(max_examples=examples(200))
@given(GUARDS, tallies(), tallies())
def test_one_more_failure_never_saves_a_candidate(guard: Guard, candidate: Tally, stable: Tally) -> None:
    only_failures = replace(
        guard, max_cost_nanos=None, cost_margin_percent=None, min_score=None, score_margin=None
    )
    worse = replace(candidate, runs=candidate.runs + 1, failed=candidate.failed + 1)
    before = judge(only_failures, None, Tallies(candidate, stable))
    after = judge(only_failures, None, Tallies(worse, stable))

    assert before is None or after is not None


def test_a_share_is_what_was_asked_for_and_a_key_keeps_its_side() -> None:
    keys = [str(number).encode() for number in range(20_000)]
    sides = [side_of(CANARY, key).asked_version for key in keys]
    counts = Counter(sides)
    smaller = {key for key in keys if side_of(replace(CANARY, share=1), key).asked_version}
    larger = {key for key in keys if side_of(replace(CANARY, share=60), key).asked_version}

    assert sides == [side_of(CANARY, key).asked_version for key in keys]
    assert set(counts) == {2, None}
    assert abs(counts[2] / len(keys) - 0.30) < 0.02
    assert smaller <= larger


def test_what_is_over_stays_as_it_ended() -> None:
    tallied = Tallies(Tally(5, 1, 10, 5, 4.5), Tally(9))
    over = end(CANARY, Ending(CanaryStatus.WITHDRAWN, "user:2", "person", "slow"), tallied, 9)
    assert isinstance(over, Canary)

    again = end(over, Ending(CanaryStatus.PROMOTED, "user:3", "person"), tallied, 10)
    never = end(None, Ending(CanaryStatus.PROMOTED, "user:3", "person"), None, 10)
    kept = kept_as(over)

    assert (over.status, over.ended_by, over.ended_at, over.tallies) == ("withdrawn", "user:2", 9, tallied)
    assert isinstance(again, Refusal)
    assert again.facts == {"current_state": "withdrawn"}
    assert isinstance(never, Refusal)
    assert canary_of(kept) == over
    assert canary_on_trial(kept) is None
    assert canary_on_trial(kept_as(CANARY)) == CANARY
