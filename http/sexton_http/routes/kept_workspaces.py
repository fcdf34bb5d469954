"""Workspaces that stay: what a run starts from and leaves, and what people see and reset of it."""

from typing import Annotated, Any
from uuid import UUID

import msgspec

from sexton_http.answers import Answer, Problem
from sexton_http.bodies.fencing_token import FENCED, TAG as RUNNER_TAG, Token
from sexton_http.bodies.shapes import Body, Count, Query, Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Auth, NoBody, NoQuery, operation
from sexton_http.routes.shared.content_parts import BYTES, part_of
from sexton_http.routes.shared.held_lease import IN_SHADOW, check_effects, held_lease
from sexton_storage.contents import ContentGone
from sexton_storage.records.kept_workspaces import Snapshot
from sexton_storage.records.leases import Lease, LeaseToken
from sexton_storage.records.users import Role

TAG = "Files"
LOST = "UZ-FILE-011"
OF_LEASE = "/v1/runners/me/leases/{lease_id}/workspace"
OF_AGENT = "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/workspace-files"


class SnapshotView(Shape):
    sha256: str
    """The SHA-256, in hex, of the tar as it is kept, compressed with Zstandard."""
    size: int
    """In bytes, compressed."""
    event_id: UUID
    """The event whose run left it."""
    created_at: int


class FencedBody(Body):
    fencing_token: Token = None


class WorkspaceStart(Shape):
    snapshot: SnapshotView | None
    """Null: the run starts from an empty folder."""


class NewSnapshot(FencedBody, kw_only=True):
    upload_id: UUID
    """A content that came whole under this lease."""


class ContentQuery(Query):
    offset: Count = 0
    fencing_token: Token = None


class AgentWorkspace(Shape):
    snapshot: SnapshotView | None
    """What the agent's next run starts from; null: an empty folder."""


class WorkspaceReset(Shape):
    reset: Annotated[bool, msgspec.Meta(description="Always true: the next run starts from an empty folder.")]


@operation("POST", OF_LEASE, tag=RUNNER_TAG, auth=Auth.RUNNER, codes=(*FENCED, LOST))
async def start_workspace(call: Call[FencedBody, NoQuery]) -> WorkspaceStart:
    """Say what the run of a lease starts from; asked again, the answer is the same.

    An event's first run starts from what the agent's last reported run left, and so do its further ones and
    its replays. One that was parked goes on with what it had.
    """
    lease = await held_lease(call, call.id("lease_id"), call.body.fencing_token)
    found = await _start(call, lease)
    return WorkspaceStart(None if found is None else view_snapshot(found))


@operation(
    "GET",
    f"{OF_LEASE}/content",
    tag=RUNNER_TAG,
    auth=Auth.RUNNER,
    media=BYTES,
    codes=(*FENCED, LOST, "UZ-FILE-009", "UZ-FILE-013"),
)
async def read_workspace(call: Call[NoBody, ContentQuery]) -> Answer:
    """Give the next bytes of the snapshot that the run starts from, at most 1 MiB of them."""
    lease = await held_lease(call, call.id("lease_id"), call.query.fencing_token)
    found = await _start(call, lease)
    if found is None:
        raise Problem("UZ-FILE-009", "there are 0 bytes")
    blob = await call.ctx.world.storage.blobs.load(found.blob_id)
    if blob is None:
        raise _lost(lease)
    try:
        return await part_of(call, blob, call.query.offset)
    except ContentGone as gone:
        raise _lost(lease) from gone


@operation("PUT", OF_LEASE, tag=RUNNER_TAG, auth=Auth.RUNNER, codes=(*FENCED, "UZ-FILE-006", IN_SHADOW))
async def keep_workspace(call: Call[NewSnapshot, NoQuery]) -> SnapshotView:
    """Leave a content as the run's workspace; a second one takes the place of the first.

    It counts once the lease is reported, and for its own event once it is parked. Of a lease that ends
    otherwise it never counts.
    """
    world, lease_id = call.ctx.world, call.id("lease_id")
    lease = await held_lease(call, lease_id, call.body.fencing_token)
    check_effects(lease)
    held = LeaseToken(lease.id, lease.fencing_token)
    kept = await world.storage.kept_workspaces.keep(lease, held, call.body.upload_id, world.now_ms())
    if kept is None:
        await held_lease(call, lease_id, call.body.fencing_token)
        raise Problem(
            "UZ-FILE-006",
            "the upload is not complete or is another lease's, or the run has not asked what it starts from",
        )
    call.services.metrics.files.labels("snapshot").inc()
    return view_snapshot(kept)


@operation("GET", OF_AGENT, tag=TAG, codes=("UZ-ZMB-009",), agents="UZ-AUTH-001")
async def show_workspace_files(call: Call[NoBody, NoQuery]) -> AgentWorkspace:
    """Show what is known of the folder that an agent's next run starts from."""
    zombie_id = call.id("zombie_id")
    await call.services.scopes.require_zombie(call.id("workspace_id"), zombie_id)
    found = await call.ctx.world.storage.kept_workspaces.newest(zombie_id)
    return AgentWorkspace(None if found is None else view_snapshot(found))


@operation("DELETE", OF_AGENT, tag=TAG, role=Role.OPERATOR, codes=("UZ-ZMB-009",))
async def reset_workspace_files(call: Call[NoBody, NoQuery]) -> WorkspaceReset:
    """Have the agent's next run start from an empty folder.

    What a run leaves that is under way now does not count either.
    """
    zombie_id = call.id("zombie_id")
    await call.services.scopes.require_zombie(call.id("workspace_id"), zombie_id)
    await call.ctx.world.storage.kept_workspaces.reset(zombie_id)
    return WorkspaceReset(reset=True)


async def _start(call: Call[Any, Any], lease: Lease) -> Snapshot | None:
    started = await call.ctx.world.storage.kept_workspaces.start(lease)
    if started is None:
        raise Problem("UZ-RUN-005", f"lease {lease.id} is no longer held")
    if started.is_lost:
        raise _lost(lease)
    return started.snapshot


def _lost(lease: Lease) -> Problem:
    return Problem(
        LOST,
        f"the snapshot that event {lease.event_id} started from is not kept any more: the agent's workspace "
        "was reset since, or many runs have left newer ones",
    )


def view_snapshot(snapshot: Snapshot) -> SnapshotView:
    return SnapshotView(snapshot.sha256.hex(), snapshot.size, snapshot.event_id, snapshot.created_at)
