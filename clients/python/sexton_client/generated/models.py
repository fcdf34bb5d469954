"""The shapes of the interface, made from the OpenAPI document by `make clients`."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, Literal, TypeAlias

import msgspec

from sexton_client.shapes import Model, Word

__all__ = [
    "AnyAdminState",
    "AnyAdminWish",
    "AnyApproveOrDeny",
    "AnyCallerKind",
    "AnyCanarySide",
    "AnyCanaryStatus",
    "AnyConfigStatus",
    "AnyDeliveryAddress",
    "AnyDeliveryVerdict",
    "AnyEntryKind",
    "AnyErasureStatus",
    "AnyEventStatus",
    "AnyFailureStatus",
    "AnyFollowUpStatus",
    "AnyGateOrder",
    "AnyGateStatus",
    "AnyGrantStatus",
    "AnyGrantTarget",
    "AnyHistoryKind",
    "AnyJobKind",
    "AnyJobStatus",
    "AnyKeptClass",
    "AnyKeySort",
    "AnyKeysAfter",
    "AnyLeaseStatus",
    "AnyLiveness",
    "AnyMemberStatus",
    "AnyMetricsBy",
    "AnyNewBillingEventEventType",
    "AnyOutcome",
    "AnyPhase",
    "AnyPlace",
    "AnyPlanStatus",
    "AnyPlanTier",
    "AnyProposalStatus",
    "AnyProviderMode",
    "AnyRole",
    "AnyRunnerSort",
    "AnyRuntime",
    "AnySandboxTier",
    "AnyScopeKind",
    "AnySessionState",
    "AnySettingItemSource",
    "AnySignInKind",
    "AnyStanding",
    "AnyTarget",
    "AnyTotalsBy",
    "AnyTrustLevel",
    "AnyWaitKind",
    "AnyWaitingFor",
    "AnyWhose",
    "AnyWorkspaceKind",
    "AnyZombieStatus",
    "AnyZombieTarget",
    "AdminState",
    "AdminWish",
    "ApproveOrDeny",
    "CallerKind",
    "CanarySide",
    "CanaryStatus",
    "ConfigStatus",
    "DeliveryAddress",
    "DeliveryVerdict",
    "EntryKind",
    "ErasureStatus",
    "EventStatus",
    "FailureStatus",
    "FollowUpStatus",
    "GateOrder",
    "GateStatus",
    "GrantStatus",
    "GrantTarget",
    "HistoryKind",
    "JobKind",
    "JobStatus",
    "KeptClass",
    "KeySort",
    "KeysAfter",
    "LeaseStatus",
    "Liveness",
    "MemberStatus",
    "MetricsBy",
    "NewBillingEventEventType",
    "Outcome",
    "Phase",
    "Place",
    "PlanStatus",
    "PlanTier",
    "ProposalStatus",
    "ProviderMode",
    "Role",
    "RunnerSort",
    "Runtime",
    "SandboxTier",
    "ScopeKind",
    "SessionState",
    "SettingItemSource",
    "SignInKind",
    "Standing",
    "Target",
    "TotalsBy",
    "TrustLevel",
    "WaitKind",
    "WaitingFor",
    "Whose",
    "WorkspaceKind",
    "ZombieStatus",
    "ZombieTarget",
    "Aborted",
    "ActorDone",
    "ActorItem",
    "ActorKind",
    "ActorTimer",
    "ActorTree",
    "ActorView",
    "AgentKeyItem",
    "AgentKeyList",
    "AgentKeyMade",
    "AgentPin",
    "AgentProfile",
    "AgentQueue",
    "AgentTrial",
    "AgentWorkspace",
    "AppliedItem",
    "AppliedView",
    "ApprovalToken",
    "Approved",
    "ArtefactItem",
    "ArtefactPage",
    "AttemptItem",
    "AuditItem",
    "AuditPage",
    "Balance",
    "BillingBlock",
    "BillingPlan",
    "BudgetItem",
    "BulkAnswer",
    "CanaryCounts",
    "CanaryGuard",
    "CanaryPromoted",
    "CanaryState",
    "CanaryView",
    "ChargeItem",
    "ChargePage",
    "ChargeTotalItem",
    "ChargeTotals",
    "ChatStanding",
    "ChatView",
    "Completed",
    "CrashItem",
    "CredentialCompared",
    "CredentialGrantItem",
    "CredentialGrantPage",
    "CredentialItem",
    "CredentialKept",
    "CredentialList",
    "DeadLetterItem",
    "DeliveryItem",
    "DeliveryPage",
    "DeliveryRecord",
    "DueItem",
    "EnrolmentMade",
    "EntriesTaken",
    "EntryIn",
    "ErasurePage",
    "ErasureView",
    "EventCancelled",
    "EventItem",
    "EventLease",
    "EventLinks",
    "EventPage",
    "EventTrace",
    "EventWhy",
    "FailurePage",
    "FailureView",
    "FallbackCounts",
    "FallbackModel",
    "Finding",
    "Firing",
    "FleetLease",
    "FleetPage",
    "FleetRunner",
    "FollowUpItem",
    "FollowUpMade",
    "FollowUpPage",
    "FrameItem",
    "FramesAnswer",
    "FramesFramesItemType0",
    "FramesFramesItemType1",
    "FramesFramesItemType2",
    "FramesFramesItemType3",
    "FramesFramesItemType4",
    "FramesPage",
    "FreeTrial",
    "GateDecided",
    "GateOutcome",
    "GatePage",
    "GateView",
    "GrantItem",
    "GrantMade",
    "GrantPage",
    "HandOver",
    "Health",
    "Invited",
    "JobPage",
    "JobView",
    "KeyChanged",
    "KeyItem",
    "KeyMade",
    "KeyPage",
    "KeySet",
    "KeyUse",
    "LabelHour",
    "LabelQueue",
    "LeaseEvent",
    "LeaseFile",
    "LeaseHanded",
    "LeaseList",
    "LeaseMcpServer",
    "LeasePolicy",
    "LeaseResources",
    "LeaseSlack",
    "LeasesAnswer",
    "LentService",
    "Limits",
    "LlmKey",
    "ManifestWarning",
    "McpServerItem",
    "McpServerList",
    "MemberItem",
    "MemberPage",
    "MemoryItem",
    "MemoryKept",
    "MemoryList",
    "MessageAccepted",
    "MessageCount",
    "MessageFile",
    "MessageList",
    "MinuteItem",
    "Missed",
    "ModelList",
    "ModelPart",
    "ModelRow",
    "NetworkPolicy",
    "NetworkRule",
    "OneRenewal",
    "Period",
    "Periods",
    "PinState",
    "PlanRecord",
    "PlatformKeyList",
    "PlatformKeyView",
    "ProposalApproved",
    "ProposalDraft",
    "ProposalPage",
    "ProposalRejected",
    "ProposalView",
    "PublicCatalogue",
    "PublicKey",
    "PulseAnswer",
    "QueueState",
    "RateBlock",
    "Readiness",
    "ReasonItem",
    "RecordedMessage",
    "RefusedPart",
    "ReleasedUsage",
    "Removed",
    "RenewalAnswer",
    "RenewalResult",
    "RenewalResults",
    "Renewed",
    "Replayed",
    "ReportAnswer",
    "ReportBody",
    "ReportResult",
    "ReportResults",
    "RetentionItem",
    "RetentionPreview",
    "RetentionView",
    "RunMemory",
    "RunnerEnrolled",
    "RunnerEvent",
    "RunnerHistory",
    "RunnerSelf",
    "ScheduleItem",
    "SchedulePage",
    "ScheduleRun",
    "ScoreItem",
    "ScorePage",
    "ScoringView",
    "SeenNode",
    "SessionItem",
    "SessionList",
    "SessionMade",
    "SessionView",
    "SessionsEnded",
    "SettingItem",
    "SettingList",
    "ShadowItem",
    "ShadowReport",
    "ShadowSide",
    "SignInItem",
    "SignInList",
    "SignInMade",
    "SnapshotView",
    "SpanItem",
    "SpanMoment",
    "Spend",
    "SupervisorState",
    "TagDepth",
    "Telemetry",
    "TenantProviderView",
    "Throughput",
    "TranscriptItem",
    "TranscriptPage",
    "TreeNode",
    "Unsatisfiable",
    "UploadView",
    "Use",
    "VaultView",
    "Verified",
    "VersionActivated",
    "VersionCompiled",
    "VersionItem",
    "VersionPage",
    "VersionState",
    "VersionText",
    "WebhookItem",
    "WebhookPage",
    "Whoami",
    "WholeEvent",
    "WorkerHealth",
    "WorkspaceItem",
    "WorkspaceList",
    "WorkspaceMade",
    "WorkspaceQueue",
    "WorkspaceReset",
    "WorkspaceStart",
    "ZombieChanged",
    "ZombieInstalled",
    "ZombieItem",
    "ZombiePage",
    "ZombieRecord",
]


class AdminState(Word):
    """One of a set of words."""

    ACTIVE = "active"
    CORDONED = "cordoned"
    DRAINED = "drained"
    DRAINING = "draining"
    REVOKED = "revoked"


AnyAdminState: TypeAlias = (
    AdminState
    | Literal[
        "active",
        "cordoned",
        "drained",
        "draining",
        "revoked",
    ]
)


class AdminWish(Word):
    """``drained`` comes by itself and cannot be asked for."""

    ACTIVE = "active"
    CORDONED = "cordoned"
    DRAINING = "draining"
    REVOKED = "revoked"


AnyAdminWish: TypeAlias = (
    AdminWish
    | Literal[
        "active",
        "cordoned",
        "draining",
        "revoked",
    ]
)


class ApproveOrDeny(Word):
    """What a webhook decides."""

    APPROVE = "approve"
    DENY = "deny"


AnyApproveOrDeny: TypeAlias = (
    ApproveOrDeny
    | Literal[
        "approve",
        "deny",
    ]
)


class CallerKind(Word):
    """One of a set of words."""

    API_KEY = "api_key"
    USER = "user"


AnyCallerKind: TypeAlias = (
    CallerKind
    | Literal[
        "api_key",
        "user",
    ]
)


class CanarySide(Word):
    """One of a set of words."""

    CANDIDATE = "candidate"
    STABLE = "stable"


AnyCanarySide: TypeAlias = (
    CanarySide
    | Literal[
        "candidate",
        "stable",
    ]
)


class CanaryStatus(Word):
    """One of a set of words."""

    ON_TRIAL = "on_trial"
    PROMOTED = "promoted"
    WITHDRAWN = "withdrawn"


AnyCanaryStatus: TypeAlias = (
    CanaryStatus
    | Literal[
        "on_trial",
        "promoted",
        "withdrawn",
    ]
)


class ConfigStatus(Word):
    """One of a set of words."""

    ACTIVE = "ACTIVE"
    COMPILED = "COMPILED"
    DRAFT = "DRAFT"
    INVALID = "INVALID"
    SUPERSEDED = "SUPERSEDED"


AnyConfigStatus: TypeAlias = (
    ConfigStatus
    | Literal[
        "ACTIVE",
        "COMPILED",
        "DRAFT",
        "INVALID",
        "SUPERSEDED",
    ]
)


class DeliveryAddress(Word):
    """How an address named the trigger."""

    FIRST = "first"
    SECRET = "secret"
    SEVERAL = "several"
    SOURCE = "source"
    UNKNOWN = "unknown"


AnyDeliveryAddress: TypeAlias = (
    DeliveryAddress
    | Literal[
        "first",
        "secret",
        "several",
        "source",
        "unknown",
    ]
)


class DeliveryVerdict(Word):
    """One of a set of words."""

    ACCEPTED = "accepted"
    CHALLENGE = "challenge"
    DUPLICATE = "duplicate"
    IGNORED = "ignored"
    REFUSED = "refused"
    REPLAYED = "replayed"


AnyDeliveryVerdict: TypeAlias = (
    DeliveryVerdict
    | Literal[
        "accepted",
        "challenge",
        "duplicate",
        "ignored",
        "refused",
        "replayed",
    ]
)


class EntryKind(Word):
    """What an entry tells."""

    END = "end"
    GATE = "gate"
    MODEL = "model"
    NOTE = "note"
    OUTPUT = "output"
    PROMPT = "prompt"
    STEP = "step"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"


AnyEntryKind: TypeAlias = (
    EntryKind
    | Literal[
        "end",
        "gate",
        "model",
        "note",
        "output",
        "prompt",
        "step",
        "tool_call",
        "tool_result",
    ]
)


class ErasureStatus(Word):
    """One of a set of words."""

    DONE = "done"
    RUNNING = "running"
    STOPPED = "stopped"
    WAITING = "waiting"


AnyErasureStatus: TypeAlias = (
    ErasureStatus
    | Literal[
        "done",
        "running",
        "stopped",
        "waiting",
    ]
)


class EventStatus(Word):
    """One of a set of words."""

    AGENT_ERROR = "agent_error"
    CANCELLED = "cancelled"
    DEAD_LETTERED = "dead_lettered"
    GATE_BLOCKED = "gate_blocked"
    PROCESSED = "processed"
    RECEIVED = "received"
    RUNNING = "running"
    WAITING_APPROVAL = "waiting_approval"


AnyEventStatus: TypeAlias = (
    EventStatus
    | Literal[
        "agent_error",
        "cancelled",
        "dead_lettered",
        "gate_blocked",
        "processed",
        "received",
        "running",
        "waiting_approval",
    ]
)


class FailureStatus(Word):
    """One of a set of words."""

    ACKNOWLEDGED = "acknowledged"
    MUTED = "muted"
    OPEN = "open"


AnyFailureStatus: TypeAlias = (
    FailureStatus
    | Literal[
        "acknowledged",
        "muted",
        "open",
    ]
)


class FollowUpStatus(Word):
    """One of a set of words."""

    CANCELLED = "cancelled"
    DROPPED = "dropped"
    FIRED = "fired"
    PENDING = "pending"


AnyFollowUpStatus: TypeAlias = (
    FollowUpStatus
    | Literal[
        "cancelled",
        "dropped",
        "fired",
        "pending",
    ]
)


class GateOrder(Word):
    """One of a set of words."""

    DECIDED = "decided"
    NEWEST = "newest"
    OLDEST = "oldest"


AnyGateOrder: TypeAlias = (
    GateOrder
    | Literal[
        "decided",
        "newest",
        "oldest",
    ]
)


class GateStatus(Word):
    """One of a set of words."""

    APPROVED = "approved"
    AUTO_KILLED = "auto_killed"
    DENIED = "denied"
    PENDING = "pending"
    TIMED_OUT = "timed_out"


AnyGateStatus: TypeAlias = (
    GateStatus
    | Literal[
        "approved",
        "auto_killed",
        "denied",
        "pending",
        "timed_out",
    ]
)


class GrantStatus(Word):
    """One of a set of words."""

    APPROVED = "approved"
    DENIED = "denied"
    PENDING = "pending"
    REVOKED = "revoked"


AnyGrantStatus: TypeAlias = (
    GrantStatus
    | Literal[
        "approved",
        "denied",
        "pending",
        "revoked",
    ]
)


class GrantTarget(Word):
    """``pending`` comes of a request only."""

    APPROVED = "approved"
    DENIED = "denied"
    REVOKED = "revoked"


AnyGrantTarget: TypeAlias = (
    GrantTarget
    | Literal[
        "approved",
        "denied",
        "revoked",
    ]
)


class HistoryKind(Word):
    """One of a set of words."""

    ADMIN_STATE_CHANGED = "admin_state_changed"
    ENROLLED = "enrolled"
    LEASE = "lease"


AnyHistoryKind: TypeAlias = (
    HistoryKind
    | Literal[
        "admin_state_changed",
        "enrolled",
        "lease",
    ]
)


class JobKind(Word):
    """One of a set of words."""

    CANCEL = "cancel"
    REPLAY = "replay"
    SHADOW = "shadow"


AnyJobKind: TypeAlias = (
    JobKind
    | Literal[
        "cancel",
        "replay",
        "shadow",
    ]
)


class JobStatus(Word):
    """One of a set of words."""

    DONE = "done"
    FAILED = "failed"
    PAUSED = "paused"
    RUNNING = "running"
    STOPPED = "stopped"
    STOPPING = "stopping"
    WAITING = "waiting"


AnyJobStatus: TypeAlias = (
    JobStatus
    | Literal[
        "done",
        "failed",
        "paused",
        "running",
        "stopped",
        "stopping",
        "waiting",
    ]
)


class KeptClass(Word):
    """What has days of its own."""

    DELIVERIES = "deliveries"
    EVENTS = "events"
    FILES = "files"
    TRANSCRIPTS = "transcripts"


AnyKeptClass: TypeAlias = (
    KeptClass
    | Literal[
        "deliveries",
        "events",
        "files",
        "transcripts",
    ]
)


class KeySort(Word):
    """One of a set of words."""

    CREATED_AT_DESCENDING = "-created_at"
    KEY_NAME_DESCENDING = "-key_name"
    CREATED_AT = "created_at"
    KEY_NAME = "key_name"


AnyKeySort: TypeAlias = (
    KeySort
    | Literal[
        "-created_at",
        "-key_name",
        "created_at",
        "key_name",
    ]
)


class KeysAfter(Word):
    """What becomes of the keys of a removed member."""

    END = "end"
    HAND_OVER = "hand_over"


AnyKeysAfter: TypeAlias = (
    KeysAfter
    | Literal[
        "end",
        "hand_over",
    ]
)


class LeaseStatus(Word):
    """One of a set of words."""

    ACTIVE = "active"
    CANCELLING = "cancelling"
    PARKED = "parked"
    RECLAIMED = "reclaimed"
    RELEASED = "released"
    REPORTED = "reported"


AnyLeaseStatus: TypeAlias = (
    LeaseStatus
    | Literal[
        "active",
        "cancelling",
        "parked",
        "reclaimed",
        "released",
        "reported",
    ]
)


class Liveness(Word):
    """One of a set of words."""

    BUSY = "busy"
    OFFLINE = "offline"
    ONLINE = "online"
    REGISTERED = "registered"


AnyLiveness: TypeAlias = (
    Liveness
    | Literal[
        "busy",
        "offline",
        "online",
        "registered",
    ]
)


class MemberStatus(Word):
    """Whether somebody is admitted. Who was removed is remembered, so as not to be admitted again unasked."""

    ACTIVE = "active"
    REMOVED = "removed"
    SUSPENDED = "suspended"


AnyMemberStatus: TypeAlias = (
    MemberStatus
    | Literal[
        "active",
        "removed",
        "suspended",
    ]
)


class MetricsBy(Word):
    """One of a set of words."""

    WORKER = "worker"


AnyMetricsBy: TypeAlias = MetricsBy | Literal["worker",]


class NewBillingEventEventType(Word):
    """One of a set of words."""

    DOWNGRADE_TO_FREE = "DOWNGRADE_TO_FREE"
    PAYMENT_FAILED = "PAYMENT_FAILED"
    PAYMENT_RECOVERED = "PAYMENT_RECOVERED"


AnyNewBillingEventEventType: TypeAlias = (
    NewBillingEventEventType
    | Literal[
        "DOWNGRADE_TO_FREE",
        "PAYMENT_FAILED",
        "PAYMENT_RECOVERED",
    ]
)


class Outcome(Word):
    """One of a set of words."""

    AGENT_ERROR = "agent_error"
    CANCELLED = "cancelled"
    PROCESSED = "processed"


AnyOutcome: TypeAlias = (
    Outcome
    | Literal[
        "agent_error",
        "cancelled",
        "processed",
    ]
)


class Phase(Word):
    """One of a set of words."""

    BEGIN = "begin"
    END = "end"
    RENEW = "renew"


AnyPhase: TypeAlias = (
    Phase
    | Literal[
        "begin",
        "end",
        "renew",
    ]
)


class Place(Word):
    """One of a set of words."""

    BASIC = "basic"
    HEADER = "header"
    QUERY = "query"


AnyPlace: TypeAlias = (
    Place
    | Literal[
        "basic",
        "header",
        "query",
    ]
)


class PlanStatus(Word):
    """One of a set of words."""

    ACTIVE = "ACTIVE"
    DOWNGRADED = "DOWNGRADED"
    GRACE = "GRACE"


AnyPlanStatus: TypeAlias = (
    PlanStatus
    | Literal[
        "ACTIVE",
        "DOWNGRADED",
        "GRACE",
    ]
)


class PlanTier(Word):
    """One of a set of words."""

    ENTERPRISE = "enterprise"
    FREE = "free"
    PRO = "pro"


AnyPlanTier: TypeAlias = (
    PlanTier
    | Literal[
        "enterprise",
        "free",
        "pro",
    ]
)


class ProposalStatus(Word):
    """One of a set of words."""

    APPLIED = "APPLIED"
    CONFIG_CHANGED = "CONFIG_CHANGED"
    PENDING = "PENDING"
    REJECTED = "REJECTED"


AnyProposalStatus: TypeAlias = (
    ProposalStatus
    | Literal[
        "APPLIED",
        "CONFIG_CHANGED",
        "PENDING",
        "REJECTED",
    ]
)


class ProviderMode(Word):
    """One of a set of words."""

    PLATFORM = "platform"
    SELF_MANAGED = "self_managed"


AnyProviderMode: TypeAlias = (
    ProviderMode
    | Literal[
        "platform",
        "self_managed",
    ]
)


class Role(Word):
    """What somebody may do, from the least to the most: a viewer sees and changes nothing."""

    ADMIN = "admin"
    OPERATOR = "operator"
    USER = "user"
    VIEWER = "viewer"


AnyRole: TypeAlias = (
    Role
    | Literal[
        "admin",
        "operator",
        "user",
        "viewer",
    ]
)


class RunnerSort(Word):
    """One of a set of words."""

    CREATED_AT_DESCENDING = "-created_at"
    HOST_ID_DESCENDING = "-host_id"
    CREATED_AT = "created_at"
    HOST_ID = "host_id"


AnyRunnerSort: TypeAlias = (
    RunnerSort
    | Literal[
        "-created_at",
        "-host_id",
        "created_at",
        "host_id",
    ]
)


class Runtime(Word):
    """One of a set of words."""

    AGENT = "agent"
    COMMAND = "command"


AnyRuntime: TypeAlias = (
    Runtime
    | Literal[
        "agent",
        "command",
    ]
)


class SandboxTier(Word):
    """One of a set of words."""

    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    NONE = "none"
    PODMAN = "podman"


AnySandboxTier: TypeAlias = (
    SandboxTier
    | Literal[
        "bubblewrap",
        "landlock",
        "none",
        "podman",
    ]
)


class ScopeKind(Word):
    """One of a set of words."""

    PLATFORM = "platform"
    TENANT = "tenant"
    WORKSPACE = "workspace"


AnyScopeKind: TypeAlias = (
    ScopeKind
    | Literal[
        "platform",
        "tenant",
        "workspace",
    ]
)


class SessionState(Word):
    """One of a set of words."""

    ABORTED = "aborted"
    COMPLETE = "complete"
    CONSUMED = "consumed"
    EXPIRED = "expired"
    PENDING = "pending"
    VERIFICATION_PENDING = "verification_pending"


AnySessionState: TypeAlias = (
    SessionState
    | Literal[
        "aborted",
        "complete",
        "consumed",
        "expired",
        "pending",
        "verification_pending",
    ]
)


class SettingItemSource(Word):
    """One of a set of words."""

    DEFAULT = "default"
    ENVIRONMENT = "environment"
    OPTION = "option"


AnySettingItemSource: TypeAlias = (
    SettingItemSource
    | Literal[
        "default",
        "environment",
        "option",
    ]
)


class SignInKind(Word):
    """Where somebody is signed in."""

    BROWSER = "browser"
    TERMINAL = "terminal"


AnySignInKind: TypeAlias = (
    SignInKind
    | Literal[
        "browser",
        "terminal",
    ]
)


class Standing(Word):
    """What a status can be changed to; removing is DELETE."""

    ACTIVE = "active"
    SUSPENDED = "suspended"


AnyStanding: TypeAlias = (
    Standing
    | Literal[
        "active",
        "suspended",
    ]
)


class Target(Word):
    """One of a set of words."""

    COMPLETE = "complete"


AnyTarget: TypeAlias = Target | Literal["complete",]


class TotalsBy(Word):
    """What charges are added up by."""

    AGENT = "agent"
    DAY = "day"
    MODEL = "model"


AnyTotalsBy: TypeAlias = (
    TotalsBy
    | Literal[
        "agent",
        "day",
        "model",
    ]
)


class TrustLevel(Word):
    """One of a set of words."""

    HIGH = "high"
    LOW = "low"
    MEDIUM = "medium"


AnyTrustLevel: TypeAlias = (
    TrustLevel
    | Literal[
        "high",
        "low",
        "medium",
    ]
)


class WaitKind(Word):
    """What an event waits for."""

    AGENT = "agent"
    APPROVAL = "approval"
    BALANCE = "balance"
    BUDGET = "budget"
    EARLIER_EVENT = "earlier_event"
    GRANT = "grant"
    MODELS = "models"
    NEEDS = "needs"
    NO_RUNNER = "no_runner"
    RUNNERS_AWAY = "runners_away"
    SLOT = "slot"
    TURN = "turn"
    WORKSPACE = "workspace"


AnyWaitKind: TypeAlias = (
    WaitKind
    | Literal[
        "agent",
        "approval",
        "balance",
        "budget",
        "earlier_event",
        "grant",
        "models",
        "needs",
        "no_runner",
        "runners_away",
        "slot",
        "turn",
        "workspace",
    ]
)


class WaitingFor(Word):
    """What has to happen before the agent works again."""

    ACTIVATION = "activation"
    APPROVAL = "approval"
    BUDGET = "budget"
    CREDIT = "credit"
    GRANT = "grant"
    RUNNER = "runner"
    WORKSPACE = "workspace"


AnyWaitingFor: TypeAlias = (
    WaitingFor
    | Literal[
        "activation",
        "approval",
        "budget",
        "credit",
        "grant",
        "runner",
        "workspace",
    ]
)


class Whose(Word):
    """Which sessions are listed."""

    ALL = "all"
    OWN = "own"


AnyWhose: TypeAlias = (
    Whose
    | Literal[
        "all",
        "own",
    ]
)


class WorkspaceKind(Word):
    """What a run finds in its folder."""

    FRESH = "fresh"
    KEEP = "keep"


AnyWorkspaceKind: TypeAlias = (
    WorkspaceKind
    | Literal[
        "fresh",
        "keep",
    ]
)


class ZombieStatus(Word):
    """One of a set of words."""

    ACTIVE = "active"
    KILLED = "killed"
    PAUSED = "paused"
    STOPPED = "stopped"


AnyZombieStatus: TypeAlias = (
    ZombieStatus
    | Literal[
        "active",
        "killed",
        "paused",
        "stopped",
    ]
)


class ZombieTarget(Word):
    """``paused`` is set by the platform and cannot be asked for."""

    ACTIVE = "active"
    KILLED = "killed"
    STOPPED = "stopped"


AnyZombieTarget: TypeAlias = (
    ZombieTarget
    | Literal[
        "active",
        "killed",
        "stopped",
    ]
)


class Aborted(Model, frozen=True, kw_only=True):
    aborted_count: int
    request_id: str


class ActorDone(Model, frozen=True, kw_only=True):
    """The actor as it was before."""

    node: str
    version: str
    host: str
    worker: int | None
    is_cut: bool
    actor: ActorItem
    request_id: str


class ActorItem(Model, frozen=True, kw_only=True):
    kind: str
    key: str
    state: str
    mailbox_depth: int
    mailbox_age_s: float
    mailbox_capacity: int
    mailbox_peak: int
    handling: str | None
    handling_s: float
    timers: list[ActorTimer]
    tasks: int
    replies_owed: int
    restarts: int
    can_stop: bool


class ActorKind(Model, frozen=True, kw_only=True):
    """What all actors of a kind have done since this process began."""

    kind: str
    live: int
    mailbox_depth: int
    mailbox_age_s: float
    messages: list[MessageCount]
    activations: int
    passivations: int
    crashes: int
    restarts: int
    escalations: int
    dead_letters: dict[str, int]


class ActorTimer(Model, frozen=True, kw_only=True):
    name: str
    due_in_s: float


class ActorTree(Model, frozen=True, kw_only=True):
    """The supervision tree of one process."""

    node: str
    version: str
    host: str
    worker: int | None
    is_cut: bool
    nodes: list[SeenNode]
    workers: list[int]
    tree: TreeNode
    kinds: list[ActorKind]
    actors: list[ActorItem]
    crashes: list[CrashItem]
    dead_letters: list[DeadLetterItem]
    request_id: str


class ActorView(Model, frozen=True, kw_only=True):
    """One actor, where it is awake."""

    node: str
    version: str
    host: str
    worker: int | None
    is_cut: bool
    actor: ActorItem
    messages: list[MessageCount]
    crashes: list[CrashItem]
    dead_letters: list[DeadLetterItem]
    request_id: str


class AgentKeyItem(Model, frozen=True, kw_only=True):
    agent_id: str
    workspace_id: str
    zombie_id: str
    name: str
    description: str
    created_at: int
    last_used_at: int | None


class AgentKeyList(Model, frozen=True, kw_only=True):
    items: list[AgentKeyItem]
    total: int
    request_id: str


class AgentKeyMade(Model, frozen=True, kw_only=True):
    agent_id: str
    workspace_id: str
    zombie_id: str
    name: str
    key: str
    created_at: int
    request_id: str


class AgentPin(Model, frozen=True, kw_only=True):
    """The version that an agent is pinned to."""

    version: int
    held_version: int | None
    by: str
    at: int
    reason: str


class AgentProfile(Model, frozen=True, kw_only=True):
    agent_id: str
    name: str
    status: str
    workspace_id: str
    trust_level: TrustLevel
    trust_streak_runs: int
    improvement_stalled_warning: bool
    created_at: str
    updated_at: str
    request_id: str


class AgentQueue(Model, frozen=True, kw_only=True):
    """An agent with events that wait for a runner, for their turn, or for what keeps it from running."""

    zombie_id: str
    zombie_name: str
    events: int
    oldest_event_id: str
    oldest_at: int


class AgentTrial(Model, frozen=True, kw_only=True):
    """The version of an agent that is on trial; `GET …/canary` says more."""

    version: int
    config_version_id: str
    share: int


class AgentWorkspace(Model, frozen=True, kw_only=True):
    snapshot: SnapshotView | None
    request_id: str


class AppliedItem(Model, frozen=True, kw_only=True):
    """One thing that a folder names."""

    folder: str
    fields: dict[str, str]


class AppliedView(Model, frozen=True, kw_only=True):
    revision: int
    applying: bool
    age_ms: int
    updated_by: str
    items: dict[str, AppliedItem]
    request_id: str


class ApprovalToken(Model, frozen=True, kw_only=True):
    zombie_id: str
    approval_token: str
    request_id: str


class Approved(Model, frozen=True, kw_only=True):
    session_id: str
    status: SessionState
    expires_at_ms: int
    request_id: str


class ArtefactItem(Model, frozen=True, kw_only=True):
    artefact_id: str
    name: str
    media_type: str
    size: int
    sha256: str
    event_id: str
    zombie_id: str
    attempt: int
    lease_id: str
    created_at: int


class ArtefactPage(Model, frozen=True, kw_only=True):
    items: list[ArtefactItem]
    next_cursor: str | None
    used_bytes: int
    quota_bytes: int | None
    request_id: str


class AttemptItem(Model, frozen=True, kw_only=True):
    attempt: int
    began_at: int
    entries: int
    missing: int
    bytes_: int = msgspec.field(name="bytes")
    cut: bool
    removed: bool


class AuditItem(Model, frozen=True, kw_only=True):
    seq: int
    at: int
    entry_id: str
    actor: str
    name: str
    address: str
    action: str
    target: str
    workspace_id: str | None
    facts: Any
    request_id: str
    previous_hash: str
    hash_: str = msgspec.field(name="hash")


class AuditPage(Model, frozen=True, kw_only=True):
    items: list[AuditItem]
    next_cursor: str | None
    head_seq: int
    head_hash: str
    request_id: str


class Balance(Model, frozen=True, kw_only=True):
    balance_nanos: int
    is_unlimited: bool
    updated_at: int
    is_exhausted: bool
    exhausted_at: int | None
    free_trial: FreeTrial
    request_id: str


class BillingBlock(Model, frozen=True, kw_only=True):
    starter_credit_nanos: int
    free_trial_end_ms: int
    free_trial_stage_nanos: int


class BillingPlan(Model, frozen=True, kw_only=True):
    """The tenant's: every workspace of it shows the same."""

    workspace_id: str
    plan_tier: PlanTier
    billing_status: PlanStatus
    plan_sku: str
    subscription_id: str
    grace_expires_at: int | None
    request_id: str


