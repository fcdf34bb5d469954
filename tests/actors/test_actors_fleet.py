"""The fleet over nodes and in crowds: leases of a node that died, and many that expire at once."""

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

import pytest
import trio
from trio.testing import MockClock

from sexton_actors.periodic import reclaimer
from sexton_actors.protocol.runner import SetAdminState
from sexton_actors.tree import tree
from sexton_engine import open_system
from sexton_storage.records.events import EventStatus
from sexton_storage.records.fleet import HistoryKind
from sexton_storage.records.leases import LeaseStatus
from sexton_storage.records.runners import AdminState
from tests.worlds.actors import ActorsWorld, Later, clock


async def test_a_lease_of_a_node_that_died_is_with_the_next_runner_within_a_second(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    await world.deliver(await world.install())
    dead, alive = await world.enrol("r1"), await world.enrol("r2")
    async with open_system(tree(world.actors_world)) as system:
        other = ActorsWorld(system, world.storage, world.actors_world, world.tenant_id, world.workspace_id)
        lost = await other.grant(dead)
    async with trio.open_nursery() as nursery:
        await trio.sleep(20)
        taken = await Later(nursery, lambda: world.grant(alive, 30)).value()
    assert taken.event.id == lost.event.id
    assert lost.lease.expires_at <= clock() <= lost.lease.expires_at + 1000
    assert world.actors_world.meters.reclaimed["expired"] == 1

    world.everything_adds_up()


async def test_many_leases_that_expire_at_once_are_taken_back_page_by_page(
    world: ActorsWorld, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd, page = 40, 7
    monkeypatch.setattr(reclaimer, "RECLAIM_PAGE", page)
    runner_id = await world.enrol()
    async with open_system(tree(world.actors_world)) as system:
        other = ActorsWorld(system, world.storage, world.actors_world, world.tenant_id, world.workspace_id)
        for n in range(crowd):
            await other.deliver(await other.install(f"doctor-{n}"))
            await other.grant(runner_id)
    looks: list[int] = []
    expired = world.storage.leases.expired

    async def noted(*, limit: int) -> Sequence[UUID]:
        found = await expired(limit=limit)
        looks.append(len(found))
        return found

    monkeypatch.setattr(world.storage.leases, "expired", noted)
    await trio.sleep(60)
    statuses = Counter(lease.status for lease in world.storage.tables.leases.values())
    assert statuses == {LeaseStatus.RECLAIMED: crowd}
    assert {event.status for event in world.storage.tables.events.values()} == {EventStatus.RECEIVED}
    assert max(looks) == page

    world.everything_adds_up()


async def test_every_change_of_standing_is_remembered_with_who_made_it(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    await world.deliver(await world.install())
    runner_id = await world.enrol()
    grant = await world.grant(runner_id)
    await trio.sleep(1)
    await world.system.ask("runner", runner_id, SetAdminState("draining", "user:ann"))
    await world.system.ask("runner", runner_id, SetAdminState("draining", "user:ann"))
    await trio.sleep(1)
    await world.report(grant)
    await trio.sleep(2)
    await world.system.ask("runner", runner_id, SetAdminState("revoked", "user:bob"))
    history = await world.storage.fleet.history(runner_id, limit=10)
    changes = [item.data for item in history if item.kind is HistoryKind.ADMIN_STATE]

    assert changes == [
        {"from": "drained", "to": "revoked", "by": "user:bob"},
        {"from": "draining", "to": "drained", "by": "system:drain"},
        {"from": "active", "to": "draining", "by": "user:ann"},
    ]
    assert world.storage.tables.runners[runner_id].admin_state is AdminState.REVOKED
