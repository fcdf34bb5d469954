"""What a store of each record promises, whatever keeps it."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeVar
from uuid import UUID

from sexton_storage import paging
from sexton_storage.agent_keys import AgentKeyStore
from sexton_storage.billing import ChargeStore, PlanStore
from sexton_storage.chat import ChatStore
from sexton_storage.crons import CronStore
from sexton_storage.fleet import FleetStore, RunnerStore
from sexton_storage.follow_ups import FollowUpStore
from sexton_storage.grants import GrantStore
from sexton_storage.identity import AuthSessionStore, SignInStore
from sexton_storage.improvement import ImprovementStore, Proposal
from sexton_storage.key_uses import KeyUseStore
from sexton_storage.memories import MemoriesStore
from sexton_storage.providers import ProviderStore
from sexton_storage.records import (
    ConfigStatus,
    ConfigVersion,
    Event,
    EventStatus,
    EventWaits,
    Frame,
    Gate,
    GateStatus,
    Lease,
    MeteringPeriod,
    ReadyAgent,
    Tenant,
    User,
    Workspace,
    Zombie,
    ZombieStatus,
)
from sexton_storage.signals import Signals
from sexton_storage.statistics import StorageStatistics
from sexton_storage.tenancy import ApiKeyStore, CredentialStore, TenantStore, UserStore, WorkspaceStore
from sexton_storage.writes import NewFrame, Write

R = TypeVar("R")


class StorageError(Exception):
    """Any fault of the wing."""


class StorageUnavailable(StorageError):
    """The database cannot be reached now.

    The same call may succeed later. Nothing was done, or it is settled.
    """


class RowRefused(StorageError):
    """The database takes no such row (a constraint, or a value out of range).

    The same write will fail again.
    """


class NameTaken(StorageError):
    """A unique name is in use already."""


class Conflict(StorageError):
    """The row is not at the version that the save had seen."""


Page = paging.Page


class Journal(Protocol):
    """The group-commit writer of the hot rows."""

    async def write(self, write: Write[R]) -> R:
        """Answer once the write has committed.

        Raises StorageUnavailable (nothing was kept) when it cannot.
        """
        ...

    def submit(self, write: Write[R], done: Callable[[R | Exception], None]) -> None:
        """As ``write``, but calls back in the caller's loop.

        For those who must not hold a task while it commits.
        """
        ...

    def statistics(self) -> Any:
        """Depth of each lane, batches, writes, seconds, retries, outages (frozen)."""
        ...


class ZombieStore(Protocol):
    async def create(self, zombie: Zombie, config: ConfigVersion) -> None:
        """Raises NameTaken when the workspace has an agent of that name."""
        ...

    async def load(self, zombie_id: UUID) -> Zombie | None:
        """With the compiled form of its active configuration."""
        ...

    async def load_config(self, config_version_id: UUID) -> ConfigVersion | None: ...
    async def list_configs(
        self, zombie_id: UUID, *, limit: int, before: Page | None = None
    ) -> Sequence[ConfigVersion]:
        """Newest first."""
        ...

    async def newest_revision(self, zombie_id: UUID) -> int:
        """Of all the agent's versions; 0 when there are none."""
        ...

    async def keep_config(self, config: ConfigVersion, before: ConfigStatus | None) -> None:
        """Keep a version that stays inactive: a new one (``before`` None), or one that was ``before``.

        Raises Conflict when the agent is gone, the revision is taken, or the version is not as it was.
        """
        ...

    async def list(
        self,
        workspace_id: UUID,
        *,
        limit: int,
        after: Page | None = None,
        status: ZombieStatus | None = None,
        name_glob: str | None = None,
    ) -> Sequence[Zombie]:
        """Newest first."""
        ...

    async def count(self, workspace_id: UUID) -> int: ...
    async def save(
        self,
        zombie: Zombie,
        frames: Sequence[NewFrame],
        config: ConfigVersion | None = None,
        proposal: Proposal | None = None,
    ) -> None:
        """Save where ``version`` is one below ``zombie.version``, else Conflict.

        ``config`` becomes the active version; a new one whose revision is taken: Conflict. ``proposal`` is
        kept as decided in the same commit; one that is not pending any more: Conflict. Raises NameTaken as
        ``create``.
        """
        ...

    async def kill(self, zombie: Zombie, frames: Sequence[NewFrame], now: int) -> Sequence[UUID]:
        """Save as killed and end all that is open in one commit.

        Waiting events cancelled, pending gates auto_killed by system:kill, live leases cancelling. Gives the
        ids of those leases. Raises Conflict as ``save``.
        """
        ...

    async def delete(self, zombie_id: UUID) -> bool:
        """Purge the record and all that hangs on it; False when there is none.

        What that is stands in ``postgres/purge.py`` and ``memory/purge.py``. Money that is gone stays
        accounted for. History goes in portions and the record last, so what a crash interrupts can be done
        again.
        """
        ...

    async def spend(self, zombie_id: UUID, now: int) -> tuple[int, int]:
        """Nanos charged in the UTC day and in the UTC month of ``now``."""
        ...