class BudgetItem(Model, frozen=True, kw_only=True):
    """As it is declared, and in nanos as it is counted."""

    daily_dollars: float
    monthly_dollars: float | None
    daily_nanos: int
    monthly_nanos: int | None


class BulkAnswer(Model, frozen=True, kw_only=True):
    total: int
    sample: list[str]
    job: JobView | None
    request_id: str


class CanaryCounts(Model, frozen=True, kw_only=True):
    """What came of one side's runs that ended as processed, agent_error or dead_lettered."""

    agent_version: int
    runs: int
    failed: int
    charged_nanos: int
    mean_cost_nanos: int
    mean_score: float | None


class CanaryGuard(Model, frozen=True, kw_only=True):
    """When the candidate goes back by itself; what is left out is not looked at."""

    min_runs: int | None = None
    max_failure_percent: int | None = None
    failure_margin_percent: int | None = None
    max_cost_nanos: int | None = None
    cost_margin_percent: int | None = None
    min_score: float | None = None
    score_margin: float | None = None


class CanaryPromoted(Model, frozen=True, kw_only=True):
    canary_id: str
    zombie_id: str
    status: CanaryStatus
    config_version_id: str
    share: int
    guard: Any
    promote_after: int | None
    candidate: CanaryCounts
    stable: CanaryCounts
    started_at: int
    started_by: str
    ended_at: int | None
    ended_by: str | None
    why: str | None
    detail: str
    request_id: str
    webhook_urls: dict[str, str] | None = None


