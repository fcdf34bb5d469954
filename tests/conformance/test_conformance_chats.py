"""What is shown of gates in a chat: each thing is done by one, and nothing is lost with the one who began."""

from typing import Any
from uuid import UUID

import pytest
import trio
from msgspec.structs import replace

from sexton_storage.errors import Conflict
from sexton_storage.records.chats import ChatInstall, ChatNotice, ChatPost, ChatWork
from sexton_storage.records.events import EventStatus
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.records.zombies import Zombie
from sexton_storage.writes import EventEnd, OpenGate, ResolveGate
from tests.worlds.storage import StorageWorld, new_id

LATER = 30_000


def install_of(world: StorageWorld, **changes: Any) -> ChatInstall:
    install = ChatInstall(
        workspace_id=world.workspace_id,
        tenant_id=world.tenant_id,
        team_id="T1",
        team_name="Team",
        channel_id="C1",
        channel_name="#ops",
        bot_user_id="B1",
        installed_by="user:1",
        created_at=1,
        updated_at=1,
    )
    return replace(install, **changes)


async def pending_gate(world: StorageWorld) -> Gate:
    agent = await world.agent()
    await world.append(agent)
    lease = (await world.claim(agent)).lease
    gate = world.gate_of(world.event_of(agent, id=lease.event_id), lease)
    await world.storage.journal.write(OpenGate(gate, lease.fencing_token, ()))
    return gate


async def resolve(world: StorageWorld, gate_id: UUID) -> None:
    write = ResolveGate(gate_id, GateStatus.DENIED, world.now, "user:1", "", EventStatus.RECEIVED, None, ())
    await world.storage.journal.write(write)


async def claim(world: StorageWorld, now: int = 1000) -> ChatWork | None:
    return await world.storage.chats.claim(world.workspace_id, now, now + LATER)


async def claimed(world: StorageWorld, now: int = 1000) -> ChatWork:
    work = await claim(world, now)
    assert work is not None
    return work


async def shown(world: StorageWorld, post: ChatPost, now: int = 1000) -> None:
    assert await world.storage.chats.keep(replace(post, message_id="m1", unsure=False, due_at=now))


async def test_an_install_is_kept_replaced_refused_and_removed(world: StorageWorld) -> None:
    chats, install = world.storage.chats, install_of(world)
    assert await chats.load(world.workspace_id) is None

    await chats.save(install)
    assert await chats.load(world.workspace_id) == install

    await chats.revoke(world.workspace_id, 5)
    await chats.revoke(world.workspace_id, 6)
    assert await chats.load(world.workspace_id) == replace(install, revoked_at=5)

    again = replace(install, channel_id="C2", updated_at=9)
    await chats.save(again)
    assert await chats.load(world.workspace_id) == again
    assert await chats.remove(world.workspace_id)
    assert not await chats.remove(world.workspace_id)
    assert await chats.load(world.workspace_id) is None


async def test_a_pending_gate_waits_to_be_shown_only_where_there_is_a_good_install(
    world: StorageWorld,
) -> None:
    chats, gate = world.storage.chats, await pending_gate(world)
    assert list(await chats.waiting(1000, limit=9)) == []
    assert await claim(world) is None

    await chats.save(install_of(world))
    assert list(await chats.waiting(1000, limit=9)) == [world.workspace_id]

    await chats.revoke(world.workspace_id, 5)
    assert list(await chats.waiting(1000, limit=9)) == []
    assert await claim(world) is None

    await chats.save(install_of(world))
    work = await claimed(world)
    assert (work.gate, work.post.gate_id) == (gate, gate.id)
    assert (work.post.message_id, work.post.unsure, work.post.channel_id) == (None, False, "C1")


async def test_gates_are_claimed_oldest_first_and_each_by_one(world: StorageWorld) -> None:
    await world.storage.chats.save(install_of(world))
    gates = [await pending_gate(world) for _ in range(4)]
    found: list[UUID] = []

    async def take() -> None:
        # Who meets another at the same gate is told that there is none, and comes again.
        while (work := await claim(world)) is not None:
            found.append(work.post.gate_id)

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(take)

    assert sorted(found) == sorted(gate.id for gate in gates)


