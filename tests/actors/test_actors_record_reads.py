"""How often an agent's record is read: not before each claim, and never is a claim made from an old one."""

from uuid import UUID

import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sexton_actors.protocol.lease import Reported
from sexton_storage.records.workspaces import Workspace
from sexton_storage.records.zombies import Zombie
from tests.worlds.actors import ActorsWorld

RUNS = 5
LATER_S = 5
"""Longer than a record is taken for fresh."""


def count_loads(world: ActorsWorld) -> list[int]:
    """One for each time that an agent's record is read from now on."""
    load = world.storage.zombies.load_with_pause
    loads: list[int] = []

    async def counted(zombie_id: UUID, known: Zombie | None = None) -> tuple[Zombie, bool] | None:
        loads.append(1)
        return await load(zombie_id, known)

    vars(world.storage.zombies)["load_with_pause"] = counted
    return loads


async def run_once(world: ActorsWorld, runner: UUID, lasting_s: float = 0) -> None:
    """One event of whatever agent is next, from claim to report."""
    grant = await world.grant(runner)
    await trio.sleep(lasting_s)
    assert isinstance(await world.report(grant), Reported)


async def test_an_agent_that_is_busy_for_long_is_not_read_again_for_each_run(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    agent, runner = await world.install(), await world.enrol()
    for _ in range(RUNS + 1):
        await world.deliver(agent)
    await run_once(world, runner)
    loads = count_loads(world)

    for _ in range(RUNS):
        await trio.sleep(LATER_S)
        await run_once(world, runner, LATER_S)

    assert loads == []


async def test_a_webhook_reads_its_agent_and_the_pause_of_the_workspace_by_one_question(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    agent = await world.install()
    await world.deliver(agent)
    await trio.sleep(LATER_S)
    loads, load_workspace = count_loads(world), world.storage.workspaces.load
    of_workspaces: list[UUID] = []

    async def noted(workspace_id: UUID) -> Workspace | None:
        of_workspaces.append(workspace_id)
        return await load_workspace(workspace_id)

    vars(world.storage.workspaces)["load"] = noted
    await world.deliver(agent)

    assert (len(loads), of_workspaces) == (1, [])


async def test_a_record_that_another_node_has_changed_is_what_the_next_run_is_given(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    agent, runner = await world.install(), await world.enrol()
    await world.deliver(agent)
    await world.deliver(agent)
    await run_once(world, runner)

    newer = await _changed_elsewhere(world, agent)
    grant = await world.grant(runner)

    assert grant.lease.config_version_id == newer


async def _changed_elsewhere(world: ActorsWorld, agent: UUID) -> UUID:
    """Save new files as another node does, of which this one has not heard; the id of their version."""
    storage, record = world.storage, await world.storage.zombies.load(agent)
    assert record is not None
    config = await storage.zombies.load_config(record.config_version_id)
    assert config is not None
    newer = replace(config, id=world.actors_world.new_id(), revision=config.revision + 1)
    changed = replace(record, version=record.version + 1, config_version_id=newer.id)
    await storage.zombies.save(changed, (), newer)
    return newer.id
