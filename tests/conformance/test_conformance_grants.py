"""Integration grants: one for an agent and a service, saved where nobody was first."""

from typing import Any

import pytest
import trio
from msgspec.structs import replace

from sexton_storage.paging import Page
from sexton_storage.records.events import EventStatus
from sexton_storage.records.grants import Grant, GrantStatus
from sexton_storage.records.leases import Lease, LeaseToken
from sexton_storage.records.zombies import Zombie
from sexton_storage.refusals import Lost
from sexton_storage.terms import GRANTS_LIMIT
from sexton_storage.writes import EventEnd
from tests.worlds.storage import StorageWorld, new_id


def grant_of(agent: Zombie, service: str = "slack", **changes: Any) -> Grant:
    grant = Grant(
        id=new_id(),
        tenant_id=agent.tenant_id,
        workspace_id=agent.workspace_id,
        zombie_id=agent.id,
        service=service,
        reason="to tell people",
        status=GrantStatus.PENDING,
        version=1,
        requested_at=agent.created_at,
        requested_by="user:1",
        created_at=agent.created_at,
    )
    return replace(grant, **changes)


def held_by(lease: Lease, **changes: Any) -> LeaseToken:
    return replace(LeaseToken(lease.id, lease.fencing_token), **changes)


async def test_a_grant_is_kept_with_its_frames(world: StorageWorld) -> None:
    agent = await world.agent()
    grant = grant_of(agent, reason="caf\u00e9 \x00")
    assert await world.storage.grants.save(grant, [world.frame(agent, "grant_changed")]) is None

    kept = await world.storage.grants.load(grant.id)
    assert kept == replace(grant, reason="caf\u00e9 \ufffd")
    assert await world.storage.grants.find(agent.id, "slack") == kept
    assert await world.storage.grants.find(agent.id, "github") is None
    assert [frame.kind for frame in await world.storage.frames.read(agent.id, after=0, limit=9)] == [
        "grant_changed"
    ]


async def test_a_save_holds_only_at_the_version_that_it_saw(world: StorageWorld) -> None:
    agent = await world.agent()
    first = grant_of(agent)
    grants = world.storage.grants
    await grants.save(first, ())
    approved = replace(first, version=2, status=GrantStatus.APPROVED, decided_at=7, decided_by="user:2")
    assert await grants.save(approved, ()) is None

    late = replace(first, version=2, status=GrantStatus.DENIED)
    assert await grants.save(late, [world.frame(agent, "grant_changed")]) == Lost("stale")
    assert await grants.load(first.id) == approved
    assert not await world.storage.frames.read(agent.id, after=0, limit=9)

    unknown = grant_of(agent, "other", version=5)
    assert await grants.save(unknown, ()) == Lost("stale")


async def test_a_second_grant_for_the_same_service_is_not_made(world: StorageWorld) -> None:
    agent, other = await world.agent(), await world.agent()
    grants = world.storage.grants
    first = grant_of(agent)

    assert await grants.save(first, ()) is None
    assert await grants.save(grant_of(agent), ()) == Lost("stale")
    assert await grants.save(first, ()) == Lost("stale")
    assert await grants.save(grant_of(other), ()) is None
    assert await grants.of_zombie(agent.id) in ([first], (first,))


async def test_of_many_requests_at_once_one_makes_the_grant(world: StorageWorld) -> None:
    agent = await world.agent()
    outcomes: list[Lost | None] = []

    async def ask() -> None:
        outcomes.append(await world.storage.grants.save(grant_of(agent), [world.frame(agent)]))

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(ask)

    assert sorted(outcomes, key=str) == [Lost("stale")] * 7 + [None]
    assert len(await world.storage.grants.of_zombie(agent.id)) == 1
    assert len(await world.storage.frames.read(agent.id, after=0, limit=99)) == 1


async def test_an_agent_has_so_many_grants_and_no_more(world: StorageWorld) -> None:
    agent = await world.agent()
    grants = world.storage.grants
    for n in range(GRANTS_LIMIT):
        assert await grants.save(grant_of(agent, f"s{n}"), ()) is None

    assert await grants.save(grant_of(agent, "one-more"), ()) == Lost("full")
    assert await grants.save(grant_of(agent, "s0"), ()) == Lost("stale")
    assert len(await grants.of_zombie(agent.id)) == GRANTS_LIMIT


async def test_no_grant_is_made_for_an_agent_that_is_gone(world: StorageWorld) -> None:
    assert await world.storage.grants.save(grant_of(world.agent_record()), ()) == Lost("gone")


async def test_a_run_asks_only_while_it_holds_its_lease(world: StorageWorld) -> None:
    agent = await world.agent()
    await world.append(agent)
    lease = (await world.claim(agent)).lease
    grants = world.storage.grants
    for wrong in (held_by(lease, fencing_token=lease.fencing_token + 1), held_by(lease, lease_id=new_id())):
        assert await grants.save(grant_of(agent), (), wrong) == Lost("fenced")
    assert await grants.save(grant_of(agent), (), held_by(lease)) is None

    await world.end(lease, EventEnd(EventStatus.PROCESSED))
    assert await grants.save(grant_of(agent, "other"), (), held_by(lease)) == Lost("fenced")


async def test_a_run_whose_term_has_passed_does_not_ask(world: StorageWorld) -> None:
    agent = await world.agent()
    await world.append(agent)
    lease = (await world.claim(agent, now=world.now - 60_000)).lease

    assert await world.storage.grants.save(grant_of(agent), (), held_by(lease)) == Lost("fenced")


async def test_grants_are_listed_newest_first_and_filtered(world: StorageWorld) -> None:
    agent, other = await world.agent(), await world.agent()
    grants = world.storage.grants
    made = [grant_of(agent, f"s{n}", created_at=1000 + n // 2) for n in range(5)]
    made += [grant_of(other, created_at=5)]
    for grant in made:
        assert await grants.save(grant, ()) is None
    await grants.save(replace(made[1], version=2, status=GrantStatus.DENIED), ())
    order = [g.id for g in sorted(made, key=lambda g: (g.created_at, g.id), reverse=True)]
    seen = await grants.list(world.workspace_id, limit=4)
    assert [grant.id for grant in seen] == order[:4]

    rest = await grants.list(world.workspace_id, limit=9, before=Page(seen[-1].created_at, seen[-1].id))
    assert [grant.id for grant in rest] == order[4:]

    denied = await grants.list(world.workspace_id, limit=9, zombie_id=agent.id, status=GrantStatus.DENIED)
    assert [grant.id for grant in denied] == [made[1].id]
    assert not await grants.list(new_id(), limit=9)


async def test_a_claim_tells_whether_there_are_grants(world: StorageWorld) -> None:
    agent, other = await world.agent(), await world.agent()
    for each in (agent, other):
        await world.append(each)
    await world.storage.grants.save(grant_of(agent), ())

    assert [(await world.claim(each)).endowed for each in (agent, other)] == [True, False]


@pytest.mark.parametrize("keeps", [True, False])
async def test_grants_go_with_their_agent_and_with_no_other(world: StorageWorld, *, keeps: bool) -> None:
    agent, other = await world.agent(), await world.agent()
    grant = grant_of(agent)
    await world.storage.grants.save(grant, ())
    await world.storage.zombies.delete(other.id if keeps else agent.id)

    assert (await world.storage.grants.load(grant.id) is not None) is keeps
