"""Open pages hear of rows that people and rounds change, each where it is shown."""

from collections.abc import Awaitable, Callable
from uuid import UUID

import trio
from msgspec.structs import replace

from sexton_storage.attribution import attributed
from sexton_storage.records.crons import ScheduleNote
from sexton_storage.records.frames import EVERYBODY, FramePlace
from tests.conformance.test_conformance_audit import entry_of, key_of
from tests.conformance.test_conformance_deliveries import one
from tests.conformance.test_conformance_failures import fail, put
from tests.conformance.test_conformance_jobs import job_of
from tests.patience import PATIENCE_S
from tests.worlds.storage import StorageWorld, new_id


class Watcher:
    """An open page of the world's workspace, and one of another tenant's."""

    def __init__(self, world: StorageWorld, after: FramePlace) -> None:
        self._frames = world.storage.frames
        self._after = after
        self._mine = (world.workspace_id, world.tenant_id, EVERYBODY)
        self._theirs = (new_id(), new_id(), EVERYBODY)

    async def hears(self) -> tuple[bool, bool]:
        """What each has heard since the last time."""
        after, upto = self._after, await self._passed()
        self._after = upto
        mine, theirs = [
            await self._frames.has_changed(scopes, after=after, upto=upto)
            for scopes in (self._mine, self._theirs)
        ]
        return mine, theirs

    async def _passed(self) -> FramePlace:
        """The place now; commits of other tests' sessions may be under way for a moment."""
        with trio.fail_after(PATIENCE_S):
            while (upto := await self._frames.workspace_head()).commit <= self._after.commit:
                await trio.sleep(0.01)
        return upto


async def test_pages_hear_of_changes_where_they_are_shown(world: StorageWorld) -> None:
    agent, store = await world.agent(), world.storage
    job, note = job_of(world), ScheduleNote(agent.id, "0 5 * * *", "UTC")
    await fail(world, agent, "it broke")
    unsorted = await store.failures.unsorted(limit=9)
    watcher = Watcher(world, await store.frames.workspace_head())

    async def person(action: str, workspace_id: UUID | None) -> None:
        with attributed(entry_of(world, action, workspace_id=workspace_id)):
            await store.api_keys.create(key_of(world, action))

    async def platform() -> None:
        with attributed(entry_of(world, "runner.change", log_id=EVERYBODY)):
            await store.api_keys.create(key_of(world, "platform"))

    changes: dict[str, Callable[[], Awaitable[object]]] = {
        "in the workspace": lambda: person("in.workspace", world.workspace_id),
        "in the tenant": lambda: person("in.tenant", None),
        "of a job": lambda: store.jobs.add(job, limit=5),
        "of a job again": lambda: store.jobs.save(replace(job, version=2, done=1)),
        "of a delivery": lambda: store.deliveries.keep([one(agent, world.now)], []),
        "of a group": lambda: store.failures.sort(put(unsorted)),
        "of a schedule": lambda: store.crons.note_missed(
            replace(note, missed=1, missed_from=1, missed_until=1, missed_why="x")
        ),
    }
    for what, change in changes.items():
        await change()
        assert await watcher.hears() == (True, False), what

    await platform()
    assert await watcher.hears() == (True, True)

    await world.append(agent)
    await world.claim(agent)
    assert await watcher.hears() == (False, False), "the hot path tells by frames alone"