class CanaryState(Model, frozen=True, kw_only=True):
    canary: CanaryView | None
    request_id: str


class CanaryView(Model, frozen=True, kw_only=True):
    canary_id: str
    zombie_id: str
    status: CanaryStatus
    config_version_id: str
    share: int
    guard: Any
    promote_after: int | None
    candidate: CanaryCounts
    stable: CanaryCounts
    started_at: int
    started_by: str
    ended_at: int | None
    ended_by: str | None
    why: str | None
    detail: str


class ChargeItem(Model, frozen=True, kw_only=True):
    """What one lease of an event was billed; its slices are the event's metering rows."""

    id: str
    event_id: str
    zombie_id: str
    workspace_id: str
    charge_type: str
    posture: str
    model: str | None
    credit_deducted_nanos: int
    token_count_input: int
    token_count_output: int
    wall_ms: int
    recorded_at: int
    models: list[ModelPart] | None


class ChargePage(Model, frozen=True, kw_only=True):
    items: list[ChargeItem]
    next_cursor: str | None
    request_id: str


class ChargeTotalItem(Model, frozen=True, kw_only=True):
    key: str
    name: str | None
    runs: int
    charged_nanos: int
    input_tokens: int
    output_tokens: int
    wall_ms: int


class ChargeTotals(Model, frozen=True, kw_only=True):
    by: TotalsBy
    since: int
    until: int
    items: list[ChargeTotalItem]
    request_id: str


