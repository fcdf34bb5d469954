"""Follow-ups over restarts and nodes, on PostgreSQL: each becomes one event."""

from collections import Counter
from contextlib import AsyncExitStack

import trio

from sexton_actors.protocol.scheduler import Look
from sexton_actors.protocol.zombie import FollowUpDue
from sexton_actors.tree import tree
from sexton_engine import open_system
from sexton_storage.postgres import open_postgres_storage
from sexton_storage.records.follow_ups import FollowUp
from sexton_storage.records.leases import LeaseToken
from tests.actors.test_cron_nodes import install, world_over
from tests.patience import PATIENCE_S
from tests.worlds.storage import StorageWorld, new_id

NODES, EACH = 3, 5


async def test_what_came_due_while_no_server_was_up_comes_once_whoever_sees_it(postgres_dsn: str) -> None:
    async with AsyncExitStack() as stack:
        storages = [
            await stack.enter_async_context(open_postgres_storage(postgres_dsn)) for _ in range(NODES)
        ]
        storage = storages[0]
        world = await StorageWorld(storage).found()
        async with open_system(tree(world_over(storage, 9))) as first:
            agent_id = await install(first, world.tenant_id, world.workspace_id, "follower")
        agent = await storage.zombies.load(agent_id)
        assert agent is not None

        event = await world.append(agent)
        lease = (await world.claim(agent)).lease
        held, past = LeaseToken(lease.id, lease.fencing_token), world.now - 3_600_000
        asked = [FollowUp(new_id(), agent.id, event.id, str(n), "look", past, world.now) for n in range(EACH)]
        for follow_up in asked:
            assert await storage.follow_ups.keep(follow_up, held) == follow_up
        systems = [
            await stack.enter_async_context(open_system(tree(world_over(each, seed))))
            for seed, each in enumerate(storages)
        ]
        for system in systems:
            system.tell("scheduler", "", Look())
            for follow_up in asked:
                for _again in range(3):
                    system.tell("zombie", agent.id, FollowUpDue(follow_up.id))
        with trio.fail_after(PATIENCE_S):
            while await storage.follow_ups.next_at() is not None:
                await trio.sleep(0.01)
        for system in systems:
            system.tell("zombie", agent.id, FollowUpDue(asked[0].id))
        kept = await storage.events.list(world.workspace_id, limit=99, actor_glob="follow_up:*")
        made = Counter((e.actor, e.event_type, e.resumes_event_id) for e in kept)
        assert made == {(f"follow_up:{event.id}", "follow_up", event.id): EACH}
