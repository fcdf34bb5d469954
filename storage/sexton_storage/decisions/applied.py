"""Whether a program that applies a folder may write down what it does."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import msgspec

from sexton_storage.records.applied import APPLYING_TERM_MS, Applied, Phase

CHANGED = "UZ-APPLY-001"
HELD = "UZ-APPLY-002"


class Refused(msgspec.Struct, frozen=True):
    code: str
    why: str


class Wish(msgspec.Struct, frozen=True):
    """What a program asks for."""

    phase: Phase
    revision: int
    """The one that it has read, or written last."""
    holder: str
    items: Mapping[str, Any] | None
    """None: as they are."""
    by: str


def nothing_applied(workspace_id: UUID) -> Applied:
    return Applied(workspace_id, 0, applying=False, holder="", items={}, updated_at=0, updated_by="")


def write_down(row: Applied, wish: Wish, now: int) -> Applied | Refused:
    """The next revision. ``now`` is the database's clock, in ms. The same wish once more changes nothing.

    >>> row = nothing_applied(UUID(int=1))
    >>> begun = write_down(row, Wish(Phase.BEGIN, 0, "a", {"agent/x": {}}, "user:1"), 1_000)
    >>> begun.revision, begun.applying
    (1, True)
    >>> write_down(begun, Wish(Phase.BEGIN, 0, "a", None, "user:1"), 2_000) is begun
    True
    >>> write_down(begun, Wish(Phase.BEGIN, 0, "b", None, "user:2"), 2_000).code
    'UZ-APPLY-001'
    >>> write_down(begun, Wish(Phase.BEGIN, 1, "b", None, "user:2"), 20_999).code
    'UZ-APPLY-002'
    >>> write_down(begun, Wish(Phase.BEGIN, 1, "b", None, "user:2"), 21_000).holder
    'b'
    >>> ended = write_down(begun, Wish(Phase.END, 1, "a", {}, "user:1"), 3_000)
    >>> ended.applying, ended.revision, write_down(ended, Wish(Phase.RENEW, 2, "a", None, "user:1"), 4).code
    (False, 2, 'UZ-APPLY-001')
    """
    is_theirs = row.holder == wish.holder
    if is_theirs and row.revision == wish.revision + 1 and row.applying is (wish.phase is not Phase.END):
        return row
    if row.revision != wish.revision:
        return Refused(CHANGED, f"revision {wish.revision} was read, and {row.revision} is there")
    if wish.phase is Phase.BEGIN:
        if row.applying and not is_theirs and now - row.updated_at < APPLYING_TERM_MS:
            return Refused(HELD, f"{row.updated_by} is applying a folder to this workspace")
    elif not (row.applying and is_theirs):
        return Refused(CHANGED, "another has taken over, or it has ended")
    return Applied(
        row.workspace_id,
        row.revision + 1,
        applying=wish.phase is not Phase.END,
        holder=wish.holder,
        items=row.items if wish.items is None else wish.items,
        updated_at=now,
        updated_by=wish.by,
    )
