"""What folders have applied to a workspace, as `sexton apply` remembers it between its runs."""

from typing import Annotated, Any, Final
from uuid import UUID

import msgspec

from sexton_http.answers import Problem
from sexton_http.bodies.names import fitting
from sexton_http.bodies.shapes import Body, Count, Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import MAX_FILES_BYTES, NoBody, NoQuery, operation
from sexton_storage.decisions.applied import CHANGED, HELD, Refused, Wish, nothing_applied, write_down
from sexton_storage.records.applied import Applied, Phase
from sexton_storage.records.users import Role

TAG: Final = "Workspaces"
PATH: Final = "/v1/workspaces/{workspace_id}/applied"
MAX_ITEMS: Final = 4096
MAX_FIELDS: Final = 256
Folder = Annotated[str, fitting("^[a-z0-9][a-z0-9-]{0,63}$")]
Holder = Annotated[str, fitting("^[A-Za-z0-9-]{1,64}$")]
Key = Annotated[str, fitting("^[a-z_]{1,32}/[!-~]{0,128}$")]
FieldName = Annotated[str, fitting("^[ -~]{1,512}$")]
Value = Annotated[str, fitting("^[ -~]{0,512}$")]


class AppliedItem(Body):
    """One thing that a folder names."""

    folder: Folder
    fields: Annotated[dict[FieldName, Value], msgspec.Meta(max_length=MAX_FIELDS)]
    """What the folder said of it: short JSON, or `sha256:` of what is longer. Never a secret."""


class NewApplied(Body):
    phase: Phase
    """`begin` before the first change, `renew` at least every 20 s, `end` after the last."""
    revision: Count
    """The revision that was read, or written last; 0 where there is none."""
    holder: Holder
    """A word of the program's own, by which it is known from others."""
    items: Annotated[dict[Key, AppliedItem], msgspec.Meta(max_length=MAX_ITEMS)] | None = None
    """By kind and name. Left out: as they are."""


class AppliedView(Shape):
    revision: int
    applying: bool
    """Somebody is at it."""
    age_ms: int
    """Since the last change of this record; 0 where there was none."""
    updated_by: str
    """`user:<id>` or `api:<id>`; empty where nothing was applied."""
    items: dict[str, AppliedItem]


@operation("GET", PATH, tag=TAG, role=Role.OPERATOR)
async def get_applied(call: Call[NoBody, NoQuery]) -> AppliedView:
    """Show what folders have applied to the workspace, and whether one is being applied."""
    return _view(call, await _load(call))


@operation("PUT", PATH, tag=TAG, role=Role.OPERATOR, codes=(CHANGED, HELD), max_body=MAX_FILES_BYTES)
async def put_applied(call: Call[NewApplied, NoQuery]) -> AppliedView:
    """Write down what is about to be applied, or was; refused where another has written meanwhile.

    Whoever has begun and says nothing for 20 s has lost their turn. The same request once more changes
    nothing.
    """
    body, world = call.body, call.ctx.world
    items = None if body.items is None else msgspec.to_builtins(body.items)
    wish = Wish(body.phase, body.revision, body.holder, items, call.member.by)
    row = await _load(call)
    written = write_down(row, wish, world.now_ms())
    if isinstance(written, Refused):
        raise Problem(written.code, written.why)
    if written is not row and not await world.storage.applied.save(written):
        raise Problem(CHANGED, f"another has written revision {written.revision} at this moment")
    return _view(call, written)


async def _load(call: Call[Any, NoQuery]) -> Applied:
    workspace_id: UUID = call.id("workspace_id")
    return await call.ctx.world.storage.applied.load(workspace_id) or nothing_applied(workspace_id)


def _view(call: Call[Any, NoQuery], row: Applied) -> AppliedView:
    age_ms = max(0, call.ctx.world.now_ms() - row.updated_at) if row.revision else 0
    items = msgspec.convert(row.items, dict[str, AppliedItem])
    return AppliedView(row.revision, row.applying, age_ms, row.updated_by, items)
