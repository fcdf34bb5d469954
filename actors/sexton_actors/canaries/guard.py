"""Whether a version on trial goes back, or is promoted, by what its runs have come to."""

import msgspec

from sexton_actors.amounts import dollars
from sexton_actors.canaries.record import Guard
from sexton_storage.records.canaries import Tallies, Tally

PERCENT = 100


class Withdraw(msgspec.Struct, frozen=True):
    """The candidate is worse than it may be."""

    why: str
    detail: str


class Promote(msgspec.Struct, frozen=True):
    """The candidate has had as many good runs as were asked for."""

    detail: str


Verdict = Withdraw | Promote


def judge(guard: Guard, promote_after: int | None, tallies: Tallies) -> Verdict | None:
    """Decide by counts that are exact; None: the trial goes on.

    Failures come before cost, and cost before the score; a candidate that is worse is never promoted.

    >>> failing = Tallies(Tally(10, 6), Tally(10, 1))
    >>> judge(Guard(max_failure_percent=50), None, failing)
    Withdraw(why='failures', detail='6 of 10 runs failed; at most 50 percent may.')
    >>> judge(Guard(max_failure_percent=60), None, failing), judge(Guard(min_runs=11), None, failing)
    (None, None)
    >>> judge(Guard(max_failure_percent=60), 4, failing)
    Promote(detail='4 runs were processed, as were asked for.')
    """
    candidate, stable = tallies.candidate, tallies.stable
    if candidate.runs >= guard.min_runs:
        beside = stable if stable.runs >= guard.min_runs else None
        if worse := _failures(guard, candidate, beside) or _cost(guard, candidate, beside):
            return worse
        if worse := _score(guard, candidate, beside):
            return worse
    processed = candidate.runs - candidate.failed
    if promote_after is not None and candidate.runs >= guard.min_runs and processed >= promote_after:
        return Promote(f"{processed} runs were processed, as were asked for.")
    return None


def _failures(guard: Guard, candidate: Tally, stable: Tally | None) -> Withdraw | None:
    """Compare without dividing, so that a bound is a bound.

    >>> _failures(Guard(failure_margin_percent=10), Tally(10, 3), Tally(10, 2)) is None
    True
    >>> _failures(Guard(failure_margin_percent=10), Tally(10, 4), Tally(10, 2)).detail
    '4 of 10 runs failed, and 2 of 10 of the stable version; at most 10 percentage points more may.'
    """
    told = f"{candidate.failed} of {candidate.runs} runs failed"
    most = guard.max_failure_percent
    if most is not None and candidate.failed * PERCENT > most * candidate.runs:
        return Withdraw("failures", f"{told}; at most {most} percent may.")
    margin = guard.failure_margin_percent
    if margin is None or stable is None:
        return None
    more = candidate.failed * stable.runs - stable.failed * candidate.runs
    if more * PERCENT <= margin * candidate.runs * stable.runs:
        return None
    beside = f"and {stable.failed} of {stable.runs} of the stable version"
    return Withdraw("failures", f"{told}, {beside}; at most {margin} percentage points more may.")


def _cost(guard: Guard, candidate: Tally, stable: Tally | None) -> Withdraw | None:
    """Compare what a run costs on average.

    >>> _cost(Guard(max_cost_nanos=5), Tally(2, 0, 10), None) is None
    True
    >>> _cost(Guard(max_cost_nanos=5), Tally(2, 0, 12), None).detail
    'A run costs $0.000000006 on average; at most $0.000000005 is allowed.'
    >>> _cost(Guard(cost_margin_percent=50), Tally(2, 0, 31_000_000), Tally(2, 0, 20_000_000)).detail
    'A run costs $0.0155 on average, and $0.01 under the stable version; at most 50 percent more is allowed.'
    """
    told = f"A run costs {dollars(candidate.charged_nanos // max(1, candidate.runs))} on average"
    most = guard.max_cost_nanos
    if most is not None and candidate.charged_nanos > most * candidate.runs:
        return Withdraw("cost", f"{told}; at most {dollars(most)} is allowed.")
    margin = guard.cost_margin_percent
    if margin is None or stable is None:
        return None
    allowed = stable.charged_nanos * (PERCENT + margin) * candidate.runs
    if candidate.charged_nanos * PERCENT * stable.runs <= allowed:
        return None
    beside = f"and {dollars(stable.charged_nanos // stable.runs)} under the stable version"
    return Withdraw("cost", f"{told}, {beside}; at most {margin} percent more is allowed.")


def _score(guard: Guard, candidate: Tally, stable: Tally | None) -> Withdraw | None:
    """Compare averages of scores; they are rounded to four decimals, as each score is.

    >>> _score(Guard(min_score=0.8), Tally(2, 0, 0, 2, 1.5), None).detail
    'The average score is 0.75; at least 0.8 is asked for.'
    >>> _score(Guard(score_margin=0.1), Tally(2, 0, 0, 2, 1.8), Tally(2, 0, 0, 2, 2.0)) is None
    True
    """
    if not candidate.scored:
        return None
    mean = mean_score(candidate)
    told = f"The average score is {mean:g}"
    if guard.min_score is not None and mean < guard.min_score:
        return Withdraw("score", f"{told}; at least {guard.min_score:g} is asked for.")
    if guard.score_margin is None or stable is None or not stable.scored:
        return None
    beside = mean_score(stable)
    if round(beside - mean, 4) <= guard.score_margin:
        return None
    allowed = f"at most {guard.score_margin:g} lower is allowed."
    return Withdraw("score", f"{told}, and {beside:g} under the stable version; {allowed}")


def mean_score(tally: Tally) -> float:
    """Give the average of the runs that have one.

    >>> mean_score(Tally(3, 0, 0, 2, 1.5)), mean_score(Tally())
    (0.75, 0.0)
    """
    return round(tally.score_sum / tally.scored, 4) if tally.scored else 0.0
