"""The fleet, for platform admins: who runs, what waits, how the engine is."""

from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

import msgspec

from sexton_actors.protocol.runner import SetAdminState
from sexton_actors.refusal import Refusal
from sexton_engine import TreeNode
from sexton_http.answers import Problem
from sexton_http.bodies.cursors import Place, decode, encode, fingerprint
from sexton_http.bodies.shapes import MAX_PAGE, Body, Cursor, Positive, Query, Shape
from sexton_http.gateway.audit_entries import ask
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Auth, Creates, NoBody, NoQuery, operation
from sexton_http.identity.tokens import TokenKind, digest, mint
from sexton_storage.records.fleet import HistoryItem, HistoryKind, LiveLease, Liveness
from sexton_storage.records.runners import AdminState, EnrolmentToken, Runner
from sexton_storage.scopes import Scope, ScopeKind, scope_of
from sexton_storage.stores import Storage
from sexton_storage.terms import ONLINE_MS

TAG = "Fleet"
ENROLMENT_MS = 3_600_000


class RunnerSort(StrEnum):
    CREATED = "created_at"
    NEWEST = "-created_at"
    HOST = "host_id"
    HOST_DOWN = "-host_id"


class RunnerQuery(Query):
    page: Positive = 1
    page_size: Annotated[int, msgspec.Meta(ge=1, le=100)] = 25
    sort: RunnerSort = RunnerSort.NEWEST


class FleetRunner(Shape):
    id: UUID
    host_id: str
    sandbox_tier: str
    labels: tuple[str, ...]
    offers: tuple[str, ...]
    """What it said that it has beside its labels: images, servers, and the most that it gives one run."""
    liveness: Liveness
    admin_state: AdminState
    slots: int
    scope: ScopeKind
    """The events that the runner is given: everybody's, one tenant's or one workspace's."""
    tenant_id: UUID | None
    """Null: every tenant's."""
    workspace_id: UUID | None
    """Null: every workspace's within the scope."""
    release: str
    """The program that it is, by its User-Agent, such as `sexton-runner/0.1.0`; empty: it never said."""
    active_leases: int
    last_seen_at: int | None
    created_at: int


class FleetPage(Shape):
    items: list[FleetRunner]
    total: int
    page: int
    page_size: int


class HistoryQuery(Query):
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50
    cursor: Cursor | None = None


class RunnerEvent(Shape):
    """One line of a runner's history; ``data`` has what belongs to its kind."""

    id: UUID
    kind: HistoryKind
    at: int
    data: dict[str, Any]


class RunnerHistory(Shape):
    items: list[RunnerEvent]
    next_cursor: str | None


class LeaseQuery(Query):
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50


class FleetLease(Shape):
    lease_id: UUID
    event_id: UUID
    zombie_id: UUID
    zombie_name: str
    workspace_id: UUID
    runner_id: UUID
    attempt: int
    cancelling: bool
    granted_at: int
    expires_at: int
    ceiling_at: int
    renewed_at: int | None
    """Null: it was not renewed yet."""
    host_id: str
    """The runner's."""
    slack_ms: int
    """What is left of its term now; below 0 it is about to be taken back."""


class LeaseList(Shape):
    items: list[FleetLease]
    now: int
    """The database's time, to which ``slack_ms`` belongs."""


class NewEnrolment(Body):
    """Without fields, the runner is given everybody's events and carries no reserved label."""

    tenant_id: UUID | None = None
    """The runner is given this tenant's events only, for ever."""
    workspace_id: UUID | None = None
    """The runner is given this workspace's events only, for ever."""
    labels: Annotated[
        tuple[Annotated[str, msgspec.Meta(min_length=1, max_length=64)], ...], msgspec.Meta(max_length=64)
    ] = ()
    """Labels beginning with `reserved:` that the runner may carry; others need no leave."""


class EnrolmentMade(Shape):
    token: str
    """Shown in this answer only; works once, within the hour."""
    expires_at: int


