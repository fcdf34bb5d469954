"""A tenant in a storage, and short ways to make and move what lives there."""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any
from uuid import UUID

import uuid_utils.compat as uuid_utils
from msgspec.structs import replace

from sexton_storage.records.configs import ConfigStatus, ConfigVersion
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.records.leases import Lease, LeaseStatus, Rates
from sexton_storage.records.metering import Slice
from sexton_storage.records.runners import AdminState, Runner
from sexton_storage.records.tenants import PlanTier, Tenant
from sexton_storage.records.users import Role, User
from sexton_storage.records.workspaces import Workspace
from sexton_storage.records.zombies import Zombie, ZombieStatus
from sexton_storage.stores import Storage
from sexton_storage.writes import (
    Appended,
    AppendEvent,
    Claimed,
    ClaimEvent,
    Ended,
    EndLease,
    EventEnd,
    Renewed,
    RenewLease,
)

HOUR_MS = 3_600_000
RICH = 10**15


def new_id() -> UUID:
    return uuid_utils.uuid7()


class StorageWorld:
    """One tenant with a workspace in a storage, and short ways to make and move what lives there."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.tenant_id = new_id()
        self.workspace_id = new_id()
        self._numbers = count(1)

    @property
    def now(self) -> int:
        return self.storage.clock.now_ms()

    async def found(self, balance: int = RICH) -> "StorageWorld":
        at = self.now
        tenant = Tenant(self.tenant_id, "tenant", PlanTier.FREE, balance, None, at, at)
        workspace = Workspace(self.workspace_id, self.tenant_id, "workspace", paused=False, created_at=at)
        user = User(
            new_id(), self.tenant_id, f"local:{new_id()}", Role.ADMIN, platform_admin=False, created_at=at
        )
        await self.storage.tenants.create(tenant, workspace, user)
        return self

    async def beside(self, balance: int = RICH) -> "StorageWorld":
        """Another tenant in the same storage."""
        return await StorageWorld(self.storage).found(balance)

    # --- agents ---------------------------------------------------------------------------------------------

    def agent_record(self, **changes: Any) -> Zombie:
        at = self.now
        agent = Zombie(
            id=new_id(),
            workspace_id=self.workspace_id,
            tenant_id=self.tenant_id,
            name=f"agent-{next(self._numbers)}",
            status=ZombieStatus.ACTIVE,
            version=1,
            config_version_id=new_id(),
            config_revision=1,
            compiled={"tools": ["http"]},
            required_tags=("gpu",),
            approval_token_hash=b"\x01" * 32,
            url_secret_hashes={"alerts": "ab"},
            created_at=at,
            updated_at=at,
        )
        return replace(agent, **changes)

    def config_of(self, agent: Zombie) -> ConfigVersion:
        return ConfigVersion(
            agent.config_version_id,
            agent.id,
            agent.config_revision,
            ConfigStatus.ACTIVE,
            "# s",
            "# t",
            agent.compiled,
            agent.created_at,
        )

    async def agent(self, **changes: Any) -> Zombie:
        agent = self.agent_record(**changes)
        await self.storage.zombies.create(agent, self.config_of(agent))
        return agent

    # --- events ---------------------------------------------------------------------------------------------

    def event_of(self, agent: Zombie, **changes: Any) -> Event:
        at = self.now
        event = Event(
            id=new_id(),
            zombie_id=agent.id,
            workspace_id=agent.workspace_id,
            tenant_id=agent.tenant_id,
            actor="webhook:github",
            event_type="push",
            status=EventStatus.RECEIVED,
            request_json='{"n": 1}',
            created_at=at,
            updated_at=at,
        )
        return replace(event, **changes)

    def frame(
        self, agent: Zombie, kind: str = "event_received", data: Mapping[str, Any] | None = None
    ) -> NewFrame:
        return NewFrame(agent.id, None, kind, self.now, data or {})

    async def append(self, agent: Zombie, **changes: Any) -> Event:
        event = self.event_of(agent, **changes)
        appended = await self.storage.journal.write(AppendEvent(event, None, None, None, ()))
        assert appended == Appended(event.id)
        return event

    # --- leases ---------------------------------------------------------------------------------------------

    def claim_of(self, agent: Zombie, **changes: Any) -> ClaimEvent:
        claim = ClaimEvent(
            zombie_id=agent.id,
            lease_id=new_id(),
            runner_id=new_id(),
            now=self.now,
            term_ms=30_000,
            ceiling_ms=12 * HOUR_MS,
            rates=Rates(100_000),
            budget_daily_nanos=None,
            budget_monthly_nanos=None,
        )
        return replace(claim, **changes)

    async def claim(self, agent: Zombie, **changes: Any) -> Claimed:
        claimed = await self.storage.journal.write(self.claim_of(agent, **changes))
        assert isinstance(claimed, Claimed)
        return claimed

    async def lease(self, **changes: Any) -> Lease:
        """A lease of a new agent's first event."""
        agent = await self.agent()
        await self.append(agent)
        return (await self.claim(agent, **changes)).lease

    def slice_of(self, lease: Lease, nanos: int) -> Slice:
        return Slice(lease.slice_seq + 1, 10, 2, 5, 1_000, nanos, 0)

    def renewal(self, lease: Lease, nanos: int = 100, **changes: Any) -> RenewLease:
        now = self.now
        renewed = replace(
            lease,
            version=lease.version + 1,
            expires_at=max(lease.expires_at, now + 30_000),
            metered_at=now,
            slice_seq=lease.slice_seq + 1,
            input_tokens=lease.input_tokens + 10,
            cached_input_tokens=lease.cached_input_tokens + 2,
            output_tokens=lease.output_tokens + 5,
        )
        return replace(RenewLease(renewed, self.slice_of(lease, nanos), now), **changes)

    async def renew(self, lease: Lease, nanos: int = 100) -> tuple[Lease, Renewed]:
        write = self.renewal(lease, nanos)
        renewed = await self.storage.journal.write(write)
        assert isinstance(renewed, Renewed)
        return write.lease, renewed

    def end_of(
        self,
        lease: Lease,
        event: EventEnd,
        *,
        status: LeaseStatus = LeaseStatus.REPORTED,
        nanos: int | None = None,
        frames: Sequence[NewFrame] = (),
        **changes: Any,
    ) -> EndLease:
        part = None if nanos is None else self.slice_of(lease, nanos)
        end = EndLease(lease.id, lease.version, status, self.now, part, event, tuple(frames))
        return replace(end, **changes)

    async def end(self, lease: Lease, event: EventEnd, **changes: Any) -> Ended:
        ended = await self.storage.journal.write(self.end_of(lease, event, **changes))
        assert isinstance(ended, Ended)
        return ended

    # --- gates and runners ----------------------------------------------------------------------------------

    def gate_of(self, event: Event, lease: Lease | None = None, **changes: Any) -> Gate:
        at = self.now
        gate = Gate(
            id=new_id(),
            zombie_id=event.zombie_id,
            workspace_id=event.workspace_id,
            tenant_id=event.tenant_id,
            event_id=event.id,
            lease_id=None if lease is None else lease.id,
            action_id=f"action-{next(self._numbers)}",
            status=GateStatus.PENDING,
            requested_at=at,
            timeout_at=at + HOUR_MS,
            zombie_name="agent",
            tool_name="deploy",
            action_name="production",
            gate_kind="deploy",
            proposed_action="deploy it",
            evidence={"diff": ["a", 1]},
            blast_radius="all",
        )
        return replace(gate, **changes)

    def runner_record(self, **changes: Any) -> Runner:
        runner = Runner(
            id=new_id(),
            host_id=f"host-{next(self._numbers)}",
            sandbox_tier="bubblewrap",
            labels=("gpu", "eu"),
            slots=4,
            token_hash=new_id().bytes,
            admin_state=AdminState.ACTIVE,
            version=1,
            created_at=self.now,
        )
        return replace(runner, **changes)

    # --- money ----------------------------------------------------------------------------------------------

    async def balance(self) -> int:
        tenant = await self.storage.tenants.load(self.tenant_id)
        assert tenant is not None
        return tenant.balance_nanos


async def metered(world: StorageWorld, events: Sequence[UUID]) -> int:
    """The sum of what the metering rows of these events say was charged."""
    rows = [await world.storage.metering.list(world.tenant_id, event_id) for event_id in events]
    return sum(row.charged_nanos for of_event in rows for row in of_event)