class ChatStanding(Model, frozen=True, kw_only=True):
    """The token is good, here and now."""

    ok: bool
    team_id: str
    team_name: str
    bot_user_id: str
    request_id: str


class ChatView(Model, frozen=True, kw_only=True):
    """Without an install nothing else is known."""

    installed: bool
    request_id: str
    team_id: str | None = None
    team_name: str | None = None
    channel_id: str | None = None
    channel_name: str | None = None
    installed_by: str | None = None
    created_at: int | None = None
    updated_at: int | None = None
    revoked_at: int | None = None


class Completed(Model, frozen=True, kw_only=True):
    status: Target
    token: str
    request_id: str


class CrashItem(Model, frozen=True, kw_only=True):
    kind: str
    key: str
    message: str | None
    error: str
    traceback: str
    age_s: float


class CredentialCompared(Model, frozen=True, kw_only=True):
    exists: bool
    same: bool
    request_id: str


class CredentialGrantItem(Model, frozen=True, kw_only=True):
    zombie_id: str
    credential: str
    status: GrantStatus
    hosts: list[str]
    tools: list[str]
    requested_at: int
    requested_by: str
    decided_at: int | None
    decided_by: str | None


class CredentialGrantPage(Model, frozen=True, kw_only=True):
    items: list[CredentialGrantItem]
    next_cursor: str | None
    request_id: str


class CredentialItem(Model, frozen=True, kw_only=True):
    name: str
    created_at: int
    updated_at: int
    hosts: list[str]
    use: list[Use]


class CredentialKept(Model, frozen=True, kw_only=True):
    name: str
    request_id: str


class CredentialList(Model, frozen=True, kw_only=True):
    credentials: list[CredentialItem]
    items: list[CredentialItem]
    next_cursor: str | None
    request_id: str


class DeadLetterItem(Model, frozen=True, kw_only=True):
    kind: str
    key: str
    message: str
    reason: str
    age_s: float


class DeliveryItem(Model, frozen=True, kw_only=True):
    """One delivery, as it came and as it was answered."""

    delivery_id: str
    zombie_id: str
    zombie_name: str
    at: int
    address: DeliveryAddress
    source: str
    verdict: DeliveryVerdict
    code: str | None
    reason: str
    detail: str
    advice: str
    event_id: str | None
    size: int
    body_kept: bool
    replays: int
    replayed_at: int | None
    replayed_by: str | None
    may_be_replayed: bool


class DeliveryPage(Model, frozen=True, kw_only=True):
    items: list[DeliveryItem]
    next_cursor: str | None
    request_id: str


