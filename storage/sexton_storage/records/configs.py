"""Versions of an agent's configuration."""

from enum import StrEnum
from uuid import UUID

import msgspec

from sexton_storage.documents import Json


class ConfigStatus(StrEnum):
    DRAFT = "DRAFT"
    COMPILED = "COMPILED"
    INVALID = "INVALID"
    ACTIVE = "ACTIVE"
    SUPERSEDED = "SUPERSEDED"


class ConfigVersion(msgspec.Struct, frozen=True, gc=False):
    id: UUID
    zombie_id: UUID
    revision: int
    """Grows by one with each version of the agent, drafts included."""
    status: ConfigStatus
    source_markdown: str
    trigger_markdown: str
    compiled: Json
    """The manifest after parsing, as plain JSON, empty until then; its shape belongs to the actors wing."""
    created_at: int
    findings: Json = msgspec.field(default_factory=dict)
    """What is wrong with an INVALID one; its shape belongs to the actors wing."""
    author: str = ""
    """Who wrote its files: ``user:<id>`` or ``api:<id>``; empty where nobody noted it."""
