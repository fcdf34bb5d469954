"""What the benchmarks of size and endurance say of what they saw, and the times of an open loop."""

from typing import Any

import pytest

from bench import dispatch, fairness, harness, memory, pythons, soak
from bench.agents_by_hand import EVENT, LEASE, Agents
from bench.load import NOW, Place

MS = 10**6


def place(number: int, connections: int) -> Place:
    return Place(number, connections, 1_000, 0, 0, [])


def test_the_turns_of_all_connections_together_make_the_rate() -> None:
    due = sorted(place(number, 4).due_ns(turn, 1000) for number in range(4) for turn in range(3))
    assert due == [1_000 + n * MS for n in range(12)]


def test_without_a_rate_a_request_is_due_at_once() -> None:
    assert place(3, 4).due_ns(7, 0) == NOW


def test_a_bound_of_a_ratio_is_kept_at_the_bound_and_missed_without_one() -> None:
    def held(ratio: float | None) -> bool | None:
        against = None if ratio is None else harness.once(ratio)
        figure = harness.Figure("x", harness.once(9), "ms", "y", against, (harness.at_most_times(1.5),))
        return figure.met

    assert [held(ratio) for ratio in (1.5, 1.51, None)] == [True, False, False]


def test_a_size_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_HERD", "12")
    assert harness.size("HERD", 100) == 12

    monkeypatch.delenv("BENCH_HERD")
    assert harness.size("HERD", 100) == 100


def test_the_most_agents_are_held_against_the_fewest() -> None:
    samples = {
        f"{kind} {count}": [(1.0 + number) * scale for scale in (1, 2, 3)]
        for kind in ("idle", "ready")
        for number, count in enumerate(dispatch.COUNTS)
    }
    told = [figure.as_json() for figure in dispatch.figures(samples)]

    assert [figure["ratio"] for figure in told] == [None, 2.0, 3.0] * 2
    assert [figure["met"] for figure in told] == [None, None, False] * 2


@pytest.mark.parametrize(
    ("versions", "met"),
    [(["3.11.7", "3.13.0"], [None] * 4), (["3.11.7", "3.11.7"], [None, None, None, True])],
)
def test_another_release_has_a_budget_and_another_python_has_none(
    versions: list[str], met: list[bool | None]
) -> None:
    first, second = pythons.names_of(versions)
    samples = {load: {first: [40.0], second: [20.0]} for load in (pythons.SINGLE, pythons.BATCHES)}
    told = [figure.as_json() for figure in pythons.figures(samples)]

    assert [figure["ratio"] for figure in told] == [None, 0.5] * 2
    assert [figure["met"] for figure in told] == met
    assert len({figure["name"] for figure in told}) == 4


def test_the_warm_up_is_no_part_of_a_quiet_workspaces_wait() -> None:
    waits = {
        "alone": [[9000 * MS], [1 * MS], [3 * MS]],
        "flooded": [[9000 * MS], [8 * MS], [12 * MS]],
        "varied": [[9000 * MS], [4 * MS], [6 * MS]],
    }
    told = [figure.as_json() for figure in fairness.figures(waits, 2)]

    assert [(figure["value"], figure["ratio"]) for figure in told] == [
        (2.0, None),
        (10.0, 6.0),
        (5.0, 3.0),
    ] * 2
    assert [figure["met"] for figure in told] == [None, None, None, None, False, True]


def node(name: str, role: str, live: int, *children: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "role": role, "live": live, "children": children}


def test_awake_leases_are_counted_wherever_they_stand_in_the_tree() -> None:
    records = node("records", "supervisor", 2, node("lease", "family", 7), node("gate", "family", 5))
    assert memory.actors_of(node("sexton", "supervisor", 1, records), "lease") == 7


def test_a_renewal_is_late_when_it_is_refused_or_its_lease_had_ended() -> None:
    granted, refused = {"ok": True}, {"ok": False}

    assert soak.lateness([granted, granted], [100, 101], 99.0) == (0, 1.0)
    assert soak.lateness([granted, granted], [98, 101], 99.0) == (1, -1.0)
    assert soak.lateness([refused, granted], [100, 101], 99.0)[0] == 1
    assert soak.lateness([granted], [], 99.0) == (0, float(soak.TERM_MS))


def test_memory_that_grows_and_renewals_that_are_late_miss_their_budgets() -> None:
    notes = [(minute, (1 + minute) * MS, 29_000.0 - minute, minute + 1) for minute in (-1, 0, 1)]
    steady = {one.name: one.met for one in soak.figures(notes[:2], [100.0] * 10, 1)}
    assert steady["memory, last fifth"] is True

    told = {one.name: one for one in soak.figures(notes, [100.0] * 5 + [120.0] * 5, 1)}
    assert told["memory, last fifth"].met is False
    assert told["late renewals"].met is False
    assert told["p99, minute 2"].value.median == 2.0
    assert "p99, minute 0" not in told
    assert told["least time that a lease had left"].value.median == 28.999


def test_leases_that_were_put_in_are_known_by_their_numbers() -> None:
    agents = Agents("", "a", first="")
    [one, two] = agents.held(2, "token")

    assert (one.lease_id, two.event_id) == (agents.ids(LEASE, 2)[0], agents.ids(EVENT, 2)[1])
    assert two.lease_id == "a0000002-0000-7000-8000-000000000002"
