"""What can be asked of a tenant's ledger."""

from uuid import UUID

import msgspec

from sexton_actors.protocol.attributed import Attributed
from sexton_actors.refusal import Refusal
from sexton_engine import Message
from sexton_storage.records.plans import Plan
from sexton_storage.records.tenants import Tenant


class ReadBalance(msgspec.Struct, Message[Tenant | Refusal], frozen=True):
    pass


class Credit(Attributed, Message[Tenant | Refusal], frozen=True):
    """Add ``amount_nanos`` (above 0) and let waiting work go on.

    ``credit_id``: the same again is the same credit, and adds nothing. None: it cannot be asked for again.
    """

    amount_nanos: int
    reason: str
    by: str
    credit_id: UUID | None = None


class ReadPlan(msgspec.Struct, Message[Plan | Refusal], frozen=True):
    pass


class Subscribe(Attributed, Message[Plan | Refusal], frozen=True):
    """The tenant has paid for the plan ``pro``."""

    subscription_id: str
    by: str


class TakeBillingEvent(Attributed, Message[Plan | Refusal], frozen=True):
    """What the payment provider says: ``event_type`` is one of the three that there are."""

    event_type: str
    reason: str
    by: str


class EndGrace(msgspec.Struct, Message[None], frozen=True):
    """Look whether the grace is over."""
