"""What is shown of gates in a chat: each thing is done by one, and nothing is lost with the one who began."""

from typing import Any
from uuid import UUID

import trio
from msgspec.structs import replace

from sexton_storage.records.chats import ChatInstall, ChatPost, ChatWork
from sexton_storage.records.events import EventStatus
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.writes import EventEnd, OpenGate, ResolveGate
from tests.conformance.house import House, new_id

LATER = 30_000


def install_of(house: House, **changes: Any) -> ChatInstall:
    install = ChatInstall(
        workspace_id=house.workspace_id,
        tenant_id=house.tenant_id,
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


async def pending_gate(house: House) -> Gate:
    agent = await house.agent()
    await house.append(agent)
    lease = (await house.claim(agent)).lease
    gate = house.gate_of(house.event_of(agent, id=lease.event_id), lease)
    await house.storage.journal.write(OpenGate(gate, lease.fencing_token, ()))
    return gate


async def resolve(house: House, gate_id: UUID) -> None:
    write = ResolveGate(gate_id, GateStatus.DENIED, house.now, "user:1", "", EventStatus.RECEIVED, None, ())
    await house.storage.journal.write(write)


async def claim(house: House, now: int = 1000) -> ChatWork | None:
    return await house.storage.chats.claim(house.workspace_id, now, now + LATER)


async def claimed(house: House, now: int = 1000) -> ChatWork:
    work = await claim(house, now)
    assert work is not None
    return work


async def shown(house: House, post: ChatPost, now: int = 1000) -> None:
    assert await house.storage.chats.keep(replace(post, message_id="m1", unsure=False, due_at=now))


async def test_an_install_is_kept_replaced_refused_and_removed(house: House) -> None:
    chats, install = house.storage.chats, install_of(house)
    assert await chats.load(house.workspace_id) is None
    await chats.save(install)
    assert await chats.load(house.workspace_id) == install
    await chats.revoke(house.workspace_id, 5)
    await chats.revoke(house.workspace_id, 6)
    assert await chats.load(house.workspace_id) == replace(install, revoked_at=5)
    again = replace(install, channel_id="C2", updated_at=9)
    await chats.save(again)
    assert await chats.load(house.workspace_id) == again
    assert await chats.remove(house.workspace_id)
    assert not await chats.remove(house.workspace_id)
    assert await chats.load(house.workspace_id) is None


async def test_a_pending_gate_waits_to_be_shown_only_where_there_is_a_good_install(house: House) -> None:
    chats, gate = house.storage.chats, await pending_gate(house)
    assert list(await chats.waiting(1000, limit=9)) == []
    assert await claim(house) is None
    await chats.save(install_of(house))
    assert list(await chats.waiting(1000, limit=9)) == [house.workspace_id]
    await chats.revoke(house.workspace_id, 5)
    assert list(await chats.waiting(1000, limit=9)) == []
    assert await claim(house) is None
    await chats.save(install_of(house))
    work = await claimed(house)
    assert (work.gate, work.post.gate_id) == (gate, gate.id)
    assert (work.post.message_id, work.post.unsure, work.post.channel_id) == (None, False, "C1")


async def test_gates_are_claimed_oldest_first_and_each_by_one(house: House) -> None:
    await house.storage.chats.save(install_of(house))
    gates = [await pending_gate(house) for _ in range(4)]
    found: list[UUID] = []

    async def take() -> None:
        # Who meets another at the same gate is told that there is none, and comes again.
        while (work := await claim(house)) is not None:
            found.append(work.post.gate_id)

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(take)
    assert sorted(found) == sorted(gate.id for gate in gates)


async def test_a_claim_that_nobody_finished_comes_again_and_says_that_it_is_unsure(house: House) -> None:
    await house.storage.chats.save(install_of(house))
    await pending_gate(house)
    first = await claimed(house)
    assert await claim(house, 1000 + LATER - 1) is None
    second = await claimed(house, 1000 + LATER)
    assert (second.post.unsure, second.post.attempts) == (True, 2)
    assert not await house.storage.chats.keep(replace(first.post, message_id="late"))
    assert not await house.storage.chats.forget(first.post)
    assert await house.storage.chats.keep(replace(second.post, unsure=False, due_at=0))
    assert not (await claimed(house)).post.unsure


async def test_what_is_shown_rests_until_the_gate_has_its_outcome(house: House) -> None:
    chats = house.storage.chats
    await chats.save(install_of(house))
    gate = await pending_gate(house)
    await shown(house, (await claimed(house)).post)
    assert list(await chats.waiting(99_000, limit=9)) == []
    assert await claim(house, 99_000) is None
    await resolve(house, gate.id)
    assert list(await chats.waiting(99_000, limit=9)) == [house.workspace_id]
    work = await claimed(house, 99_000)
    assert work.gate is not None
    assert (work.gate.status, work.post.message_id, work.post.unsure) == (GateStatus.DENIED, "m1", False)
    assert await chats.forget(work.post)
    assert list(await chats.waiting(999_000, limit=9)) == []


async def test_a_message_outlives_the_gate_that_was_purged_with_its_agent(house: House) -> None:
    await house.storage.chats.save(install_of(house))
    gate = await pending_gate(house)
    await shown(house, (await claimed(house)).post)
    assert await house.storage.zombies.delete(gate.zombie_id)
    work = await claimed(house)
    assert (work.gate, work.post.message_id) == (None, "m1")


async def test_a_new_install_makes_what_waited_long_due_at_once_and_none_forgets_it(house: House) -> None:
    chats = house.storage.chats
    await chats.save(install_of(house))
    await pending_gate(house)
    work = await claimed(house)
    await chats.keep(replace(work.post, unsure=False, due_at=9_000_000))
    assert await claim(house) is None
    await chats.save(install_of(house, channel_id="C2"))
    assert (await claimed(house)).post.gate_id == work.post.gate_id
    await chats.remove(house.workspace_id)
    await chats.save(install_of(house))
    assert (await claimed(house)).post.attempts == 1


async def test_a_pending_gate_of_an_event_that_is_over_is_found(house: House) -> None:
    agent = await house.agent()
    await house.append(agent)
    lease = (await house.claim(agent)).lease
    gate = house.gate_of(house.event_of(agent, id=lease.event_id), lease)
    await house.storage.journal.write(OpenGate(gate, lease.fencing_token, ()))
    assert list(await house.storage.gates.orphaned(limit=9)) == []
    await house.end(lease, EventEnd(EventStatus.PROCESSED))
    assert list(await house.storage.gates.orphaned(limit=9)) == [gate.id]
    await resolve(house, gate.id)
    assert list(await house.storage.gates.orphaned(limit=9)) == []


async def test_what_an_agent_asked_before_is_known_by_tool_and_action(house: House) -> None:
    agent = await house.agent()
    await house.append(agent)
    lease = (await house.claim(agent)).lease
    event = house.event_of(agent, id=lease.event_id)
    asked = [("push", 10), ("push", 20), ("push", 30), ("pull", 30)]
    for number, (action, at) in enumerate(asked):
        gate = house.gate_of(
            event, lease, tool_name="git", action_name=action, requested_at=at, action_id=f"a{number}"
        )
        await house.storage.journal.write(OpenGate(gate, lease.fencing_token, ()))
    gates = house.storage.gates
    assert list(await gates.asked(agent.id, "git", "push", since=20, limit=9)) == [(20, "a1"), (30, "a2")]
    assert list(await gates.asked(agent.id, "git", "push", since=0, limit=1)) == [(30, "a2")]
    assert list(await gates.asked(new_id(), "git", "push", since=0, limit=9)) == []
