"""What can be asked of an agent."""

from collections.abc import Mapping
from uuid import UUID

import msgspec

from sexton_actors.loans import CredentialGrant
from sexton_actors.proposal.drafts import Draft
from sexton_actors.protocol.attributed import Attributed
from sexton_actors.refusal import Refusal
from sexton_engine import Message
from sexton_storage.records.configs import ConfigVersion
from sexton_storage.records.deliveries import WebhookDelivery
from sexton_storage.records.event_files import WantedFile
from sexton_storage.records.events import Event
from sexton_storage.records.grants import GrantStatus
from sexton_storage.records.improvement import Proposal
from sexton_storage.records.zombies import SeenAgent, Zombie


class Installed(msgspec.Struct, frozen=True):
    zombie: Zombie
    webhook_paths: Mapping[str, str]
    """Trigger source to the path part of its URL."""
    approval_token: str
    """Shown in this answer only."""


class Install(Attributed, Message[Installed | Refusal], frozen=True):
    """Make the agent of this key from its two files (1 byte to 64 KiB each)."""

    workspace_id: UUID
    tenant_id: UUID
    source_markdown: str
    trigger_markdown: str
    by: str
    may_grant: bool
    """Whoever installs it is an operator or above: what its files name is granted with them."""


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


class TokenRotated(msgspec.Struct, frozen=True):
    zombie: Zombie


class RotateToken(Attributed, Message[TokenRotated | Refusal], frozen=True):
    """Put another approval token in place of the agent's; only its SHA-256 is kept."""

    token_hash: bytes


class TurnedAway(msgspec.Struct, Message[None], frozen=True):
    """A delivery was turned away before it was looked at; it still shows in the stream."""

    segment: str | None
    reason: str
    """``too_large`` or ``rate_limited``."""


class Steer(msgspec.Struct, Message[Accepted | AlreadyAccepted | Refusal], frozen=True):
    """A person's message (1 to 8,192 bytes); ``by`` is a user or key name."""

    message: str
    by: str
    traceparent: str | None = None
    key: bytes | None = None
    """The event is kept with it, once; None: each message is a new event."""
    files: tuple[WantedFile, ...] = ()
    sender: str = ""
    """The one whose uploads may be brought, as ``user:<id>`` or ``api:<id>``."""
    asked_version: int | None = None
    """The number of the agent's version that it is to work under; None: the one that is active then."""
    event_id: UUID | None = None
    """What the event is to be called; with files it is needed. Where another answers, the files are over."""


class Fire(msgspec.Struct, Message[None], frozen=True):
    """One of its schedules is due, as far as the scheduler saw."""

    schedule: str
    timezone: str


class RunSchedule(Attributed, Message[Accepted | AlreadyAccepted | Refusal], frozen=True):
    """Have it work as if this schedule fired now; ``by`` is a user or key name."""

    schedule: str
    timezone: str
    by: str
    traceparent: str | None = None
    key: bytes | None = None
    """The event is kept with it, once; None: each message is a new event."""


class FiringMissed(msgspec.Struct, Message[None], frozen=True):
    """A firing was over without an event."""

    schedule: str
    timezone: str
    at: int
    why: str


class FollowUpDue(msgspec.Struct, Message[None], frozen=True):
    """The time of a follow-up has come, as far as the scheduler saw."""

    follow_up_id: UUID


class CancelFollowUp(Attributed, Message[Refusal | None], frozen=True):
    """Take back a follow-up that waits; one that was taken back before stays so."""

    follow_up_id: UUID


class Replay(msgspec.Struct, Message[Accepted | AlreadyAccepted | Refusal], frozen=True):
    """Work on an event that is over once more, as a new one; ``by`` is a user or key name."""

    event_id: UUID
    by: str
    traceparent: str | None = None
    key: bytes | None = None
    """The event is kept with it, once; None: each message is a new event."""
    new_id: UUID | None = None
    """What the new event is to be called."""
    request_json: str | None = None
    """What is asked instead of what the event asked, or merged into that; None: the same."""
    merges: bool = False
    asked_version: int | None = None
    """The number of the agent's version that it is to work under; None: the one that is active then."""


