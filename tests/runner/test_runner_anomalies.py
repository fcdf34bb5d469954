"""A run that does the same too often is brought before the control plane, also where nobody is asked."""

from pathlib import Path
from typing import Any

import trio
from hypothesis import given, strategies as st

from sexton_runner.anomalies import MAX_ACTIONS, AnomalyRule, Occurrences
from tests.worlds.toolbox import open_bench

THRICE = {"anomaly_rules": [{"pattern": "same_action", "threshold_count": 3, "threshold_window_s": 3600}]}


async def test_the_third_call_of_the_same_kind_opens_a_gate_that_no_rule_asks_for(tmp_path: Path) -> None:
    async with open_bench(tmp_path, policy={"gates": THRICE}) as bench:
        assert not any(tool.parallel_safe for tool in bench.box.tools.values())

        for _ in range(2):
            await bench.call("shell", command="true")
        await bench.call("python", code="pass")
        assert bench.plane.gates == {}

        results: list[Any] = []

        async def call() -> None:
            results.append(await bench.box.call("shell", {"command": "echo > f"}, "third"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await bench.plane.until(lambda: bench.plane.gates)
            bench.plane.resolve(next(iter(bench.plane.gates)), "auto_killed", "", by="system:anomaly")
        assert not (bench.run.folder / "f").exists()
    (ask,) = bench.plane.of("open_gate")

    assert (ask.tool_name, ask.action_name, ask.gate_kind) == ("shell", "run", "anomaly")
    assert not results[0].ok
    assert "done too often" in results[0].content
    assert "nobody was asked, and the agent is paused" in results[0].content


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 20)), max_size=60),
    st.integers(1, 6),
    st.integers(1, 30),
)
def test_a_rule_is_broken_by_the_call_that_reaches_its_count_within_its_window(
    calls: list[tuple[str, float]], count: int, window_s: int
) -> None:
    now, earlier = 0.0, list[tuple[str, float]]()
    seen = Occurrences([AnomalyRule(count, window_s)], lambda: now)
    for action, pause in calls:
        now += pause
        earlier.append((action, now))
        recent = [at for name, at in earlier if name == action and at >= now - window_s]
        assert seen.count("tool", action) is (len(recent) >= count)


def test_what_is_remembered_is_bounded() -> None:
    seen = Occurrences([AnomalyRule(3, 10)], lambda: 0.0)
    for number in range(10 * MAX_ACTIONS):
        assert not seen.count("tool", str(number))

    assert repr(seen) == f"<Occurrences of {MAX_ACTIONS} actions>"
    assert not Occurrences([], lambda: 0.0).count("tool", "run")
