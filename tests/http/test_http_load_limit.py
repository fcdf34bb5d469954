"""How much ingress may be under way: the decision, the line in front of it, and the measure of the loop."""

from random import Random

import pytest

from sexton_http.gateway.load_limit import Bounds, Limit, Sample, bounds_of, decide, open_limit
from sexton_http.gateway.waiting_line import INTERVAL_S, TARGET_S, WaitingLine
from tests.worlds.simulated_load import WARM_S, SimulatedLoad, Slow, possible

MOST = 1024
LAG_S = 0.01
BOUNDS = bounds_of(LAG_S, patience=1.0, floor=4.0)
INTERVALS = 600
"""A minute."""


def served(limit: Limit, offered: float, capacity: float, bounds: Bounds = BOUNDS) -> list[Limit]:
    """The limits of a minute in which the lag grows with what is under way beyond what the server bears."""
    limits: list[Limit] = []
    for _ in range(INTERVALS):
        peak = min(limit.value, offered)
        limit = decide(limit, Sample(lag_s=LAG_S * peak / capacity, peak=round(peak)), bounds)
        limits.append(limit)
    return limits


@pytest.mark.parametrize("seed", range(20))
def test_the_limit_settles_at_what_the_server_bears_however_much_is_offered(seed: int) -> None:
    rng = Random(seed)
    capacity = rng.uniform(8, 400)
    offered = capacity * rng.uniform(2, 64)
    last = served(open_limit(MOST), offered, capacity)[INTERVALS // 2 :]

    assert min(limit.value for limit in last) >= 0.6 * capacity
    assert max(limit.value for limit in last) <= 1.4 * capacity


@pytest.mark.parametrize("seed", range(20))
def test_within_bounds_whatever_is_measured(seed: int) -> None:
    rng, limit = Random(seed), open_limit(MOST)
    for _ in range(INTERVALS):
        sample = Sample(
            lag_s=rng.expovariate(1 / LAG_S),
            journal_s=rng.choice((0.0, rng.uniform(0, 5))),
            batch_s=rng.uniform(0, 0.2),
            runner_s=rng.uniform(0, 0.3),
            peak=rng.randrange(MOST + 1),
            intervals=rng.choice((1, 1, 1, 3, 100)),
        )
        limit = decide(limit, sample, BOUNDS)

        assert BOUNDS.floor <= limit.value <= MOST


SIMULATED_S = 18.0
MACHINES: dict[str, tuple[Slow, float]] = {
    "fast": (lambda _: 1.0, 1.0),
    "slow": (lambda _: 2.0, 2.0),
    "slower": (lambda _: 3.0, 3.0),
    "slow before it is looked at": (lambda now: 1.0 if now < WARM_S / 2 else 2.5, 2.5),
}
"""Each with how slow it is while finished events are counted."""
LATE_S = 0.05
"""What a request may wait for the loop: health takes two or three turns, and has a tenth of a second."""


@pytest.mark.parametrize("machine", MACHINES)
def test_the_doors_lose_nothing_that_could_be_finished_on_a_slow_machine_either(machine: str) -> None:
    slow, then = MACHINES[machine]
    for offered in (60.0, 960.0):
        load = SimulatedLoad(offered, slow, BOUNDS)
        rate = load.run(SIMULATED_S)

        assert rate >= 0.9 * possible(offered, then), offered
        assert sum(load.lags_s[-100:]) / 100 < LATE_S, offered


def test_what_nobody_asked_for_is_never_taken_away() -> None:
    quiet = served(open_limit(MOST), offered=5, capacity=50)
    assert all(limit.is_open for limit in quiet)


def test_after_the_load_the_doors_are_open_again_within_five_seconds() -> None:
    limit = served(open_limit(MOST), offered=10_000, capacity=1)[-1]
    assert limit.value == BOUNDS.floor

    after = [limit := decide(limit, Sample(lag_s=LAG_S / 10), BOUNDS) for _ in range(round(5 / INTERVAL_S))]
    assert after[-1].value > 0.5 * MOST
    assert decide(Limit(4.0, MOST), Sample(intervals=60), BOUNDS).value > 0.5 * MOST


def test_people_are_held_back_later_than_webhooks() -> None:
    people = bounds_of(LAG_S, patience=3.0, floor=16.0)
    busy = Sample(lag_s=2 * LAG_S, peak=100)

    assert decide(open_limit(MOST), busy, BOUNDS).value < 100
    assert decide(open_limit(MOST), busy, people).is_open


def test_more_is_borne_while_runners_have_nothing_to_do() -> None:
    busy, hungry = (Sample(lag_s=2 * LAG_S, peak=100, hungry=hungry) for hungry in (False, True))

    assert decide(open_limit(MOST), busy, BOUNDS).value < 100
    assert decide(open_limit(MOST), hungry, BOUNDS).is_open


@pytest.mark.parametrize("batch_s", [0.0, 0.02, 0.08])
def test_a_slow_disk_alone_holds_nobody_back(batch_s: float) -> None:
    """A write waits for the batch before it and for its own, a report takes as long."""
    sample = Sample(journal_s=2 * batch_s, runner_s=3 * batch_s, batch_s=batch_s)
    assert decide(open_limit(MOST), sample, BOUNDS).is_open


def test_a_burst_is_served_and_a_line_that_never_empties_is_kept_short() -> None:
    line = WaitingLine[int](room=1000)
    for number in range(8):
        line.join("one", number, 0.0)
    burst = [line.take(0.01 * number) for number in range(9)]
    assert [who for who, _ in burst] == [*range(8), None]

    waited: list[float] = []
    came: dict[int, float] = {}
    late = 0
    # A hundred a second are served, and a thousand come.
    for step in range(1000):
        now = 1.0 + step / 1000
        came[step] = now
        line.join("one", step, now)
        if step % 10 == 9:
            who, sent_away = line.take(now)
            late += len(sent_away)
            assert who is not None, "somebody is always served"
            waited.append(now - came[who])
    settled = waited[len(waited) // 2 :]

    assert max(settled) <= TARGET_S + 1e-9
    assert max(waited) <= INTERVAL_S + 1e-9
    assert late > 500


def test_who_asks_often_does_not_keep_others_from_their_turn() -> None:
    line = WaitingLine[str](room=16)
    pushed_out = [line.join("loud", f"loud-{number}", 0.0) for number in range(32)]
    line.join("quiet", "quiet-0", 0.0)
    first = [line.take(0.0)[0] for _ in range(2)]

    assert first == ["loud-0", "quiet-0"]
    assert sum(who is not None for who in pushed_out) == 16


def test_whoever_leaves_is_not_called() -> None:
    line = WaitingLine[str](room=4)
    for who in ("a", "b"):
        line.join("one", who, 0.0)
    line.leave("one", "a")
    line.leave("nobody", "c")

    assert (len(line), list(line), line.take(0.0)) == (1, ["b"], ("b", []))
    assert repr(line) == "<WaitingLine 0/4, of 0>"
