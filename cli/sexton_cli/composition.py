"""The composition root: chooses the stores and puts one server together."""

import os
import random
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from uuid import UUID

import httpx2
import structlog
import trio
import uuid_utils.compat
from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector

from sexton_actors.backlog import Backlog
from sexton_actors.catalogue import Catalogue
from sexton_actors.exposition import OperatorsCollector
from sexton_actors.memory_use import ProcessMemory
from sexton_actors.protocol.hub import FramesWritten
from sexton_actors.protocol.lease import Revoke
from sexton_actors.secrets import Secrets
from sexton_actors.signals import hear
from sexton_actors.tree import tree
from sexton_actors.world import World
from sexton_cli.billing_file import load_terms
from sexton_cli.catalogue import load_catalogue
from sexton_cli.data_folder import KEY_FILE, keep_address, keep_api_key, keep_certificate
from sexton_cli.exits import CONFIG, StartupFault
from sexton_cli.identity_file import load_identity
from sexton_cli.model_previews import ModelPreviewer
from sexton_cli.node_storage import Progress, open_storage
from sexton_cli.runner_environment import surroundings
from sexton_cli.settings import NodeSettings
from sexton_engine import open_system
from sexton_http.app import create_app
from sexton_http.identity.bootstrap import Installation, bootstrap
from sexton_http.identity.browsers import offer_link
from sexton_http.identity.context import VERSION, HttpContext, HttpSettings, plan_rates
from sexton_http.identity.issuers.oidc import OidcIssuer
from sexton_http.identity.oauth import OAuthProvider
from sexton_http.identity.settings import IdentitySettings, open_identity, open_slack
from sexton_http.identity.tokens import TokenKind, digest, mint
from sexton_http.outbound.http import Elsewhere
from sexton_http.outbound.slack import Slack
from sexton_http.wire.live_certificate import LiveCertificate
from sexton_http.wire.loop_turns import measured_turns
from sexton_http.wire.open_files import connections_within
from sexton_http.wire.server import Doors, open_doors, serve
from sexton_http.wire.stop_signal import Stop
from sexton_runner.providers.addresses import read_addresses
from sexton_storage.background import in_background
from sexton_storage.embedded import (
    EmbeddedServer,
)
from sexton_storage.errors import StorageUnavailable
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
            return self.installation.api_key
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


@asynccontextmanager
async def open_node(settings: NodeSettings, progress: Progress) -> AsyncIterator[Node]:
    """A whole server, from the database up; everything is let down in reverse order.

    Raises StartupFault with what the operator has to see to.
    """
    identity = load_identity(settings.identity, settings.data)
    catalogue = load_catalogue(settings.catalogue, settings.data)
    terms = load_terms(settings.billing, settings.data)
    async with AsyncExitStack() as stack:
        database, storage = await open_storage(stack, settings, progress)
        doors = await _doors(settings)
        base_url = settings.public_url or doors.base_url
        if risk := settings.risk():
            log.warning("listens_in_the_open", address=doors.base_url, risk=risk)
            progress(f"warning: {doors.base_url} is open to the network without TLS: {risk}")
        vault = _vault(settings)
        slack = await _slack(stack, identity)
        world = replace(
            _world(storage, vault),
            chat=slack,
            catalogue=catalogue,
            terms=terms,
            vault=vault,
            around=surroundings(os.environ),
            look_every_s=settings.look_every_s,
            memory=ProcessMemory(),
            backlog=Backlog(settings.queue_bounds),
            device_logins=settings.device_logins,
        )
        installation = await _installation(storage, vault, world)
        api_key = keep_api_key(settings.data, installation.api_key)
        keep_address(settings.data, base_url)
        own = None if settings.tls is None else settings.tls.certificate
        keep = partial(keep_certificate, settings.data, own, (doors.base_url, doors.local_url))
        certificate = keep()
        shown = None if settings.tls is None else LiveCertificate(settings.tls, keep)
        if shown is not None:
            await stack.enter_async_context(in_background(shown.heed_hangups))
        issuers, providers = await _trusted(stack, identity, installation.tenant_id)
        stop, registry = Stop(), _registry()
        system = await stack.enter_async_context(open_system(tree(world)))
        turns = stack.enter_context(measured_turns()) if settings.busy_at_ms else None
        registry.register(system.collector())
        registry.register(OperatorsCollector(world, VERSION, settings.data))
        storage.signals.listen(partial(hear, world, system.tell))
        storage.on_frames(lambda heads: system.tell("hub", "", FramesWritten(tuple(heads))))
        ctx = HttpContext(
            system=system,
            world=world,
            issuer=installation.issuer,
            registry=registry,
            settings=HttpSettings(
                base_url,
                plan_rates=plan_rates(terms),
                access_log=settings.access_log,
                max_in_flight=settings.max_in_flight,
                max_long_polls=settings.max_long_polls,
                max_streams=settings.max_streams,
                trusted_proxies=settings.trusted_proxies,
                open_metrics=settings.is_private,
                metrics_token=settings.metrics_token,
                max_answer_bytes=settings.max_answer_mib * 2**20,
                busy_at_s=settings.busy_at_ms / 1000 or None,
                max_body_memory=settings.max_body_memory,
                shares=settings.shares,
            ),
            stop=stop,
            keys=installation.keys,
            other_issuers=issuers,
            providers=providers,
            previewer=ModelPreviewer(read_addresses(os.environ), random.Random()),  # noqa: S311 - spreads tries
            slack=slack,
            turns=turns,
            catalogue_key=installation.catalogue_key,
            connections=connections_within(*settings.connections, settings.trusted_proxies),
        )
        app = create_app(ctx)
        is_first = installation.api_key is not None
        await storage.sign_ins.withdraw(installation.user_id)
        sign_in_url = (
            await offer_link(storage, base_url, installation.user_id, world.new_token) if is_first else None
        )
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(serve, app, doors, stop=stop, tls=shown, connections=ctx.connections))
            try:
                yield Node(
                    take_back=lambda lease_id: system.tell("lease", lease_id, Revoke("died")),
                    base_url=base_url,
                    storage=storage,
                    world=world,
                    installation=installation,
                    api_key=api_key,
                    key_file=settings.data / KEY_FILE,
                    local_url=doors.local_url,
                    certificate=certificate,
                    database=database,
                    sign_in_url=sign_in_url,
                )
            finally:
                stop.set()


async def _trusted(
    stack: AsyncExitStack, identity: IdentitySettings, home: UUID
) -> tuple[tuple[OidcIssuer, ...], tuple[OAuthProvider, ...]]:
    client = await stack.enter_async_context(httpx2.AsyncClient())
    return open_identity(identity, Elsewhere(client), trio.current_time, home)


async def _slack(stack: AsyncExitStack, identity: IdentitySettings) -> Slack | None:
    client = await stack.enter_async_context(httpx2.AsyncClient())
    return open_slack(identity, Elsewhere(client))


def _vault(settings: NodeSettings) -> Vault:
    try:
        return open_vault(settings.data, os.environ)
    except StartupFailed as fault:
        raise StartupFault(
            "UZ-STARTUP-002", str(fault), "Set SEXTON_MASTER_KEY, or fix the file", CONFIG
        ) from fault


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


def _world(storage: Storage, vault: Vault) -> World:
    return World(
        storage=storage,
        secrets=Secrets(storage.credentials, vault, storage.clock),
        catalogue=Catalogue("", ()),
        new_id=uuid_utils.compat.uuid7,
        new_token=secrets.token_hex,
    )


def _registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    return registry
