"""What is told of a life, and summed up of many."""

from collections import Counter

from tests.simulation.__main__ import Line, Sums
from tests.simulation.product.life import Heard, lasting, live

SMALL = lasting(2)
SEEDS = 12
"""One of them has a request that nobody answers: most have."""


def _told(seed: int) -> tuple[str, list[str]]:
    heard = Heard(told=True)
    sha256 = live(seed, SMALL, heard=heard).sha256
    assert heard.tale is not None
    return sha256, [line.what for line in heard.tale.lines]


def test_to_tell_a_life_changes_nothing_in_it() -> None:
    untold = live(0, SMALL).sha256

    sha256, said = _told(0)

    assert sha256 == untold
    assert any("asks for work; learns: it has lease" in what for what in said)


def test_who_was_not_answered_is_told_so() -> None:
    tales = (_told(seed)[1] for seed in range(SEEDS))

    assert any("; hears no answer (" in what for said in tales for what in said)


def test_seeds_are_summed_up_with_their_faults_by_kind() -> None:
    sums = Sums()
    spent_s = 1800.0

    for seed, is_broken in ((1, False), (2, True)):
        counts, faults = Counter(events=10), Counter(kill=2, cut=seed)
        sums.add(Line(seed, "", is_broken, 3600.0, spent_s, counts, faults))

    first, second = sums.lines()

    assert first.startswith(
        "2 seeds, 1 broken, 2.0 simulated hours in 3600 s of processor time: 2 seeds and 2 "
    )
    assert second == "20 events; 7 faults: cut 3, kill 4"
