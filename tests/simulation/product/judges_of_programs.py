"""What must hold of programs: servers stay small and whole, and no two runners work on one agent."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final
from uuid import UUID

from sexton_engine import ActorSystem
from tests.simulation.product.record import Judge, Record
from tests.simulation.world.processes import Process, State

MAILS_MAX: Final = 500
ACTORS_MAX: Final = 150
DEADLINES_MAX: Final = 1_000
CONNECTIONS_MAX: Final = 200
LOOKS_MAX: Final = 2
"""One that was frozen takes a moment to notice."""


def _of_live_servers(record: Record) -> Iterator[tuple[Process, ActorSystem]]:
    for process, system in record.systems.items():
        if process.state is State.RUNNING and not process.has_ended:
            yield process, system


def no_actor_crashes(record: Record) -> Iterator[str]:
    """Whatever happens outside, no actor of a server crashes, and no supervisor gives one up."""
    for process, system in _of_live_servers(record):
        for kind in system.statistics().kinds:
            if kind.crashes or kind.escalations:
                yield f"{process}: {kind.crashes} crashes of {kind.kind}, {kind.escalations} too many"


def nothing_piles_up(record: Record) -> Iterator[str]:
    """Mailboxes, actors, deadlines and connections of a server stay bounded by what there is to do."""
    live = sum(lease.ended_at is None for lease in record.tables.leases.values())
    for process, system in _of_live_servers(record):
        seen = system.statistics()
        waiting = sum(kind.mailbox_depth for kind in seen.kinds)
        actors = sum(kind.live for kind in seen.kinds)
        if waiting > MAILS_MAX:
            yield f"{process}: {waiting} messages wait"
        if actors > ACTORS_MAX + live:
            yield f"{process}: {actors} actors for {live} leases"
        if seen.deadlines > DEADLINES_MAX:
            yield f"{process}: {seen.deadlines} deadlines"
        if len(process.numbers) > CONNECTIONS_MAX:
            yield f"{process}: {len(process.numbers)} connections"


OF_NODES: Final[Sequence[Judge]] = (no_actor_crashes, nothing_piles_up)
"""Those that look into the memory of the servers."""


def one_run_at_a_time(record: Record) -> Iterator[str]:
    """A runner that has lost its lease stops, soon after another one's run of the same agent is under way."""
    at_work: Counter[UUID] = Counter()
    for agent, process in record.runs.at_work.values():
        if process.state is State.RUNNING and not process.has_ended:
            at_work[agent] += 1
    doubled = {agent for agent, count in at_work.items() if count > 1}
    record.doubled = {agent: record.doubled.get(agent, 0) + 1 for agent in doubled}
    for agent, looks in record.doubled.items():
        if looks > LOOKS_MAX:
            yield f"agent {agent} has had {at_work[agent]} for {looks} seconds"


def handed_its_own(record: Record) -> Iterator[str]:
    """A runner is given leases that are its own, and each run its agent's instructions, as of its version."""
    tables = record.tables
    for lease_id, host, instructions in record.runs.handed:
        lease = tables.leases[lease_id]
        holder, agent = tables.runners[lease.runner_id].host_id, tables.zombies[lease.zombie_id].name
        if holder != host:
            yield f"lease {lease_id} is of {holder}, and {host} was given it"
        if agent not in instructions:
            yield f"a run of {agent} was given {instructions!r}"
        version = tables.configs.get(lease.config_version_id or lease.id)
        if version is not None and not version.source_markdown.rstrip("\n").endswith(instructions):
            yield f"lease {lease_id} is of {version.source_markdown!r}, its run was given {instructions!r}"
    record.runs.handed.clear()


def no_false_death(record: Record) -> Iterator[str]:
    """No runner is told that its lease is lost while it holds it."""
    for lease_id, code, at_ms in record.runs.told_lost:
        lease = record.tables.leases.get(lease_id)
        if lease is not None and lease.ended_at is None and lease.expires_at > record.tables.now():
            yield f"lease {lease_id} was refused with {code} at {at_ms}, and is live"
    record.runs.told_lost.clear()