class DeliveryRecord(Model, frozen=True, kw_only=True):
    delivery_id: str
    zombie_id: str
    zombie_name: str
    at: int
    address: DeliveryAddress
    source: str
    verdict: DeliveryVerdict
    code: str | None
    reason: str
    detail: str
    advice: str
    event_id: str | None
    size: int
    body_kept: bool
    replays: int
    replayed_at: int | None
    replayed_by: str | None
    may_be_replayed: bool
    workspace_id: str
    headers: dict[str, str]
    kept_until: int
    request_id: str


class DueItem(Model, frozen=True, kw_only=True):
    what: KeptClass
    days: int | None
    rows: int
    bytes_: int = msgspec.field(name="bytes")
    oldest_at: int | None
    charged_nanos: int
    more: bool


class EnrolmentMade(Model, frozen=True, kw_only=True):
    token: str
    expires_at: int
    request_id: str


class EntriesTaken(Model, frozen=True, kw_only=True):
    accepted: int
    more: bool
    request_id: str


class EntryIn(Model, frozen=True, kw_only=True):
    number: int
    kind: EntryKind
    data: dict[str, Any]
    at_ms: int | None = None


class ErasurePage(Model, frozen=True, kw_only=True):
    items: list[ErasureView]
    next_cursor: str | None
    request_id: str


class ErasureView(Model, frozen=True, kw_only=True):
    erasure_id: str
    workspace_id: str
    path: str
    value_sha256: str
    value_chars: int
    dry_run: bool
    restored: bool
    status: ErasureStatus
    surface: int
    passes: int
    waits: int
    erased: dict[str, int]
    kept: dict[str, int]
    created_by: str
    created_by_name: str
    created_at: int
    updated_at: int
    ended_at: int | None


class EventCancelled(Model, frozen=True, kw_only=True):
    event_id: str
    status: str
    request_id: str


class EventItem(Model, frozen=True, kw_only=True):
    event_id: str
    zombie_id: str
    zombie_name: str
    workspace_id: str
    actor: str
    event_type: str
    status: EventStatus
    ended: bool
    request_json: Any
    response_text: str | None
    evidence: Any
    tokens: int
    wall_ms: int
    charged_nanos: int
    attempts: int
    failure_label: str | None
    error_code: str | None
    source_event_id: str | None
    resumes_event_id: str | None
    created_at: int
    updated_at: int
    completed_at: int | None
    truncated: bool
    request_bytes: int
    response_bytes: int | None
    evidence_bytes: int | None
    retry_at: int | None
    agent_version: int | None
    asked_version: int | None
    shadow_job_id: str | None
    canary_id: str | None
    canary_side: CanarySide | None


class EventLease(Model, frozen=True, kw_only=True):
    """One lease of the event."""

    lease_id: str
    attempt: int
    runner_id: str
    fencing_token: int
    status: LeaseStatus
    outcome: EventStatus | None
    failure_label: str | None
    granted_at: int
    renewed_at: int
    renewals: int
    expires_at: int
    ceiling_at: int
    ended_at: int | None
    run_ms: int
    model: str | None
    config_version_id: str | None
    tokens: int
    charged_nanos: int


class EventLinks(Model, frozen=True, kw_only=True):
    """Paths of what belongs to the event."""

    agent: str
    why: str
    transcript: str
    artefacts: str
    charges: str
    stream: str
    replay: str
    cancel: str
    resumes: str | None
    trace: str | None


class EventPage(Model, frozen=True, kw_only=True):
    items: list[EventItem]
    next_cursor: str | None
    request_id: str


class EventTrace(Model, frozen=True, kw_only=True):
    event_id: str
    trace_id: str
    status: EventStatus
    ended: bool
    charged_nanos: int
    cost_nanos: int
    cut: bool
    spans: list[SpanItem]
    request_id: str


class EventWhy(Model, frozen=True, kw_only=True):
    event_id: str
    zombie_id: str
    status: EventStatus
    waits: bool
    says: str
    reasons: list[ReasonItem]
    place: int | None
    place_of_agent: int | None
    expected_start_at: int | None
    link: str
    request_id: str


class FailurePage(Model, frozen=True, kw_only=True):
    items: list[FailureView]
    next_cursor: str | None
    request_id: str


class FailureView(Model, frozen=True, kw_only=True):
    failure_id: str
    workspace_id: str
    zombie_id: str
    zombie_name: str
    failure_label: str | None
    error_code: str | None
    message: str
    status: FailureStatus
    count: int
    first_seen_at: int
    last_seen_at: int
    trend: list[int]
    sample_event_id: str
    acknowledged_by: str | None
    acknowledged_at: int | None
    muted_by: str | None
    muted_until: int | None


class FallbackCounts(Model, frozen=True, kw_only=True):
    """What one model after the first has used, cumulative over the lease."""

    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None


class FallbackModel(Model, frozen=True, kw_only=True):
    provider: str
    model: str
    api_key: str


class Finding(Model, frozen=True, kw_only=True):
    """One thing that is wrong with a version."""

    file: str
    line: int
    key: str
    message: str
    code: str


class Firing(Model, frozen=True, kw_only=True):
    """An event that the schedule made."""

    event_id: str
    status: EventStatus
    scheduled_at: int
    created_at: int
    late_ms: int
    asked_by: str | None


class FleetLease(Model, frozen=True, kw_only=True):
    lease_id: str
    event_id: str
    zombie_id: str
    zombie_name: str
    workspace_id: str
    runner_id: str
    attempt: int
    cancelling: bool
    granted_at: int
    expires_at: int
    ceiling_at: int
    renewed_at: int | None
    host_id: str
    slack_ms: int


class FleetPage(Model, frozen=True, kw_only=True):
    items: list[FleetRunner]
    total: int
    page: int
    page_size: int
    request_id: str


class FleetRunner(Model, frozen=True, kw_only=True):
    id: str
    host_id: str
    sandbox_tier: str
    labels: list[str]
    offers: list[str]
    liveness: Liveness
    admin_state: AdminState
    slots: int
    scope: ScopeKind
    tenant_id: str | None
    workspace_id: str | None
    release: str
    active_leases: int
    last_seen_at: int | None
    created_at: int


class FollowUpItem(Model, frozen=True, kw_only=True):
    follow_up_id: str
    zombie_id: str
    event_id: str
    message: str
    at: int
    status: FollowUpStatus
    created_at: int
    closed_at: int | None


class FollowUpMade(Model, frozen=True, kw_only=True):
    follow_up_id: str
    at: int
    request_id: str


class FollowUpPage(Model, frozen=True, kw_only=True):
    items: list[FollowUpItem]
    next_cursor: str | None
    request_id: str


class FrameItem(Model, frozen=True, kw_only=True):
    seq: int
    kind: str
    at_ms: int
    data: Any


class FramesAnswer(Model, frozen=True, kw_only=True):
    accepted: int
    request_id: str


class FramesFramesItemType0(Model, frozen=True, kw_only=True):
    kind: str
    text: str
    at_ms: int | None = None


class FramesFramesItemType1(Model, frozen=True, kw_only=True):
    kind: str
    host: str
    port: int
    verdict: str
    why: str
    bytes_in: int
    bytes_out: int
    ms: int
    at_ms: int | None = None


class FramesFramesItemType2(Model, frozen=True, kw_only=True):
    kind: str
    name: str
    ms: int
    ok: bool
    at_ms: int | None = None


class FramesFramesItemType3(Model, frozen=True, kw_only=True):
    kind: str
    name: str
    elapsed_ms: int
    at_ms: int | None = None


class FramesFramesItemType4(Model, frozen=True, kw_only=True):
    kind: str
    name: str
    at_ms: int | None = None


class FramesPage(Model, frozen=True, kw_only=True):
    event_id: str
    items: list[FrameItem]
    next_cursor: str | None
    request_id: str


class FreeTrial(Model, frozen=True, kw_only=True):
    active: bool
    ends_at_ms: int | None


class GateDecided(Model, frozen=True, kw_only=True):
    gate_id: str
    action_id: str
    status: GateStatus
    resolved_at: int | None
    resolved_by: str | None
    request_id: str


class GateOutcome(Model, frozen=True, kw_only=True):
    gate_id: str
    action_id: str
    outcome: GateStatus
    resolved_at: int | None
    resolved_by: str | None
    request_id: str


class GatePage(Model, frozen=True, kw_only=True):
    items: list[GateView]
    next_cursor: str | None
    request_id: str


class GateView(Model, frozen=True, kw_only=True):
    """An approval gate, as people and runners see it."""

    gate_id: str
    zombie_id: str
    workspace_id: str
    event_id: str
    action_id: str
    status: GateStatus
    requested_at: int
    timeout_at: int
    zombie_name: str
    tool_name: str
    action_name: str
    gate_kind: str
    proposed_action: str
    evidence: dict[str, Any]
    blast_radius: str
    detail: str
    updated_at: int | None
    resolved_by: str | None = None


class GrantItem(Model, frozen=True, kw_only=True):
    grant_id: str
    zombie_id: str
    service: str
    status: GrantStatus
    requested_at: int
    workspace_id: str
    reason: str
    requested_by: str
    decided_at: int | None
    approved_at: int | None
    decided_by: str | None


class GrantMade(Model, frozen=True, kw_only=True):
    grant_id: str
    zombie_id: str
    service: str
    status: GrantStatus
    requested_at: int
    request_id: str


class GrantPage(Model, frozen=True, kw_only=True):
    items: list[GrantItem]
    next_cursor: str | None
    request_id: str


class HandOver(Model, frozen=True, kw_only=True):
    dashboard_public_key: str
    ciphertext: str
    nonce: str
    request_id: str


class Health(Model, frozen=True, kw_only=True):
    status: str
    service: str
    version: str
    request_id: str
    workers: list[WorkerHealth] | None = None


class Invited(Model, frozen=True, kw_only=True):
    member: MemberItem
    sign_in_url: str
    expires_at: int
    request_id: str


class JobPage(Model, frozen=True, kw_only=True):
    items: list[JobView]
    next_cursor: str | None
    request_id: str


