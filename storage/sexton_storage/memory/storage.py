"""Opens the in-memory storage."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from sexton_storage.background import in_background
from sexton_storage.memory.agent_keys import MemoryAgentKeys
from sexton_storage.memory.agents import MemoryZombies
from sexton_storage.memory.applied import MemoryApplied
from sexton_storage.memory.artefacts import MemoryArtefacts
from sexton_storage.memory.audit import MemoryAudit
from sexton_storage.memory.billing import MemoryCharges, MemoryPlans
from sexton_storage.memory.blobs import MemoryBlobs
from sexton_storage.memory.chats import MemoryChats
from sexton_storage.memory.crons import MemoryCrons
from sexton_storage.memory.deliveries import MemoryDeliveries
from sexton_storage.memory.erasures import MemoryErasures
from sexton_storage.memory.event_files import MemoryEventFiles
from sexton_storage.memory.event_words import MemoryEventWords
from sexton_storage.memory.failures import MemoryFailures
from sexton_storage.memory.faults import Faults
from sexton_storage.memory.fleet import MemoryInstance, MemoryRunners
from sexton_storage.memory.follow_ups import MemoryFollowUps
from sexton_storage.memory.frames import MemoryFrames
from sexton_storage.memory.grants import MemoryGrants
from sexton_storage.memory.holdings import MemoryHoldings
from sexton_storage.memory.identity import MemoryAuthSessions, MemorySignIns
from sexton_storage.memory.improvement import MemoryImprovement
from sexton_storage.memory.insights import MemoryInsights
from sexton_storage.memory.jobs import MemoryJobs
from sexton_storage.memory.journal import Listener, MemoryJournal
from sexton_storage.memory.kept_workspaces import MemoryKeptWorkspaces
from sexton_storage.memory.key_uses import MemoryKeyUses
from sexton_storage.memory.mcp_servers import MemoryMcpServers
from sexton_storage.memory.members import MemoryMembers
from sexton_storage.memory.memories import MemoryMemories
from sexton_storage.memory.metering import MemoryMetering
from sexton_storage.memory.nodes import MemoryNodes
from sexton_storage.memory.overview import MemoryFleet
from sexton_storage.memory.providers import MemoryProviders
from sexton_storage.memory.reads import MemoryEvents, MemoryGates, MemoryLeases
from sexton_storage.memory.retention import MemoryRetention
from sexton_storage.memory.signals import MemorySignals
from sexton_storage.memory.tables import Tables
from sexton_storage.memory.tenancy import (
    MemoryApiKeys,
    MemoryCredentials,
    MemoryTenants,
    MemoryUsers,
    MemoryWorkspaces,
)
from sexton_storage.memory.transcripts import MemoryTranscripts
from sexton_storage.statistics import NOTHING, StorageStatistics


class MemoryClock:
    """The clock that was handed in, taken for the database's."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now

    def now_ms(self) -> int:
        return self._now()


class MemoryStorage:
    """All stores over one set of tables; ``tables`` may be looked at by tests."""

    def __init__(self, tables: Tables, faults: Faults) -> None:  # noqa: PLR0915  one statement a store
        self.tables = tables
        self.faults = faults
        self.journal = journal = MemoryJournal(tables, faults)
        self.clock = MemoryClock(tables.now)
        self.signals = MemorySignals()
        self.tenants = MemoryTenants(tables, faults, journal)
        self.workspaces = MemoryWorkspaces(tables, faults, journal)
        self.users = MemoryUsers(tables, faults, journal)
        self.members = MemoryMembers(tables, faults, journal)
        self.api_keys = MemoryApiKeys(tables, faults, journal)
        self.credentials = MemoryCredentials(tables, faults, journal)
        self.zombies = MemoryZombies(tables, faults, journal)
        self.events = MemoryEvents(tables, faults, journal)
        self.event_words = MemoryEventWords(tables, faults, journal)
        self.crons = MemoryCrons(tables, faults, journal)
        self.follow_ups = MemoryFollowUps(tables, faults, journal)
        self.jobs = MemoryJobs(tables, faults, journal)
        self.failures = MemoryFailures(tables, faults, journal)
        self.deliveries = MemoryDeliveries(tables, faults, journal)
        self.leases = MemoryLeases(tables, faults, journal)
        self.gates = MemoryGates(tables, faults, journal)
        self.frames = MemoryFrames(tables, faults, journal)
        self.metering = MemoryMetering(tables, faults, journal)
        self.charges = MemoryCharges(tables, faults, journal)
        self.plans = MemoryPlans(tables, faults, journal)
        self.providers = MemoryProviders(tables, faults, journal)
        self.improvement = MemoryImprovement(tables, faults, journal)
        self.retention = MemoryRetention(tables, faults, journal)
        self.runners = MemoryRunners(tables, faults, journal)
        self.fleet = MemoryFleet(tables, faults, journal)
        self.auth_sessions = MemoryAuthSessions(tables, faults, journal)
        self.sign_ins = MemorySignIns(tables, faults, journal)
        self.key_uses = MemoryKeyUses(tables, faults, journal)
        self.chats = MemoryChats(tables, faults, journal)
        self.agent_keys = MemoryAgentKeys(tables, faults, journal)
        self.grants = MemoryGrants(tables, faults, journal)
        self.holdings = MemoryHoldings(tables, faults, journal)
        self.insights = MemoryInsights(tables, faults, journal)
        self.memories = MemoryMemories(tables, faults, journal)
        self.artefacts = MemoryArtefacts(tables, faults, journal)
        self.archives = None
        self.erasures = MemoryErasures(tables, faults, journal)
        self.event_files = MemoryEventFiles(tables, faults, journal)
        self.blobs = MemoryBlobs(tables, faults, journal)
        self.mcp_servers = MemoryMcpServers(tables, faults, journal)
        self.applied = MemoryApplied(tables, faults, journal)
        self.transcripts = MemoryTranscripts(tables, faults, journal)
        self.kept_workspaces = MemoryKeptWorkspaces(tables, faults, journal)
        self.audit = MemoryAudit(tables, faults, journal)
        self.nodes = MemoryNodes(tables, faults, journal)
        self.instance = MemoryInstance(tables, faults, journal)

    async def healthy(self) -> bool:
        await self.faults.pass_time()
        return not self.faults.away

    def statistics(self) -> StorageStatistics:
        """The statistics of the journal; there are no connections here to wait for."""
        return StorageStatistics(self.journal.statistics(), 0, 0, 0, NOTHING)

    def on_frames(self, listener: Listener) -> None:
        self.journal.listen(listener)


@asynccontextmanager
async def open_memory_storage(
    *, clock: Callable[[], int], faults: Faults | None = None, tables: Tables | None = None
) -> AsyncIterator[MemoryStorage]:
    """Open an empty storage, or one over ``tables``: of one that was closed before, or of another node.

    ``clock`` gives Unix ms and is taken for the database's.
    """
    storage = MemoryStorage(tables or Tables(now=clock), faults or Faults())
    async with in_background(storage.journal.run):
        yield storage
