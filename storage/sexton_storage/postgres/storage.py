"""Opens storage over a PostgreSQL database."""

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import cast
from uuid import UUID, uuid4

import asyncpg

from sexton_storage.clock import NodeClock
from sexton_storage.portal import Portal, open_portal
from sexton_storage.postgres.connections.bounds import SIGNALS_SESSION
from sexton_storage.postgres.connections.connection import FAULTS
from sexton_storage.postgres.connections.database import Database
from sexton_storage.postgres.connections.dial import connect, connect_lane
from sexton_storage.postgres.connections.outage import Outage
from sexton_storage.postgres.connections.settings import PostgresSettings
from sexton_storage.postgres.journal.journal import Listener, PostgresJournal
from sexton_storage.postgres.journal.lane import Lane
from sexton_storage.postgres.server_check import bring_up, look_ahead, look_at_connections, look_at_rights
from sexton_storage.postgres.signals import Listening, PostgresSignals
from sexton_storage.postgres.stores.agent_keys import PostgresAgentKeys
from sexton_storage.postgres.stores.api_keys import PostgresApiKeys
from sexton_storage.postgres.stores.applied import PostgresApplied
from sexton_storage.postgres.stores.archives import PostgresArchives
from sexton_storage.postgres.stores.artefacts import PostgresArtefacts
from sexton_storage.postgres.stores.audit import PostgresAudit
from sexton_storage.postgres.stores.blobs import PostgresBlobs
from sexton_storage.postgres.stores.charges import PostgresCharges
from sexton_storage.postgres.stores.chats import PostgresChats
from sexton_storage.postgres.stores.credentials import PostgresCredentials
from sexton_storage.postgres.stores.crons import PostgresCrons
from sexton_storage.postgres.stores.deliveries import PostgresDeliveries
from sexton_storage.postgres.stores.erasures import PostgresErasures
from sexton_storage.postgres.stores.event_files import PostgresEventFiles
from sexton_storage.postgres.stores.event_words import PostgresEventWords
from sexton_storage.postgres.stores.events import PostgresEvents
from sexton_storage.postgres.stores.failures import PostgresFailures
from sexton_storage.postgres.stores.fleet import PostgresFleet
from sexton_storage.postgres.stores.follow_ups import PostgresFollowUps
from sexton_storage.postgres.stores.frames import PostgresFrames
from sexton_storage.postgres.stores.gates import PostgresGates
from sexton_storage.postgres.stores.grants import PostgresGrants
from sexton_storage.postgres.stores.holdings import PostgresHoldings
from sexton_storage.postgres.stores.identity import PostgresAuthSessions, PostgresSignIns
from sexton_storage.postgres.stores.improvement import PostgresImprovement
from sexton_storage.postgres.stores.insights import PostgresInsights
from sexton_storage.postgres.stores.instance import PostgresInstance
from sexton_storage.postgres.stores.jobs import PostgresJobs
from sexton_storage.postgres.stores.kept_workspaces import PostgresKeptWorkspaces
from sexton_storage.postgres.stores.key_uses import PostgresKeyUses
from sexton_storage.postgres.stores.leases import PostgresLeases
from sexton_storage.postgres.stores.mcp_servers import PostgresMcpServers
from sexton_storage.postgres.stores.members import PostgresMembers
from sexton_storage.postgres.stores.memories import PostgresMemories
from sexton_storage.postgres.stores.metering import PostgresMetering
from sexton_storage.postgres.stores.nodes import PostgresNodes
from sexton_storage.postgres.stores.plans import PostgresPlans
from sexton_storage.postgres.stores.providers import PostgresProviders
from sexton_storage.postgres.stores.retention import PostgresRetention
from sexton_storage.postgres.stores.runners import PostgresRunners
from sexton_storage.postgres.stores.tenants import PostgresTenants
from sexton_storage.postgres.stores.transcripts import PostgresTranscripts
from sexton_storage.postgres.stores.users import PostgresUsers
from sexton_storage.postgres.stores.workspaces import PostgresWorkspaces
from sexton_storage.postgres.stores.zombies import PostgresZombies
from sexton_storage.schema_plan import SchemaPlan
from sexton_storage.startup import ConnectFailed, NotAllowed
from sexton_storage.statistics import StorageStatistics

DEFAULTS = PostgresSettings()
log = logging.getLogger("sexton.storage")


