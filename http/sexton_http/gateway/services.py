"""What the front end itself keeps for the life of a server."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from sexton_http.answers import Answer, RequestHead, StreamAnswer
from sexton_http.bodies.sse import FrameEncoder
from sexton_http.ceilings import Ceiling
from sexton_http.gateway.admission import Admission
from sexton_http.gateway.byte_budget import ByteBudget
from sexton_http.gateway.limits import Gcra, Limiter
from sexton_http.gateway.metrics import HttpMetrics
from sexton_http.gateway.opening_line import OpeningLine
from sexton_http.gateway.page_parts import PageParts
from sexton_http.gateway.per_agent_limit import Crowds
from sexton_http.gateway.replays import Replays
from sexton_http.gateway.safe_headers import Https
from sexton_http.identity.access import AccessChanges
from sexton_http.identity.authenticator import Authenticator
from sexton_http.identity.browsers import Browsers
from sexton_http.identity.context import Documents, HttpContext
from sexton_http.identity.scopes import Scopes
from sexton_storage.contents import Contents

AskRoute = Callable[[RequestHead, Mapping[str, str], bytes | None], Awaitable[Answer | StreamAnswer]]
"""A mounted route: asked with a head, the parameters of its path and a body, as a connection asks it."""


@dataclass(frozen=True, slots=True)
class Services:
    """One for an app, shared by both of its mounts, so that a ceiling is one ceiling."""

    ctx: HttpContext
    documents: Documents
    authenticator: Authenticator
    access: AccessChanges
    browsers: Browsers
    scopes: Scopes
    limiter: Limiter
    metrics: HttpMetrics
    in_flight: Ceiling
    long_polls: Ceiling
    streams: Ceiling
    openings: OpeningLine
    bodies: Ceiling
    """The bytes of all bodies that are here, whole or in part, until their requests are answered."""
    frame_encoder: FrameEncoder
    replays: Replays
    answer_bytes: ByteBudget
    deliveries: Crowds
    admission: Admission
    contents: Contents
    """Files on their way in and out."""
    page_parts: PageParts[Answer]
    page_changes: PageParts[bool]
    """Whether rows have changed between two places; those who ask of the same places ask once."""
    routes: dict[str, AskRoute] = field(default_factory=dict)
    """By the name of its operation each route of the app, for one that asks others in its caller's name."""

    @property
    def https(self) -> Https:
        """Whether people reach this server over TLS, its own or a proxy's."""
        settings = self.ctx.settings
        if not settings.base_url.startswith("https:"):
            return Https.NONE
        return Https.SUBDOMAINS if settings.hsts_subdomains else Https.OWN

    @property
    def ways(self) -> Sequence[tuple[str, str]]:
        """Where else people sign in: the name in addresses, and the label."""
        return [(provider.name, provider.label) for provider in self.ctx.providers]


def make_services(ctx: HttpContext, documents: Documents, limiter: Limiter | None = None) -> Services:
    settings = ctx.settings
    metrics = HttpMetrics(ctx.registry)
    # Half for each kind: who opens streams and does not read them leaves other answers their room.
    answer_bytes, replay_bytes = (
        ByteBudget(settings.max_answer_bytes // 2, settings.shares) for _ in range(2)
    )
    access = AccessChanges(ctx.world.storage.signals)
    browsers = Browsers(ctx, access)
    services = Services(
        ctx=ctx,
        documents=documents,
        authenticator=Authenticator(ctx, browsers, access),
        access=access,
        browsers=browsers,
        scopes=Scopes(ctx.world.storage, ctx.monotonic),
        limiter=Gcra(ctx.monotonic) if limiter is None else limiter,
        metrics=metrics,
        in_flight=Ceiling(settings.max_in_flight, settings.shares),
        long_polls=Ceiling(settings.max_long_polls, settings.shares),
        streams=Ceiling(settings.max_streams, settings.shares),
        openings=OpeningLine(),
        bodies=Ceiling(settings.max_body_memory, settings.shares),
        frame_encoder=FrameEncoder(),
        replays=Replays(ctx.world.storage.frames, replay_bytes),
        answer_bytes=answer_bytes,
        deliveries=Crowds(max(1, settings.max_in_flight // 4)),
        admission=Admission(
            ctx.world.storage,
            ctx.world.backlog,
            turns=ctx.turns,
            busy_at_s=settings.busy_at_s,
            most=max(1, settings.max_in_flight),
            metrics=metrics,
        ),
        contents=Contents(ctx.world.storage.blobs, ctx.world.objects),
        page_parts=PageParts(ctx.monotonic),
        page_changes=PageParts(ctx.monotonic),
    )
    for wait in ("in_flight", "long_polls", "streams"):
        metrics.in_flight.labels(wait).set_function(partial(_under_way, getattr(services, wait)))
    for kind, budget in (("answers", answer_bytes), ("replays", replay_bytes)):
        metrics.answer_bytes.labels(kind).set_function(partial(_under_way, budget))
    metrics.body_bytes.set_function(partial(_under_way, services.bodies))
    metrics.connections.labels("ordinary").set_function(lambda: ctx.connections.taken)
    metrics.connections.labels("reserve").set_function(lambda: ctx.connections.reserved)
    return services


def _under_way(counted: Ceiling | ByteBudget) -> float:
    return counted.now
