"""Grants through their actor: one for a service, however many ask, and whatever goes wrong in between."""

import logging
from uuid import UUID

import pytest
import trio
from trio.testing import MockClock

from sexton_actors.protocol.grants import Decide, Request, Requested
from sexton_actors.protocol.lease import AskIntegration, Lend, Lent
from sexton_actors.protocol.queue import Grant as Leased
from sexton_actors.refusal import Refusal
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.grants import Grant, GrantStatus
from sexton_storage.refusals import STALE, Lost
from tests.worlds.actors import ActorsWorld, crash_once

OTHER = UUID(int=77)


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture, autojump_clock: MockClock) -> None:
    """Crashes are logged, and here they are ordered; what is waited for comes at once."""
    caplog.set_level(logging.CRITICAL, "sexton_engine")


def request_of(world: ActorsWorld, service: str = "slack") -> Request:
    ids = (world.actors_world.new_id(), world.tenant_id, world.workspace_id)
    return Request(*ids, service, "to tell people", "user:1")


async def ask(world: ActorsWorld, agent_id: UUID, service: str = "slack") -> Requested:
    reply = await world.system.ask("grants", agent_id, request_of(world, service))
    assert isinstance(reply, Requested), reply
    return reply


async def decide(world: ActorsWorld, grant: Grant, status: GrantStatus) -> Grant | Refusal:
    return await world.system.ask("grants", grant.zombie_id, Decide(grant.id, status, "user:2"))


def frames(world: ActorsWorld, agent_id: UUID) -> list[tuple[str, str]]:
    """Of grants: kind and status."""
    return [
        (frame.kind, frame.data["status"])
        for frame in world.frames(agent_id)
        if frame.kind.startswith("grant_")
    ]


async def test_of_many_who_ask_at_once_one_makes_the_grant(world: ActorsWorld) -> None:
    agent = await world.install()
    replies: list[Requested] = []

    async def one() -> None:
        replies.append(await ask(world, agent))

    async with trio.open_nursery() as nursery:
        for _ in range(16):
            nursery.start_soon(one)

    assert [reply.made for reply in replies].count(True) == 1
    assert len({reply.grant.id for reply in replies}) == 1
    assert frames(world, agent) == [("grant_changed", "pending")]


async def test_of_two_who_decide_at_once_one_is_heard(world: ActorsWorld) -> None:
    agent = await world.install()
    grant = (await ask(world, agent)).grant
    replies: dict[GrantStatus, Grant | Refusal] = {}

    async def one(status: GrantStatus) -> None:
        replies[status] = await decide(world, grant, status)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(one, GrantStatus.APPROVED)
        nursery.start_soon(one, GrantStatus.DENIED)
    [refusal] = [reply for reply in replies.values() if isinstance(reply, Refusal)]
    [decided] = [reply for reply in replies.values() if isinstance(reply, Grant)]

    assert (refusal.code, refusal.facts["current_state"]) == ("UZ-APPROVAL-002", decided.status)
    assert len(frames(world, agent)) == 2


async def test_a_grant_of_another_agent_is_none_of_this_one(world: ActorsWorld) -> None:
    agent = await world.install()
    grant = (await ask(world, agent)).grant
    for key, grant_id in ((OTHER, grant.id), (agent, OTHER)):
        reply = await world.system.ask("grants", key, Decide(grant_id, GrantStatus.APPROVED, "user:2"))
        assert isinstance(reply, Refusal)
        assert reply.code == "UZ-APPROVAL-002"
    asked = await world.system.ask("grants", OTHER, request_of(world))

    assert isinstance(asked, Refusal)
    assert asked.code == "UZ-ZMB-009"


@pytest.mark.parametrize("after", [False, True])
async def test_a_request_that_crashed_is_made_again_and_makes_one_grant(
    world: ActorsWorld, *, after: bool
) -> None:
    agent = await world.install()
    crashed = crash_once(world.storage.grants, "save", after=after)
    asked = await ask(world, agent)

    assert crashed
    assert (asked.grant.status, asked.made) == (GrantStatus.PENDING, not after)
    assert len(world.storage.tables.grants) == 1
    assert frames(world, agent) == [("grant_changed", "pending")]


