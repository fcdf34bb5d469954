"""What a server stands on: its database, its doors, its keys, and what its data folder keeps of them."""

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from uuid import UUID

import structlog
import uuid_utils.compat

from sexton_actors.backlog import Backlog
from sexton_actors.memory_use import ProcessMemory
from sexton_actors.secrets import Secrets
from sexton_actors.world import World
from sexton_cli.archives import open_archiver
from sexton_cli.billing_file import load_terms
from sexton_cli.catalogue import load_catalogue
from sexton_cli.certificate_file import keep_certificate
from sexton_cli.data_folder import KEY_FILE, keep_address, keep_api_key
from sexton_cli.exits import CONFIG, UNAVAILABLE, StartupFault
from sexton_cli.identity_file import load_identity
from sexton_cli.node_storage import Progress, open_storage
from sexton_cli.runner_environment import surroundings
from sexton_cli.settings import NodeSettings
from sexton_cli.tombstones import apply_tombstones
from sexton_http.identity.bootstrap import Installation, bootstrap
from sexton_http.identity.browsers import offer_link
from sexton_http.identity.settings import IdentitySettings
from sexton_http.identity.tokens import TokenKind, digest, mint
from sexton_http.outbound.trace_export import MessagesMissing, require_messages
from sexton_http.wire.server import Doors, open_doors
from sexton_storage.embedded import EmbeddedServer
from sexton_storage.errors import StorageUnavailable
from sexton_storage.objects.s3_calls import SignerMissing
from sexton_storage.objects.s3_store import open_s3_store
from sexton_storage.objects.store import ObjectStore
from sexton_storage.records.runners import EnrolmentToken
from sexton_storage.startup import StartupFailed
from sexton_storage.stores import Storage
from sexton_storage.vault import Vault, VaultError, open_vault

ENROLMENT_MS = 3600 * 1000
"""An enrolment token is good for an hour, and once."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Node:
    """A server that answers, as ``up`` and ``serve`` need it."""

    base_url: str
    storage: Storage
    world: World
    installation: Installation
    api_key: str | None
    """The key made at the first start; None when its file was removed."""
    key_file: Path
    """Where that key is kept."""
    local_url: str
    """Where it is reached from this machine, past any proxy."""
    certificate: Path | None
    """What it shows there; None: it speaks without TLS."""
    database: EmbeddedServer | None
    take_back: Callable[[UUID], None]
    """Ends the lease of this id, whose runner is known to have died."""
    sign_in_url: str | None
    """Signs the first admin in with a browser, once, within an hour; None at any start but the first."""
    worker_pids: Callable[[], list[int]] = list
    """The processes that serve, if they are not this one."""

    @property
    def tenant_id(self) -> UUID:
        return self.installation.tenant_id

    @property
    def workspace_id(self) -> UUID:
        return self.installation.workspace_id

    @property
    def shown_api_key(self) -> str:
        """The key itself at the first start; afterwards where it is, for what is printed is kept in logs."""
        if self.installation.api_key is not None:
            return f"{self.installation.api_key} (shown this once; kept in {self.key_file})"
        if self.api_key is not None:
            return f"in {self.key_file}"
        return "the one of the first start; 'sexton keys create NAME' makes another"

    @property
    def catalogue_url(self) -> str:
        """Where anybody may read models and prices."""
        return f"{self.base_url}/_um/{self.installation.catalogue_key}/cap.json"

    @property
    def admin_token(self) -> str:
        """A user token of the first admin, good for fifteen minutes from now."""
        return self.installation.admin_token(self.world.now_ms())

    @property
    def postgres_pid(self) -> int | None:
        """The age of the embedded database; None for one that is not ours."""
        return None if self.database is None else self.database.pid

    async def runner_died(self, runner_id: UUID) -> None:
        """Take back what it held; its process has ended, so nothing of it works on."""
        try:
            leases = await self.storage.leases.live_of_runner(runner_id)
        except StorageUnavailable:
            return  # Their terms will pass.
        for lease in leases:
            self.take_back(lease.id)

    async def mint_enrolment(self) -> str:
        """A one-time token for one runner."""
        token = mint(TokenKind.ENROLMENT, self.world.new_token)
        now = self.world.now_ms()
        await self.storage.runners.mint_enrolment(
            EnrolmentToken(digest(token), "system:up", now, now + ENROLMENT_MS)
        )
        return token


@dataclass(frozen=True, slots=True)
class Ground:
    """All of a server but what answers."""

    settings: NodeSettings
    identity: IdentitySettings
    database: EmbeddedServer | None
    storage: Storage
    doors: Doors
    base_url: str
    vault: Vault
    world: World
    installation: Installation
    api_key: str | None
    sign_in_url: str | None
    certificate: Path | None
    """Where what is shown at the server's own addresses was kept; None: without TLS, or by the parent."""
    keep_certificate: Callable[[], Path | None]
    """Keeps what is shown now."""

    @property
    def dsn(self) -> str:
        """Where the database is."""
        return (self.settings.database_url or "") if self.database is None else self.database.dsn

    def node(self, take_back: Callable[[UUID], None]) -> Node:
        """The server, once something answers."""
        return Node(
            take_back=take_back,
            base_url=self.base_url,
            storage=self.storage,
            world=self.world,
            installation=self.installation,
            api_key=self.api_key,
            key_file=self.settings.data / KEY_FILE,
            local_url=self.doors.local_url,
            certificate=self.certificate,
            database=self.database,
            sign_in_url=self.sign_in_url,
        )