class AdminWish(StrEnum):
    """``drained`` comes by itself and cannot be asked for."""

    ACTIVE = "active"
    CORDONED = "cordoned"
    DRAINING = "draining"
    REVOKED = "revoked"


class RunnerPatch(Body):
    admin_state: AdminWish


class SupervisorState(Shape):
    tree: TreeNode
    """Nodes with their restarts, mailbox depth and age."""


@operation(
    "POST",
    "/v1/fleet/enrolment-tokens",
    tag=TAG,
    auth=Auth.PLATFORM,
    status=201,
    creates=Creates.ONCE,
    secret=True,
    codes=("UZ-TENANT-001", "UZ-WORKSPACE-001"),
)
async def mint_enrolment_token(call: Call[NewEnrolment, NoQuery]) -> EnrolmentMade:
    """Mint a token that enrols one runner, and says whose events it is given."""
    world, labels = call.ctx.world, tuple(dict.fromkeys(call.body.labels))
    scope = await _scope(call.body, world.storage)
    token, now = mint(TokenKind.ENROLMENT, world.new_token), world.now_ms()
    row = EnrolmentToken(
        digest(token),
        call.member.by,
        now,
        now + ENROLMENT_MS,
        tenant_id=scope.tenant_id,
        workspace_id=scope.workspace_id,
        labels=labels,
    )
    await world.storage.runners.mint_enrolment(row)
    return EnrolmentMade(token, row.expires_at)


@operation("GET", "/v1/fleet/runners", tag=TAG, auth=Auth.PLATFORM)
async def list_runners(call: Call[NoBody, RunnerQuery]) -> FleetPage:
    """List the runners; no token, nor the hash of one, is shown."""
    query, world = call.query, call.ctx.world
    rows, total = await world.storage.runners.list(
        page=min(query.page, MAX_PAGE), page_size=query.page_size, sort=query.sort.value
    )
    live = await world.storage.leases.count_live_by_runner([row.id for row in rows])
    now = world.now_ms()
    items = [view_runner(row, live.get(row.id, 0), now) for row in rows]
    return FleetPage(items, total, query.page, query.page_size)


@operation(
    "PATCH",
    "/v1/fleet/runners/{runner_id}",
    tag=TAG,
    auth=Auth.PLATFORM,
    codes=("UZ-RUN-014", "UZ-REQ-009"),
)
async def change_runner(call: Call[RunnerPatch, NoQuery]) -> FleetRunner | Refusal:
    """Cordon, drain, revoke a runner, or take it back; a revoked one stays revoked."""
    world, runner_id = call.ctx.world, call.id("runner_id")
    reply = await ask(
        call.ctx.system, "runner", runner_id, SetAdminState(call.body.admin_state.value, call.member.by)
    )
    if isinstance(reply, Refusal):
        return reply
    call.services.authenticator.forget(reply.token_hash)
    live = await world.storage.leases.count_live_by_runner([runner_id])
    return view_runner(reply, live.get(runner_id, 0), world.now_ms())


@operation("GET", "/v1/fleet/runners/{runner_id}/events", tag=TAG, auth=Auth.PLATFORM, codes=("UZ-RUN-014",))
async def list_runner_events(call: Call[NoBody, HistoryQuery]) -> RunnerHistory:
    """List what a runner went through, newest first.

    Its enrolment, changes of its standing with who made them, and its leases by their grant, each with how it
    ended.
    """
    storage, query, runner_id = call.ctx.world.storage, call.query, call.id("runner_id")
    filters = fingerprint("runner-events", runner_id)
    place = None if query.cursor is None else decode(query.cursor, filters)
    if await storage.runners.load(runner_id) is None:
        raise Problem("UZ-RUN-014", f"there is no runner {runner_id}")
    before = None if place is None else place.page
    rows = await storage.fleet.history(runner_id, limit=query.limit + 1, before=before)
    shown = rows[: query.limit]
    more = len(rows) > query.limit
    following = encode(Place(shown[-1].at, shown[-1].id, filters)) if more else None
    return RunnerHistory([_view_item(item) for item in shown], following)