class EventStore(Protocol):
    async def load(self, event_id: UUID) -> Event | None: ...
    async def list(
        self,
        workspace_id: UUID,
        *,
        limit: int,
        zombie_id: UUID | None = None,
        before: Page | None = None,
        since: int | None = None,
        actor_glob: str | None = None,
        status: EventStatus | None = None,
    ) -> Sequence[Event]:
        """Newest first. ``charged_nanos`` of one that still runs is the sum of its metering rows so far."""
        ...

    async def seen(
        self, zombie_id: UUID, dedup_key: bytes, body_key: bytes | None, *, now: int
    ) -> UUID | None:
        """The first event of which an ``AppendEvent`` with these keys would be a ``Duplicate``."""
        ...

    async def ready(self, *, after: UUID | None, limit: int) -> Sequence[ReadyAgent]:
        """Agents with a received event, active, unpaused, without a live lease; by id, for a paged walk."""
        ...

    async def ready_agent(self, zombie_id: UUID) -> ReadyAgent | None:
        """The same question for one agent."""
        ...

    async def waits(self, zombie_id: UUID) -> EventWaits: ...


class LeaseStore(Protocol):
    async def load(self, lease_id: UUID) -> Lease | None: ...
    async def load_with_gates(self, lease_id: UUID) -> tuple[Lease, Sequence[Gate]] | None:
        """A lease and the gates opened under it, oldest first, as they stood at one moment."""
        ...

    async def live_of_runner(self, runner_id: UUID) -> Sequence[Lease]: ...
    async def live_of_zombie(self, zombie_id: UUID) -> Lease | None: ...
    async def count_live_by_runner(self, runner_ids: Sequence[UUID]) -> dict[UUID, int]: ...
    async def expired(self, *, limit: int) -> Sequence[UUID]:
        """Live leases past ``expires_at`` by the database's clock, longest first."""
        ...


class GateStore(Protocol):
    async def load(self, gate_id: UUID) -> Gate | None: ...
    async def find_by_action(self, zombie_id: UUID, action_id: str) -> Gate | None:
        """The newest of that agent with that action id."""
        ...

    async def list(
        self,
        workspace_id: UUID,
        *,
        limit: int,
        status: GateStatus | None = None,
        zombie_id: UUID | None = None,
        gate_kind: str | None = None,
        after: Page | None = None,
    ) -> Sequence[Gate]:
        """Oldest first."""
        ...

    async def of_lease(self, lease_id: UUID) -> Sequence[Gate]: ...
    async def overdue(self, *, limit: int) -> Sequence[UUID]:
        """Pending gates past ``timeout_at`` by the database's clock."""
        ...

    async def orphaned(self, *, limit: int) -> Sequence[UUID]:
        """Pending gates whose event is over, or gone: nobody waits for the answer."""
        ...

    async def asked(
        self, zombie_id: UUID, tool_name: str, action_name: str, *, since: int, limit: int
    ) -> Sequence[tuple[int, str]]:
        """When the agent asked for this action from inside a run, and by which action id; oldest first.

        The newest ``limit`` of them.
        """
        ...