@pytest.mark.parametrize("after", [False, True])
async def test_a_decision_that_crashed_is_made_again_and_holds_once(
    world: ActorsWorld, *, after: bool
) -> None:
    agent = await world.install()
    grant = (await ask(world, agent)).grant
    crashed = crash_once(world.storage.grants, "save", after=after)
    decided = await decide(world, grant, GrantStatus.APPROVED)

    assert crashed
    assert isinstance(decided, Grant)
    assert decided.status is GrantStatus.APPROVED
    assert frames(world, agent) == [("grant_changed", "pending"), ("grant_changed", "approved")]


async def test_a_save_that_lost_its_race_is_decided_again(
    world: ActorsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = await world.install()
    real, lost = world.storage.grants.save, [Lost(STALE), Lost(STALE)]

    async def racing(*args: object) -> Lost | None:
        return lost.pop() if lost else await real(*args)  # type: ignore[arg-type] # handed on as they came

    monkeypatch.setattr(world.storage.grants, "save", racing)
    assert (await ask(world, agent)).made

    lost.extend([Lost(STALE)] * 9)
    reply = await world.system.ask("grants", agent, request_of(world, "other"))
    assert isinstance(reply, Refusal)
    assert reply.code == "UZ-API-003"


async def test_an_outage_is_no_crash(world: ActorsWorld) -> None:
    agent = await world.install()
    world.faults.away = True
    with pytest.raises(StorageUnavailable):
        await ask(world, agent)
    world.faults.away = False

    assert (await ask(world, agent)).made


# --- under a lease ------------------------------------------------------------------------------------------


async def lend(world: ActorsWorld, leased: Leased, service: str = "slack") -> Lent | Refusal:
    return await world.system.ask("lease", leased.lease.id, Lend(leased.lease.runner_id, service))


async def test_a_run_asks_waits_for_people_and_is_lent_what_they_grant(world: ActorsWorld) -> None:
    agent, leased = await working(world)
    refused = await lend(world, leased)
    assert isinstance(refused, Refusal)
    assert refused.code == "UZ-GRANT-001"

    question = AskIntegration(leased.lease.runner_id, "slack", "to tell people")
    asked = await world.system.ask("lease", leased.lease.id, question)
    assert isinstance(asked, Requested)
    assert asked.grant.requested_by == f"run:{leased.event.id}"

    for status, code in ((None, "UZ-GRANT-002"), (GrantStatus.APPROVED, "UZ-ZMB-003")):
        if status is not None:
            await decide(world, asked.grant, status)
        refused = await lend(world, leased)
        assert isinstance(refused, Refusal)
        assert refused.code == code
    await world.actors_world.secrets.put(world.workspace_id, "slack", {"token": "xoxb"})
    assert await lend(world, leased) == Lent("slack", {"token": "xoxb"}, ("slack.com", "*.slack.com"))

    await decide(world, asked.grant, GrantStatus.REVOKED)
    refused = await lend(world, leased)
    assert isinstance(refused, Refusal)
    assert refused.code == "UZ-GRANT-003"
    assert frames(world, agent) == [
        ("grant_changed", "pending"),
        ("grant_changed", "approved"),
        ("grant_used", "approved"),
        ("grant_changed", "revoked"),
    ]


async def test_who_lost_the_lease_neither_asks_nor_is_lent_anything(world: ActorsWorld) -> None:
    agent, leased = await working(world)
    grant = (await ask(world, agent)).grant
    await decide(world, grant, GrantStatus.APPROVED)
    await world.actors_world.secrets.put(world.workspace_id, "slack", {"token": "xoxb"})
    question = AskIntegration(leased.lease.runner_id, "jira", "")
    for message in (Lend(OTHER, "slack"), AskIntegration(OTHER, "jira", "")):
        stranger = await world.system.ask("lease", leased.lease.id, message)
        assert isinstance(stranger, Refusal)
        assert stranger.code == "UZ-RUN-006"
    await world.report(leased)
    for message in (Lend(leased.lease.runner_id, "slack"), question):
        late = await world.system.ask("lease", leased.lease.id, message)
        assert isinstance(late, Refusal)
        assert late.code == "UZ-RUN-005"

    assert ("grant_used", "approved") not in frames(world, agent)
    assert len(world.storage.tables.grants) == 1


async def working(world: ActorsWorld) -> tuple[UUID, Leased]:
    """An agent, and the lease on its first event."""
    agent = await world.install()
    await world.deliver(agent)
    return agent, await world.grant(await world.enrol())
