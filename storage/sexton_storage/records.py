"""The rows of the product as frozen values; what a transition reads and returns.

Records are frozen ``msgspec.Struct``: immutable like a frozen dataclass, and made and replaced ten times
faster, which a renewal pays several times over. None can be part of a cycle, so the collector need not walk
them (``gc`` off): a server holds a hundred thousand. Every ``*_at`` is Unix milliseconds by the database's
clock, every ``*_nanos`` a billionth of a US dollar, every id a UUIDv7.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec

Json = Mapping[str, Any]


class ZombieStatus(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    STOPPED = "stopped"
    KILLED = "killed"


class EventStatus(StrEnum):
    RECEIVED = "received"
    WAITING_APPROVAL = "waiting_approval"
    RUNNING = "running"
    PROCESSED = "processed"
    AGENT_ERROR = "agent_error"
    GATE_BLOCKED = "gate_blocked"
    CANCELLED = "cancelled"
    DEAD_LETTERED = "dead_lettered"


class ConfigStatus(StrEnum):
    DRAFT = "DRAFT"
    COMPILED = "COMPILED"
    INVALID = "INVALID"
    ACTIVE = "ACTIVE"
    SUPERSEDED = "SUPERSEDED"


class LeaseStatus(StrEnum):
    ACTIVE = "active"
    CANCELLING = "cancelling"
    REPORTED = "reported"
    RELEASED = "released"
    PARKED = "parked"
    RECLAIMED = "reclaimed"


class GateStatus(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    TIMED_OUT = "timed_out"
    AUTO_KILLED = "auto_killed"


class AdminState(StrEnum):
    ACTIVE = "active"
    CORDONED = "cordoned"
    DRAINING = "draining"
    DRAINED = "drained"
    REVOKED = "revoked"


class Role(StrEnum):
    USER = "user"
    OPERATOR = "operator"
    ADMIN = "admin"


class PlanTier(StrEnum):
    FREE = "free"
    PRO = "pro"
    ENTERPRISE = "enterprise"


class Tenant(msgspec.Struct, frozen=True, gc=False):
    id: UUID
    name: str
    plan_tier: PlanTier
    balance_nanos: int
    exhausted_at: int | None
    created_at: int
    updated_at: int
    unlimited: bool = False
    """Charged as any, and never stopped: its balance may go below zero."""

    @property
    def has_credit(self) -> bool:
        return self.unlimited or self.balance_nanos > 0


class Workspace(msgspec.Struct, frozen=True, gc=False):
    id: UUID
    tenant_id: UUID
    name: str
    paused: bool
    created_at: int


class User(msgspec.Struct, frozen=True, gc=False):
    id: UUID
    tenant_id: UUID
    subject: str
    """Issuer and subject, ``local:admin`` for the user made at first start."""
    role: Role
    platform_admin: bool
    created_at: int
    name: str = ""
    """To be shown; empty: the subject is."""


class ApiKey(msgspec.Struct, frozen=True, gc=False):
    id: UUID
    tenant_id: UUID
    key_name: str
    description: str
    role: Role
    token_hash: bytes
    created_at: int
    last_used_at: int | None = None
    revoked_at: int | None = None
    platform_admin: bool = False


class Credential(msgspec.Struct, frozen=True, gc=False):
    """One vault entry; ``sealed`` opens only with the master key and this row's identity."""

    workspace_id: UUID
    name: str
    sealed: bytes
    created_at: int
    updated_at: int
    hosts: tuple[str, ...] = ()
    """To which it may be sent; empty: none was named."""


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


class Zombie(msgspec.Struct, frozen=True, gc=False):
    id: UUID
    workspace_id: UUID
    tenant_id: UUID
    name: str
    status: ZombieStatus
    version: int
    """Grows by one with every save; a save names the version it saw."""
    config_version_id: UUID
    config_revision: int
    compiled: Json
    required_tags: tuple[str, ...]
    approval_token_hash: bytes
    url_secret_hashes: Mapping[str, str]
    """Webhook source to the SHA-256 (hex) of its url_secret, for triggers without a signature."""
    created_at: int
    updated_at: int
    last_event_at: int | None = None
    """Moved by appended events, not by saves."""
    allows_unsandboxed: bool = False
    """A runner of sandbox tier ``none`` may run it."""


class Event(msgspec.Struct, frozen=True, gc=False):
    id: UUID
    zombie_id: UUID
    workspace_id: UUID
    tenant_id: UUID
    actor: str
    event_type: str
    status: EventStatus
    request_json: str
    created_at: int
    updated_at: int
    source_event_id: str | None = None
    resumes_event_id: UUID | None = None
    traceparent: str | None = None
    attempts: int = 0
    """Leases that counted: a released lease gives its attempt back."""
    first_leased_at: int | None = None
    parked_ms: int = 0
    """Time between leases spent parked at a gate; moves the ceiling."""
    parked_at: int | None = None
    checkpoint: Json | None = None
    response_text: str | None = None
    evidence: Json | None = None
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    wall_ms: int = 0
    charged_nanos: int = 0
    failure_label: str | None = None
    error_code: str | None = None
    completed_at: int | None = None


