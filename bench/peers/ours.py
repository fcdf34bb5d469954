"""Sexton without its front end: an event claimed under a lease, renewed once, reported, in one process.

Each cycle is three durable writes: the claim with its fencing token, a renewal with its metering row and
debit, and the report with the last row and the event's end.
"""

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from random import SystemRandom
from time import perf_counter
from typing import Any, cast
from uuid import UUID

import trio
import uuid_utils.compat

sys.path.insert(0, str(Path(__file__).parents[2]))  # so that the file also runs by itself

from bench.lease_renewal import NoSealer
from bench.product import SKILL, TRIGGER
from sexton_actors.catalogue import Catalogue
from sexton_actors.protocol.lease import Renew, Renewal, Report, Reported
from sexton_actors.protocol.queue import EventQueued, Grant
from sexton_actors.protocol.runner import Leases, Poll
from sexton_actors.protocol.zombie import Install, Installed
from sexton_actors.secrets import Secrets
from sexton_actors.tree import tree
from sexton_actors.world import World
from sexton_engine import ActorSystem, open_system
from sexton_storage.postgres import open_postgres_storage
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.runners import AdminState, Runner
from sexton_storage.records.tenants import PlanTier, Tenant
from sexton_storage.records.users import Role, User
from sexton_storage.records.workspaces import Workspace
from sexton_storage.stores import Storage
from sexton_storage.writes import Appended, AppendEvent

AGENTS = 256
"""One event of an agent runs at a time, so this is how many leases there can be at once."""
RUNNERS = 8
LEASES_A_POLL = 32
BALANCE_NANOS = 10**15


async def cycles(dsn: str, jobs: int) -> float:
    """Cycles a second over that many events, which were kept before the clock began."""
    async with open_postgres_storage(dsn, new_id=uuid_utils.compat.uuid7) as postgres:
        storage = cast("Storage", postgres)
        random = SystemRandom()
        world = World(
            storage=storage,
            secrets=Secrets(storage.credentials, NoSealer(), storage.clock),
            catalogue=Catalogue("", ()),
            new_id=uuid_utils.compat.uuid7,
            new_token=lambda count: random.randbytes(count).hex(),
        )
        async with open_system(tree(world)) as system:
            work = Work(system, world)
            await work.prepare(jobs)
            began = perf_counter()
            async with trio.open_nursery() as nursery:
                for runner_id in work.runners:
                    nursery.start_soon(work.run, runner_id, jobs)
            seconds = perf_counter() - began
    assert len(work.reported) == jobs, f"{len(work.reported)} of {jobs} events were reported"
    return jobs / seconds


class Work:
    """A tenant's agents with events that wait, and the runners that take them."""

    def __init__(self, system: ActorSystem, world: World) -> None:
        self._system = system
        self._world = world
        self.runners: list[UUID] = []
        self.reported: set[UUID] = set()

    async def prepare(self, jobs: int) -> None:
        new_id, now = self._world.new_id, self._world.now_ms()
        tenant = Tenant(new_id(), "bench", PlanTier.ENTERPRISE, BALANCE_NANOS, None, now, now)
        workspace = Workspace(new_id(), tenant.id, "bench", paused=False, created_at=now)
        user = User(new_id(), tenant.id, "local:bench", Role.ADMIN, platform_admin=True, created_at=now)
        await self._world.storage.instance.first_start(tenant, workspace, user, {})
        for number in range(RUNNERS):
            self.runners.append(await self._enrol(number, now))
        agents = [await self._install(workspace, number) for number in range(AGENTS)]
        async with trio.open_nursery() as nursery:
            for number in range(AGENTS):
                mine = len(range(number, jobs, AGENTS))
                nursery.start_soon(self._fill, agents[number], workspace, mine)
        for agent in agents:
            self._system.tell("queue", agent, EventQueued(now))

    async def _enrol(self, number: int, now: int) -> UUID:
        token_hash = hashlib.sha256(str(number).encode()).digest()
        runner = Runner(
            self._world.new_id(),
            f"bench-{number}",
            "bubblewrap",
            (),
            AGENTS,
            token_hash,
            AdminState.ACTIVE,
            1,
            now,
        )
        assert await self._world.storage.runners.enrol(runner, enrolment_hash=None)
        return runner.id

    async def _install(self, workspace: Workspace, number: int) -> UUID:
        name = f"bench-{number}"
        message = Install(
            workspace.id,
            workspace.tenant_id,
            SKILL.format(name=name),
            TRIGGER.format(name=name),
            by="user:bench",
            may_grant=True,
        )
        installed = await self._system.ask("zombie", self._world.new_id(), message)
        assert isinstance(installed, Installed), installed
        return installed.zombie.id

    async def _fill(self, agent: UUID, workspace: Workspace, count: int) -> None:
        for _ in range(count):
            now = self._world.now_ms()
            event = Event(
                self._world.new_id(),
                agent,
                workspace.id,
                workspace.tenant_id,
                "steer:bench",
                "message",
                EventStatus.RECEIVED,
                "{}",
                now,
                now,
            )
            kept = await self._world.storage.journal.write(AppendEvent(event, None, None, None, ()))
            assert isinstance(kept, Appended), kept

    async def run(self, runner_id: UUID, jobs: int) -> None:
        """One runner: takes what it is given, renews each lease once, reports."""
        while len(self.reported) < jobs:
            leases = await self._system.ask("runner", runner_id, Poll(LEASES_A_POLL, 50), timeout=30)
            assert isinstance(leases, Leases), leases
            await self._carry_out(runner_id, leases.grants)

    async def _carry_out(self, runner_id: UUID, grants: Sequence[Grant]) -> None:
        renewals = await self._system.ask_all(
            "lease", [(grant.lease.id, Renew(runner_id, 0, 0, 0)) for grant in grants]
        )
        assert all(isinstance(one, Renewal) for one in renewals), renewals
        reports = await self._system.ask_all(
            "lease", [(grant.lease.id, _report(runner_id, grant)) for grant in grants]
        )
        assert all(isinstance(one, Reported) for one in reports), reports
        self.reported.update(grant.event.id for grant in grants)


def _report(runner_id: UUID, grant: Grant) -> Report:
    facts: dict[str, Any] = {"checked": 1}
    return Report(
        runner_id=runner_id,
        event_id=grant.event.id,
        fencing_token=grant.lease.fencing_token,
        outcome="processed",
        failure_reason=None,
        response_text="Done.",
        evidence=facts,
        input_tokens=0,
        cached_input_tokens=0,
        output_tokens=0,
        time_to_first_token_ms=None,
        wall_ms=1,
        checkpoint=None,
        digest=grant.lease.id.bytes * 2,
    )