async def _erase_again(storage: Storage, settings: NodeSettings, progress: Progress) -> None:
    path = settings.erasures_file
    if path is None:
        return
    try:
        done = await apply_tombstones(storage, path)
    except (OSError, ValueError) as fault:
        way_out = "Give the list that was kept beside the backup, or leave the option out."
        raise StartupFault("UZ-STARTUP-002", f"--erasures-file {path}: {fault}", way_out, CONFIG) from fault
    if done:
        progress(f"erased again what the database had brought back: {done} erasures of {path}")


async def open_ground(
    stack: AsyncExitStack, settings: NodeSettings, progress: Progress, inherited: Doors | None = None
) -> Ground:
    """From the database up; let down with the stack. ``inherited``: doors that a parent has opened.

    What is done once for a server, a worker with inherited doors leaves to its parent: it finds the schema as
    it should be and the first tenant made, and keeps nothing in the data folder. Raises StartupFault.
    """
    _check_traces(settings)
    identity = load_identity(settings.identity, settings.data)
    catalogue = load_catalogue(settings.catalogue, settings.data)
    terms = load_terms(settings.billing, settings.data)
    database, storage = await open_storage(stack, settings, progress, checks=inherited is None)
    doors = await _doors(settings) if inherited is None else inherited
    base_url = settings.public_url or doors.base_url
    vault = _vault(settings)
    world = World(
        storage=storage,
        secrets=Secrets(storage.credentials, vault, storage.clock),
        catalogue=catalogue,
        new_id=uuid_utils.compat.uuid7,
        new_token=secrets.token_hex,
        terms=terms,
        vault=vault,
        around=surroundings(os.environ),
        look_every_s=settings.look_every_s,
        memory=ProcessMemory(),
        backlog=Backlog(settings.queue_bounds),
        device_logins=settings.device_logins,
        files=settings.files,
        objects=await _objects(stack, settings),
        archive=await open_archiver(stack, settings.archive, storage),
        transcripts=settings.transcripts,
        retention=settings.retention,
        erasures_file=settings.erasures_file,
    )
    with _reachable():
        if inherited is None:
            await _erase_again(storage, settings, progress)
        installation = await _installation(storage, vault, world)
        own = None if settings.tls is None else settings.tls.certificate
        keep = partial(keep_certificate, settings.data, own, (doors.base_url, doors.local_url))
        api_key = sign_in_url = certificate = None
        if inherited is None:
            if risk := settings.risk():
                log.warning("listens_in_the_open", address=doors.base_url, risk=risk)
                progress(f"warning: {doors.base_url} is open to the network without TLS: {risk}")
            api_key = keep_api_key(settings.data, installation.api_key)
            keep_address(settings.data, base_url)
            certificate = keep()
            await storage.sign_ins.withdraw(installation.user_id)
            if installation.api_key is not None:
                sign_in_url = await offer_link(storage, base_url, installation.user_id, world.new_token)
    return Ground(
        settings=settings,
        identity=identity,
        database=database,
        storage=storage,
        doors=doors,
        base_url=base_url,
        vault=vault,
        world=world,
        installation=installation,
        api_key=api_key,
        sign_in_url=sign_in_url,
        certificate=certificate,
        keep_certificate=keep,
    )


@contextmanager
def _reachable() -> Iterator[None]:
    """Tell the operator that the database went away after it had been opened."""
    try:
        yield
    except StorageUnavailable as fault:
        what = f"the database went away while the server was starting: {fault}"
        raise StartupFault(
            "UZ-STARTUP-003", what, "Start the server again when the database answers", UNAVAILABLE
        ) from fault


def _vault(settings: NodeSettings) -> Vault:
    try:
        return open_vault(settings.data, os.environ)
    except StartupFailed as fault:
        raise StartupFault(
            "UZ-STARTUP-002", str(fault), "Set SEXTON_MASTER_KEY, or fix the file", CONFIG
        ) from fault


def _check_traces(settings: NodeSettings) -> None:
    try:
        if settings.traces is not None:
            require_messages()
    except MessagesMissing as fault:
        way_out = "Install it, or leave --otlp-endpoint and OTEL_EXPORTER_OTLP_ENDPOINT out"
        raise StartupFault("UZ-STARTUP-002", str(fault), way_out, CONFIG) from fault


async def _objects(stack: AsyncExitStack, settings: NodeSettings) -> ObjectStore | None:
    if settings.files_store is None:
        return None
    try:
        return await stack.enter_async_context(open_s3_store(settings.files_store))
    except SignerMissing as fault:
        way_out = "Install it, or leave --files-store out"
        raise StartupFault("UZ-STARTUP-002", str(fault), way_out, CONFIG) from fault


async def _installation(storage: Storage, vault: Vault, world: World) -> Installation:
    try:
        return await bootstrap(
            storage,
            vault,
            new_id=world.new_id,
            new_token=world.new_token,
            credit_nanos=world.terms.first_tenant_nanos,
        )
    except VaultError as fault:
        what = f"the master keys of this folder do not open what the database holds: {fault}"
        way_out = (
            "Servers of one database share their keys: give this one the same --data or SEXTON_MASTER_KEY"
        )
        raise StartupFault("UZ-STARTUP-002", what, way_out, CONFIG) from fault


async def _doors(settings: NodeSettings) -> Doors:
    problem = None if settings.tls is None else settings.tls.problem()
    if problem is not None:
        way_out = "Give PEM files that belong together with --tls-cert and --tls-key"
        raise StartupFault("UZ-STARTUP-002", problem, way_out, CONFIG)
    try:
        return await open_doors(settings.host, settings.port, secure=settings.tls is not None)
    except OSError as fault:
        what = f"{settings.host}:{settings.port}: {fault.strerror or fault}"
        way_out = "Choose another with --port, or 0 for any that is free"
        raise StartupFault("UZ-STARTUP-002", what, way_out, CONFIG) from fault