async def test_a_claim_that_nobody_finished_comes_again_and_says_that_it_is_unsure(
    world: StorageWorld,
) -> None:
    await world.storage.chats.save(install_of(world))
    await pending_gate(world)
    first = await claimed(world)
    assert await claim(world, 1000 + LATER - 1) is None

    second = await claimed(world, 1000 + LATER)
    assert (second.post.unsure, second.post.attempts) == (True, 2)
    assert not await world.storage.chats.keep(replace(first.post, message_id="late"))
    assert not await world.storage.chats.forget(first.post)
    assert await world.storage.chats.keep(replace(second.post, unsure=False, due_at=0))
    assert not (await claimed(world)).post.unsure


async def test_what_is_shown_rests_until_the_gate_has_its_outcome(world: StorageWorld) -> None:
    chats = world.storage.chats
    await chats.save(install_of(world))
    gate = await pending_gate(world)
    await shown(world, (await claimed(world)).post)
    assert list(await chats.waiting(99_000, limit=9)) == []
    assert await claim(world, 99_000) is None

    await resolve(world, gate.id)
    assert list(await chats.waiting(99_000, limit=9)) == [world.workspace_id]

    work = await claimed(world, 99_000)
    assert work.gate is not None
    assert (work.gate.status, work.post.message_id, work.post.unsure) == (GateStatus.DENIED, "m1", False)
    assert await chats.forget(work.post)
    assert list(await chats.waiting(999_000, limit=9)) == []


async def test_a_message_outlives_the_gate_that_was_purged_with_its_agent(world: StorageWorld) -> None:
    await world.storage.chats.save(install_of(world))
    gate = await pending_gate(world)
    await shown(world, (await claimed(world)).post)
    assert await world.storage.zombies.delete(gate.zombie_id)

    work = await claimed(world)
    assert (work.gate, work.post.message_id) == (None, "m1")


async def test_a_new_install_makes_what_waited_long_due_at_once_and_none_forgets_it(
    world: StorageWorld,
) -> None:
    chats = world.storage.chats
    await chats.save(install_of(world))
    await pending_gate(world)
    work = await claimed(world)
    await chats.keep(replace(work.post, unsure=False, due_at=9_000_000))
    assert await claim(world) is None

    await chats.save(install_of(world, channel_id="C2"))
    assert (await claimed(world)).post.gate_id == work.post.gate_id

    await chats.remove(world.workspace_id)
    await chats.save(install_of(world))
    assert (await claimed(world)).post.attempts == 1


async def test_a_pending_gate_of_an_event_that_is_over_is_found(world: StorageWorld) -> None:
    agent = await world.agent()
    await world.append(agent)
    lease = (await world.claim(agent)).lease
    gate = world.gate_of(world.event_of(agent, id=lease.event_id), lease)
    await world.storage.journal.write(OpenGate(gate, lease.fencing_token, ()))
    assert list(await world.storage.gates.orphaned(limit=9)) == []

    await world.end(lease, EventEnd(EventStatus.PROCESSED))
    assert list(await world.storage.gates.orphaned(limit=9)) == [gate.id]

    await resolve(world, gate.id)
    assert list(await world.storage.gates.orphaned(limit=9)) == []


async def test_what_an_agent_asked_before_is_known_by_tool_and_action(world: StorageWorld) -> None:
    agent = await world.agent()
    await world.append(agent)
    lease = (await world.claim(agent)).lease
    event = world.event_of(agent, id=lease.event_id)
    asked = [("push", 10), ("push", 20), ("push", 30), ("pull", 30)]
    for number, (action, at) in enumerate(asked):
        gate = world.gate_of(
            event, lease, tool_name="git", action_name=action, requested_at=at, action_id=f"a{number}"
        )
        await world.storage.journal.write(OpenGate(gate, lease.fencing_token, ()))
    gates = world.storage.gates

    assert list(await gates.asked(agent.id, "git", "push", since=20, limit=9)) == [(20, "a1"), (30, "a2")]
    assert list(await gates.asked(agent.id, "git", "push", since=0, limit=1)) == [(30, "a2")]
    assert list(await gates.asked(new_id(), "git", "push", since=0, limit=9)) == []


