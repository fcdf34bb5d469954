"""Workspaces that stay: what counts, what an event starts from, forks, resets, and what is swept."""

import hashlib
from typing import Any
from uuid import UUID

from sexton_storage.records.blobs import Blob
from sexton_storage.records.events import EventStatus
from sexton_storage.records.kept_workspaces import SNAPSHOTS_KEPT, Snapshot, Started
from sexton_storage.records.leases import Lease, LeaseStatus, LeaseToken
from sexton_storage.records.zombies import Zombie
from sexton_storage.writes import EventEnd
from tests.worlds.storage import StorageWorld, new_id

DONE = EventEnd(EventStatus.PROCESSED)
BACK = EventEnd(EventStatus.RECEIVED)


async def lease_of(world: StorageWorld, agent: Zombie, **event: Any) -> Lease:
    """The lease of a new event."""
    await world.append(agent, **event)
    return (await world.claim(agent)).lease


async def start(world: StorageWorld, lease: Lease) -> Started:
    started = await world.storage.kept_workspaces.start(lease)
    assert started is not None
    return started


async def from_lease(world: StorageWorld, lease: Lease) -> UUID | None:
    """The lease whose snapshot this one starts from."""
    found = (await start(world, lease)).snapshot
    return None if found is None else found.lease_id


async def blob(world: StorageWorld, lease: Lease, content: bytes) -> UUID:
    blobs, digest = world.storage.blobs, hashlib.sha256(content).digest()
    made = await blobs.open(
        new_id(), lease.workspace_id, lease.id, sha256=digest, size=len(content), quota=None
    )
    assert isinstance(made, Blob)
    await blobs.append(made.id, 0, content)
    await blobs.settle(made.id, intact=True)
    return made.id


async def leave(world: StorageWorld, lease: Lease, content: bytes = b"tar", **held: Any) -> Snapshot | None:
    token = LeaseToken(lease.id, held.get("token", lease.fencing_token))
    of = held.get("of", lease)
    return await world.storage.kept_workspaces.keep(lease, token, await blob(world, of, content), world.now)


async def run(world: StorageWorld, agent: Zombie, **event: Any) -> Lease:
    """A whole run that leaves something."""
    lease = await lease_of(world, agent, **event)
    await start(world, lease)
    assert await leave(world, lease) is not None
    await world.end(lease, DONE)
    return lease


async def continued(world: StorageWorld, agent: Zombie, lease: Lease) -> Lease:
    """The lease of what goes on from the end of another."""
    event = world.event_of(agent, resumes_event_id=lease.event_id, checkpoint={"note": "go on"})
    await world.end(lease, DONE, continuation=event)
    return (await world.claim(agent)).lease


async def test_a_snapshot_counts_with_the_report_of_its_lease_and_not_before(world: StorageWorld) -> None:
    agent, newest = await world.agent(), world.storage.kept_workspaces.newest
    lease = await lease_of(world, agent)
    assert await leave(world, lease) is None, "it has not started"
    assert await from_lease(world, lease) is None

    assert await leave(world, lease, token=lease.fencing_token + 1) is None
    assert await leave(world, lease, of=await world.lease()) is None, "the content is another's"

    first = await leave(world, lease, b"first")
    kept = await leave(world, lease, b"second")
    assert first is not None
    assert kept is not None
    assert await newest(agent.id) is None

    await world.end(lease, DONE)
    assert await newest(agent.id) == kept

    replaced = await world.storage.blobs.load(first.blob_id)
    assert replaced is not None
    assert replaced.owners == 0
    assert await leave(world, lease) is None
    assert await from_lease(world, await lease_of(world, agent)) == lease.id


async def test_what_a_lost_lease_left_never_counts_and_is_swept(world: StorageWorld) -> None:
    agent = await world.agent()
    lease = await lease_of(world, agent)
    await start(world, lease)
    kept = await leave(world, lease)
    assert kept is not None

    await world.end(lease, BACK, status=LeaseStatus.RECLAIMED)

    again = (await world.claim(agent)).lease
    assert await from_lease(world, again) is None
    assert await world.storage.kept_workspaces.prune(limit=9) == 1
    assert await world.storage.kept_workspaces.prune(limit=9) == 0
    assert await world.storage.kept_workspaces.load(lease.id) is None

    swept = await world.storage.blobs.load(kept.blob_id)
    assert swept is not None
    assert swept.owners == 0


async def test_an_event_that_was_parked_goes_on_with_what_it_had(world: StorageWorld) -> None:
    agent = await world.agent()
    before = await run(world, agent)
    lease = await lease_of(world, agent)
    assert await from_lease(world, lease) == before.id

    await leave(world, lease)
    await world.end(lease, BACK, status=LeaseStatus.PARKED)

    newest = await world.storage.kept_workspaces.newest(agent.id)
    assert newest is not None
    assert newest.lease_id == before.id

    again = (await world.claim(agent)).lease
    assert again.event_id == lease.event_id
    assert await from_lease(world, again) == lease.id


async def test_a_replay_forks_what_its_original_started_from(world: StorageWorld) -> None:
    agent = await world.agent()
    first = await run(world, agent)
    second = await run(world, agent)
    third = await run(world, agent)

    replay = await lease_of(world, agent, resumes_event_id=second.event_id)
    assert await from_lease(world, replay) == first.id

    left = await leave(world, replay)
    assert left is not None
    assert left.is_fork

    further = await continued(world, agent, replay)
    newest = await world.storage.kept_workspaces.newest(agent.id)
    assert newest is not None
    assert newest.lease_id == third.id
    assert await from_lease(world, further) == replay.id

    await world.end(further, DONE)
    fourth = await lease_of(world, agent)
    await start(world, fourth)
    await leave(world, fourth)
    ordinary = await continued(world, agent, fourth)
    assert await from_lease(world, ordinary) == fourth.id


async def test_a_reset_empties_the_folder_also_against_a_run_under_way(world: StorageWorld) -> None:
    agent, kept = await world.agent(), world.storage.kept_workspaces
    first = await run(world, agent)
    under_way = await lease_of(world, agent)
    assert await from_lease(world, under_way) == first.id
    assert await kept.reset(agent.id)

    await leave(world, under_way)
    await world.end(under_way, DONE)

    assert await kept.newest(agent.id) is None
    assert await from_lease(world, await lease_of(world, agent)) is None
    assert await kept.prune(limit=9) == 2
    assert await kept.reset(new_id()) is False


async def test_only_some_are_kept_and_a_replay_of_what_is_gone_is_lost(world: StorageWorld) -> None:
    agent = await world.agent()
    leases = [await run(world, agent) for _ in range(SNAPSHOTS_KEPT + 2)]
    assert await world.storage.kept_workspaces.prune(limit=1) == 1
    assert await world.storage.kept_workspaces.prune(limit=9) == 1

    old = await lease_of(world, agent, resumes_event_id=leases[1].event_id)
    assert (await start(world, old)).is_lost

    await world.end(old, DONE)
    late = await lease_of(world, agent, resumes_event_id=leases[-1].event_id)
    assert await from_lease(world, late) == leases[-2].id
