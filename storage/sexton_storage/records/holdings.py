"""What a tenant has many of, and a plan bounds."""

from enum import StrEnum
from typing import Protocol
from uuid import UUID


class Holding(StrEnum):
    """Each has a limit of its name in a plan."""

    WORKSPACES = "workspaces"
    CREDENTIALS = "credentials"
    """Those that people gave: the platform's own have a slash in their names."""
    API_KEYS = "api_keys"
    """Revoked ones too, until they are deleted."""
    AGENT_KEYS = "agent_keys"
    PROPOSALS = "proposals"
    """Decided ones too: they are kept with their agents."""
    DRAFTS = "drafts"
    """Versions of agents' files that were never active."""
    QUEUED_MESSAGES = "queued_messages"
    """Events that wait to run, whatever they came from; it is messages that are refused."""
    CRONS = "crons"
    """Schedules of active agents."""


class HoldingStore(Protocol):
    async def count(self, tenant_id: UUID, holding: Holding, *, at_most: int) -> int:
        """How many there are; no more than ``at_most`` are looked at."""
        ...