class JobView(Model, frozen=True, kw_only=True):
    job_id: str
    workspace_id: str
    kind: JobKind
    status: JobStatus
    filter_: str = msgspec.field(name="filter")
    agent_version: int | None
    failure_id: str | None
    total: int
    done: int
    skipped: int
    failed: int
    refused: dict[str, int]
    rate: int
    rate_limit: int | None
    waits_for: str | None
    detail: str | None
    budget_nanos: int | None
    events_limit: int | None
    created_by: str
    created_at: int
    updated_at: int
    started_at: int | None
    ended_at: int | None


class KeyChanged(Model, frozen=True, kw_only=True):
    id: str
    active: bool
    revoked_at: int | None
    request_id: str


class KeyItem(Model, frozen=True, kw_only=True):
    id: str
    key_name: str
    description: str
    role: Role
    platform_admin: bool
    active: bool
    created_at: int
    last_used_at: int | None
    revoked_at: int | None
    expires_at: int | None
    expires_soon: bool
    owner_id: str | None


class KeyMade(Model, frozen=True, kw_only=True):
    id: str
    key_name: str
    key: str
    created_at: int
    request_id: str
    expires_at: int | None = None


class KeyPage(Model, frozen=True, kw_only=True):
    items: list[KeyItem]
    total: int
    page: int
    page_size: int
    request_id: str


class KeySet(Model, frozen=True, kw_only=True):
    keys: list[PublicKey]


class KeyUse(Model, frozen=True, kw_only=True):
    version: int
    secrets: int
    seals: bool


class LabelHour(Model, frozen=True, kw_only=True):
    """How long events that need these labels of a runner have waited in the last hour."""

    required_tags: list[str] | None
    ages_ms: list[int | None]


class LabelQueue(Model, frozen=True, kw_only=True):
    """Events that wait for a runner, of the agents that need the same labels of one."""

    required_tags: list[str]
    events: int
    oldest_age_ms: int | None
    ages_ms: list[int]


class LeaseEvent(Model, frozen=True, kw_only=True):
    event_id: str
    zombie_id: str
    workspace_id: str
    actor: str
    event_type: str
    request_json: Any
    created_at: int
    traceparent: str | None
    files: list[LeaseFile] | None = None


class LeaseFile(Model, frozen=True, kw_only=True):
    name: str
    media_type: str
    size: int
    sha256: str


class LeaseHanded(Model, frozen=True, kw_only=True):
    lease_id: str
    fencing_token: int
    lease_expires_at: int
    ceiling_at: int
    attempt: int
    event: LeaseEvent
    policy: LeasePolicy
    instructions: str
    runtime: Runtime
    workspace: WorkspaceKind
    memory: list[MemoryItem]
    feedback: list[dict[str, Any]]
    checkpoint: dict[str, Any] | None
    traceparent: str


class LeaseList(Model, frozen=True, kw_only=True):
    items: list[FleetLease]
    now: int
    request_id: str


class LeaseMcpServer(Model, frozen=True, kw_only=True):
    """A server that the workspace declares: it has either a `url` or a `command`."""

    name: str
    url: str
    command: str
    headers: dict[str, str]
    env: dict[str, str]
    tools: list[str]
    secrets: dict[str, str]


class LeasePolicy(Model, frozen=True, kw_only=True):
    tools: list[str]
    network_policy: NetworkPolicy
    secrets_map: dict[str, dict[str, Any]]
    secret_hosts: dict[str, list[str]]
    secret_uses: dict[str, list[Use]]
    env: dict[str, str]
    integrations: dict[str, str]
    provider: str | None
    model: str | None
    api_key: str | None
    context: dict[str, Any]
    fallbacks: list[FallbackModel]
    understands: list[str]
    budget_left_nanos: int | None
    gates: dict[str, Any]
    resources: LeaseResources
    image: str | None
    mcp_servers: list[LeaseMcpServer]


class LeaseResources(Model, frozen=True, kw_only=True):
    """What the run may have; what is left out is as its runner has it for runs that ask for nothing."""

    cpu_millis: int | None = None
    memory_mib: int | None = None
    pids: int | None = None
    disk_mib: int | None = None
    wall_s: int | None = None


class LeaseSlack(Model, frozen=True, kw_only=True):
    """Leases that have about the same time left."""

    from_ms: int
    leases: int


class LeasesAnswer(Model, frozen=True, kw_only=True):
    lease: LeaseHanded | None
    leases: list[LeaseHanded]
    retry_after_ms: int
    cancelled_lease_ids: list[str]
    waited_ms: int
    request_id: str


class LentService(Model, frozen=True, kw_only=True):
    service: str
    data: dict[str, Any]
    hosts: list[str]
    request_id: str


class Limits(Model, frozen=True, kw_only=True):
    """Null: without a limit, or all of them."""

    requests_per_second: int | None
    workspaces: int | None
    agents_per_workspace: int | None
    events_per_day: int | None
    tools: list[str] | None
    runtimes: list[str] | None
    credentials: int | None
    api_keys: int | None
    agent_keys: int | None
    proposals: int | None
    drafts: int | None
    queued_messages: int | None
    crons: int | None
    event_days: int | None
    transcript_days: int | None
    file_days: int | None
    delivery_days: int | None


class LlmKey(Model, frozen=True, kw_only=True):
    provider: str | None
    has_key: bool
    request_id: str


class ManifestWarning(Model, frozen=True, kw_only=True):
    """What an agent's author should know though the files are good."""

    file: str
    line: int
    key: str
    message: str


class McpServerItem(Model, frozen=True, kw_only=True):
    name: str
    tools: list[str]
    url: str | None
    command: str | None
    headers: dict[str, str] | None
    env: dict[str, str] | None
    created_at: int
    updated_at: int
    updated_by: str


class McpServerList(Model, frozen=True, kw_only=True):
    items: list[McpServerItem]
    request_id: str


class MemberItem(Model, frozen=True, kw_only=True):
    id: str
    name: str
    subject: str
    issuer: str | None
    role: Role
    platform_admin: bool
    status: MemberStatus
    created_at: int
    changed_at: int | None
    changed_by: str


class MemberPage(Model, frozen=True, kw_only=True):
    items: list[MemberItem]
    total: int
    page: int
    page_size: int
    request_id: str


class MemoryItem(Model, frozen=True, kw_only=True):
    key: str
    content: str
    category: str
    updated_at: int


class MemoryKept(Model, frozen=True, kw_only=True):
    key: str
    updated_at: int
    request_id: str


class MemoryList(Model, frozen=True, kw_only=True):
    items: list[MemoryItem]
    total: int
    request_id: str


class MessageAccepted(Model, frozen=True, kw_only=True):
    event_id: str
    request_id: str
    status: str | None = None


class MessageCount(Model, frozen=True, kw_only=True):
    message: str
    count: int
    seconds: float


class MessageFile(Model, frozen=True, kw_only=True):
    """A file that a message brings: an upload of the sender's, or what a run of another event left."""

    name: str
    upload_id: str | None = None
    event_id: str | None = None
    media_type: str | None = None


class MessageList(Model, frozen=True, kw_only=True):
    node: str
    version: str
    host: str
    worker: int | None
    is_cut: bool
    recorded_for_s: float
    items: list[RecordedMessage]
    request_id: str


class MinuteItem(Model, frozen=True, kw_only=True):
    at: int
    came: int
    done: int
    failed: int
    charged_nanos: int
    longest_wait_ms: int


class Missed(Model, frozen=True, kw_only=True):
    """Firings that nobody made up for."""

    total: int
    since: int
    until: int
    why: str


class ModelList(Model, frozen=True, kw_only=True):
    version: str
    items: list[ModelRow]
    rates: RateBlock
    request_id: str


class ModelPart(Model, frozen=True, kw_only=True):
    """What one model of a run used, and what its tokens cost by its own rates."""

    provider: str
    model: str
    posture: str
    input_tokens: int
    cached_input_tokens: int
    cache_write_tokens: int
    output_tokens: int
    token_cost_nanos: int


class ModelRow(Model, frozen=True, kw_only=True):
    """Rates in nanos of a US dollar for a million tokens."""

    id: str
    provider: str
    context_cap_tokens: int
    input_nanos_per_mtok: int
    cached_input_nanos_per_mtok: int
    output_nanos_per_mtok: int
    cache_write_nanos_per_mtok: int


class NetworkPolicy(Model, frozen=True, kw_only=True):
    allow: list[str]
    rules: list[NetworkRule]


class NetworkRule(Model, frozen=True, kw_only=True):
    """An entry of ``network.allow`` that allows a part of a host; what is empty bounds nothing."""

    host: str
    ports: list[int] | None = None
    methods: list[str] | None = None
    paths: list[str] | None = None


class OneRenewal(Model, frozen=True, kw_only=True):
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    lease_id: str
    fencing_token: int
    run_ms: int | None = None
    cache_write_tokens: int | None = None
    fallbacks: list[FallbackCounts] | None = None


class Period(Model, frozen=True, kw_only=True):
    """One metering row; all amounts are of this row alone."""

    event_id: str
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
    d_cache_write_tokens: int


class Periods(Model, frozen=True, kw_only=True):
    items: list[Period]
    request_id: str


class PinState(Model, frozen=True, kw_only=True):
    zombie_id: str
    config_revision: int
    pin: AgentPin | None
    request_id: str


class PlanRecord(Model, frozen=True, kw_only=True):
    workspace_id: str
    plan_tier: PlanTier
    billing_status: PlanStatus
    plan_sku: str
    subscription_id: str
    grace_expires_at: int | None
    limits: Limits
    events_today: int
    reason: str
    updated_at: int
    request_id: str


