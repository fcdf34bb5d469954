"""What can be asked of a tenant's ledger."""

import msgspec

from sexton_actors.refusal import Refusal
from sexton_engine import Message
from sexton_storage.records import Tenant


class ReadBalance(msgspec.Struct, Message[Tenant | Refusal], frozen=True):
    pass


class Credit(msgspec.Struct, Message[Tenant | Refusal], frozen=True):
    """Add ``amount_nanos`` (above 0) and let waiting work go on."""

    amount_nanos: int
    reason: str
    by: str
