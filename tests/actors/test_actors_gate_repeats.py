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
from tests.worlds.actors import ActorsWorld

THRICE = "gates: {anomaly_rules: [{pattern: same_action, threshold_count: 3, threshold_window_s: 60}]}"
NEVER_WAKE = "gates: {rules: [{tool: 'workflow_run.*', action: '*', behavior: auto_kill}]}"
NEVER = "gates: {rules: [{tool: http, action: POST, behavior: auto_kill}]}"


def status_of(world: ActorsWorld, zombie_id: UUID) -> ZombieStatus:
    return world.storage.tables.zombies[zombie_id].status


async def first_of(world: ActorsWorld, zombie_id: UUID, message: Deliver) -> Accepted:
    first = await world.system.ask("zombie", zombie_id, message)
    assert isinstance(first, Accepted)
    return first


async def ask(world: ActorsWorld, grant: Grant, action_id: str, kind: str = "") -> Gate:
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
    gate = await world.system.ask("lease", grant.lease.id, message)
    assert isinstance(gate, Gate), gate
    return gate


async def test_a_repeated_delivery_is_no_further_occurrence(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id = await world.install(config=THRICE)
    message = world.webhook(delivery="d1")
    first = await first_of(world, zombie_id, message)
    for _ in range(5):
        assert await world.system.ask("zombie", zombie_id, message) == AlreadyAccepted(first.event_id)
    assert status_of(world, zombie_id) is ZombieStatus.ACTIVE

    await world.deliver(zombie_id)
    await world.deliver(zombie_id)
    assert status_of(world, zombie_id) is ZombieStatus.PAUSED


async def test_repeats_that_come_at_once_are_one_occurrence(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id = await world.install(config=THRICE)
    message = world.webhook(delivery="d1")
    answers: list[Any] = []
    world.faults.latency_s = 0.2

    async def deliver() -> None:
        answers.append(await world.system.ask("zombie", zombie_id, message))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(deliver)

    assert sorted(type(answer).__name__ for answer in answers) == ["Accepted", *4 * ["AlreadyAccepted"]]
    assert status_of(world, zombie_id) is ZombieStatus.ACTIVE


async def test_a_repeat_of_what_was_stopped_pauses_nobody_again(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id = await world.install(config=NEVER_WAKE)
    message = world.webhook(delivery="d1")
    first = await first_of(world, zombie_id, message)
    assert status_of(world, zombie_id) is ZombieStatus.PAUSED

    await world.change_status(zombie_id, "active")
    assert await world.system.ask("zombie", zombie_id, message) == AlreadyAccepted(first.event_id)
    assert status_of(world, zombie_id) is ZombieStatus.ACTIVE


async def test_a_repeat_is_known_though_its_kind_is_no_longer_listed(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id = await world.install()
    message = world.webhook(delivery="d1")
    first = await first_of(world, zombie_id, message)
    zombie = world.storage.tables.zombies[zombie_id]
    compiled = {**zombie.compiled}
    compiled["triggers"] = [{**trigger, "events": ["push"]} for trigger in compiled["triggers"]]
    changed = replace(zombie, compiled=compiled, config_version_id=world.actors_world.new_id())
    world.storage.tables.zombies[zombie_id] = changed
    await trio.sleep(RECORD_FRESH_MS / 1000)
    assert await world.system.ask("zombie", zombie_id, message) == AlreadyAccepted(first.event_id)

    other = await world.system.ask("zombie", zombie_id, world.webhook(delivery="d2"))
    assert other == Ignored("event_not_listed")


async def test_the_same_action_asked_for_too_often_stops_the_agent(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(config=THRICE), await world.enrol()
    await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    for _ in range(4):  # The same question is the same, however often it is asked.
        assert (await ask(world, grant, "one")).status is GateStatus.PENDING
    assert (await ask(world, grant, "two")).status is GateStatus.PENDING
    assert status_of(world, zombie_id) is ZombieStatus.ACTIVE

    third = await ask(world, grant, "three")
    assert (third.status, third.resolved_by) == (GateStatus.AUTO_KILLED, "system:anomaly")
    assert status_of(world, zombie_id) is ZombieStatus.PAUSED


async def test_what_was_asked_long_ago_is_no_anomaly(world: ActorsWorld, autojump_clock: MockClock) -> None:
    zombie_id, runner_id = await world.install(config=THRICE), await world.enrol()
    await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    for number in range(5):
        assert (await ask(world, grant, f"a{number}")).status is GateStatus.PENDING
        for _ in range(4):
            await trio.sleep(8)
            await world.renewed(grant)

    assert status_of(world, zombie_id) is ZombieStatus.ACTIVE


async def test_a_runner_that_counts_an_anomaly_is_believed_where_the_agent_has_such_rules(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    for config, status in ((THRICE, GateStatus.AUTO_KILLED), ("", GateStatus.PENDING)):
        name = "strict" if config else "free"
        zombie_id, runner_id = await world.install(name, config=config), await world.enrol(name)
        await world.deliver(zombie_id)
        assert (await ask(world, await world.grant(runner_id), "one", "anomaly")).status is status


async def test_a_person_s_leave_stands_when_the_run_asks_for_the_same_again(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(config=NEVER), await world.enrol()
    await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    gate = await world.ask_approval(grant)
    assert gate.status is GateStatus.AUTO_KILLED

    await world.change_status(zombie_id, "active")
    assert await world.ask_approval(grant) == gate
    assert status_of(world, zombie_id) is ZombieStatus.ACTIVE


async def test_a_question_whose_event_ended_unheard_is_closed_within_a_second(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    event_id = await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    gate = await world.ask_approval(grant)
    await world.system.stop("gate", gate.id)
    # As a node leaves it that ended the event and crashed before it could say so.
    world.storage.tables.events[event_id] = replace(
        world.event(event_id), status=EventStatus.PROCESSED, completed_at=1
    )
    await trio.sleep(1)
    closed = world.storage.tables.gates[gate.id]

    assert (closed.status, closed.resolved_by) == (GateStatus.DENIED, "system:run_ended")


async def test_while_the_gates_are_away_nothing_passes(world: ActorsWorld, autojump_clock: MockClock) -> None:
    zombie_id = await world.install(config=NEVER_WAKE)
    await world.deliver(zombie_id)
    await world.change_status(zombie_id, "active")
    before = len(world.storage.tables.events)
    world.faults.away = True
    with pytest.raises(StorageUnavailable):
        await world.system.ask("zombie", zombie_id, world.webhook())
    world.faults.away = False

    assert len(world.storage.tables.events) == before
