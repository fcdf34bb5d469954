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
from tests.actors.plant import Later, Plant, clock


async def test_a_lease_of_a_node_that_died_is_with_the_next_runner_within_a_second(
    plant: Plant, autojump_clock: MockClock
) -> None:
    await plant.deliver(await plant.install())
    dead, alive = await plant.enrol("r1"), await plant.enrol("r2")
    async with open_system(tree(plant.world)) as system:
        other = Plant(system, plant.storage, plant.world, plant.tenant_id, plant.workspace_id)
        lost = await other.grant(dead)
    async with trio.open_nursery() as nursery:
        await trio.sleep(20)
        taken = await Later(nursery, lambda: plant.grant(alive, 30)).value()
    assert taken.event.id == lost.event.id
    assert lost.lease.expires_at <= clock() <= lost.lease.expires_at + 1000
    assert plant.world.meters.reclaimed["expired"] == 1
    plant.everything_adds_up()


async def test_many_leases_that_expire_at_once_are_taken_back_page_by_page(
    plant: Plant, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd, page = 40, 7
    monkeypatch.setattr(reclaimer, "RECLAIM_PAGE", page)
    runner_id = await plant.enrol()
    async with open_system(tree(plant.world)) as system:
        other = Plant(system, plant.storage, plant.world, plant.tenant_id, plant.workspace_id)
        for n in range(crowd):
            await other.deliver(await other.install(f"doctor-{n}"))
            await other.grant(runner_id)
    looks: list[int] = []
    expired = plant.storage.leases.expired

    async def noted(*, limit: int) -> Sequence[UUID]:
        found = await expired(limit=limit)
        looks.append(len(found))
        return found

    monkeypatch.setattr(plant.storage.leases, "expired", noted)
    await trio.sleep(60)
    statuses = Counter(lease.status for lease in plant.storage.tables.leases.values())
    assert statuses == {LeaseStatus.RECLAIMED: crowd}
    assert {event.status for event in plant.storage.tables.events.values()} == {EventStatus.RECEIVED}
    assert max(looks) == page
    plant.everything_adds_up()


async def test_every_change_of_standing_is_remembered_with_who_made_it(
    plant: Plant, autojump_clock: MockClock
) -> None:
    await plant.deliver(await plant.install())
    runner_id = await plant.enrol()
    grant = await plant.grant(runner_id)
    await trio.sleep(1)
    await plant.system.ask("runner", runner_id, SetAdminState("draining", "user:ann"))
    await plant.system.ask("runner", runner_id, SetAdminState("draining", "user:ann"))
    await trio.sleep(1)
    await plant.report(grant)
    await trio.sleep(2)
    await plant.system.ask("runner", runner_id, SetAdminState("revoked", "user:bob"))
    history = await plant.storage.fleet.history(runner_id, limit=10)
    changes = [item.data for item in history if item.kind is HistoryKind.ADMIN_STATE]
    assert changes == [
        {"from": "drained", "to": "revoked", "by": "user:bob"},
        {"from": "draining", "to": "drained", "by": "system:drain"},
        {"from": "active", "to": "draining", "by": "user:ann"},
    ]
    assert plant.storage.tables.runners[runner_id].admin_state is AdminState.REVOKED
