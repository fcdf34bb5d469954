"""The runner plane: enrol, live, take leases."""

from enum import StrEnum
from functools import partial
from typing import Annotated, Any
from uuid import UUID

import msgspec
import trio

from sexton_actors.lease.handover.deliver import deliver
from sexton_actors.protocol.runner import Beat, Heartbeat, Leases, Poll
from sexton_actors.refusal import Refusal
from sexton_http.answers import Problem, RequestHead
from sexton_http.bodies.lease_payload import LeaseHanded
from sexton_http.bodies.names import fitting
from sexton_http.bodies.shapes import Body, Shape, WaitMs
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Auth, Creates, NoBody, NoQuery, Wait, operation
from sexton_http.identity.principals import Enroller
from sexton_http.identity.tokens import TokenKind, digest, mint
from sexton_http.wire.stop_signal import until_stopped
from sexton_storage.offers import MAX_OFFER_CHARS, MAX_OFFERS, OFFER
from sexton_storage.records.runners import AdminState, Runner
from sexton_storage.scopes import ScopeKind, scope_of, without_leave

TAG = "Runner plane"
SLACK_S = 10.0
"""How much later than its own end a long poll is given up."""
MAX_LEASE_IDS = 1024
RELEASE_CHARS = 128
UNSAID_SLOTS = 64
"""The slots of a runner that does not say: as many as one poll can ask for."""
EMPTY_RETRY_MS = 1000
"""From the beginning of a poll that found nothing to the next, at least."""


class SandboxTier(StrEnum):
    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    PODMAN = "podman"
    NONE = "none"


Offer = Annotated[str, msgspec.Meta(max_length=MAX_OFFER_CHARS), fitting(OFFER)]
Offers = Annotated[
    tuple[Offer, ...],
    msgspec.Meta(
        max_length=MAX_OFFERS,
        description="What the runner has beside its labels: `image:NAME`, `mcp:NAME`, the most that it"
        " gives one run of `cpu`, `memory`, `pids`, `disk` and `wall` (`memory<=4096MiB`), and `cpu-quota`"
        " where a share of the processors is kept to.",
    ),
]


class NewRunner(Body):
    host_id: Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
    sandbox_tier: SandboxTier
    labels: Annotated[
        tuple[Annotated[str, msgspec.Meta(min_length=1, max_length=64)], ...], msgspec.Meta(max_length=64)
    ] = ()
    slots: Annotated[int, msgspec.Meta(ge=1, le=256)] = UNSAID_SLOTS
    """As many leases as it may hold at a time."""
    offers: Offers = ()


class RunnerEnrolled(Shape):
    runner_id: UUID
    runner_token: str
    """Shown in this answer only."""


class RunnerSelf(Shape):
    id: UUID
    admin_state: AdminState
    host_id: str
    sandbox_tier: str
    labels: tuple[str, ...]
    offers: tuple[str, ...]
    """What it said that it has beside its labels."""
    slots: int
    scope: ScopeKind
    """The events that the runner is given: everybody's, one tenant's or one workspace's."""
    tenant_id: UUID | None
    """Null: every tenant's."""
    workspace_id: UUID | None
    """Null: every workspace's within the scope."""
    last_seen_at: int | None


class Pulse(Body):
    active_lease_ids: Annotated[tuple[UUID, ...], msgspec.Meta(max_length=MAX_LEASE_IDS)] = ()
    wait_ms: WaitMs = 0
    """Hold the answer back until there is something to stop; for a runner without an open poll."""
    offers: Offers | None = None
    """What it offers from now on; left out or null: what it said last."""


class PulseAnswer(Shape):
    status: str
    """``ok``, ``drain`` or ``stop``."""
    cancelled_lease_ids: tuple[UUID, ...]


class LeasePoll(Body):
    max: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    wait_ms: WaitMs = 0


class LeasesGiven(Shape):
    """With leases that are spelled already."""

    lease: Any
    leases: list[Any]
    retry_after_ms: int
    cancelled_lease_ids: tuple[UUID, ...] = ()
    waited_ms: int = 0


class LeasesAnswer(Shape):
    lease: LeaseHanded | None
    """The first, or null."""
    leases: list[LeaseHanded]
    retry_after_ms: int
    cancelled_lease_ids: tuple[UUID, ...]
    """Leases that the runner holds and is to stop: a poll that waits ends to say so."""
    waited_ms: int
    """How long after the poll had come the first lease was granted, at least. Count its term from when the
    poll was sent, and this, so that an answer that is long on its way makes no term longer."""


