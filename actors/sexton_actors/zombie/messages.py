"""What can be asked of an agent."""

from collections.abc import Mapping
from uuid import UUID

import msgspec

from sexton_actors.refusal import Refusal
from sexton_engine import Message
from sexton_storage.records import Zombie


class Installed(msgspec.Struct, frozen=True):
    zombie: Zombie
    webhook_paths: Mapping[str, str]
    """Trigger source to the path part of its URL."""
    approval_token: str
    """Shown in this answer only."""


class Install(msgspec.Struct, Message[Installed | Refusal], frozen=True):
    """Make the agent of this key from its two files (1 byte to 64 KiB each)."""

    workspace_id: UUID
    tenant_id: UUID
    source_markdown: str
    trigger_markdown: str


class Accepted(msgspec.Struct, frozen=True):
    event_id: UUID


class AlreadyAccepted(msgspec.Struct, frozen=True):
    """The delivery was kept before; ``event_id`` is the first one's."""

    event_id: UUID


class Ignored(msgspec.Struct, frozen=True):
    """Genuine, but not for this agent (``reason``: ping, event_not_listed)."""

    reason: str


class Challenge(msgspec.Struct, frozen=True):
    """The sender checks the address: answer with its own word."""

    challenge: str


class Deliver(
    msgspec.Struct, Message[Accepted | AlreadyAccepted | Ignored | Challenge | Refusal], frozen=True
):
    """A webhook as it came: verified, normalised and kept, or refused with nothing kept.

    ``segment``: the last part of the path (a source, or a url_secret), None for the bare path.
    ``multisig``: it came by the multi-signature route. ``headers``: names in lower case. ``body``: raw bytes.
    """

    segment: str | None
    headers: Mapping[str, str]
    body: bytes
    multisig: bool = False
    traceparent: str | None = None


class TooLarge(msgspec.Struct, Message[None], frozen=True):
    """A delivery over the size limit was turned away unread; it still shows in the stream."""

    segment: str | None


class Steer(msgspec.Struct, Message[Accepted | Refusal], frozen=True):
    """A person's message (1 to 8,192 bytes); ``by`` is a user or key name."""

    message: str
    by: str
    traceparent: str | None = None


class StatusChanged(msgspec.Struct, frozen=True):
    zombie: Zombie


class ChangeStatus(msgspec.Struct, Message[StatusChanged | Refusal], frozen=True):
    """Ask for active, stopped or killed."""

    status: str
    by: str


class Pause(msgspec.Struct, Message[Refusal | None], frozen=True):
    """The platform's own stop, before an auto_kill or anomaly rule is acted on; None: it is stopped."""

    reason: str