class PostgresStorage:
    """All stores of one database; made by ``open_postgres_storage``."""

    def __init__(  # noqa: PLR0915  one statement a store
        self,
        portal: Portal,
        dsn: str,
        settings: PostgresSettings,
        new_id: Callable[[], UUID],
        *,
        migrates: bool = True,
    ) -> None:
        self._portal, self._dsn = portal, dsn
        self._migrates, self._settings, self._new_id = migrates, settings, new_id
        self._outage = Outage()
        self._database = database = Database(portal, dsn, settings, new_id, self._outage)
        self.clock = NodeClock()
        self.signals = PostgresSignals(
            portal, new_id(), connect=self._connect_listening, outage=self._outage.part("signals")
        )
        self.journal = PostgresJournal(portal, self.signals)
        self.tenants = PostgresTenants(database)
        self.workspaces = PostgresWorkspaces(database)
        self.users = PostgresUsers(database)
        self.members = PostgresMembers(database)
        self.api_keys = PostgresApiKeys(database)
        self.credentials = PostgresCredentials(database)
        self.zombies = PostgresZombies(database, self.journal)
        self.events = PostgresEvents(database)
        self.event_words = PostgresEventWords(database)
        self.crons = PostgresCrons(database)
        self.follow_ups = PostgresFollowUps(database)
        self.jobs = PostgresJobs(database)
        self.failures = PostgresFailures(database)
        self.deliveries = PostgresDeliveries(database)
        self.leases = PostgresLeases(database)
        self.gates = PostgresGates(database)
        self.frames = PostgresFrames(database)
        self.metering = PostgresMetering(database)
        self.charges = PostgresCharges(database)
        self.plans = PostgresPlans(database)
        self.providers = PostgresProviders(database)
        self.improvement = PostgresImprovement(database)
        self.runners = PostgresRunners(database)
        self.fleet = PostgresFleet(database)
        self.auth_sessions = PostgresAuthSessions(database)
        self.sign_ins = PostgresSignIns(database)
        self.key_uses = PostgresKeyUses(database)
        self.chats = PostgresChats(database)
        self.agent_keys = PostgresAgentKeys(database)
        self.grants = PostgresGrants(database, self.journal)
        self.holdings = PostgresHoldings(database)
        self.insights, self.retention = PostgresInsights(database), PostgresRetention(database)
        self.memories = PostgresMemories(database)
        self.archives = PostgresArchives(database)
        self.artefacts = PostgresArtefacts(database)
        self.erasures = PostgresErasures(database)
        self.event_files = PostgresEventFiles(database)
        self.blobs = PostgresBlobs(database)
        self.mcp_servers = PostgresMcpServers(database)
        self.applied = PostgresApplied(database)
        self.transcripts = PostgresTranscripts(database)
        self.kept_workspaces = PostgresKeptWorkspaces(database)
        self.audit = PostgresAudit(database)
        self.nodes = PostgresNodes(database)
        self.instance = PostgresInstance(database)

    async def open(self) -> None:
        """Connect, migrate, and start the journal. Raises ConnectFailed and MigrationFailed."""
        ran = await self._portal.run(lambda: bring_up(self._dsn, self._settings, migrates=self._migrates))
        if ran:
            log.info("ran %d migrations, the last is %s", len(ran), ran[-1])
        try:
            await self._database.open()
            await self.journal.open(
                self._lane("hot lane", self._settings.hot_batch),
                self._lane("bulk lane", self._settings.bulk_batch),
            )
            if self._settings.signals:
                await self._portal.run(self.signals.open)
        except asyncpg.InsufficientPrivilegeError as error:
            raise NotAllowed(f"the role may not use the tables: {error}") from error
        except FAULTS as error:
            raise ConnectFailed(f"the database let us in once and then not again: {error}") from error

    def _lane(self, name: str, batch_limit: int) -> Lane:
        return Lane(
            self._new_id(),
            portal=self._portal,
            connect=lambda: connect_lane(self._dsn),
            outage=self._outage.part(name),
            clock=self.clock,
            settings=self._settings,
            batch_limit=batch_limit,
            deliver=self.journal.deliver,
        )

    async def _connect_listening(self) -> Listening:
        return cast("Listening", await connect(self._dsn, SIGNALS_SESSION, name="sexton signals"))

    async def close(self) -> None:
        """Let the journal finish, then hang up."""
        await self.journal.close()
        await self._portal.run(self.signals.close, shield=True)
        await self._database.close()

    async def healthy(self) -> bool:
        return await self._database.healthy()

    def statistics(self) -> StorageStatistics:
        """The statistics of the journal, the pool and the connections."""
        return StorageStatistics(
            journal=self.journal.statistics(),
            outstanding=self._portal.outstanding,
            connections=self._database.in_use,
            connections_max=self._settings.pool_size,
            waits=self._database.waits.statistics(),
            signals=self.signals.statistics(),
        )

    def on_frames(self, listener: Listener) -> None:
        self.journal.listen(listener)


@asynccontextmanager
async def open_postgres_storage(
    dsn: str,
    *,
    settings: PostgresSettings = DEFAULTS,
    new_id: Callable[[], UUID] = uuid4,
    migrates: bool = True,
) -> AsyncIterator[PostgresStorage]:
    """Open storage over the database that ``dsn`` names; its schema is brought up to date first.

    Raises ConnectFailed and MigrationFailed. ``new_id`` makes the names of lanes and marks. With ``migrates``
    False it is not brought up to date, and no other is taken.
    """
    async with open_portal() as portal:
        storage = PostgresStorage(portal, dsn, settings, new_id, migrates=migrates)
        try:
            await storage.open()
            yield storage
        finally:
            await storage.close()


async def migrate_database(dsn: str, *, settings: PostgresSettings = DEFAULTS) -> Sequence[str]:
    """Bring the schema up to date, and nothing else; gives the names of what ran. Raises as opening does."""
    async with open_portal() as portal:
        return await portal.run(lambda: bring_up(dsn, settings, migrates=True))


async def plan_migrations(dsn: str, *, settings: PostgresSettings = DEFAULTS) -> SchemaPlan:
    """What bringing the schema up to date would do. Raises as opening does."""
    async with open_portal() as portal:
        return await portal.run(lambda: look_ahead(dsn, settings))


async def excess_rights(dsn: str, *, settings: PostgresSettings = DEFAULTS) -> Sequence[str]:
    """What the role of this address may do beyond what a server needs. Raises ConnectFailed."""
    async with open_portal() as portal:
        return await portal.run(lambda: look_at_rights(dsn, settings))


async def connections_allowed(dsn: str, *, settings: PostgresSettings = DEFAULTS) -> int:
    """How many connections the database allows those who are not its superusers. Raises ConnectFailed."""
    async with open_portal() as portal:
        return await portal.run(lambda: look_at_connections(dsn, settings))
