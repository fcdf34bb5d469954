"""What can be asked of an agent's grants."""

from uuid import UUID

import msgspec

from sexton_actors.protocol.attributed import Attributed
from sexton_actors.refusal import Refusal
from sexton_engine import Message
from sexton_storage.records.grants import Grant, GrantStatus
from sexton_storage.records.leases import LeaseToken


class Requested(msgspec.Struct, frozen=True):
    grant: Grant
    made: bool
    """This request is the one that is pending; otherwise there was an open grant before."""


class Request(Attributed, Message[Requested | Refusal], frozen=True):
    """Ask for a service (``[a-z0-9_-]{1,64}``); an open grant for it, pending or approved, is the answer."""

    grant_id: UUID
    """The id for a new grant, used if there is none yet."""
    tenant_id: UUID
    workspace_id: UUID
    service: str
    reason: str
    by: str
    """``user:<id>``, ``api:<id>``, ``agent:<key id>`` or ``run:<event id>``."""
    event_id: UUID | None = None
    """The event of the run that asks."""
    held: LeaseToken | None = None
    """The lease of the run that asks; it must hold still."""


class Decide(Attributed, Message[Grant | Refusal], frozen=True):
    """Approve, deny or revoke; ``by`` is ``user:<id>``, ``api:<id>`` or ``slack:<id>``."""

    grant_id: UUID
    status: GrantStatus
    by: str
    by_token: bool = False
    """With the agent's approval token, whoever holds it."""
