"""What folders have applied to a workspace: their side of a three-way comparison."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, Protocol
from uuid import UUID

import msgspec

APPLYING_TERM_MS: Final = 20_000
"""Whoever applies says so again within this time; after it, another may go on in their place."""


class Phase(StrEnum):
    BEGIN = "begin"
    RENEW = "renew"
    END = "end"


class Applied(msgspec.Struct, frozen=True, gc=False):
    """One row a workspace."""

    workspace_id: UUID
    revision: int
    """Grows by one with every change; 0 where nothing was ever applied."""
    applying: bool
    """Somebody is at it; ``items`` are then what they mean to reach."""
    holder: str
    """What the program that wrote it last calls itself."""
    items: Mapping[str, Any]
    """By kind and name: the folder that named the thing, and its fields as text or as SHA-256."""
    updated_at: int
    updated_by: str
    """``user:<id>`` or ``api:<id>``."""


class AppliedStore(Protocol):
    async def load(self, workspace_id: UUID) -> Applied | None: ...

    async def save(self, applied: Applied) -> bool:
        """Keep it in place of the revision before it. False, and nothing is kept, where that is not there."""
        ...
