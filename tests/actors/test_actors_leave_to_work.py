"""What must be there before an agent works: its workspace's leave, and its credentials."""

from uuid import UUID

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sexton_actors.lease.handover.deliver import hand_over
from sexton_actors.protocol.zombie import AlreadyAccepted, Ignored, Steer
from sexton_actors.refusal import Refusal
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.events import EventStatus
from tests.actors.plant import Plant

WITH_TOKEN = "credentials: [deploy-token, pager]"


async def pause_workspace(plant: Plant, *, paused: bool) -> None:
    workspace = plant.storage.tables.workspaces[plant.workspace_id]
    assert await plant.storage.workspaces.save(replace(workspace, paused=paused))
    await trio.sleep(1)


async def test_a_paused_workspace_starts_nothing_and_takes_nothing_in(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await plant.install(), await plant.enrol()
    event_id = await plant.deliver(zombie_id)
    await pause_workspace(plant, paused=True)
    for message in (plant.webhook(), Steer("hello", "ada")):
        refused = await plant.system.ask("zombie", zombie_id, message)
        assert isinstance(refused, Refusal)
        assert refused.code == "UZ-WORKSPACE-002"
    await plant.nothing(runner_id, 3)
    await pause_workspace(plant, paused=False)
    assert (await plant.grant(runner_id, 3)).event.id == event_id


async def test_a_run_without_its_credentials_does_not_start(plant: Plant, autojump_clock: MockClock) -> None:
    zombie_id, runner_id = await plant.install(config=WITH_TOKEN), await plant.enrol()
    await plant.world.secrets.put(plant.workspace_id, "pager", {"key": "k"})
    event_id = await plant.deliver(zombie_id)
    await plant.nothing(runner_id, 3)
    event = plant.event(event_id)
    assert (event.status, event.failure_label, event.error_code) == (
        EventStatus.AGENT_ERROR,
        "secret_missing",
        "UZ-ZMB-003",
    )
    assert event.response_text == "The vault has no credential named deploy-token."
    assert plant.rows(event_id) == []
    plant.everything_adds_up()


async def test_a_run_gets_the_credentials_that_its_agent_names_and_no_others(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await plant.install(config=WITH_TOKEN), await plant.enrol()
    for name in ("pager", "deploy-token", "unrelated"):
        await plant.world.secrets.put(plant.workspace_id, name, {"key": name})
    await plant.deliver(zombie_id)
    grant = await plant.grant(runner_id)
    (packed,) = await hand_over([grant], plant.system, plant.world)
    lent = packed["policy"]["secrets_map"]
    assert lent == {"deploy-token": {"key": "deploy-token"}, "pager": {"key": "pager"}}
    assert packed["lease_id"] == grant.lease.id
    assert packed["event"]["event_id"] == grant.event.id
    assert "deploy-token" not in repr(grant).replace(repr(grant.manifest), ""), (
        "a dead letter shows no secret"
    )


async def test_a_credential_that_is_deleted_after_the_claim_keeps_the_lease_from_being_handed_out(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await plant.install(config="credentials: [pager]"), await plant.enrol()
    await plant.world.secrets.put(plant.workspace_id, "pager", {"key": "k"})
    event_id = await plant.deliver(zombie_id)
    grant = await plant.grant(runner_id)
    await plant.world.secrets.delete(plant.workspace_id, "pager")
    assert await hand_over([grant], plant.system, plant.world) == []
    await trio.sleep(0.1)
    assert plant.event(event_id).failure_label == "secret_missing"
    plant.everything_adds_up()


async def test_leases_that_cannot_be_handed_over_go_back_at_once(
    plant: Plant, autojump_clock: MockClock
) -> None:
    config = "credentials: [pager]\nbudget: {daily_dollars: 1}"
    zombie_id, runner_id = await plant.install(config=config), await plant.enrol()
    await plant.world.secrets.put(plant.workspace_id, "pager", {"key": "k"})
    event_id = await plant.deliver(zombie_id)
    grant = await plant.grant(runner_id)
    await trio.sleep(2)
    original = plant.storage.credentials.load

    async def away(workspace_id: UUID, name: str) -> None:
        raise StorageUnavailable("away")

    plant.storage.credentials.load = away  # type: ignore[method-assign]
    with pytest.raises(StorageUnavailable):
        await hand_over([grant], plant.system, plant.world)
    plant.storage.credentials.load = original  # type: ignore[method-assign]
    again = await plant.grant(runner_id, 2)
    assert (again.event.id, again.event.attempts) == (event_id, 1)
    assert plant.rows(event_id) == []


async def test_a_delivery_again_is_known_and_kept_once(plant: Plant, autojump_clock: MockClock) -> None:
    zombie_id = await plant.install()
    event_id = await plant.deliver(zombie_id, plant.webhook(delivery="d-1"))
    again = await plant.system.ask("zombie", zombie_id, plant.webhook(delivery="d-1"))
    assert again == AlreadyAccepted(event_id)
    assert list(plant.storage.tables.events) == [event_id]


async def test_events_that_the_agent_does_not_list_are_ignored(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id = await plant.install(config="    events: [issues]")
    assert await plant.system.ask("zombie", zombie_id, plant.webhook()) == Ignored("event_not_listed")
    assert plant.storage.tables.events == {}


async def test_an_unknown_agent_is_told_as_such(plant: Plant, autojump_clock: MockClock) -> None:
    nobody = plant.world.new_id()
    for message, code in ((plant.webhook(), "UZ-WH-001"), (Steer("x", "ada"), "UZ-ZMB-009")):
        refused = await plant.system.ask("zombie", nobody, message)
        assert isinstance(refused, Refusal)
        assert refused.code == code


async def test_a_message_must_not_be_empty_or_too_long(plant: Plant, autojump_clock: MockClock) -> None:
    zombie_id = await plant.install()
    for text in ("", "ä" * 4097):
        refused = await plant.system.ask("zombie", zombie_id, Steer(text, "ada"))
        assert isinstance(refused, Refusal)
        assert refused.code == "UZ-REQ-001"
    await plant.system.ask("zombie", zombie_id, Steer("ä" * 4096, "ada"))
    (event,) = plant.storage.tables.events.values()
    assert event.actor == "steer:ada"
