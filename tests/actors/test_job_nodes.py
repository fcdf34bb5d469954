"""Bulk jobs over deaths and nodes, on PostgreSQL: each event is replayed once, and counted once."""

from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from uuid import UUID

import pytest
import trio
from msgspec.structs import replace

from sexton_actors.jobs import actor, transitions
from sexton_actors.jobs.pages import do_page
from sexton_actors.protocol.jobs import Begin, Work
from sexton_actors.tree import tree
from sexton_actors.world import World
from sexton_engine import Context, open_system
from sexton_storage.postgres import open_postgres_storage
from sexton_storage.records.events import EventStatus
from sexton_storage.records.jobs import OVER, Job, JobKind
from sexton_storage.stores import Storage
from sexton_storage.writes import EventEnd
from tests.actors.test_cron_nodes import install, world_over
from tests.patience import PATIENCE_S
from tests.worlds.storage import StorageWorld, new_id

NODES, EVENTS, PAGE = 3, 10, 4


async def test_a_death_between_the_events_and_their_count_repeats_none(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transitions, "PAGE_EVENTS", PAGE)
    async with AsyncExitStack() as stack:
        storages = [
            await stack.enter_async_context(open_postgres_storage(postgres_dsn)) for _ in range(NODES)
        ]
        storage = storages[0]
        world = await StorageWorld(storage).found()
        job_id = new_id()
        async with open_system(tree(world_over(storage, 9))) as first:
            agent_id = await install(first, world.tenant_id, world.workspace_id, "again")
            agent = await storage.zombies.load(agent_id)
            assert agent is not None

            # By name: the agent's schedule may fire while this runs, and that event is not one of them.
            originals: list[UUID] = []
            for _ in range(EVENTS):
                originals.append((await world.append(agent)).id)
                await world.end((await world.claim(agent)).lease, EventEnd(EventStatus.AGENT_ERROR))
            done_but_not_counted = trio.Event()

            async def die(context: Context, own: World, job: Job) -> Sequence[transitions.Outcome]:
                await do_page(context, own, job)
                done_but_not_counted.set()
                await trio.sleep_forever()
                raise AssertionError

            monkeypatch.setattr(actor, "do_page", die)
            begin = Begin(
                world.tenant_id, world.workspace_id, JobKind.REPLAY, "status:agent_error", "api:1", "k"
            )
            assert isinstance(await first.ask("job", job_id, begin), Job)

            with trio.fail_after(PATIENCE_S):
                await done_but_not_counted.wait()
            # Killed: nothing of it is tidied up, and its hold is still good.
            left = await found(storage, job_id)
            assert (len(left.page), left.done, left.held_until > world.now) == (PAGE, 0, True)

            monkeypatch.setattr(actor, "do_page", do_page)
            await storage.jobs.save(replace(left, version=left.version + 1, held_until=0))

        systems = [
            await stack.enter_async_context(open_system(tree(world_over(each, seed))))
            for seed, each in enumerate(storages)
        ]
        with trio.fail_after(PATIENCE_S):
            while (job := await found(storage, job_id)).status not in OVER:
                for system in systems:
                    system.tell("job", job_id, Work())
                await trio.sleep(0.01)
        assert (job.total, job.done, job.skipped, job.failed) == (EVENTS, EVENTS, 0, 0)

        kept = await storage.events.list(world.workspace_id, limit=99)
        replays = [event.resumes_event_id for event in kept if event.resumes_event_id is not None][::-1]
        assert Counter(replays) == Counter(originals)
        assert replays == originals


async def found(storage: Storage, job_id: UUID) -> Job:
    job = await storage.jobs.load(job_id)
    assert job is not None
    return job
