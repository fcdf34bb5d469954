"""Trials of versions: which go on, and what came of their runs."""

from typing import Any
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.records.canaries import Tallies, Tally, Trial
from sexton_storage.records.events import Asked, EventStatus
from sexton_storage.records.zombies import Zombie
from sexton_storage.writes import EventEnd
from tests.worlds.storage import StorageWorld, new_id

DONE = EventEnd(EventStatus.PROCESSED)
FAILED = EventEnd(EventStatus.AGENT_ERROR, failure_label="agent_run")


def on_trial(agent: Zombie, trial_id: UUID, status: str = "on_trial") -> Zombie:
    return replace(agent, version=agent.version + 1, canary={"id": str(trial_id), "status": status})


async def test_trials_that_go_on_are_listed_by_agent(world: StorageWorld) -> None:
    agents = sorted([await world.agent() for _ in range(3)], key=lambda agent: agent.id)
    trials = [Trial(agent.id, new_id()) for agent in agents]
    for agent, trial in zip(agents, trials, strict=True):
        await world.storage.zombies.save(on_trial(agent, trial.trial_id), ())
    ended = on_trial(on_trial(agents[1], trials[1].trial_id), trials[1].trial_id, "withdrawn")
    await world.storage.zombies.save(ended, ())
    mine = {agent.id for agent in agents}
    listed = [t for t in await world.storage.zombies.trials(after=None, limit=500) if t.zombie_id in mine]
    behind = await world.storage.zombies.trials(after=agents[0].id, limit=500)
    loaded = await world.storage.zombies.load(agents[0].id)

    assert listed == [trials[0], trials[2]]
    assert [trial for trial in behind if trial.zombie_id in mine] == [trials[2]]
    assert loaded is not None
    assert loaded.canary == {"id": str(trials[0].trial_id), "status": "on_trial"}


async def test_each_side_counts_the_runs_of_its_own_version_that_ended(world: StorageWorld) -> None:
    agent, trial_id = await world.agent(), new_id()

    async def run(end: EventEnd, nanos: int = 0, *, asked: int | None, ran: int, **event: Any) -> None:
        await world.append(agent, asked_version=asked, trial_id=trial_id, **event)
        wanted = None if asked is None else Asked(asked, trial_id)
        lease = (await world.claim(agent, asked=wanted, ran_version=ran)).lease
        await world.end(lease, end, slice=world.slice_of(lease, nanos))

    await run(DONE, 100, asked=2, ran=2)
    await run(FAILED, 50, asked=2, ran=2)
    await run(DONE, 10, asked=2, ran=1)
    await run(EventEnd(EventStatus.CANCELLED), 10, asked=2, ran=2)
    await run(DONE, 7, asked=None, ran=1)
    await world.append(agent, asked_version=2, trial_id=trial_id)
    found = await world.storage.zombies.tallies(agent.id, trial_id)
    other = await world.storage.zombies.tallies(agent.id, new_id())
    candidate, stable = found.candidate, found.stable

    assert (candidate.runs, candidate.failed, candidate.charged_nanos, candidate.scored) == (2, 1, 150, 2)
    assert (stable.runs, stable.failed, stable.charged_nanos, stable.scored) == (1, 0, 7, 1)
    assert 0 < candidate.score_sum < 2
    assert other == Tallies(Tally(), Tally())
