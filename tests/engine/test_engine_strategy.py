"""What a supervisor decides, without running one."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from sexton_engine import ActorSpec, Backoff, Intensity, Restart, Strategy, SupervisorSpec
from sexton_engine.supervision.strategy import affected, delay, restarts, within
from tests.worlds.engine import EngineWorld, scripted, tree


@pytest.mark.parametrize(
    ("restart", "after_crash", "after_stop"),
    [(Restart.PERMANENT, True, True), (Restart.TRANSIENT, True, False), (Restart.TEMPORARY, False, False)],
)
def test_the_restart_type_says_when_a_child_is_started_again(
    restart: Restart,
    after_crash: bool,
    after_stop: bool,
) -> None:
    assert restarts(restart, crashed=True) is after_crash
    assert restarts(restart, crashed=False) is after_stop


@given(st.integers(1, 20), st.data())
def test_the_strategy_says_who_goes_down(children: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, children - 1))

    assert list(affected(Strategy.ONE_FOR_ONE, index, children)) == [index]
    assert list(affected(Strategy.REST_FOR_ONE, index, children)) == list(range(index, children))
    assert list(affected(Strategy.ONE_FOR_ALL, index, children)) == list(range(children))


@given(st.integers(0, 5), st.floats(0.5, 20), st.lists(st.floats(0, 10), max_size=40))
def test_no_period_ever_has_more_restarts_than_the_intensity_bears(
    most: int, period_s: float, gaps: list[float]
) -> None:
    intensity = Intensity(most, period_s)
    history: list[float] = []
    granted: list[float] = []
    now = 0.0
    for gap in gaps:
        now += gap
        counted = within(intensity, history, now)
        recent = [at for at in granted if at > now - period_s]
        assert (counted is None) == (len(recent) >= most)
        if counted is not None:
            history = counted
            granted.append(now)
            assert len(history) <= most


@given(st.integers(0, 10_000), st.floats(0, 1, exclude_max=True), st.floats(0, 1))
def test_a_back_off_grows_to_its_bound_and_strays_by_its_jitter(
    attempt: int, chance: float, jitter: float
) -> None:
    backoff = Backoff(first_s=0.5, factor=3, max_s=20, jitter=jitter)
    plain = delay(Backoff(first_s=0.5, factor=3, max_s=20, jitter=0), attempt, chance)

    assert plain == min(0.5 * 3.0 ** min(attempt, 50), 20)
    assert plain * (1 - jitter) - 1e-9 <= delay(backoff, attempt, chance) <= plain * (1 + jitter) + 1e-9


def test_a_tree_that_makes_no_sense_cannot_be_written_down() -> None:
    world = EngineWorld()
    with pytest.raises(ValueError, match="two children"):
        tree(scripted(world), scripted(world))
    with pytest.raises(ValueError, match="not an intensity"):
        Intensity(-1, 5)
    with pytest.raises(ValueError, match="not an intensity"):
        Intensity(1, 0)
    with pytest.raises(ValueError, match="not a back-off"):
        Backoff(first_s=5, max_s=1)
    with pytest.raises(ValueError, match="not a back-off"):
        Backoff(jitter=2)


def test_a_spec_is_named_by_its_kind() -> None:
    spec = SupervisorSpec("top", Strategy.ONE_FOR_ALL, (scripted(EngineWorld(), "one"),))

    assert [child.name for child in spec.children] == ["one"]
    assert isinstance(spec.children[0], ActorSpec)
