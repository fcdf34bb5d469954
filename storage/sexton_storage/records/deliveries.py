"""What came to the addresses of webhooks, and what became of it."""

from collections.abc import Collection, Sequence
from enum import StrEnum
from typing import Final, Protocol
from uuid import UUID

import msgspec

from sexton_storage.documents import Json
from sexton_storage.paging import Page

REFUSED_KEPT: Final = 200
"""Refused deliveries of one agent: the newest are kept, of the others only their number."""
OTHERS_KEPT: Final = 300
"""The same, of those that were not refused; what they woke is an event, which is kept for good."""
BODIES_BYTES: Final = 4 * 1024 * 1024
"""Bytes of bodies that are kept of one agent, the newest first."""
DELIVERIES_KEEP_MS: Final = 7 * 24 * 3_600_000
HOUR_MS: Final = 3_600_000


class DeliveryAddress(StrEnum):
    """How an address named the trigger."""

    FIRST = "first"
    """It named none: the agent's first."""
    SEVERAL = "several"
    """The address for several signatures."""
    SOURCE = "source"
    SECRET = "secret"  # noqa: S105  the kind of an address
    UNKNOWN = "unknown"
    """The last part is neither a source nor a secret of the agent."""


class DeliveryVerdict(StrEnum):
    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    IGNORED = "ignored"
    CHALLENGE = "challenge"
    REFUSED = "refused"
    REPLAYED = "replayed"
    """It woke nobody when it came, and has an event since it was replayed."""


class WebhookDelivery(msgspec.Struct, frozen=True, gc=False):
    id: UUID
    """Also the id of the event that a replay makes of it, so that it makes one at most."""
    zombie_id: UUID
    workspace_id: UUID
    tenant_id: UUID
    at: int
    address: DeliveryAddress
    source: str
    """The label of the trigger; empty where the address means none."""
    segment_hash: bytes | None
    verdict: DeliveryVerdict
    code: str | None
    """The code of the refusal."""
    reason: str
    """One word of ours."""
    detail: str
    """What the sender was told."""
    event_id: UUID | None
    headers: Json
    """Name to ``{"value": ..., "is_secret": ...}``; of tokens and cookies no value is kept."""
    size: int
    """Bytes of the body as it came."""
    body_bytes: int
    """Those that are kept: all or none."""
    replays: int = 0
    replayed_at: int | None = None
    replayed_by: str | None = None


class KeptDelivery(msgspec.Struct, frozen=True, gc=False):
    """One with its body, where that is to be kept."""

    delivery: WebhookDelivery
    body: bytes | None


class RefusalCount(msgspec.Struct, frozen=True, gc=False):
    """Refused deliveries of an agent in an hour."""

    zombie_id: UUID
    hour: int
    """Since 1970."""
    workspace_id: UUID
    refused: int
    unkept: int
    """Refused ones that are only counted."""
    last_at: int
    last_code: str
    last_reason: str


class DeliveryStore(Protocol):
    async def keep(self, kept: Sequence[KeptDelivery], counts: Sequence[RefusalCount]) -> int:
        """Keep what belongs to agents that are there, and let go what is too much of each; how many."""
        ...

    async def trim(self, workspace_id: UUID, *, max_bytes: int, limit: int) -> int:
        """Let go the oldest bodies of a workspace beyond ``max_bytes``, and keep their rows; how many."""
        ...

    async def load(self, delivery_id: UUID) -> WebhookDelivery | None: ...
    async def body(self, delivery_id: UUID) -> bytes | None:
        """The raw bytes; None where they are not kept."""
        ...

    async def list(
        self,
        workspace_id: UUID,
        *,
        limit: int,
        before: Page | None = None,
        zombie_id: UUID | None = None,
        verdict: DeliveryVerdict | None = None,
        since: int | None = None,
        until: int | None = None,
    ) -> Sequence[WebhookDelivery]:
        """Newest first; ``since`` is in, ``until`` is not."""
        ...

    async def settle(self, delivery: WebhookDelivery) -> None:
        """Keep what came of a replay, unless another has brought it an event meanwhile."""
        ...

    async def event_of(self, zombie_id: UUID, actor: str, source_event_id: str, since: int) -> UUID | None:
        """Give the first event that the agent was woken for by this id of the sender's, from then on."""
        ...

    async def refusals(
        self, workspace_id: UUID, *, since: int, limit: int, zombie_ids: Collection[UUID] | None = None
    ) -> Sequence[RefusalCount]:
        """The sums from the hour of ``since`` on, of each agent with any; those refused last come first."""
        ...