# --- what is told once --------------------------------------------------------------------------------------


async def note(world: StorageWorld, *, due_at: int = 10, agent: Zombie | None = None) -> ChatNotice:
    """A notice in the commit that changes an agent."""
    agent = agent or await world.agent()
    notice = ChatNotice(
        id=new_id(),
        zombie_id=agent.id,
        workspace_id=world.workspace_id,
        zombie_name=agent.name,
        facts={"version": 4, "detail": "6 of 10"},
        attempts=0,
        due_at=due_at,
        created_at=10,
    )
    await world.storage.zombies.save(replace(agent, version=agent.version + 1), (), notice=notice)
    return notice


async def claim_notice(world: StorageWorld, now: int = 1000) -> ChatNotice | None:
    return await world.storage.chats.claim_notice(world.workspace_id, now, now + LATER)


async def test_a_notice_is_kept_only_where_a_chat_is_connected_at_that_moment(world: StorageWorld) -> None:
    chats = world.storage.chats
    await note(world)
    await chats.save(install_of(world))
    before = list(await chats.waiting(1000, limit=9))
    kept = await note(world)
    waiting = list(await chats.waiting(1000, limit=9))
    await chats.revoke(world.workspace_id, 5)
    revoked = (list(await chats.waiting(1000, limit=9)), await claim_notice(world))
    await note(world)
    await chats.save(install_of(world))
    claimed = await claim_notice(world)

    assert before == []
    assert waiting == [world.workspace_id]
    assert revoked == ([], None)
    assert claimed == replace(kept, attempts=1, due_at=1000 + LATER)
    assert await claim_notice(world) is None


async def test_a_save_that_loses_the_race_leaves_no_notice(world: StorageWorld) -> None:
    await world.storage.chats.save(install_of(world))
    agent = await world.agent()
    first = await note(world, agent=agent)
    with pytest.raises(Conflict):
        await note(world, agent=agent)
    claimed = [await claim_notice(world), await claim_notice(world)]

    assert claimed == [replace(first, attempts=1, due_at=1000 + LATER), None]


async def test_a_notice_that_nobody_finished_comes_again_and_only_the_last_claimant_ends_it(
    world: StorageWorld,
) -> None:
    chats = world.storage.chats
    await chats.save(install_of(world))
    await note(world)
    first = await claim_notice(world)
    second = await claim_notice(world, 1000 + LATER)
    assert first is not None
    assert second is not None

    late = (await chats.forget_notice(first), await chats.postpone_notice(replace(first, due_at=0)))
    postponed = await chats.postpone_notice(replace(second, due_at=50_000))
    early = await claim_notice(world, 49_999)
    third = await claim_notice(world, 50_000)
    assert third is not None

    over = await chats.forget_notice(third)

    assert second.attempts == 2
    assert late == (False, False)
    assert (postponed, early, over) == (True, None, True)
    assert await claim_notice(world, 9_000_000) is None


async def test_notices_are_claimed_each_by_one_the_oldest_first(world: StorageWorld) -> None:
    await world.storage.chats.save(install_of(world))
    notices = [await note(world, due_at=at) for at in (30, 10, 20)]
    found = [await claim_notice(world) for _ in range(4)]

    assert [None if one is None else one.id for one in found] == [
        notices[1].id,
        notices[2].id,
        notices[0].id,
        None,
    ]


async def test_notices_go_with_their_agent_and_with_the_install(world: StorageWorld) -> None:
    chats = world.storage.chats
    await chats.save(install_of(world))
    deleted = await note(world)
    await world.storage.zombies.delete(deleted.zombie_id)
    after_delete = await claim_notice(world)
    await note(world)
    await chats.remove(world.workspace_id)
    await chats.save(install_of(world))

    assert after_delete is None
    assert await claim_notice(world) is None
