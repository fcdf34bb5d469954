"""Whom a request is about: anybody, or in a lucky world mostly those for whom it can hold."""

from uuid import UUID

from sexton_storage.records.gates import GateStatus
from sexton_storage.records.leases import Lease
from sexton_storage.records.zombies import ZombieStatus
from sexton_storage.rules import LIVE_LEASE
from tests.storage.row_worlds import World

UNLUCKY_PERCENT = 8
"""How many of those for whom it cannot hold are asked all the same."""


def leases_for(world: World, percent: int = 90, *, current: bool = False) -> list[Lease]:
    """In a lucky world ``percent`` of the live leases, few others; ``current``: whose term is not over."""
    leases = list(world.tables.leases.values())
    if not world.is_lucky:
        return world.dice.some(leases, 90)
    good = [
        lease
        for lease in leases
        if lease.status in LIVE_LEASE and (not current or lease.expires_at > world.now + 50)
    ]
    bad = [lease for lease in leases if lease not in good]
    return [*world.dice.some(good, percent), *world.dice.some(bad[-len(good) - 1 :], UNLUCKY_PERCENT)]


def gates_for(world: World) -> list[UUID]:
    """Gates to be answered: of a lucky world mostly those that wait."""
    gates = world.tables.gates.values()
    if not world.is_lucky:
        return world.dice.some([gate.id for gate in gates])
    waiting = [gate.id for gate in gates if gate.status is GateStatus.PENDING]
    over = [gate.id for gate in gates if gate.status is not GateStatus.PENDING]
    return [*world.dice.some(waiting, 60), *world.dice.some(over[-len(waiting) - 1 :], UNLUCKY_PERCENT)]


def gates_to_park_at(world: World, lease: Lease) -> list[UUID]:
    """What a run may be parked at: a stranger's gate, any one, those of its event."""
    dice, gates = world.dice, list(world.tables.gates.values())
    own = [gate.id for gate in gates if gate.event_id == lease.event_id]
    if world.is_lucky and own and not dice.often(UNLUCKY_PERCENT):
        return own
    return [dice.id(), dice.one(dice.id(), *(gate.id for gate in gates)), *own]


def agents_for(world: World) -> list[UUID]:
    """Agents to be claimed for: of a lucky world mostly those that have something to do."""
    tables = world.tables
    if not world.is_lucky:
        return world.dice.some(list(tables.zombies))
    ready = [
        agent.id
        for agent in tables.zombies.values()
        if agent.status is ZombieStatus.ACTIVE
        and tables.heads[agent.id].live_lease_id is None
        and tables.received(agent.id)
    ]
    others = [agent for agent in tables.zombies if agent not in ready]
    return [*world.dice.some(ready, 90), *world.dice.some(others, UNLUCKY_PERCENT)]


def runner_for(world: World, agent_id: UUID) -> UUID:
    """A runner that claims: of a lucky world mostly one that serves the agent's workspace."""
    dice, runners = world.dice, world.tables.runners
    agent = world.tables.zombies.get(agent_id)
    if world.is_lucky and agent is not None and not dice.often(UNLUCKY_PERCENT):
        serving = [
            runner.id
            for runner in runners.values()
            if runner.tenant_id in {None, agent.tenant_id}
            and runner.workspace_id in {None, agent.workspace_id}
        ]
        if serving:
            return dice.one(*serving)
    return dice.one(*runners, dice.id())


def lease_of_gate(world: World, lease: Lease) -> UUID:
    """The lease that asks for a gate, and sometimes another."""
    return world.dice.one(*[lease.id] * (9 if world.is_lucky else 3), world.dice.id())
