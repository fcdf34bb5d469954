"""What the figures of a benchmark are worth: samples, pairs, budgets and the table."""

import pytest

from bench import harness
from bench.harness import Budget, Figure, Spread, at_least, at_least_times, at_most
from bench.machine import describe, superuser
from bench.table import rows, table


def figure(value: float, ratio: float | None, *budgets: Budget) -> Figure:
    against = None if ratio is None else harness.once(ratio)
    return Figure("asks", harness.once(value), "asks/s", "pykka", against, budgets)


def test_a_spread_is_the_median_with_the_least_and_the_greatest() -> None:
    assert Spread.of([3, 1, 100]) == Spread(3, 1, 100)


def test_ratios_are_taken_round_by_round() -> None:
    # The machine was twice as slow in the second round; both felt it, so the ratio did not change.
    assert harness.ratios([300, 150, 303], [100, 50, 100]) == Spread(3.0, 3.0, 3.03)


def test_ratios_of_rounds_that_do_not_pair_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        harness.ratios([1, 2], [1])


async def test_rounds_alternate_and_every_other_goes_backwards() -> None:
    order: list[str] = []

    async def ours() -> float:
        order.append("ours")
        return float(len(order))

    async def theirs() -> float:
        order.append("theirs")
        return float(len(order))

    samples = await harness.alternate({"ours": ours, "theirs": theirs}, rounds=3, warm_up=1)

    assert order == ["ours", "theirs", "theirs", "ours", "ours", "theirs", "theirs", "ours"]
    assert samples == {"ours": [4, 5, 8], "theirs": [3, 6, 7]}


async def test_a_round_that_does_not_count_is_shorter_and_those_that_do_are_whole() -> None:
    asked: list[float] = []

    async def ours() -> float:
        asked.append(harness.lasting(4))
        return asked[-1]

    samples = await harness.alternate({"ours": ours}, rounds=2, warm_up=1)

    assert asked == [1, 4, 4]
    assert samples == {"ours": [4, 4]}
    assert harness.lasting(4) == 4


def test_a_budget_of_a_ratio_looks_at_the_ratio() -> None:
    assert figure(1, 3.0, at_least_times(3)).met is True
    assert figure(1_000_000, 2.99, at_least_times(3)).met is False


def test_a_budget_of_a_ratio_that_was_not_measured_is_missed() -> None:
    assert figure(1, None, at_least_times(3)).met is False


def test_budgets_of_a_value_hold_at_their_bound() -> None:
    assert figure(10, None, at_most(10, "ms")).met is True
    assert figure(10.1, None, at_most(10, "ms")).met is False
    assert figure(999, None, at_least(1000, "cycles/s")).met is False


def test_a_figure_with_two_budgets_has_to_hold_both() -> None:
    both = (at_least_times(0.5), at_least(1000, "cycles/s"))

    assert figure(1000, 0.5, *both).met is True
    assert figure(1000, 0.4, *both).met is False
    assert figure(900, 0.5, *both).met is False
    assert figure(900, 0.5, *both).as_json()["budget"] == "≥ 0.5 x and ≥ 1,000 cycles/s"


def test_a_figure_without_a_budget_is_neither_met_nor_missed() -> None:
    assert figure(1, None).met is None


def test_a_figure_says_no_more_digits_than_it_knows() -> None:
    told = Figure("asks", Spread(12345.678, 0.123456, 99999.5), "asks/s").as_json()
    assert (told["value"], told["spread"]) == (12346, [0.1235, 100000])


def test_the_table_sets_budgets_beside_figures_and_says_what_was_missed() -> None:
    result = harness.report(
        "mailbox",
        {},
        [figure(80_000, 8.5, at_least_times(8)), figure(70_000, 7.5, at_least_times(8)), figure(1, None)],
    )
    lines = [line.split() for line in table([result]).splitlines()]

    assert lines[2] == ["mailbox", "asks", "80,000", "asks/s", "8.5", "x", "pykka", "≥", "8", "x", "met"]
    assert lines[3][-1] == "MISSED"
    assert lines[4] == ["asks", "1", "asks/s", "pykka"]


def test_columns_of_the_table_stand_under_one_another() -> None:
    results = [
        harness.report("a", {}, [figure(1, 1.0)]),
        harness.report("longer", {}, [figure(123_456, 10.0)]),
    ]
    starts = {line.index("pykka") for line in table(results).splitlines() if "pykka" in line}

    assert len(starts) == 1


def test_figures_that_say_only_the_least_are_set_out_too() -> None:
    bare = {"bench": "x", "figures": [{"name": "n", "value": 0.5, "unit": "s"}]}
    assert rows([bare]) == [("x", "n", "0.5 s", "", "", "", "", "")]


def test_the_machine_is_described_without_its_name() -> None:
    told = describe()

    assert told.keys() == {"cpu", "cores", "kernel", "python"}
    assert told["cores"] >= 1


@pytest.mark.parametrize(
    ("url", "administrator"),
    [
        ("postgresql://sexton@/sexton?host=/run", "postgresql://sexton_superuser@/sexton?host=/run"),
        (
            "postgresql:///sexton?host=/run&user=sexton",
            "postgresql:///sexton?host=/run&user=sexton_superuser",
        ),
        ("postgresql:///sexton?user=sexton&port=1", "postgresql:///sexton?user=sexton_superuser&port=1"),
    ],
)
def test_an_administrator_of_the_embedded_database_is_named_in_every_form_of_its_address(
    url: str, administrator: str
) -> None:
    assert superuser(url) == administrator
