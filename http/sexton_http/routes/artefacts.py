"""The files that runs leave: kept by runs, listed, read and deleted by people."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any
from uuid import UUID

import msgspec
import structlog

from sexton_http.answers import Answer, Problem, StreamAnswer
from sexton_http.bodies.byte_ranges import Unsatisfiable, applies, is_match, range_of
from sexton_http.bodies.cursors import Place, decode, encode, fingerprint
from sexton_http.bodies.fencing_token import FENCED, TAG as RUNNER_TAG, Token
from sexton_http.bodies.file_names import (
    DEFAULT_MEDIA_TYPE,
    MEDIA_TYPE_CHARS,
    NAME_BYTES,
    disposition,
    fault_of_name,
    is_media_type,
)
from sexton_http.bodies.shapes import Body, Cursor, Query, Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Auth, NoBody, NoQuery, Wait, operation
from sexton_http.routes.shared.event_lookup import find_event
from sexton_http.routes.shared.held_lease import held_lease
from sexton_storage.contents import ContentGone
from sexton_storage.objects.store import ObjectStoreFault
from sexton_storage.records.artefacts import ARTEFACTS_OF_ATTEMPT, Artefact, NotKept
from sexton_storage.records.blobs import CHUNK_BYTES, Blob
from sexton_storage.records.leases import LeaseToken
from sexton_storage.records.users import Role

log = structlog.get_logger()

TAG = "Files"
OK = 200
STORE_WAIT_S = 5
PARTIAL = 206
NOT_MODIFIED = 304
OF_ONE = "/v1/workspaces/{workspace_id}/artefacts/{artefact_id}"


class NewArtefact(Body):
    upload_id: UUID
    """A content that came whole under this lease."""
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_BYTES)]
    """A relative path, with slashes and in its shortest form; at most 1,024 bytes."""
    media_type: Annotated[str, msgspec.Meta(max_length=MEDIA_TYPE_CHARS)] = DEFAULT_MEDIA_TYPE
    fencing_token: Token = None


class ArtefactItem(Shape):
    artefact_id: UUID
    name: str
    media_type: str
    size: int
    sha256: str
    event_id: UUID
    zombie_id: UUID
    attempt: int
    lease_id: UUID
    created_at: int


class ArtefactPage(Shape):
    items: list[ArtefactItem]
    next_cursor: str | None
    used_bytes: int
    """What counts against the workspace's quota: all that it keeps, and what is being sent."""
    quota_bytes: int | None
    """Null: there is none."""


class ArtefactQuery(Query):
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50
    cursor: Cursor | None = None


@operation(
    "POST",
    "/v1/runners/me/leases/{lease_id}/artefacts",
    tag=RUNNER_TAG,
    auth=Auth.RUNNER,
    codes=(*FENCED, "UZ-FILE-003", "UZ-FILE-006", "UZ-FILE-007"),
)
async def keep_artefact(call: Call[NewArtefact, NoQuery]) -> ArtefactItem:
    """Keep a content that was sent as a file of the run; the same name and content again is the same file."""
    body, world = call.body, call.ctx.world
    lease = await held_lease(call, call.id("lease_id"), body.fencing_token)
    if fault := fault_of_name(body.name):
        raise Problem("UZ-REQ-001", f"/name: {fault}", facts={"pointer": "/name"})
    if not is_media_type(body.media_type):
        raise Problem("UZ-REQ-001", "/media_type: no media type", facts={"pointer": "/media_type"})
    blob = await world.storage.blobs.load(body.upload_id)
    sha256, size = (b"", 0) if blob is None else (blob.sha256, blob.size)
    artefact = Artefact(
        id=call.new_id(),
        zombie_id=lease.zombie_id,
        workspace_id=lease.workspace_id,
        event_id=lease.event_id,
        lease_id=lease.id,
        attempt=lease.attempt,
        name=body.name,
        media_type=body.media_type,
        blob_id=body.upload_id,
        sha256=sha256,
        size=size,
        created_at=world.now_ms(),
    )
    kept = await world.storage.artefacts.keep(artefact, LeaseToken(lease.id, lease.fencing_token))
    outcomes = call.services.metrics.files
    if isinstance(kept, NotKept):
        problem = _problem(kept, body.name)
        outcomes.labels(problem.code).inc()
        raise problem
    outcomes.labels("kept").inc()
    return view_artefact(kept)


def _problem(why: NotKept, name: str) -> Problem:
    match why:
        case NotKept.FENCED:
            return Problem("UZ-RUN-005", "the lease does not hold the agent any more")
        case NotKept.NOT_SENT:
            return Problem("UZ-FILE-006", "the upload is not complete, or is another lease's")
        case NotKept.TAKEN:
            return Problem("UZ-FILE-007", f"the attempt has left another content as {name!r}")
        case NotKept.FULL:
            return Problem("UZ-FILE-003", f"an attempt may leave {ARTEFACTS_OF_ATTEMPT} files")


