"""Contents that runs and people send, part by part: files, and whatever else is too large for one request."""

from typing import Annotated, Any, NoReturn
from uuid import UUID

import msgspec

from sexton_http.answers import Problem
from sexton_http.bodies.fencing_token import FENCED, TAG, Token
from sexton_http.bodies.names import fitting
from sexton_http.bodies.shapes import Body, Count, Query, Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Auth, NoBody, NoQuery, operation
from sexton_http.routes.shared.held_lease import held_lease
from sexton_http.routes.shared.upload_room import no_room
from sexton_storage.records.blobs import (
    CHUNK_BYTES,
    PART_BYTES,
    Blob,
    BlobState,
    Misplaced,
    NoRoom,
)
from sexton_storage.senders import sender_of

FILES_TAG = "Files"
HEX_CHARS = 64
Sha256 = Annotated[str, fitting(f"^[0-9a-f]{{{HEX_CHARS}}}$"), msgspec.Meta(description="In hex.")]


class NewUpload(Body):
    sha256: Sha256
    size: Count
    """In bytes."""
    fencing_token: Token = None


class NewWorkspaceUpload(Body):
    sha256: Sha256
    size: Count
    """In bytes."""


class UploadView(Shape):
    upload_id: UUID
    size: int
    received: int
    """Where the next part begins."""
    complete: bool
    """All has come, and its SHA-256 is the one that was declared."""
    part_bytes: int
    """The most that one part may have. All parts but the last are whole multiples of ``chunk_bytes``."""
    chunk_bytes: int


class PartQuery(Query):
    offset: Count
    """The number of bytes before this part."""
    fencing_token: Token = None


class WorkspacePartQuery(Query):
    offset: Count = 0
    """The number of bytes before this part."""


@operation(
    "POST",
    "/v1/runners/me/leases/{lease_id}/uploads",
    tag=TAG,
    auth=Auth.RUNNER,
    codes=(*FENCED, "UZ-FILE-002", "UZ-FILE-003", "UZ-FILE-004", "UZ-FILE-006"),
)
async def begin_upload(call: Call[NewUpload, NoQuery]) -> UploadView:
    """Declare a content by its length and hash; the same again says how much of it has come.

    It counts against the workspace's quota from now on. What becomes no file is deleted an hour after its
    last part.
    """
    lease = await held_lease(call, call.id("lease_id"), call.body.fencing_token)
    return await _begin(call, lease.workspace_id, lease.id)


@operation(
    "POST",
    "/v1/workspaces/{workspace_id}/uploads",
    tag=FILES_TAG,
    codes=("UZ-FILE-002", "UZ-FILE-003", "UZ-FILE-004", "UZ-FILE-006"),
)
async def begin_workspace_upload(call: Call[NewWorkspaceUpload, NoQuery]) -> UploadView:
    """Declare a content that a message is to bring; the same again says how much of it has come.

    It is the caller's alone, and counts against the workspace's quota from now on. What no message brings is
    deleted an hour after its last part.
    """
    workspace_id = call.id("workspace_id")
    return await _begin(call, workspace_id, sender_of(workspace_id, call.member.by))


async def _begin(
    call: Call[NewUpload, NoQuery] | Call[NewWorkspaceUpload, NoQuery], workspace_id: UUID, sender_id: UUID
) -> UploadView:
    body, world = call.body, call.ctx.world
    bounds = world.files
    if body.size > bounds.file_bytes:
        raise _refused(call, "UZ-FILE-004", f"the file has {body.size} bytes, {bounds.file_bytes} may be")
    blob = await world.storage.blobs.open(
        call.new_id(),
        workspace_id,
        sender_id,
        sha256=bytes.fromhex(body.sha256),
        size=body.size,
        quota=bounds.quota_bytes,
    )
    if isinstance(blob, NoRoom):
        raise no_room(call.services, blob)
    return await _view(call, blob)


@operation(
    "PUT",
    "/v1/runners/me/leases/{lease_id}/uploads/{upload_id}",
    tag=TAG,
    auth=Auth.RUNNER,
    codes=(*FENCED, "UZ-FILE-005", "UZ-FILE-006", "UZ-FILE-008"),
    max_body=PART_BYTES,
    takes_bytes=True,
)
async def send_part(call: Call[NoBody, PartQuery]) -> UploadView:
    """Send the next bytes of a content. A part that came before changes nothing."""
    lease = await held_lease(call, call.id("lease_id"), call.query.fencing_token)
    return await _take(call, lease.id, call.query.offset)


@operation(
    "PUT",
    "/v1/workspaces/{workspace_id}/uploads/{upload_id}",
    tag=FILES_TAG,
    codes=("UZ-FILE-005", "UZ-FILE-006", "UZ-FILE-008"),
    max_body=PART_BYTES,
    takes_bytes=True,
)
async def send_workspace_part(call: Call[NoBody, WorkspacePartQuery]) -> UploadView:
    """Send the next bytes of a content. A part that came before changes nothing."""
    return await _take(call, sender_of(call.id("workspace_id"), call.member.by), call.query.offset)


async def _take(call: Call[Any, Any], sender_id: UUID, offset: int) -> UploadView:
    blob = await _upload(call, sender_id, call.id("upload_id"))
    if not call.raw:
        raise Problem("UZ-REQ-001", "the part is empty", facts={"received": blob.received})
    received = await call.services.contents.take(blob.id, offset, call.raw)
    if isinstance(received, Misplaced):
        _refuse_part(blob, received)
    call.services.metrics.file_bytes.labels("in").inc(len(call.raw))
    return await _view(call, await _upload(call, sender_id, blob.id))


async def _upload(call: Call[Any, Any], sender_id: UUID, upload_id: UUID) -> Blob:
    blob = await call.ctx.world.storage.blobs.load(upload_id)
    if blob is None or blob.lease_id != sender_id:
        raise Problem("UZ-FILE-008", f"the sender has no upload {upload_id}")
    return blob


def _refuse_part(blob: Blob, why: Misplaced) -> NoReturn:
    if why is Misplaced.CLOSED:
        raise Problem("UZ-FILE-008", f"the upload {blob.id} was given up; begin it again")
    details = {
        Misplaced.GAP: f"{blob.received} bytes have come, and this part begins elsewhere",
        Misplaced.BEYOND: f"the file was declared with {blob.size} bytes, and this part goes on after them",
        Misplaced.UNALIGNED: f"only the last part may be no whole multiple of {CHUNK_BYTES} bytes",
    }
    raise Problem("UZ-FILE-005", details[why], facts={"received": blob.received})


async def _view(call: Call[Any, Any], blob: Blob) -> UploadView:
    """What there is now; a content that is whole is verified first. Raises Problem UZ-FILE-006."""
    complete = blob.state is BlobState.KEPT
    if not complete and blob.received == blob.size:
        complete = await call.services.contents.finish(blob)
        if not complete:
            raise _refused(
                call, "UZ-FILE-006", "the bytes that came have another SHA-256; begin the upload again"
            )
    return UploadView(blob.id, blob.size, blob.received, complete, PART_BYTES, CHUNK_BYTES)


def _refused(call: Call[Any, Any], code: str, detail: str) -> Problem:
    call.services.metrics.files.labels(code).inc()
    return Problem(code, detail)