@operation("GET", "/v1/fleet/leases", tag=TAG, auth=Auth.PLATFORM)
async def list_live_leases(call: Call[NoBody, LeaseQuery]) -> LeaseList:
    """List the leases that are held, those with the least time left first."""
    world = call.ctx.world
    rows = await world.storage.fleet.live_leases(limit=call.query.limit)
    hosts = await world.storage.runners.hosts([row.runner_id for row in rows])
    names = await world.storage.zombies.names({row.zombie_id for row in rows})
    now = world.now_ms()
    items = [
        _view_lease(row, hosts.get(row.runner_id, ""), names.get(row.zombie_id, ""), now) for row in rows
    ]
    return LeaseList(items, now)


@operation("GET", "/v1/fleet/supervisor", tag=TAG, auth=Auth.PLATFORM)
async def view_supervisor(call: Call[NoBody, NoQuery]) -> SupervisorState:
    """Show the live supervision tree."""
    return SupervisorState(call.ctx.system.tree())


async def _scope(body: NewEnrolment, storage: Storage) -> Scope:
    """Raises Problem UZ-TENANT-001, UZ-WORKSPACE-001, or UZ-REQ-001 where the two do not agree."""
    if body.tenant_id is not None and await storage.tenants.load(body.tenant_id) is None:
        raise Problem("UZ-TENANT-001", f"there is no tenant {body.tenant_id}")
    if body.workspace_id is None:
        return Scope(body.tenant_id)
    workspace = await storage.workspaces.load(body.workspace_id)
    if workspace is None:
        raise Problem("UZ-WORKSPACE-001", f"there is no workspace {body.workspace_id}")
    if body.tenant_id not in {None, workspace.tenant_id}:
        raise Problem(
            "UZ-REQ-001",
            f"/tenant_id: the workspace {workspace.id} is of another tenant; leave tenant_id out",
            facts={"pointer": "/tenant_id"},
        )
    return Scope(workspace.tenant_id, workspace.id)


def _view_item(item: HistoryItem) -> RunnerEvent:
    return RunnerEvent(item.id, item.kind, item.at, item.data)


def _view_lease(lease: LiveLease, host_id: str, zombie_name: str, now: int) -> FleetLease:
    told = msgspec.structs.asdict(lease)
    metered_at: int = told.pop("metered_at")
    renewed_at = metered_at if metered_at > lease.granted_at else None
    return FleetLease(
        **told,
        zombie_name=zombie_name,
        renewed_at=renewed_at,
        host_id=host_id,
        slack_ms=lease.expires_at - now,
    )


def view_runner(runner: Runner, active_leases: int, now: int) -> FleetRunner:
    return FleetRunner(
        id=runner.id,
        host_id=runner.host_id,
        sandbox_tier=runner.sandbox_tier,
        labels=runner.labels,
        offers=runner.offers,
        liveness=liveness(runner.last_seen_at, active_leases, now),
        admin_state=runner.admin_state,
        slots=runner.slots,
        scope=scope_of(runner).kind,
        tenant_id=runner.tenant_id,
        workspace_id=runner.workspace_id,
        release=runner.release,
        active_leases=active_leases,
        last_seen_at=runner.last_seen_at,
        created_at=runner.created_at,
    )


def liveness(last_seen_at: int | None, active_leases: int, now: int) -> Liveness:
    """What a runner's last sign of life says of it.

    >>> liveness(None, 0, 5).value, liveness(0, 1, 10**6).value, liveness(0, 0, 90_001).value
    ('registered', 'busy', 'offline')
    """
    if last_seen_at is None:
        return Liveness.REGISTERED
    if active_leases:
        return Liveness.BUSY
    return Liveness.ONLINE if now - last_seen_at <= ONLINE_MS else Liveness.OFFLINE