@operation(
    "GET",
    "/v1/workspaces/{workspace_id}/events/{event_id}/artefacts",
    tag=TAG,
    codes=("UZ-EVENT-001",),
)
async def list_artefacts(call: Call[NoBody, ArtefactQuery]) -> ArtefactPage:
    """List the files that an event's runs left, in the order in which they came."""
    world, query = call.ctx.world, call.query
    workspace_id, event_id = call.id("workspace_id"), call.id("event_id")
    await find_event(call)
    filters = fingerprint("artefacts", event_id)
    after = None if query.cursor is None else decode(query.cursor, filters).page
    rows = await world.storage.artefacts.list(event_id, after=after, limit=query.limit + 1)
    shown = rows[: query.limit]
    more = len(rows) > query.limit
    following = encode(Place(shown[-1].created_at, shown[-1].id, filters)) if more else None
    used = await world.storage.blobs.used(workspace_id)
    return ArtefactPage([view_artefact(row) for row in shown], following, used, world.files.quota_bytes)


@operation("GET", OF_ONE, tag=TAG, codes=("UZ-FILE-001",))
async def get_artefact(call: Call[NoBody, NoQuery]) -> ArtefactItem:
    """Show what is known of a file, without its content."""
    return view_artefact(await _artefact(call))


@operation("DELETE", OF_ONE, tag=TAG, role=Role.OPERATOR, status=204, codes=("UZ-FILE-001",))
async def delete_artefact(call: Call[NoBody, NoQuery]) -> None:
    """Delete a file before its time. Its bytes count against the quota for up to an hour more."""
    artefact_id = call.id("artefact_id")
    if not await call.ctx.world.storage.artefacts.delete(call.id("workspace_id"), artefact_id):
        raise Problem("UZ-FILE-001", f"the workspace has no file {artefact_id}")


@operation(
    "GET",
    f"{OF_ONE}/content",
    tag=TAG,
    role=Role.USER,
    cookie=True,
    wait=Wait.STREAM,
    media=DEFAULT_MEDIA_TYPE,
    extra_statuses=(PARTIAL, NOT_MODIFIED),
    codes=("UZ-FILE-001", "UZ-FILE-009", "UZ-FILE-013"),
    ranges=True,
)
async def read_artefact(call: Call[NoBody, NoQuery]) -> Answer | StreamAnswer:
    """Give a file, or one range of it (RFC 9110).

    `ETag` is its SHA-256; `If-None-Match` and `If-Range` with it are heeded, dates are not.
    """
    artefact = await _artefact(call)
    head, size = call.head, artefact.size
    tag = f'"{artefact.sha256.hex()}"'
    headers = (
        (b"etag", tag.encode()),
        (b"accept-ranges", b"bytes"),
        (b"content-disposition", disposition(artefact.name)),
        # What a run wrote is not to act in a page of this server, whatever opens it.
        (b"content-security-policy", b"sandbox; default-src 'none'"),
    )
    known = head.header(b"if-none-match")
    if known is not None and is_match(known, tag):
        return Answer(NOT_MODIFIED, headers, b"")
    wanted = range_of(head.header(b"range"), size) if applies(head.header(b"if-range"), tag) else None
    if isinstance(wanted, Unsatisfiable):
        detail = f"the file has {size} bytes"
        raise Problem("UZ-FILE-009", detail, headers=((b"content-range", b"bytes */%d" % size),))
    start, end = wanted or (0, size)
    blob = await call.ctx.world.storage.blobs.load(artefact.blob_id)
    if blob is None:
        raise Problem("UZ-FILE-001", f"the file {artefact.id} is being deleted")
    try:
        await call.services.contents.require(blob)
    except ObjectStoreFault as fault:
        raise Problem("UZ-FILE-013", str(fault), wait_s=STORE_WAIT_S) from fault
    await call.reserve(CHUNK_BYTES)
    more = (
        (b"content-type", artefact.media_type.encode()),
        (b"content-length", b"%d" % (end - start)),
    )
    if wanted is None:
        return StreamAnswer((*headers, *more), _content(call, blob, start, end), OK)
    place = (b"content-range", b"bytes %d-%d/%d" % (start, end - 1, size))
    return StreamAnswer((*headers, *more, place), _content(call, blob, start, end), PARTIAL)


async def _content(call: Call[Any, Any], blob: Blob, start: int, end: int) -> AsyncGenerator[bytes, None]:
    given = call.services.metrics.file_bytes.labels("out")
    try:
        async with aclosing(call.services.contents.read(blob, start, end)) as pieces:
            async for piece in pieces:
                given.inc(len(piece))
                yield piece
    except (ContentGone, ObjectStoreFault) as fault:
        # It ends before its length, which tells the reader.
        log.warning("file_cut_short", blob_id=str(blob.id), why=str(fault))


async def _artefact(call: Call[Any, Any]) -> Artefact:
    artefact_id = call.id("artefact_id")
    artefact = await call.ctx.world.storage.artefacts.load(artefact_id)
    if artefact is None or artefact.workspace_id != call.id("workspace_id"):
        raise Problem("UZ-FILE-001", f"the workspace has no file {artefact_id}")
    return artefact


def view_artefact(artefact: Artefact) -> ArtefactItem:
    return ArtefactItem(
        artefact_id=artefact.id,
        name=artefact.name,
        media_type=artefact.media_type,
        size=artefact.size,
        sha256=artefact.sha256.hex(),
        event_id=artefact.event_id,
        zombie_id=artefact.zombie_id,
        attempt=artefact.attempt,
        lease_id=artefact.lease_id,
        created_at=artefact.created_at,
    )
