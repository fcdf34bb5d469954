"""The audit log: who changed what and from where, read by admins and exported line by line."""

from collections.abc import AsyncGenerator, Sequence
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec

from sexton_http.answers import StreamAnswer
from sexton_http.bodies.cursors import Numbered, decode_numbered, encode, fingerprint
from sexton_http.bodies.shapes import Cursor, Query, Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Auth, NoBody, NoQuery, Wait, operation
from sexton_storage.documents import from_json
from sexton_storage.records.audit import PLATFORM_LOG, AuditFilter, AuditLine
from sexton_storage.records.users import Role

TAG: Final = "Audit"
NDJSON: Final = "application/x-ndjson"
EXPORT_LINES: Final = 500
"""Read at once; a line is some hundred bytes, and some thousand at most."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
Ms = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class AuditQuery(Query):
    actor: Name | None = None
    """As `user:<id>` or `api:<id>`."""
    action: Name | None = None
    """A glob, as `api_key.*`."""
    target: Name | None = None
    """The id or name of the thing."""
    since: Ms | None = None
    until: Ms | None = None
    """Ms; before it."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50
    cursor: Cursor | None = None


class AuditItem(Shape):
    seq: int
    """From 1 in its log, without a gap."""
    at: int
    entry_id: UUID
    actor: str
    name: str
    """The actor, as a person would know them then."""
    address: str
    """Where the request came from."""
    action: str
    target: str
    workspace_id: UUID | None
    facts: Any
    """What else was said of it: short, and never a secret."""
    request_id: str
    """The id of the request that changed it."""
    previous_hash: str
    hash: str
    """SHA-256 over the line and the hash of the one before it, in hex."""


class AuditPage(Shape):
    items: list[AuditItem]
    next_cursor: str | None
    head_seq: int
    """The number of the log's last line; 0 while there is none."""
    head_hash: str
    """The hash of that line. Whoever keeps both elsewhere can tell later that nothing before was changed."""


@operation("GET", "/v1/audit", tag=TAG, role=Role.ADMIN, tenant_wide=True)
async def list_audit(call: Call[NoBody, AuditQuery]) -> AuditPage:
    """List who changed what in the tenant, newest first."""
    return await _page(call, call.member.tenant_id, None)


@operation("GET", "/v1/workspaces/{workspace_id}/audit", tag=TAG, role=Role.ADMIN)
async def list_workspace_audit(call: Call[NoBody, AuditQuery]) -> AuditPage:
    """List who changed what in a workspace, newest first; what is the whole tenant's is not among it."""
    return await _page(call, call.member.tenant_id, call.id("workspace_id"))


@operation("GET", "/v1/admin/audit", tag=TAG, auth=Auth.PLATFORM)
async def list_platform_audit(call: Call[NoBody, AuditQuery]) -> AuditPage:
    """List who changed what of the platform, as its runners, newest first."""
    return await _page(call, PLATFORM_LOG, None)


@operation(
    "GET", "/v1/audit/export", tag=TAG, role=Role.ADMIN, tenant_wide=True, wait=Wait.STREAM, media=NDJSON
)
async def export_audit(call: Call[NoBody, NoQuery]) -> StreamAnswer:
    """Give all lines of the tenant's log, oldest first, a JSON object each."""
    return await _export(call, call.member.tenant_id)


@operation("GET", "/v1/admin/audit/export", tag=TAG, auth=Auth.PLATFORM, wait=Wait.STREAM, media=NDJSON)
async def export_platform_audit(call: Call[NoBody, NoQuery]) -> StreamAnswer:
    """Give all lines of the platform's log, oldest first, a JSON object each."""
    return await _export(call, PLATFORM_LOG)


async def _page(call: Call[NoBody, AuditQuery], log_id: UUID, workspace_id: UUID | None) -> AuditPage:
    query, audit = call.query, call.ctx.world.storage.audit
    wanted = AuditFilter(workspace_id, query.actor, query.action, query.target, query.since, query.until)
    filters = fingerprint("audit", log_id, wanted)
    before = None if query.cursor is None else decode_numbered(query.cursor, filters).number
    head = await audit.head(log_id)
    rows = await audit.list(log_id, wanted, limit=query.limit + 1, before=before)
    shown = rows[: query.limit]
    following = encode(Numbered(shown[-1].seq, filters)) if len(rows) > query.limit else None
    return AuditPage([view_line(row) for row in shown], following, head.seq, head.hash.hex())


async def _export(call: Call[NoBody, NoQuery], log_id: UUID) -> StreamAnswer:
    audit = call.ctx.world.storage.audit
    # To where the log ends now: one that grows as fast as it is read would never end.
    last = (await audit.head(log_id)).seq
    first = await audit.read(log_id, limit=EXPORT_LINES)
    name = (b"content-disposition", b'attachment; filename="audit.jsonl"')
    return StreamAnswer(((b"content-type", NDJSON.encode()), name), _lines(call, log_id, first, last))


async def _lines(
    call: Call[NoBody, NoQuery], log_id: UUID, rows: Sequence[AuditLine], last: int
) -> AsyncGenerator[bytes, None]:
    encode_line = msgspec.json.Encoder().encode_lines
    while rows := [row for row in rows if row.seq <= last]:
        yield encode_line([view_line(row) for row in rows])
        rows = await call.ctx.world.storage.audit.read(log_id, limit=EXPORT_LINES, after=rows[-1].seq)


def view_line(line: AuditLine) -> AuditItem:
    told = from_json(line.body)
    return AuditItem(
        seq=line.seq,
        at=line.at,
        entry_id=told["entry_id"],
        actor=told["actor"],
        name=told["name"],
        address=told["address"],
        action=told["action"],
        target=line.target,
        workspace_id=told["workspace_id"],
        facts=told["facts"],
        request_id=told["request_id"],
        previous_hash=line.previous_hash.hex(),
        hash=line.hash.hex(),
    )