class PlatformKeyList(Model, frozen=True, kw_only=True):
    items: list[PlatformKeyView]
    request_id: str


class PlatformKeyView(Model, frozen=True, kw_only=True):
    provider: str
    source_workspace_id: str
    shared: bool


class ProposalApproved(Model, frozen=True, kw_only=True):
    agent_id: str
    proposal_id: str
    status: ProposalStatus
    config_version_id: str | None
    rejection_reason: str | None
    request_id: str
    webhook_urls: dict[str, str] | None = None


class ProposalDraft(Model, frozen=True, kw_only=True):
    """A file that is left out stays as it is; one of the two is needed."""

    title: str
    rationale: str
    source_markdown: str | None = None
    trigger_markdown: str | None = None


class ProposalPage(Model, frozen=True, kw_only=True):
    items: list[ProposalView]
    next_cursor: str | None
    request_id: str


class ProposalRejected(Model, frozen=True, kw_only=True):
    agent_id: str
    proposal_id: str
    status: ProposalStatus
    rejection_reason: str
    request_id: str


class ProposalView(Model, frozen=True, kw_only=True):
    proposal_id: str
    agent_id: str
    title: str
    rationale: str
    status: ProposalStatus
    base_config_version_id: str
    config_version_id: str | None
    rejection_reason: str | None
    diff: str
    created_by: str
    event_id: str | None
    created_at: int
    decided_at: int | None
    approved_at: int | None
    decided_by: str | None


class PublicCatalogue(Model, frozen=True, kw_only=True):
    version: str
    models: list[ModelRow]
    rates: RateBlock
    billing: BillingBlock
    request_id: str


class PublicKey(Model, frozen=True, kw_only=True):
    """One key of RFC 7517, of the kind that the built-in issuer signs with."""

    kty: str
    crv: str
    x: str
    kid: str
    alg: str
    use: str


class PulseAnswer(Model, frozen=True, kw_only=True):
    status: str
    cancelled_lease_ids: list[str]
    request_id: str


class QueueState(Model, frozen=True, kw_only=True):
    depth: int
    oldest_age_ms: int | None
    ready_agents: int
    by_tags: list[TagDepth]
    last_hour: list[LabelHour]
    leases_active: int
    unsatisfiable: list[Unsatisfiable]
    waiting_offers: int
    events_blocked: int
    tenants_exhausted: int
    least_slack_ms: int | None
    slack: list[LeaseSlack]
    request_id: str


class RateBlock(Model, frozen=True, kw_only=True):
    run_nanos_per_sec: int
    event_nanos: int


class Readiness(Model, frozen=True, kw_only=True):
    ready: bool
    database: bool
    checks: dict[str, bool]
    request_id: str


class ReasonItem(Model, frozen=True, kw_only=True):
    kind: WaitKind
    says: str
    advice: str
    until: int | None
    names: list[str]
    event_id: str | None
    gate_id: str | None
    link: str | None


class RecordedMessage(Model, frozen=True, kw_only=True):
    message: str
    age_s: float
    waited_s: float
    took_s: float | None
    has_failed: bool
    contents: str | None


class RefusedPart(Model, frozen=True, kw_only=True):
    field: str
    reason: str


class ReleasedUsage(Model, frozen=True, kw_only=True):
    """Cumulative over the lease, until now."""

    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    run_ms: int | None = None
    cache_write_tokens: int | None = None
    fallbacks: list[FallbackCounts] | None = None


class Removed(Model, frozen=True, kw_only=True):
    member: MemberItem
    sign_ins_ended: int
    keys_ended: int
    keys_handed_over: int
    request_id: str


class RenewalAnswer(Model, frozen=True, kw_only=True):
    lease_expires_at: int
    slice_seq: int
    charged_nanos: int
    balance_nanos: int
    ceiling_at: int
    state: str
    request_id: str


class RenewalResult(Model, frozen=True, kw_only=True):
    """With ``ok`` the fields of a renewal, else the code and status that alone it would have had."""

    lease_id: str | None
    ok: bool
    lease_expires_at: int | None = None
    slice_seq: int | None = None
    charged_nanos: int | None = None
    balance_nanos: int | None = None
    ceiling_at: int | None = None
    state: str | None = None
    error_code: str | None = None
    status: int | None = None


class RenewalResults(Model, frozen=True, kw_only=True):
    results: list[RenewalResult]
    request_id: str


class Renewed(Model, frozen=True, kw_only=True):
    token: str
    expires_at: int
    request_id: str


class Replayed(Model, frozen=True, kw_only=True):
    event_id: str
    resumes_event_id: str
    request_id: str
    status: str | None = None


class ReportAnswer(Model, frozen=True, kw_only=True):
    duplicate: bool
    status: str
    charged_nanos: int
    refused: list[RefusedPart]


class ReportBody(Model, frozen=True, kw_only=True):
    lease_id: str
    event_id: str
    fencing_token: int
    outcome: Outcome
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    response_text: str | None = None
    failure_reason: str | None = None
    evidence: dict[str, Any] | None = None
    telemetry: Telemetry | None = None
    checkpoint: dict[str, Any] | None = None
    memory: list[RunMemory] | None = None
    proposals: list[ProposalDraft] | None = None
    cache_write_tokens: int | None = None
    fallbacks: list[FallbackCounts] | None = None


class ReportResult(Model, frozen=True, kw_only=True):
    """What the report would have been answered, had it come alone."""

    lease_id: str | None
    ok: bool
    status: int
    report: ReportAnswer | None = None
    error_code: str | None = None
    problem: dict[str, Any] | None = None
    retry_after_s: int | None = None


class ReportResults(Model, frozen=True, kw_only=True):
    results: list[ReportResult]
    request_id: str


class RetentionItem(Model, frozen=True, kw_only=True):
    what: KeptClass
    own_days: int | None
    plan_days: int | None
    server_days: int | None
    days: int | None


class RetentionPreview(Model, frozen=True, kw_only=True):
    items: list[DueItem]
    request_id: str


class RetentionView(Model, frozen=True, kw_only=True):
    items: list[RetentionItem]
    slice_days: int | None
    request_id: str


class RunMemory(Model, frozen=True, kw_only=True):
    """An entry as the memory route takes it; what is over a limit is refused by itself."""

    key: str
    content: str | None = None
    category: str | None = None
    delete: bool | None = None


class RunnerEnrolled(Model, frozen=True, kw_only=True):
    runner_id: str
    runner_token: str
    request_id: str


class RunnerEvent(Model, frozen=True, kw_only=True):
    """One line of a runner's history; ``data`` has what belongs to its kind."""

    id: str
    kind: HistoryKind
    at: int
    data: dict[str, Any]


class RunnerHistory(Model, frozen=True, kw_only=True):
    items: list[RunnerEvent]
    next_cursor: str | None
    request_id: str


class RunnerSelf(Model, frozen=True, kw_only=True):
    id: str
    admin_state: AdminState
    host_id: str
    sandbox_tier: str
    labels: list[str]
    offers: list[str]
    slots: int
    scope: ScopeKind
    tenant_id: str | None
    workspace_id: str | None
    last_seen_at: int | None
    request_id: str


class ScheduleItem(Model, frozen=True, kw_only=True):
    schedule_id: str
    zombie_id: str
    zombie_name: str
    schedule: str
    timezone: str
    message: str
    status: str
    next_: list[int] = msgspec.field(name="next")
    last: list[Firing]
    missed: Missed | None
    paused_at: int | None
    paused_by: str | None


class SchedulePage(Model, frozen=True, kw_only=True):
    items: list[ScheduleItem]
    next_cursor: str | None
    request_id: str


class ScheduleRun(Model, frozen=True, kw_only=True):
    event_id: str
    request_id: str
    status: str | None = None


class ScoreItem(Model, frozen=True, kw_only=True):
    event_id: str
    score: float
    outcome: EventStatus
    attempts: int
    denied_gates: int
    failed_checks: int
    charged_nanos: int
    budget_nanos: int | None
    created_at: int


class ScorePage(Model, frozen=True, kw_only=True):
    items: list[ScoreItem]
    next_cursor: str | None
    request_id: str


class ScoringView(Model, frozen=True, kw_only=True):
    context_tokens: int
    request_id: str


class SeenNode(Model, frozen=True, kw_only=True):
    """A server of this database, as another one knows it."""

    node: str
    host: str
    version: str
    started_at: int
    heard_ago_s: float
    is_silent: bool


class SessionItem(Model, frozen=True, kw_only=True):
    id: str
    member_id: str
    kind: SignInKind
    name: str
    created_at: int
    last_used_at: int
    expires_at: int
    current: bool


class SessionList(Model, frozen=True, kw_only=True):
    items: list[SessionItem]
    total: int
    request_id: str


class SessionMade(Model, frozen=True, kw_only=True):
    session_id: str
    login_url: str
    expires_at_ms: int
    request_id: str


class SessionView(Model, frozen=True, kw_only=True):
    session_id: str
    status: SessionState
    cli_public_key: str | None
    token_name: str | None
    expires_at_ms: int
    request_id: str
    token: str | None = None


class SessionsEnded(Model, frozen=True, kw_only=True):
    ended: int
    request_id: str


class SettingItem(Model, frozen=True, kw_only=True):
    name: str
    variable: str
    value: str
    source: SettingItemSource
    says: str


class SettingList(Model, frozen=True, kw_only=True):
    version: str
    items: list[SettingItem]
    request_id: str


class ShadowItem(Model, frozen=True, kw_only=True):
    original: ShadowSide | None
    shadow: ShadowSide
    same_answer: bool
    would_have_asked: list[str]


class ShadowReport(Model, frozen=True, kw_only=True):
    job: JobView
    spent_nanos: int
    items: list[ShadowItem]
    next_cursor: str | None
    request_id: str


