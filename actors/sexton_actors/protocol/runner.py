"""What can be asked of a runner's actor."""

from uuid import UUID

import msgspec

from sexton_actors.protocol.attributed import Attributed
from sexton_actors.protocol.queue import Grant
from sexton_actors.refusal import Refusal
from sexton_engine import Message
from sexton_storage.records.runners import Runner


class Leases(msgspec.Struct, frozen=True):
    grants: tuple[Grant, ...]
    retry_after_ms: int
    """How long to wait before the next poll; 0 when a long poll may follow at once."""
    cancelled_lease_ids: tuple[UUID, ...] = ()
    """Leases it holds that are to be stopped: told once by a poll, and in every heartbeat."""


class Poll(msgspec.Struct, Message[Leases | Refusal], frozen=True):
    """Wait up to ``wait_ms`` (0..30,000) for up to ``max_leases`` (1..64) leases.

    Ask it with a deadline a few seconds beyond ``wait_ms``: a claim that is being committed is waited for.
    """

    max_leases: int
    wait_ms: int


class Beat(msgspec.Struct, frozen=True):
    status: str
    """``ok``, ``drain`` or ``stop``."""
    cancelled_lease_ids: tuple[UUID, ...]


class Heartbeat(msgspec.Struct, Message[Beat | Refusal], frozen=True):
    """It lives; with ``wait_ms`` it is answered the moment there is something to stop, or after that time.

    Who works on nothing has nothing to wait for, and is answered at once.
    """

    active_lease_ids: tuple[UUID, ...]
    wait_ms: int = 0
    offers: tuple[str, ...] | None = None
    """What it offers from now on; None: what it said last."""
    release: str = ""
    """The program that it is; empty: it does not say."""


class HeartbeatOver(msgspec.Struct, Message[None], frozen=True):
    """One heartbeat has waited long enough."""

    ticket: int


class LookForCancelled(msgspec.Struct, Message[None], frozen=True):
    """Another node may have cancelled what a waiting heartbeat's runner works on."""


class Describe(msgspec.Struct, Message[Runner | Refusal], frozen=True):
    pass


class SetAdminState(Attributed, Message[Runner | Refusal], frozen=True):
    admin_state: str
    by: str = "system:admin"
    """Who wants it, for the runner's history."""


class LeaseCancelling(msgspec.Struct, Message[None], frozen=True):
    """A lease it holds is to be stopped: told on its open poll or next call."""

    lease_id: UUID


class LeaseOver(msgspec.Struct, Message[None], frozen=True):
    """It holds one lease less; a draining runner without any is drained."""

    lease_id: UUID


class LeaseTaken(msgspec.Struct, Message[None], frozen=True):
    """It was given this lease."""

    lease_id: UUID


class StandingChanged(msgspec.Struct, Message[None], frozen=True):
    """Another node has changed its standing."""


class LookWhetherDrained(msgspec.Struct, Message[None], frozen=True):
    """A draining runner's last lease may have ended on another node, or unheard."""
