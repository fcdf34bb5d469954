"""The composition root: chooses the stores and puts one server together."""

import os
import platform
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID

import httpx2
import trio
import uuid_utils
from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector

from sexton_actors.exposition import OperatorsCollector
from sexton_actors.ports.traces import TraceSink
from sexton_actors.protocol.hub import FramesWritten
from sexton_actors.protocol.lease import Revoke
from sexton_actors.signals import hear
from sexton_actors.tree import tree
from sexton_actors.world import World
from sexton_cli.ground import Node, open_ground
from sexton_cli.model_previews import ModelPreviewer
from sexton_cli.node_storage import Progress
from sexton_cli.settings import NodeSettings
from sexton_engine import open_system
from sexton_http.app import create_app
from sexton_http.gateway.node_questions import NodeQuestions
from sexton_http.gateway.shared_limits import SharedGcra
from sexton_http.gateway.worker_metrics import WorkerMetrics
from sexton_http.gateway.worker_questions import WorkerQuestions
from sexton_http.identity.context import VERSION, HttpContext, HttpSettings, plan_rates
from sexton_http.identity.issuers.oidc import OidcIssuer
from sexton_http.identity.oauth import OAuthProvider
from sexton_http.identity.settings import IdentitySettings, open_identity, open_slack
from sexton_http.outbound.http import Elsewhere
from sexton_http.outbound.slack import Slack
from sexton_http.outbound.trace_export import open_traces
from sexton_http.routes.shared.actor_asks import answer_node
from sexton_http.routes.shared.actor_looks import Here, answer_question
from sexton_http.wire.live_certificate import LiveCertificate
from sexton_http.wire.loop_turns import measured_turns
from sexton_http.wire.open_files import connections_within
from sexton_http.wire.relay import Relay
from sexton_http.wire.server import Doors, serve
from sexton_http.wire.stop_signal import Stop
from sexton_runner.providers.addresses import read_addresses
from sexton_storage.background import in_background
from sexton_storage.records.nodes import NodeRecord

RUNNER_DIED = b"D"
"""A parcel to a worker: the id of a lease whose runner is known to have died."""


@dataclass(frozen=True, slots=True)
class Share:
    """What a worker has in common with the others of its server."""

    relay: Relay
    doors: Doors
    node: UUID
    """The id of the server, which is that of all its workers."""
    limits: int
    """The memory of rate limits, by its descriptor."""
    metrics: Sequence[int]
    """Memory in which each worker keeps what it has counted."""

    @property
    def is_first(self) -> bool:
        """Whether it does what one of them has to do for all."""
        return self.relay.slot == 0


@asynccontextmanager
async def open_node(
    settings: NodeSettings, progress: Progress, share: Share | None = None
) -> AsyncIterator[Node]:
    """A whole server, from the database up, or a worker; everything is let down in reverse order.

    Raises StartupFault with what the operator has to see to.
    """
    async with AsyncExitStack() as stack:
        ground = await open_ground(stack, settings, progress, None if share is None else share.doors)
        storage, doors, base_url = ground.storage, ground.doors, ground.base_url
        identity, installation = ground.identity, ground.installation
        slack = await _slack(stack, identity)
        traces = await _traces(stack, settings, ground.world)
        world = replace(ground.world, chat=slack, traces=traces)
        shown = None
        if settings.tls is not None:
            keeps = share is None or share.is_first
            shown = LiveCertificate(settings.tls, *((ground.keep_certificate,) if keeps else ()))
            await stack.enter_async_context(in_background(shown.heed_hangups))
        issuers, providers = await _trusted(stack, identity, installation.tenant_id)
        stop, registry = Stop(), _registry()
        system = await stack.enter_async_context(open_system(tree(world)))
        turns = stack.enter_context(measured_turns()) if settings.busy_at_ms else None
        registry.register(system.collector())
        registry.register(OperatorsCollector(world, VERSION, settings.data))
        storage.signals.listen(partial(hear, world, system.tell))
        storage.on_frames(lambda heads: system.tell("hub", "", FramesWritten(tuple(heads))))
        here = Here(world.new_id() if share is None else share.node, VERSION, None)
        questions = None
        if share is not None:
            asked = partial(answer_question, system, here._replace(worker=share.relay.slot))
            questions = WorkerQuestions(share.relay, asked)
        nodes = NodeQuestions(
            storage,
            NodeRecord(here.node, platform.node(), VERSION, world.now_ms(), world.now_ms()),
            partial(answer_node, system, questions, here),
            new_id=world.new_id,
        )
        ctx = HttpContext(
            system=system,
            world=world,
            issuer=installation.issuer,
            registry=registry,
            settings=HttpSettings(
                base_url,
                plan_rates=plan_rates(world.terms),
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
                sign_ins=settings.sign_ins,
                hsts_subdomains=settings.hsts_subdomains,
                trace_link=settings.trace_link,
            ),
            stop=stop,
            keys=installation.keys,
            nodes=nodes,
            monotonic=trio.lowlevel.current_clock().current_time,
            spell_id=_spell_id,
            other_issuers=issuers,
            providers=providers,
            previewer=ModelPreviewer(read_addresses(os.environ), random.Random()),  # noqa: S311 - spreads tries
            slack=slack,
            turns=turns,
            options=settings.options,
            catalogue_key=installation.catalogue_key,
            connections=connections_within(*settings.connections, settings.trusted_proxies),
            siblings=None if share is None else WorkerMetrics(registry, share.relay, share.metrics),
            questions=questions,
        )
        app = create_app(ctx, limiter=None if share is None else SharedGcra(share.limits))

        def take_back(lease_id: UUID) -> None:
            system.tell("lease", lease_id, Revoke("died"))

        async with trio.open_nursery() as nursery:
            if questions is not None:
                nursery.start_soon(questions.run)
            if share is not None:
                share.relay.on(RUNNER_DIED, lambda parcel: take_back(UUID(bytes=parcel.body)))
            serving = partial(
                serve,
                app,
                doors,
                stop=stop,
                tls=shown,
                connections=ctx.connections,
                relay=None if share is None else share.relay,
            )
            await nursery.start(serving)
            try:
                async with in_background(nodes.run):
                    yield ground.node(take_back)
            finally:
                if questions is None or questions.up() == [questions.worker]:
                    await nodes.leave()  # Else the workers that go on are the node.
                stop.set()
                if questions is not None:
                    questions.close()
        if ctx.siblings is not None:
            ctx.siblings.keep()


async def _traces(stack: AsyncExitStack, settings: NodeSettings, world: World) -> TraceSink | None:
    if settings.traces is None:
        return None
    resource = {
        "service.name": os.environ.get("OTEL_SERVICE_NAME") or "sexton",
        "service.version": VERSION,
        "service.instance.id": str(world.new_id()),
        "host.name": platform.node(),
    }
    sending = open_traces(world.storage, world.meters, settings.traces, resource, VERSION)
    return await stack.enter_async_context(sending)


async def _trusted(
    stack: AsyncExitStack, identity: IdentitySettings, home: UUID
) -> tuple[tuple[OidcIssuer, ...], tuple[OAuthProvider, ...]]:
    client = await stack.enter_async_context(httpx2.AsyncClient())
    return open_identity(identity, Elsewhere(client), trio.current_time, home)


async def _slack(stack: AsyncExitStack, identity: IdentitySettings) -> Slack | None:
    client = await stack.enter_async_context(httpx2.AsyncClient())
    return open_slack(identity, Elsewhere(client))


def _spell_id() -> str:
    return str(uuid_utils.uuid7())


def _registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    return registry
