"""What must be there before an agent works: its workspace's leave, and its credentials."""

from uuid import UUID

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sexton_actors.lease.handover.deliver import deliver
from sexton_actors.protocol.zombie import AlreadyAccepted, Ignored, Steer
from sexton_actors.refusal import Refusal
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.events import EventStatus
from tests.worlds.actors import ActorsWorld

WITH_TOKEN = "credentials: [deploy-token, pager]"


async def pause_workspace(world: ActorsWorld, *, paused: bool) -> None:
    workspace = world.storage.tables.workspaces[world.workspace_id]
    assert await world.storage.workspaces.save(replace(workspace, paused=paused))
    await trio.sleep(1)


async def test_a_paused_workspace_starts_nothing_and_takes_nothing_in(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    event_id = await world.deliver(zombie_id)
    await pause_workspace(world, paused=True)
    for message in (world.webhook(), Steer("hello", "ada")):
        refused = await world.system.ask("zombie", zombie_id, message)
        assert isinstance(refused, Refusal)
        assert refused.code == "UZ-WORKSPACE-002"
    await world.nothing(runner_id, 3)
    await pause_workspace(world, paused=False)

    assert (await world.grant(runner_id, 3)).event.id == event_id


async def test_a_run_without_its_credentials_does_not_start(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(config=WITH_TOKEN), await world.enrol()
    await world.actors_world.secrets.put(world.workspace_id, "pager", {"key": "k"})
    event_id = await world.deliver(zombie_id)
    await world.nothing(runner_id, 3)
    event = world.event(event_id)
    assert (event.status, event.failure_label, event.error_code) == (
        EventStatus.AGENT_ERROR,
        "secret_missing",
        "UZ-ZMB-003",
    )
    assert event.response_text == "The vault has no credential named deploy-token."
    assert world.rows(event_id) == []

    world.everything_adds_up()


async def test_a_run_gets_the_credentials_that_its_agent_names_and_no_others(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(config=WITH_TOKEN), await world.enrol()
    for name in ("pager", "deploy-token", "unrelated"):
        await world.actors_world.secrets.put(world.workspace_id, name, {"key": name})
    await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    (packed,) = await deliver([grant], world.system, world.actors_world)
    lent = packed["policy"]["secrets_map"]

    assert lent == {"deploy-token": {"key": "deploy-token"}, "pager": {"key": "pager"}}
    assert packed["lease_id"] == grant.lease.id
    assert packed["event"]["event_id"] == grant.event.id
    assert "deploy-token" not in repr(grant).replace(repr(grant.manifest), ""), (
        "a dead letter shows no secret"
    )


async def test_a_credential_that_is_deleted_after_the_claim_keeps_the_lease_from_being_handed_out(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(config="credentials: [pager]"), await world.enrol()
    await world.actors_world.secrets.put(world.workspace_id, "pager", {"key": "k"})
    event_id = await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    await world.actors_world.secrets.delete(world.workspace_id, "pager")
    assert await deliver([grant], world.system, world.actors_world) == []

    await trio.sleep(0.1)
    assert world.event(event_id).failure_label == "secret_missing"

    world.everything_adds_up()


async def test_leases_that_cannot_be_handed_over_go_back_at_once(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    config = "credentials: [pager]\nbudget: {daily_dollars: 1}"
    zombie_id, runner_id = await world.install(config=config), await world.enrol()
    await world.actors_world.secrets.put(world.workspace_id, "pager", {"key": "k"})
    event_id = await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    await trio.sleep(2)
    original = world.storage.credentials.load

    async def away(workspace_id: UUID, name: str) -> None:
        raise StorageUnavailable("away")

    world.storage.credentials.load = away  # type: ignore[method-assign]
    with pytest.raises(StorageUnavailable):
        await deliver([grant], world.system, world.actors_world)
    world.storage.credentials.load = original  # type: ignore[method-assign]
    again = await world.grant(runner_id, 2)

    assert (again.event.id, again.event.attempts) == (event_id, 1)
    assert world.rows(event_id) == []


async def test_a_delivery_again_is_known_and_kept_once(world: ActorsWorld, autojump_clock: MockClock) -> None:
    zombie_id = await world.install()
    event_id = await world.deliver(zombie_id, world.webhook(delivery="d-1"))
    again = await world.system.ask("zombie", zombie_id, world.webhook(delivery="d-1"))

    assert again == AlreadyAccepted(event_id)
    assert list(world.storage.tables.events) == [event_id]


async def test_events_that_the_agent_does_not_list_are_ignored(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id = await world.install(config="    events: [issues]")

    assert await world.system.ask("zombie", zombie_id, world.webhook()) == Ignored("event_not_listed")
    assert world.storage.tables.events == {}


async def test_an_unknown_agent_is_told_as_such(world: ActorsWorld, autojump_clock: MockClock) -> None:
    nobody = world.actors_world.new_id()
    for message, code in ((world.webhook(), "UZ-WH-001"), (Steer("x", "ada"), "UZ-ZMB-009")):
        refused = await world.system.ask("zombie", nobody, message)
        assert isinstance(refused, Refusal)
        assert refused.code == code


async def test_a_message_must_not_be_empty_or_too_long(world: ActorsWorld, autojump_clock: MockClock) -> None:
    zombie_id = await world.install()
    for text in ("", "ä" * 4097):
        refused = await world.system.ask("zombie", zombie_id, Steer(text, "ada"))
        assert isinstance(refused, Refusal)
        assert refused.code == "UZ-REQ-001"
    await world.system.ask("zombie", zombie_id, Steer("ä" * 4096, "ada"))
    (event,) = world.storage.tables.events.values()

    assert event.actor == "steer:ada"
