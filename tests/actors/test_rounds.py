"""An actor that works at intervals goes on, whatever happens in a round."""

from collections.abc import Sequence

import msgspec
import pytest
import trio
from trio.testing import MockClock

from sexton_actors.rounds import Round, RoundsActor
from sexton_actors.world import World
from sexton_engine import (
    ActorSpec,
    ActorSystem,
    Backoff,
    Context,
    Intensity,
    Message,
    Strategy,
    SupervisorSpec,
    open_system,
)
from sexton_storage.errors import StorageUnavailable
from tests.worlds.actors import ActorsWorld

EVERY_S, OFTEN_S, SOON_S = 10.0, 4.0, 0.5


class Water(msgspec.Struct, Message[None], frozen=True):
    """Begin the one round."""


class Weed(msgspec.Struct, Message[None], frozen=True):
    """Begin the other."""


class Gardener(RoundsActor):
    """Waters at once, weeds later; what it does comes from the test."""

    kind = "gardener"

    def __init__(self, context: Context, world: World, diary: list[str], troubles: list[Exception]) -> None:
        super().__init__(context, world)
        self.diary = diary
        self.troubles = troubles

    def rounds(self) -> Sequence[Round]:
        return Round(Water(), EVERY_S, self._water), Round(Weed(), OFTEN_S, self._weed, first_s=OFTEN_S)

    async def _water(self) -> float | None:
        self.diary.append(f"water {trio.current_time():g}")
        await trio.lowlevel.checkpoint()
        if self.troubles:
            raise self.troubles.pop(0)
        if "more" not in self.diary:
            return None
        self.diary.remove("more")
        return SOON_S

    async def _weed(self) -> None:
        self.diary.append(f"weed {trio.current_time():g}")


def spec(world: World, diary: list[str], troubles: list[Exception]) -> SupervisorSpec:
    return SupervisorSpec(
        name="garden",
        strategy=Strategy.ONE_FOR_ONE,
        intensity=Intensity(max_restarts=10, period_s=60.0),
        backoff=Backoff(first_s=0.05, factor=2.0, max_s=5.0, jitter=0.0),
        children=(
            ActorSpec(kind=Gardener.kind, start=lambda context: Gardener(context, world, diary, troubles)),
        ),
    )


async def _hours(world: World, seconds: float, diary: list[str], *troubles: Exception) -> ActorSystem:
    async with open_system(spec(world, diary, list(troubles))) as system:
        await trio.sleep(seconds)
    return system


async def test_each_round_comes_at_its_own_interval(world: ActorsWorld, autojump_clock: MockClock) -> None:
    diary: list[str] = []

    await _hours(world.actors_world, 21, diary)

    start = float(diary[0].split()[1])

    assert [line for line in diary if line.startswith("water")] == [
        f"water {start + after:g}" for after in (0, 10, 20)
    ]
    assert [line for line in diary if line.startswith("weed")] == [
        f"weed {start + after:g}" for after in (4, 8, 12, 16, 20)
    ]


async def test_a_round_that_found_more_comes_again_soon(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    diary = ["more"]

    await _hours(world.actors_world, 11, diary)

    waters = [float(line.split()[1]) for line in diary if line.startswith("water")]

    assert [at - waters[0] for at in waters] == pytest.approx([0, SOON_S, SOON_S + EVERY_S])


async def test_an_outage_in_a_round_does_not_end_the_rounds(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    diary: list[str] = []

    await _hours(world.actors_world, 21, diary, StorageUnavailable("away"), StorageUnavailable("away"))

    waters = [float(line.split()[1]) for line in diary if line.startswith("water")]

    assert [at - waters[0] for at in waters] == pytest.approx([0, EVERY_S, 2 * EVERY_S])


@pytest.mark.parametrize("crashes", [1, 2, 3])
async def test_a_crash_in_a_round_does_not_end_the_rounds(
    world: ActorsWorld, autojump_clock: MockClock, crashes: int
) -> None:
    diary: list[str] = []

    await _hours(world.actors_world, 40, diary, *[ValueError("a thorn")] * crashes)

    waters = [float(line.split()[1]) for line in diary if line.startswith("water")]

    assert len(waters) >= crashes + 3
    assert waters[-1] - waters[0] > 2 * EVERY_S
    assert any(line.startswith("weed") for line in diary)


async def test_a_round_can_be_asked_for(world: ActorsWorld, autojump_clock: MockClock) -> None:
    diary: list[str] = []
    async with open_system(spec(world.actors_world, diary, [])) as system:
        await trio.sleep(1)
        await system.ask(Gardener.kind, "", Weed())

    assert [line.split()[0] for line in diary] == ["water", "weed"]
