"""The picture below the table: each compared figure as a bar, with a mark where its budget lies."""

from typing import Any

from bench import harness, plot
from bench.harness import Figure, at_least_times, at_most

FIGURES = [
    Figure("asks", harness.once(800), "asks/s", "pykka", harness.once(4), (at_least_times(8),)),
    Figure("webhooks", harness.once(9), "ms", "alone", harness.once(0.5)),
    Figure("bytes", harness.once(1600), "bytes", "pykka", harness.once(0.1), (at_most(1536, "bytes"),)),
    Figure("pykka", harness.once(100), "asks/s"),
]


def run() -> list[dict[str, Any]]:
    return [harness.report("mailbox", {"cores": 2}, FIGURES)]


def test_what_has_a_rival_is_drawn_unless_its_budget_is_about_something_else() -> None:
    assert plot.bars(run()) == [
        ("mailbox: asks / pykka", 4, "≥ 8 x"),
        ("mailbox: webhooks / alone", 0.5, ""),
    ]


def test_a_bar_ends_at_its_ratio_and_the_mark_stands_at_the_budget() -> None:
    assert plot.draw(plot.bars(run())).splitlines() == [
        "mailbox: asks / pykka      █████████████████████████████      ┃      ·      ·  4 x (≥ 8 x)",
        "mailbox: webhooks / alone  ████████      ·      ·      ·      ·      ·      ·  0.5 x",
        "                           0.25   0.5    1      2      4      8      16     32",
    ]


def test_a_run_without_rivals_has_no_picture() -> None:
    assert plot.draw(plot.bars([harness.report("mailbox", {}, FIGURES[2:])])) == ""