class Redeliver(Attributed, Message[Accepted | AlreadyAccepted | Ignored | Challenge | Refusal], frozen=True):
    """Verify a delivery that woke nobody once more, with the secrets of now, and take it in if it is genuine.

    Its time is the one at which it came. It becomes one event at most, however often this is asked.
    """

    delivery: WebhookDelivery
    body: bytes
    traceparent: str | None = None


class ReplayMany(msgspec.Struct, Message[tuple[Accepted | AlreadyAccepted | Refusal, ...]], frozen=True):
    """As ``Replay``, for several events of a bulk job; the replies are in their order.

    All are the agent's, and were over when they were read. The id of each new event comes of the job's
    and the event's, so that it can be made once only.
    """

    events: tuple[Event, ...]
    """Without answers, evidence and checkpoints."""
    new_ids: tuple[UUID, ...]
    by: str
    request_json: str | None = None
    """What is asked instead of what the events asked, or merged into that; None: the same."""
    merges: bool = False
    asked_version: int | None = None
    """As with ``Replay``: a number, of which each agent has a version of its own."""
    shadow_job: UUID | None = None
    """The bulk job that has them run without effects."""
    seen: SeenAgent | None = None
    """The agent as the job saw it, beside the others of its page; None: nobody looked."""
    seen_at: int = 0
    """When that was, in ms, at the earliest."""


class StatusChanged(msgspec.Struct, frozen=True):
    zombie: Zombie


class ChangeStatus(Attributed, Message[StatusChanged | Refusal], frozen=True):
    """Ask for active, stopped or killed."""

    status: str
    by: str


class Configured(msgspec.Struct, frozen=True):
    """The agent with its active version."""

    zombie: Zombie
    webhook_paths: Mapping[str, str] | None = None
    """As at installation, without the secrets that were shown before; None when nothing has changed."""
    new_secrets: bool = False
    """Some of the paths hold a secret that is shown in this answer only."""


class Reconfigure(Attributed, Message[Configured | Refusal], frozen=True):
    """Give it new files; one that is None stays as it is. A status is changed in the same commit."""

    source_markdown: str | None
    trigger_markdown: str | None
    by: str
    status: str | None = None
    may_grant: bool = False
    """As of an installation."""


class DraftVersion(Attributed, Message[ConfigVersion | Refusal], frozen=True):
    """Keep two files as its next version, uncompiled; the same as the newest draft is that one."""

    source_markdown: str
    trigger_markdown: str
    by: str = ""


class CompileVersion(Attributed, Message[ConfigVersion | Refusal], frozen=True):
    """Say whether a draft makes an agent; one that was compiled before comes back as it is."""

    config_version_id: UUID


class ActivateVersion(Attributed, Message[Configured | Refusal], frozen=True):
    """Make a compiled version, or one that was active before, the active one."""

    config_version_id: UUID
    by: str
    may_grant: bool = False
    """As of an installation."""


class Propose(Attributed, Message[Proposal | Refusal], frozen=True):
    """Propose a change of its files on top of the active version."""

    draft: Draft
    by: str


class Decided(msgspec.Struct, frozen=True):
    proposal: Proposal
    configured: Configured | None = None
    """What came of one that was applied."""


class ApproveProposal(Attributed, Message[Decided | Refusal], frozen=True):
    """Apply it, unless the configuration has changed meanwhile or its files do not compile."""

    proposal_id: UUID
    by: str
    may_grant: bool = False
    """As of an installation."""


class RejectProposal(Attributed, Message[Decided | Refusal], frozen=True):
    """The reason is told to the agent with its next lease."""

    proposal_id: UUID
    reason: str
    by: str


class DecideCredential(Attributed, Message[CredentialGrant | Refusal], frozen=True):
    """Approve, deny or revoke the lending of a credential that the agent's files name."""

    credential: str
    status: GrantStatus
    by: str


class Removed(msgspec.Struct, frozen=True):
    pass


class Remove(Attributed, Message[Removed | Refusal], frozen=True):
    """Kill it, whatever its status, and purge it with its history. May be asked again after a crash."""

    by: str


class Pause(msgspec.Struct, Message[Refusal | None], frozen=True):
    """The platform's own stop, before an auto_kill or anomaly rule is acted on; None: it is stopped."""

    reason: str