@operation(
    "POST",
    "/v1/runners",
    tag=TAG,
    auth=Auth.ENROLMENT,
    status=201,
    creates=Creates.ONCE,
    secret=True,
    codes=("UZ-RUN-017",),
)
async def enrol_runner(call: Call[NewRunner, NoQuery]) -> RunnerEnrolled:
    """Add a runner; an enrolment token is used up by it, and says whose events the runner is given.

    A label that begins with `reserved:` is refused unless the enrolment token allows it.
    """
    body, world, principal = call.body, call.ctx.world, call.principal
    used = principal.enrolment_hash if isinstance(principal, Enroller) else None
    leave = None if used is None else await world.storage.runners.open_enrolment(used)
    if used is not None and leave is None:
        raise Problem("UZ-RUN-015", "the enrolment token is unknown, used or expired")
    if refused := without_leave(body.labels, () if leave is None else leave.labels):
        raise Problem(
            "UZ-RUN-017",
            f"reserved without leave: {', '.join(refused)}. Leave it out, or have a platform admin mint an"
            " enrolment token that names it in `labels`.",
            facts={"labels": list(refused)},
        )
    token = mint(TokenKind.RUNNER, world.new_token)
    runner = Runner(
        id=world.new_id(),
        host_id=body.host_id,
        sandbox_tier=body.sandbox_tier.value,
        labels=tuple(dict.fromkeys(body.labels)),
        slots=body.slots,
        token_hash=digest(token),
        admin_state=AdminState.ACTIVE,
        version=1,
        created_at=world.now_ms(),
        tenant_id=None if leave is None else leave.tenant_id,
        workspace_id=None if leave is None else leave.workspace_id,
        offers=tuple(sorted(set(body.offers))),
        release=release_of(call.head),
    )
    if not await world.storage.runners.enrol(runner, enrolment_hash=used):
        raise Problem("UZ-RUN-015", "the enrolment token is unknown, used or expired")
    return RunnerEnrolled(runner.id, token)


def release_of(head: RequestHead) -> str:
    r"""The program that a runner is, by its User-Agent: an older server takes no notice of a header.

    >>> release_of(RequestHead("POST", "/", b"", {b"user-agent": b"sexton-runner/0.1.0 \x80"}, ""))
    'sexton-runner/0.1.0'
    >>> release_of(RequestHead("POST", "/", b"", {}, ""))
    ''
    """
    said = head.headers.get(b"user-agent", b"")[:RELEASE_CHARS].decode("ascii", "ignore")
    return "".join(filter(str.isprintable, said)).strip()


@operation("GET", "/v1/runners/me", tag=TAG, auth=Auth.RUNNER)
async def describe_self(call: Call[NoBody, NoQuery]) -> RunnerSelf:
    """Show the calling runner's own record."""
    known = call.host.runner
    runner = await call.ctx.world.storage.runners.load(known.id) or known
    return RunnerSelf(
        id=runner.id,
        admin_state=runner.admin_state,
        host_id=runner.host_id,
        sandbox_tier=runner.sandbox_tier,
        labels=runner.labels,
        offers=runner.offers,
        slots=runner.slots,
        scope=scope_of(runner).kind,
        tenant_id=runner.tenant_id,
        workspace_id=runner.workspace_id,
        last_seen_at=runner.last_seen_at,
    )


@operation(
    "POST",
    "/v1/runners/me/heartbeats",
    tag=TAG,
    auth=Auth.RUNNER,
    hot=True,
    wait=Wait.LONG_POLL,
    codes=("UZ-RUN-014",),
)
async def beat(call: Call[Pulse, NoQuery]) -> PulseAnswer | Refusal:
    """Say that the runner lives, and hear what it is to stop."""
    ctx, body = call.ctx, call.body
    message = Heartbeat(body.active_lease_ids, body.wait_ms, body.offers, release_of(call.head))
    ask = partial(
        ctx.system.ask, "runner", call.host.runner.id, message, timeout=body.wait_ms / 1000 + SLACK_S
    )
    reply: Beat | Refusal | None = await (until_stopped(ask, ctx.stop) if body.wait_ms else ask())
    match reply:
        case None:
            return PulseAnswer("ok", ())
        case Refusal():
            return reply
        case Beat(status=status, cancelled_lease_ids=cancelled):
            return PulseAnswer(status, cancelled)


@operation(
    "POST",
    "/v1/runners/me/leases",
    tag=TAG,
    auth=Auth.RUNNER,
    hot=True,
    wait=Wait.LONG_POLL,
    codes=("UZ-RUN-014",),
    answer=LeasesAnswer,
)
async def poll_leases(call: Call[LeasePoll, NoQuery]) -> LeasesGiven | Refusal:
    """Wait for work; the answer comes the moment there is some."""
    ctx, body = call.ctx, call.body
    message = Poll(body.max, body.wait_ms)
    timeout = body.wait_ms / 1000 + SLACK_S
    began = trio.current_time()
    ask = partial(ctx.system.ask, "runner", call.host.runner.id, message, timeout=timeout)
    reply: Leases | Refusal | None
    if body.wait_ms:
        reply = await until_stopped(ask, ctx.stop)
    else:
        reply = await ask()
    match reply:
        case None:
            return LeasesGiven(None, [], 1000)
        case Refusal():
            return reply
        case Leases(grants=grants, retry_after_ms=retry_after_ms, cancelled_lease_ids=cancelled):
            leases = await deliver(grants, ctx.system, ctx.world)
            if not leases and not cancelled:
                # Who did not wait is not to ask again and again without a pause.
                retry_after_ms = max(retry_after_ms, EMPTY_RETRY_MS - body.wait_ms)
            first = min((grant.lease.granted_at for grant in grants), default=None)
            taken_s = trio.current_time() - began
            waited_ms = 0 if first is None else int(taken_s * 1000) - (ctx.world.now_ms() - first)
            lease = leases[0] if leases else None
            return LeasesGiven(lease, leases, retry_after_ms, cancelled, max(0, waited_ms))
