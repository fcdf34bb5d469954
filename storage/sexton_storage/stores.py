"""All stores of one database, its journal and its clock, whatever keeps them."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeVar
from uuid import UUID

from sexton_storage.records.agent_keys import AgentKeyStore
from sexton_storage.records.api_keys import ApiKeyStore
from sexton_storage.records.applied import AppliedStore
from sexton_storage.records.archives import ArchiveStore
from sexton_storage.records.artefacts import ArtefactStore
from sexton_storage.records.audit import AuditStore
from sexton_storage.records.auth_sessions import AuthSessionStore
from sexton_storage.records.blobs import BlobStore
from sexton_storage.records.charges import ChargeStore
from sexton_storage.records.chats import ChatStore
from sexton_storage.records.credentials import CredentialStore
from sexton_storage.records.crons import CronStore
from sexton_storage.records.deliveries import DeliveryStore
from sexton_storage.records.erasures import ErasureStore
from sexton_storage.records.event_files import EventFileStore
from sexton_storage.records.event_words import EventWordsStore
from sexton_storage.records.events import EventStore
from sexton_storage.records.failures import FailureStore
from sexton_storage.records.fleet import FleetStore
from sexton_storage.records.follow_ups import FollowUpStore
from sexton_storage.records.frames import FrameStore
from sexton_storage.records.gates import GateStore
from sexton_storage.records.grants import GrantStore
from sexton_storage.records.holdings import HoldingStore
from sexton_storage.records.improvement import ImprovementStore
from sexton_storage.records.insights import InsightStore
from sexton_storage.records.instance import InstanceStore
from sexton_storage.records.jobs import JobStore
from sexton_storage.records.kept_workspaces import KeptWorkspaceStore
from sexton_storage.records.key_uses import KeyUseStore
from sexton_storage.records.leases import LeaseStore
from sexton_storage.records.mcp_servers import McpServerStore
from sexton_storage.records.members import MemberStore
from sexton_storage.records.memories import MemoriesStore
from sexton_storage.records.metering import MeteringStore
from sexton_storage.records.nodes import NodeStore
from sexton_storage.records.plans import PlanStore
from sexton_storage.records.providers import ProviderStore
from sexton_storage.records.retention import RetentionStore
from sexton_storage.records.runners import RunnerStore
from sexton_storage.records.sign_ins import SignInStore
from sexton_storage.records.tenants import TenantStore
from sexton_storage.records.transcripts import TranscriptStore
from sexton_storage.records.users import UserStore
from sexton_storage.records.workspaces import WorkspaceStore
from sexton_storage.records.zombies import ZombieStore
from sexton_storage.signals import Signals
from sexton_storage.statistics import StorageStatistics
from sexton_storage.writes import RenewLease, Write

R = TypeVar("R")


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

    def submit_all(self, writes: Sequence[tuple[Write[Any], Callable[[Any], None]]]) -> None:
        """As ``submit``, for writes of one kind that come together: if they fit, one batch takes them."""
        ...

    def submit_unit(
        self, writes: Sequence[RenewLease], done: Callable[[Sequence[int], Sequence[Any]], None]
    ) -> None:
        """As ``submit``, for renewals that came together: they cost the journal hardly more than one.

        ``done`` is told the places in ``writes`` that are answered, and their answers. That is one call for
        all, unless there are very many, or somebody holds rows of some: then each place is told once all the
        same.
        """
        ...

    def statistics(self) -> Any:
        """Depth of each lane, batches, writes, seconds, retries, outages (frozen)."""
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
    def members(self) -> MemberStore: ...
    @property
    def api_keys(self) -> ApiKeyStore: ...
    @property
    def credentials(self) -> CredentialStore: ...
    @property
    def zombies(self) -> ZombieStore: ...
    @property
    def events(self) -> EventStore: ...
    @property
    def event_words(self) -> EventWordsStore: ...
    @property
    def crons(self) -> CronStore: ...
    @property
    def follow_ups(self) -> FollowUpStore: ...
    @property
    def jobs(self) -> JobStore: ...
    @property
    def failures(self) -> FailureStore: ...
    @property
    def deliveries(self) -> DeliveryStore: ...
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
    def retention(self) -> RetentionStore: ...
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
    def holdings(self) -> HoldingStore: ...
    @property
    def insights(self) -> InsightStore: ...
    @property
    def memories(self) -> MemoriesStore: ...
    @property
    def artefacts(self) -> ArtefactStore: ...
    @property
    def archives(self) -> ArchiveStore | None:
        """None: nothing of this storage outlives its process, so nothing is archived."""
        ...

    @property
    def erasures(self) -> ErasureStore: ...
    @property
    def event_files(self) -> EventFileStore: ...
    @property
    def blobs(self) -> BlobStore: ...
    @property
    def mcp_servers(self) -> McpServerStore: ...
    @property
    def applied(self) -> AppliedStore: ...
    @property
    def transcripts(self) -> TranscriptStore: ...
    @property
    def kept_workspaces(self) -> KeptWorkspaceStore: ...
    @property
    def audit(self) -> AuditStore: ...
    @property
    def nodes(self) -> NodeStore: ...
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