class FrameStore(Protocol):
    async def read(self, zombie_id: UUID, *, after: int, limit: int) -> Sequence[Frame]: ...
    async def bounds(self, zombie_id: UUID) -> tuple[int, int]:
        """``(oldest kept seq, newest seq)``.

        ``(newest + 1, newest)`` when none is kept, ``(1, 0)`` before the first.
        """
        ...

    async def heads(self, zombie_ids: Sequence[UUID]) -> dict[UUID, int]: ...
    async def prune(self, *, keep_ms: int, keep_frames: int, limit: int) -> int:
        """Delete a bounded number of frames beyond retention."""
        ...


class MeteringStore(Protocol):
    async def list(self, tenant_id: UUID, event_id: UUID) -> Sequence[MeteringPeriod]:
        """Oldest first; none for another tenant's event."""
        ...


class InstanceStore(Protocol):
    """What exists once for the installation: first tenant, signing key, settings."""

    async def first_start(
        self, tenant: Tenant, workspace: Workspace, user: User, settings: dict[str, bytes]
    ) -> bool:
        """Make the first tenant, workspace and admin and keep ``settings``, in one commit.

        False when done before.
        """
        ...

    async def setting(self, name: str) -> bytes | None: ...
    async def put_setting(self, name: str, value: bytes) -> None: ...
    async def swap_setting(self, name: str, old: bytes, new: bytes) -> bool:
        """Put ``new`` in the place of ``old``; False when something else is kept."""
        ...

    async def settle_setting(self, name: str, value: bytes) -> bytes:
        """Keep ``value`` unless one is kept under the name already; gives what is kept then."""
        ...

    async def sweep(self, now: int) -> int:
        """Delete what is past keeping and small.

        Dedup keys beyond the window, follow-ups long over, used or expired enrolment tokens, auth sessions an
        hour after their time, links, browser sessions and sign-ins that are over.
        """
        ...


class DatabaseClock(Protocol):
    def now_ms(self) -> int:
        """The database's time as this node knows it.

        Its own clock plus the offset that the last batch brought.
        """
        ...


class Storage(Protocol):
    """All stores of one database, opened together."""

    @property
    def tenants(self) -> TenantStore: ...
    @property
    def workspaces(self) -> WorkspaceStore: ...
    @property
    def users(self) -> UserStore: ...
    @property
    def api_keys(self) -> ApiKeyStore: ...
    @property
    def credentials(self) -> CredentialStore: ...
    @property
    def zombies(self) -> ZombieStore: ...
    @property
    def events(self) -> EventStore: ...
    @property
    def crons(self) -> CronStore: ...
    @property
    def follow_ups(self) -> FollowUpStore: ...
    @property
    def leases(self) -> LeaseStore: ...
    @property
    def gates(self) -> GateStore: ...
    @property
    def frames(self) -> FrameStore: ...
    @property
    def metering(self) -> MeteringStore: ...
    @property
    def charges(self) -> ChargeStore: ...
    @property
    def plans(self) -> PlanStore: ...
    @property
    def providers(self) -> ProviderStore: ...
    @property
    def runners(self) -> RunnerStore: ...
    @property
    def fleet(self) -> FleetStore: ...
    @property
    def auth_sessions(self) -> AuthSessionStore: ...
    @property
    def sign_ins(self) -> SignInStore: ...
    @property
    def key_uses(self) -> KeyUseStore: ...
    @property
    def chats(self) -> ChatStore: ...
    @property
    def improvement(self) -> ImprovementStore: ...
    @property
    def agent_keys(self) -> AgentKeyStore: ...
    @property
    def grants(self) -> GrantStore: ...
    @property
    def memories(self) -> MemoriesStore: ...
    @property
    def instance(self) -> InstanceStore: ...
    @property
    def journal(self) -> Journal: ...
    @property
    def clock(self) -> DatabaseClock: ...
    @property
    def signals(self) -> Signals: ...

    async def healthy(self) -> bool:
        """One round trip to the database within a second."""
        ...

    def statistics(self) -> StorageStatistics: ...

    def on_frames(self, listener: Callable[[Sequence[tuple[UUID, int]]], None]) -> None:
        """Call ``listener`` in the trio loop with ``(zombie_id, newest seq)`` after commits that add frames.

        News may overtake one another: the greatest number counts. Those of other nodes may not come at all.
        """
        ...


OpenStorage = Callable[[], AbstractAsyncContextManager[Storage]]