class ShadowSide(Model, frozen=True, kw_only=True):
    """What came of one event, under one version."""

    event_id: str
    agent_version: int | None
    status: EventStatus
    failure_label: str | None
    response_text: str | None
    charged_nanos: int
    wall_ms: int
    tokens: int
    tools: dict[str, int]


class SignInItem(Model, frozen=True, kw_only=True):
    id: str
    kind: SignInKind
    name: str
    created_at: int
    last_used_at: int
    expires_at: int
    current: bool


class SignInList(Model, frozen=True, kw_only=True):
    items: list[SignInItem]
    total: int
    request_id: str


class SignInMade(Model, frozen=True, kw_only=True):
    id: str
    refresh_token: str
    expires_at: int
    request_id: str


class SnapshotView(Model, frozen=True, kw_only=True):
    sha256: str
    size: int
    event_id: str
    created_at: int


class SpanItem(Model, frozen=True, kw_only=True):
    span_id: str
    parent_id: str | None
    name: str
    began_at: int
    ended_at: int
    cost_nanos: int
    fault: str | None
    attributes: dict[str, Any]
    events: list[SpanMoment]


class SpanMoment(Model, frozen=True, kw_only=True):
    """A renewal of a lease, or that it was taken back."""

    name: str
    at: int
    attributes: dict[str, Any]


class Spend(Model, frozen=True, kw_only=True):
    day_nanos: int
    month_nanos: int


class SupervisorState(Model, frozen=True, kw_only=True):
    tree: TreeNode
    request_id: str


class TagDepth(Model, frozen=True, kw_only=True):
    required_tags: list[str]
    agents: int
    events: int
    oldest_age_ms: int | None


class Telemetry(Model, frozen=True, kw_only=True):
    """Fields beside these are passed over."""

    wall_ms: int | None = None
    time_to_first_token_ms: int | None = None


class TenantProviderView(Model, frozen=True, kw_only=True):
    mode: ProviderMode
    provider: str | None
    model: str | None
    context_cap_tokens: int | None
    credential_ref: str | None
    request_id: str


class Throughput(Model, frozen=True, kw_only=True):
    minutes: list[MinuteItem]
    counted_since: int
    request_id: str


class TranscriptItem(Model, frozen=True, kw_only=True):
    attempt: int
    number: int
    kind: str
    at_ms: int
    data: Any
    bytes_: int = msgspec.field(name="bytes")
    truncated: bool


class TranscriptPage(Model, frozen=True, kw_only=True):
    items: list[TranscriptItem]
    attempts: list[AttemptItem]
    next_cursor: str | None
    request_id: str


class TreeNode(Model, frozen=True, kw_only=True):
    """One node of the live supervision tree."""

    name: str
    role: str
    state: str
    restart: str
    strategy: str | None
    restarts: int
    live: int
    mailbox_depth: int
    mailbox_age_s: float
    children: list[TreeNode] | None = None


class Unsatisfiable(Model, frozen=True, kw_only=True):
    required_tags: list[str]
    events: int
    ready_agents: int


class UploadView(Model, frozen=True, kw_only=True):
    upload_id: str
    size: int
    received: int
    complete: bool
    part_bytes: int
    chunk_bytes: int
    request_id: str


class Use(Model, frozen=True, kw_only=True):
    """One place where the proxy of a run swaps the credential's placeholder for the secret."""

    in_: Place = msgspec.field(name="in")
    name: str | None = None


class VaultView(Model, frozen=True, kw_only=True):
    keys: list[KeyUse]
    stale: int
    source: str
    request_id: str


class Verified(Model, frozen=True, kw_only=True):
    """What would have become of the delivery; nothing of it was kept."""

    ok: bool
    source: str | None
    signature_ok: bool
    outcome: str
    error_code: str | None
    detail: str
    event_type: str | None
    hints: list[str]
    request_id: str


class VersionActivated(Model, frozen=True, kw_only=True):
    workspace_id: str
    agent_id: str
    config_version_id: str
    status: ConfigStatus
    request_id: str
    webhook_urls: dict[str, str] | None = None


class VersionCompiled(Model, frozen=True, kw_only=True):
    agent_id: str
    config_version_id: str
    version: int
    status: ConfigStatus
    errors: list[Finding]
    warnings: list[ManifestWarning]
    request_id: str


class VersionItem(Model, frozen=True, kw_only=True):
    agent_id: str
    config_version_id: str
    version: int
    status: ConfigStatus
    errors: list[Finding]
    created_at: int


class VersionPage(Model, frozen=True, kw_only=True):
    items: list[VersionItem]
    next_cursor: str | None
    request_id: str


class VersionState(Model, frozen=True, kw_only=True):
    agent_id: str
    config_version_id: str
    version: int
    status: ConfigStatus
    request_id: str


class VersionText(Model, frozen=True, kw_only=True):
    """One version whole, and how it differs from another."""

    agent_id: str
    config_version_id: str
    version: int
    status: ConfigStatus
    errors: list[Finding]
    created_at: int
    author: str
    source_markdown: str
    trigger_markdown: str
    against_config_version_id: str | None
    diff: str
    request_id: str


class WebhookItem(Model, frozen=True, kw_only=True):
    """One address of an agent, with what was refused there; the counts are the agent's."""

    zombie_id: str
    zombie_name: str
    status: ZombieStatus
    source: str
    url: str
    signed: bool
    secret_ref: str | None
    header: str | None
    events: list[str] | None
    refused_in_day: int
    refused_in_week: int
    unkept_in_week: int
    last_refused_at: int | None
    last_code: str | None
    last_reason: str | None
    last_advice: str


class WebhookPage(Model, frozen=True, kw_only=True):
    items: list[WebhookItem]
    next_cursor: str | None
    request_id: str


class Whoami(Model, frozen=True, kw_only=True):
    kind: CallerKind
    id: str
    name: str
    role: Role
    tenant_id: str
    plan_tier: PlanTier
    platform_admin: bool
    workspace_id: str | None
    member_id: str | None
    expires_at: int | None
    request_id: str


class WholeEvent(Model, frozen=True, kw_only=True):
    event_id: str
    zombie_id: str
    zombie_name: str
    workspace_id: str
    actor: str
    event_type: str
    status: EventStatus
    ended: bool
    request_json: Any
    response_text: str | None
    evidence: Any
    tokens: int
    wall_ms: int
    charged_nanos: int
    attempts: int
    failure_label: str | None
    error_code: str | None
    source_event_id: str | None
    resumes_event_id: str | None
    created_at: int
    updated_at: int
    completed_at: int | None
    truncated: bool
    request_bytes: int
    response_bytes: int | None
    evidence_bytes: int | None
    retry_at: int | None
    agent_version: int | None
    asked_version: int | None
    shadow_job_id: str | None
    canary_id: str | None
    canary_side: CanarySide | None
    input_tokens: int
    cached_input_tokens: int
    cache_write_tokens: int
    output_tokens: int
    first_leased_at: int | None
    parked_ms: int
    traceparent: str | None
    trace_id: str
    leases: list[EventLease]
    gates: list[GateView]
    links: EventLinks
    request_id: str


class WorkerHealth(Model, frozen=True, kw_only=True):
    """One of the processes that serve together."""

    worker: int
    state: str
    up: bool
    restarts: int


class WorkspaceItem(Model, frozen=True, kw_only=True):
    id: str
    workspace_id: str
    name: str
    plan_tier: PlanTier
    paused: bool
    created_at: int


class WorkspaceList(Model, frozen=True, kw_only=True):
    items: list[WorkspaceItem]
    total: int
    request_id: str


class WorkspaceMade(Model, frozen=True, kw_only=True):
    workspace_id: str
    name: str
    request_id: str


class WorkspaceQueue(Model, frozen=True, kw_only=True):
    labels: list[LabelQueue]
    agents: list[AgentQueue]
    leases: int
    least_slack_ms: int | None
    slack: list[LeaseSlack]
    request_id: str


class WorkspaceReset(Model, frozen=True, kw_only=True):
    reset: bool
    request_id: str


class WorkspaceStart(Model, frozen=True, kw_only=True):
    snapshot: SnapshotView | None
    request_id: str


class ZombieChanged(Model, frozen=True, kw_only=True):
    zombie_id: str
    status: ZombieStatus
    name: str
    config_version_id: str
    config_revision: int
    request_id: str
    webhook_urls: dict[str, str] | None = None
    warnings: list[ManifestWarning] | None = None
    pin: AgentPin | None = None


class ZombieInstalled(Model, frozen=True, kw_only=True):
    zombie_id: str
    name: str
    status: ZombieStatus
    config_version_id: str
    webhook_urls: dict[str, str]
    approval_token: str
    warnings: list[ManifestWarning]
    request_id: str


class ZombieItem(Model, frozen=True, kw_only=True):
    id: str
    zombie_id: str
    name: str
    status: ZombieStatus
    required_tags: list[str]
    triggers: list[dict[str, Any]]
    created_at: int
    updated_at: int
    last_event_at: int | None


class ZombiePage(Model, frozen=True, kw_only=True):
    items: list[ZombieItem]
    total: int
    cursor: str | None
    next_cursor: str | None
    request_id: str


class ZombieRecord(Model, frozen=True, kw_only=True):
    id: str
    zombie_id: str
    name: str
    status: ZombieStatus
    required_tags: list[str]
    triggers: list[dict[str, Any]]
    created_at: int
    updated_at: int
    last_event_at: int | None
    workspace_id: str
    source_markdown: str
    trigger_markdown: str
    config_version_id: str
    config_revision: int
    budget: BudgetItem | None
    spend: Spend
    waiting_for: WaitingFor | None
    unmet_needs: list[str]
    webhook_urls: dict[str, str]
    pin: AgentPin | None
    on_trial: AgentTrial | None
    request_id: str
