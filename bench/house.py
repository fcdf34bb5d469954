"""The engine room in this process over one database, without a front end."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import SystemRandom
from typing import Any, cast
from uuid import UUID

import uuid_utils.compat

from bench.lease_renewal import NoSealer
from bench.product import SKILL, TRIGGER
from sexton_actors.catalogue import Catalogue
from sexton_actors.protocol.lease import Report, Reported
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

BALANCE_NANOS = 10**15
SLOTS = 256
WAIT_MS = 20_000
"""A runner that waits longer than this waits in vain."""
PATIENCE_S = 40.0


class House:
    """What a benchmark does with the actors of one node."""

    def __init__(self, system: ActorSystem, world: World) -> None:
        self.system = system
        self.world = world

    async def tenant(self, name: str) -> Workspace:
        """A tenant with more money than any run uses up; its first workspace."""
        new_id, now = self.world.new_id, self.world.now_ms()
        tenant = Tenant(new_id(), name, PlanTier.ENTERPRISE, BALANCE_NANOS, None, now, now)
        workspace = Workspace(new_id(), tenant.id, name, paused=False, created_at=now)
        user = User(new_id(), tenant.id, f"local:{name}", Role.ADMIN, platform_admin=True, created_at=now)
        await self.world.storage.tenants.create(tenant, workspace, user)
        return workspace

    async def enrol(self, name: str) -> UUID:
        """A runner with as many slots as there may be."""
        token_hash = hashlib.sha256(name.encode()).digest()
        now, new_id = self.world.now_ms(), self.world.new_id()
        runner = Runner(new_id, name, "bubblewrap", (), SLOTS, token_hash, AdminState.ACTIVE, 1, now)
        assert await self.world.storage.runners.enrol(runner, enrolment_hash=None)
        return runner.id

    async def install(self, workspace: Workspace, name: str) -> UUID:
        files = SKILL.format(name=name), TRIGGER.format(name=name)
        message = Install(workspace.id, workspace.tenant_id, *files, by="user:bench", may_grant=True)
        installed = await self.system.ask("zombie", self.world.new_id(), message)
        assert isinstance(installed, Installed), installed
        return installed.zombie.id

    async def keep(self, workspace: Workspace, agent: UUID) -> Event:
        """Commit an event, as a webhook does, without telling anybody."""
        now, event_id = self.world.now_ms(), self.world.new_id()
        event = Event(
            event_id,
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
        kept = await self.world.storage.journal.write(AppendEvent(event, None, None, None, ()))
        assert isinstance(kept, Appended), kept
        return event

    def tell(self, event: Event) -> None:
        """What the zombie's actor tells the queue when an event is committed."""
        self.system.tell("queue", event.zombie_id, EventQueued(event.created_at))

    async def poll(self, runner_id: UUID, *, most: int = 1, wait_ms: int = WAIT_MS) -> tuple[Grant, ...]:
        leases = await self.system.ask("runner", runner_id, Poll(most, wait_ms), timeout=PATIENCE_S)
        assert isinstance(leases, Leases), leases
        return leases.grants

    async def report(self, runner_id: UUID, grant: Grant) -> None:
        """End the run, as done."""
        reported = await self.system.ask("lease", grant.lease.id, report_of(runner_id, grant))
        assert isinstance(reported, Reported), reported


@asynccontextmanager
async def open_house(dsn: str) -> AsyncIterator[House]:
    """The whole tree over that database."""
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
            yield House(system, world)


def report_of(runner_id: UUID, grant: Grant) -> Report:
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
