"""What happens once counts once: repeats at gates, and the same action from inside runs."""

from typing import Any
from uuid import UUID

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sexton_actors.protocol.lease import AskApproval
from sexton_actors.protocol.queue import Grant
from sexton_actors.protocol.zombie import Accepted, AlreadyAccepted, Deliver, Ignored
from sexton_actors.terms import RECORD_FRESH_MS
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.events import EventStatus
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.records.zombies import ZombieStatus
from tests.actors.plant import Plant

THRICE = "gates: {anomaly_rules: [{pattern: same_action, threshold_count: 3, threshold_window_s: 60}]}"
NEVER_WAKE = "gates: {rules: [{tool: 'workflow_run.*', action: '*', behavior: auto_kill}]}"
NEVER = "gates: {rules: [{tool: http, action: POST, behavior: auto_kill}]}"


def status_of(plant: Plant, zombie_id: UUID) -> ZombieStatus:
    return plant.storage.tables.zombies[zombie_id].status


async def first_of(plant: Plant, zombie_id: UUID, message: Deliver) -> Accepted:
    first = await plant.system.ask("zombie", zombie_id, message)
    assert isinstance(first, Accepted)
    return first


async def ask(plant: Plant, grant: Grant, action_id: str, kind: str = "") -> Gate:
    message = AskApproval(
        runner_id=grant.lease.runner_id,
        action_id=action_id,
        tool_name="git",
        action_name="push",
        gate_kind=kind,
        proposed_action="Push.",
        evidence={},
        blast_radius="",
    )
    gate = await plant.system.ask("lease", grant.lease.id, message)
    assert isinstance(gate, Gate), gate
    return gate


async def test_a_repeated_delivery_is_no_further_occurrence(plant: Plant, autojump_clock: MockClock) -> None:
    zombie_id = await plant.install(config=THRICE)
    message = plant.webhook(delivery="d1")
    first = await first_of(plant, zombie_id, message)
    for _ in range(5):
        assert await plant.system.ask("zombie", zombie_id, message) == AlreadyAccepted(first.event_id)
    assert status_of(plant, zombie_id) is ZombieStatus.ACTIVE
    await plant.deliver(zombie_id)
    await plant.deliver(zombie_id)
    assert status_of(plant, zombie_id) is ZombieStatus.PAUSED


async def test_repeats_that_come_at_once_are_one_occurrence(plant: Plant, autojump_clock: MockClock) -> None:
    zombie_id = await plant.install(config=THRICE)
    message = plant.webhook(delivery="d1")
    answers: list[Any] = []
    plant.faults.latency_s = 0.2

    async def deliver() -> None:
        answers.append(await plant.system.ask("zombie", zombie_id, message))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(deliver)
    assert sorted(type(answer).__name__ for answer in answers) == ["Accepted", *4 * ["AlreadyAccepted"]]
    assert status_of(plant, zombie_id) is ZombieStatus.ACTIVE


