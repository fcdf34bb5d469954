"""Erasures: take a person's value out of all that a workspace keeps; count first, and keep the receipt."""

from typing import Annotated, Any, Final
from uuid import UUID

import msgspec

from sexton_http.answers import Problem
from sexton_http.bodies.cursors import Place, decode, encode, fingerprint
from sexton_http.bodies.names import fitting
from sexton_http.bodies.shapes import Body, Cursor, Query, Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Creates, NoBody, NoQuery, operation
from sexton_storage.decisions.erasure import fault_of, needle_of
from sexton_storage.records.erasures import (
    CHARS_MAX,
    CHARS_MIN,
    ERASURES_LIMIT,
    Erasure,
    ErasureStatus,
    Needle,
)
from sexton_storage.records.users import Role

TAG: Final = "Erasures"
ERASURES: Final = "/v1/workspaces/{workspace_id}/erasures"
ERASURE: Final = f"{ERASURES}/{{erasure_id}}"
PATH_CHARS: Final = 256


class NewErasure(Body):
    path: Annotated[str, msgspec.Meta(min_length=1, max_length=PATH_CHARS)]
    """Where requests of the person have the value: keys, with a dot between each two, as `customer.email`."""
    value: str | None = None
    """What is to be erased; 3 to 512 characters. It is not kept."""
    value_sha256: Annotated[str, fitting("^[0-9a-f]{64}$")] | None = None
    """Instead of the value: its SHA-256 in UTF-8, in hex."""
    value_chars: Annotated[int, msgspec.Meta(ge=CHARS_MIN, le=CHARS_MAX)] | None = None
    """Beside `value_sha256`: how many characters (code points) the value has."""
    dry_run: bool = True
    """Count, and change nothing. False: erase; that cannot be undone."""


class ErasureView(Shape):
    erasure_id: UUID
    workspace_id: UUID
    path: str
    value_sha256: str
    value_chars: int
    dry_run: bool
    restored: bool
    """It was done before, in a database that was lost since."""
    status: ErasureStatus
    surface: int
    """How many of the sixteen surfaces this pass has looked through."""
    passes: int
    waits: int
    """Rows that have the value and are not over yet; all is looked through again until there are none."""
    erased: dict[str, int]
    """Rows that were changed or deleted, by surface; of a dry run, those that would be."""
    kept: dict[str, int]
    """Rows that have the value, or may have it, and stay."""
    created_by: str
    created_by_name: str
    created_at: int
    updated_at: int
    ended_at: int | None


class ErasurePage(Shape):
    items: list[ErasureView]
    next_cursor: str | None


class ErasureQuery(Query):
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 20
    cursor: Cursor | None = None


@operation(
    "POST",
    ERASURES,
    tag=TAG,
    role=Role.ADMIN,
    status=202,
    creates=Creates.AGAIN,
    codes=("UZ-ERASURE-002",),
)
async def begin_erasure(call: Call[NewErasure, NoQuery]) -> ErasureView:
    """Take a value out of all that a workspace keeps, or count what has it.

    Events whose request has the value at the path are the person's: they go whole, with all that belongs to
    them. Elsewhere only the value goes. It is done beside other work; charges and counts stay.
    """
    body, world = call.body, call.ctx.world
    path, hashed, chars = _needle(body)
    now = world.now_ms()
    erasure = Erasure(
        call.new_id(),
        call.member.tenant_id,
        call.id("workspace_id"),
        path,
        hashed,
        chars,
        dry_run=body.dry_run,
        restored=False,
        status=ErasureStatus.RUNNING,
        created_by=call.member.by,
        created_by_name=call.member.name,
        created_at=now,
        updated_at=now,
    )
    if not await world.storage.erasures.add(erasure, limit=ERASURES_LIMIT):
        detail = (
            f"{ERASURES_LIMIT} erasures of the workspace are not over, and no more may be; stop one, or wait."
        )
        raise Problem("UZ-ERASURE-002", detail)
    return view_erasure(await world.storage.erasures.load(erasure.id) or erasure)


@operation("GET", ERASURES, tag=TAG, role=Role.ADMIN)
async def list_erasures(call: Call[NoBody, ErasureQuery]) -> ErasurePage:
    """List a workspace's erasures, newest first; they are kept for good."""
    workspace_id, query = call.id("workspace_id"), call.query
    filters = fingerprint("erasures", workspace_id)
    place = None if query.cursor is None else decode(query.cursor, filters)
    before = None if place is None else place.page
    rows = await call.ctx.world.storage.erasures.list(workspace_id, limit=query.limit + 1, before=before)
    shown = rows[: query.limit]
    more = len(rows) > query.limit
    following = encode(Place(shown[-1].created_at, shown[-1].id, filters)) if more else None
    return ErasurePage([view_erasure(one) for one in shown], following)


@operation("GET", ERASURE, tag=TAG, role=Role.ADMIN, codes=("UZ-ERASURE-001",))
async def get_erasure(call: Call[NoBody, NoQuery]) -> ErasureView:
    """Show how far an erasure is; of one that is over this is the receipt."""
    return view_erasure(await _find(call))


@operation("POST", f"{ERASURE}:stop", tag=TAG, role=Role.ADMIN, codes=("UZ-ERASURE-001",))
async def stop_erasure(call: Call[NoBody, NoQuery]) -> ErasureView:
    """End an erasure that is not over; what is gone stays gone."""
    found = await _find(call)
    return view_erasure(await call.ctx.world.storage.erasures.stop(found.id) or found)


async def _find(call: Call[Any, Any]) -> Erasure:
    found = await call.ctx.world.storage.erasures.load(call.id("erasure_id"))
    if found is None or found.workspace_id != call.id("workspace_id"):
        raise Problem("UZ-ERASURE-001", f"the workspace has no erasure {call.id('erasure_id')}")
    return found


def _needle(body: NewErasure) -> Needle:
    """What is looked for. Raises Problem UZ-REQ-001."""
    sample = "x" * CHARS_MIN if body.value is None else body.value
    fault = fault_of(body.path, sample)
    given = (body.value is not None, body.value_sha256 is not None, body.value_chars is not None)
    if given not in {(True, False, False), (False, True, True)}:
        fault = "/value: either this or value_sha256 and value_chars are needed."
    if fault is not None:
        raise Problem("UZ-REQ-001", fault, facts={"pointer": fault.split(":")[0]})
    if body.value is not None:
        return needle_of(body.path, body.value)
    return Needle(body.path, bytes.fromhex(body.value_sha256 or ""), body.value_chars or 0)


def view_erasure(erasure: Erasure) -> ErasureView:
    return ErasureView(
        erasure_id=erasure.id,
        workspace_id=erasure.workspace_id,
        path=erasure.path,
        value_sha256=erasure.sha256.hex(),
        value_chars=erasure.chars,
        dry_run=erasure.dry_run,
        restored=erasure.restored,
        status=erasure.status,
        surface=erasure.surface,
        passes=erasure.passes,
        waits=erasure.waits,
        erased=dict(erasure.erased),
        kept=dict(erasure.kept),
        created_by=erasure.created_by,
        created_by_name=erasure.created_by_name,
        created_at=erasure.created_at,
        updated_at=erasure.updated_at,
        ended_at=erasure.ended_at,
    )