class Held(msgspec.Struct, frozen=True, gc=False):
    """A lease as the one who holds it names it; its writes are refused when it is succeeded."""

    lease_id: UUID
    fencing_token: int


class Rates(msgspec.Struct, frozen=True, gc=False):
    """What a lease is billed by, fixed when it is granted."""

    run_nanos_per_sec: int
    input_nanos_per_mtok: int = 0
    cached_input_nanos_per_mtok: int = 0
    output_nanos_per_mtok: int = 0


class Lease(msgspec.Struct, frozen=True, gc=False):
    id: UUID
    event_id: UUID
    zombie_id: UUID
    workspace_id: UUID
    tenant_id: UUID
    runner_id: UUID
    fencing_token: int
    attempt: int
    """Numbers the event's leases from 1, released ones included.

    It keys the metering rows and is never used twice.
    """
    status: LeaseStatus
    version: int
    granted_at: int
    expires_at: int
    ceiling_at: int
    metered_at: int
    """Up to where time has been billed."""
    rates: Rates
    slice_seq: int = 0
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    run_ms: int = 0
    """The runner's own cumulative count, as last reported; 0 when it sends none."""
    budget_daily_nanos: int | None = None
    budget_monthly_nanos: int | None = None
    ended_at: int | None = None
    report_digest: bytes | None = None
    """SHA-256 of the report that ended it, so that the same report again is known as such."""
    config_version_id: UUID | None = None
    """What the run was given; what it proposes is based on that."""
    model: str | None = None
    own_key: bool = False
    """The tenant's own model key: its tokens cost nothing here."""


class Slice(msgspec.Struct, frozen=True, gc=False):
    """One metering row as it is asked for; what is charged is clamped at the balance when it is saved."""

    seq: int
    d_input_tokens: int
    d_cached_tokens: int
    d_output_tokens: int
    run_ms: int
    run_fee_nanos: int
    token_cost_nanos: int


class MeteringPeriod(msgspec.Struct, frozen=True, gc=False):
    event_id: UUID
    attempt: int
    slice_seq: int
    d_input_tokens: int
    d_cached_tokens: int
    d_output_tokens: int
    run_ms: int
    run_fee_nanos: int
    token_cost_nanos: int
    charged_nanos: int
    created_at: int


class Gate(msgspec.Struct, frozen=True, gc=False):
    id: UUID
    zombie_id: UUID
    workspace_id: UUID
    tenant_id: UUID
    event_id: UUID
    lease_id: UUID | None
    """The lease it was opened under; None when the event waits at it before any lease."""
    action_id: str
    status: GateStatus
    requested_at: int
    timeout_at: int
    zombie_name: str = ""
    tool_name: str = ""
    action_name: str = ""
    gate_kind: str = ""
    proposed_action: str = ""
    evidence: Json = msgspec.field(default_factory=dict)
    blast_radius: str = ""
    detail: str = ""
    updated_at: int | None = None
    resolved_by: str | None = None


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One line of an agent's activity stream; ``seq`` grows by one within the agent."""

    zombie_id: UUID
    seq: int
    event_id: UUID | None
    kind: str
    at_ms: int
    data: Json


class Runner(msgspec.Struct, frozen=True, gc=False):
    id: UUID
    host_id: str
    sandbox_tier: str
    labels: tuple[str, ...]
    slots: int
    token_hash: bytes
    admin_state: AdminState
    version: int
    created_at: int
    last_seen_at: int | None = None
    tenant_id: UUID | None = None
    """Whose events it is given, for ever; None: everybody's."""
    workspace_id: UUID | None = None
    """The only one of that tenant's whose events it is given, if it is limited to one."""


class EnrolmentToken(msgspec.Struct, frozen=True, gc=False):
    token_hash: bytes
    created_by: str
    created_at: int
    expires_at: int
    used_at: int | None = None
    tenant_id: UUID | None = None
    """The scope of the runner that it enrols, as a runner's."""
    workspace_id: UUID | None = None
    labels: tuple[str, ...] = ()
    """Reserved labels that the runner may carry."""


class EventWaits(msgspec.Struct, frozen=True, gc=False):
    """What there is of an agent's open events."""

    received: bool = False
    blocked: bool = False
    """For want of credit."""
    approval: bool = False
    """A gate is pending."""
    running: bool = False


class ReadyAgent(msgspec.Struct, frozen=True, gc=False):
    """An agent with work, no live lease and leave to run: what the dispatcher matches."""

    zombie_id: UUID
    workspace_id: UUID
    tenant_id: UUID
    required_tags: tuple[str, ...]
    allows_unsandboxed: bool
    oldest_event_at: int
    last_runner_id: UUID | None