async def test_a_repeat_of_what_was_stopped_pauses_nobody_again(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id = await plant.install(config=NEVER_WAKE)
    message = plant.webhook(delivery="d1")
    first = await first_of(plant, zombie_id, message)
    assert status_of(plant, zombie_id) is ZombieStatus.PAUSED
    await plant.change_status(zombie_id, "active")
    assert await plant.system.ask("zombie", zombie_id, message) == AlreadyAccepted(first.event_id)
    assert status_of(plant, zombie_id) is ZombieStatus.ACTIVE


async def test_a_repeat_is_known_though_its_kind_is_no_longer_listed(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id = await plant.install()
    message = plant.webhook(delivery="d1")
    first = await first_of(plant, zombie_id, message)
    zombie = plant.storage.tables.zombies[zombie_id]
    compiled = {**zombie.compiled}
    compiled["triggers"] = [{**trigger, "events": ["push"]} for trigger in compiled["triggers"]]
    changed = replace(zombie, compiled=compiled, config_version_id=plant.world.new_id())
    plant.storage.tables.zombies[zombie_id] = changed
    await trio.sleep(RECORD_FRESH_MS / 1000)
    assert await plant.system.ask("zombie", zombie_id, message) == AlreadyAccepted(first.event_id)
    other = await plant.system.ask("zombie", zombie_id, plant.webhook(delivery="d2"))
    assert other == Ignored("event_not_listed")


async def test_the_same_action_asked_for_too_often_stops_the_agent(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await plant.install(config=THRICE), await plant.enrol()
    await plant.deliver(zombie_id)
    grant = await plant.grant(runner_id)
    for _ in range(4):  # The same question is the same, however often it is asked.
        assert (await ask(plant, grant, "one")).status is GateStatus.PENDING
    assert (await ask(plant, grant, "two")).status is GateStatus.PENDING
    assert status_of(plant, zombie_id) is ZombieStatus.ACTIVE
    third = await ask(plant, grant, "three")
    assert (third.status, third.resolved_by) == (GateStatus.AUTO_KILLED, "system:anomaly")
    assert status_of(plant, zombie_id) is ZombieStatus.PAUSED


async def test_what_was_asked_long_ago_is_no_anomaly(plant: Plant, autojump_clock: MockClock) -> None:
    zombie_id, runner_id = await plant.install(config=THRICE), await plant.enrol()
    await plant.deliver(zombie_id)
    grant = await plant.grant(runner_id)
    for number in range(5):
        assert (await ask(plant, grant, f"a{number}")).status is GateStatus.PENDING
        for _ in range(4):
            await trio.sleep(8)
            await plant.renewed(grant)
    assert status_of(plant, zombie_id) is ZombieStatus.ACTIVE


async def test_a_runner_that_counts_an_anomaly_is_believed_where_the_agent_has_such_rules(
    plant: Plant, autojump_clock: MockClock
) -> None:
    for config, status in ((THRICE, GateStatus.AUTO_KILLED), ("", GateStatus.PENDING)):
        name = "strict" if config else "free"
        zombie_id, runner_id = await plant.install(name, config=config), await plant.enrol(name)
        await plant.deliver(zombie_id)
        assert (await ask(plant, await plant.grant(runner_id), "one", "anomaly")).status is status


async def test_a_person_s_leave_stands_when_the_run_asks_for_the_same_again(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await plant.install(config=NEVER), await plant.enrol()
    await plant.deliver(zombie_id)
    grant = await plant.grant(runner_id)
    gate = await plant.ask_approval(grant)
    assert gate.status is GateStatus.AUTO_KILLED
    await plant.change_status(zombie_id, "active")
    assert await plant.ask_approval(grant) == gate
    assert status_of(plant, zombie_id) is ZombieStatus.ACTIVE


async def test_a_question_whose_event_ended_unheard_is_closed_within_a_second(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await plant.install(), await plant.enrol()
    event_id = await plant.deliver(zombie_id)
    grant = await plant.grant(runner_id)
    gate = await plant.ask_approval(grant)
    await plant.system.stop("gate", gate.id)
    # As a node leaves it that ended the event and crashed before it could say so.
    plant.storage.tables.events[event_id] = replace(
        plant.event(event_id), status=EventStatus.PROCESSED, completed_at=1
    )
    await trio.sleep(1)
    closed = plant.storage.tables.gates[gate.id]
    assert (closed.status, closed.resolved_by) == (GateStatus.DENIED, "system:run_ended")


async def test_while_the_gates_are_away_nothing_passes(plant: Plant, autojump_clock: MockClock) -> None:
    zombie_id = await plant.install(config=NEVER_WAKE)
    await plant.deliver(zombie_id)
    await plant.change_status(zombie_id, "active")
    before = len(plant.storage.tables.events)
    plant.faults.away = True
    with pytest.raises(StorageUnavailable):
        await plant.system.ask("zombie", zombie_id, plant.webhook())
    plant.faults.away = False
    assert len(plant.storage.tables.events) == before
