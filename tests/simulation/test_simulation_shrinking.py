"""A seed that breaks a promise is cut down to what it takes, told, kept, and lived through again."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.house.survey import ROOT
from tests.simulation import regression
from tests.simulation.drill.faults import fault_named
from tests.simulation.drill.planting import planted
from tests.simulation.product.life import lasting
from tests.simulation.shrink import fewest, shrink
from tests.simulation.story import story_of

MOST_THAT_IT_TAKES = 3
MOST_LIVES = 60


def test_the_fewest_are_found_wherever_they_stand() -> None:
    for needed in ({0}, {7, 40, 63}, {62, 63}, set(range(0, 64, 9))):
        asked: list[int] = []

        def fails(some: Sequence[int], needed: set[int] = needed, asked: list[int] = asked) -> bool:
            asked.append(1)
            return needed <= set(some)

        assert set(fewest(range(64), fails)) == needed
        assert len(asked) < 64 * 3


def test_a_planted_fault_is_cut_down_told_and_kept(tmp_path: Path) -> None:
    seed, size, path = 0, lasting(2), tmp_path / "kept.json"

    with planted(fault_named("end-told-twice")):
        shrunk = shrink(seed, size, lives=MOST_LIVES)

    assert shrunk is not None

    kept = regression.keep(shrunk, seed, size, path, "end-told-twice")

    assert regression.read(path) == kept
    assert len(shrunk.deviations) <= MOST_THAT_IT_TAKES
    assert kept.judge == "stream_without_gap"
    assert any("ends lease" in line for line in kept.story)
    assert "stream_without_gap" in kept.story[-1]
    assert kept.live(with_fault=False) is None


@pytest.mark.parametrize("path", regression.all_kept(), ids=lambda path: path.stem)
def test_what_was_kept_is_noticed_with_its_fault_and_holds_without(path: Path) -> None:
    kept = regression.read(path)

    noticed = None if kept.planted is None else kept.live(with_fault=True)

    assert kept.live(with_fault=False) is None
    assert noticed is None or noticed.judge == kept.judge
    assert (noticed is None) == (kept.planted is None)


def test_the_story_in_the_documents_is_the_one_that_is_told() -> None:
    kept = regression.read(regression.FOLDER / "report-unfenced-2.json")
    page = (ROOT / "docs" / "explanation" / "what-is-proved.md").read_text(encoding="utf-8")

    failure = kept.live(with_fault=True)

    assert failure is not None
    assert story_of(failure, kept.deviation_list()) == kept.story
    assert "\n".join(kept.story) in page
