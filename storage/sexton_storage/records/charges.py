"""What the runs of a tenant have cost."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, Protocol
from uuid import UUID

import msgspec

from sexton_storage.paging import Page
from sexton_storage.records.leases import ModelShare


class Charge(msgspec.Struct, frozen=True, gc=False):
    """What one lease of an event was billed, once it has ended."""

    id: UUID
    """The lease's."""
    event_id: UUID
    zombie_id: UUID
    workspace_id: UUID
    tenant_id: UUID
    charge_type: str
    posture: str
    """``platform`` or ``self_managed``: whose model key was used."""
    model: str | None
    credit_deducted_nanos: int
    token_count_input: int
    """Those read from a cache, and those written to one, included."""
    token_count_output: int
    wall_ms: int
    """Time that was billed."""
    recorded_at: int
    models: tuple[ModelShare, ...] | None = None
    """What each model used and cost, where the run had more than one; ``model`` is the first of them."""


STAGE_CHARGE: Final = "stage"
"""What work on an event costs. An event costs nothing by coming (``event_nanos`` is 0), so nothing is of the
kind ``receive``."""


class TotalsBy(StrEnum):
    """What charges are added up by."""

    AGENT = "agent"
    MODEL = "model"
    DAY = "day"


class ChargeTotal(msgspec.Struct, frozen=True, gc=False):
    """What the charges of one agent, model or day come to."""

    key: str
    """The agent's id, the model (empty: none was used), or the UTC day as YYYY-MM-DD."""
    name: str | None
    """The agent's; None for one that was deleted, and for models and days."""
    runs: int
    """Leases that were billed."""
    charged_nanos: int
    input_tokens: int
    output_tokens: int
    wall_ms: int


class ChargeStore(Protocol):
    async def list(self, tenant_id: UUID, *, limit: int, before: Page | None = None) -> Sequence[Charge]:
        """Newest first. They stay when their agent is purged."""
        ...

    async def totals(
        self, tenant_id: UUID, by: TotalsBy, *, since: int, until: int, limit: int
    ) -> Sequence[ChargeTotal]:
        """Add up what was recorded from ``since`` until before ``until``, in ms.

        Days come newest first; agents and models by what they cost, the dearest first.
        """
        ...

    async def events_of_day(self, tenant_id: UUID, day: int) -> int:
        """Events that were kept and counted in that UTC day (days since 1970)."""
        ...
