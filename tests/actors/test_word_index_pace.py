"""The index of words goes behind the writes of others, and yet not far behind."""

from typing import Final, NamedTuple

import msgspec
import pytest
import trio
from trio.testing import MockClock

from sexton_storage.records.event_words import Indexed
from sexton_storage.statistics import JournalStatistics
from tests.worlds.actors import ActorsWorld

PAGE_S: Final = 0.1
"""What a page takes here."""
MINUTE_S: Final = 60.0


class Load(NamedTuple):
    """What a minute is like."""

    busy: float
    """The part of the time in which the journal commits."""
    behind_s: float
    """How old the news is that comes next."""


class Pages:
    """A backlog without end: each page takes its time, while the journal commits for a part of it."""

    def __init__(self, told: JournalStatistics, load: Load) -> None:
        self._told, self._load = told, load
        self.count = 0

    async def index(self, *, limit: int) -> Indexed:
        await trio.sleep(PAGE_S)
        self.count += 1
        return Indexed(limit, more=True, behind_ms=int(1000 * self._load.behind_s))

    def statistics(self) -> JournalStatistics:
        hot = msgspec.structs.replace(self._told.hot, seconds=self._load.busy * trio.current_time())
        return msgspec.structs.replace(self._told, hot=hot)


@pytest.mark.parametrize(
    ("load", "part"),
    [
        pytest.param(Load(busy=0.1, behind_s=1.0), 1 / 4, id="a quarter of the time, of a quiet server"),
        pytest.param(
            Load(busy=0.9, behind_s=1.0), 1 / 10, id="a tenth, while the journal commits without a pause"
        ),
        pytest.param(Load(busy=0.9, behind_s=90.0), 1 / 4, id="a quarter again, once it is a minute behind"),
    ],
)
async def test_the_index_takes(
    world: ActorsWorld,
    autojump_clock: MockClock,
    monkeypatch: pytest.MonkeyPatch,
    load: Load,
    part: float,
) -> None:
    pages = Pages(world.storage.journal.statistics(), load)
    monkeypatch.setattr(world.storage, "event_words", pages)
    monkeypatch.setattr(world.storage.journal, "statistics", pages.statistics)

    await trio.sleep(MINUTE_S)

    assert pages.count * PAGE_S / MINUTE_S == pytest.approx(part, rel=0.05)
