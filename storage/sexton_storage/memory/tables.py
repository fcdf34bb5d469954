"""The rows, and the few steps that several writes share."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar, assert_never
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.decisions.rows import DayCount, DaySpend, Decided, DedupKey, EventRow, Head, Row, Spent
from sexton_storage.documents import from_json, to_json
from sexton_storage.errors import RowRefused
from sexton_storage.memory.audited_rows import AuditedRows, AuditLogs
from sexton_storage.periods import day_of, month_of
from sexton_storage.records.agent_keys import AgentKey
from sexton_storage.records.api_keys import ApiKey
from sexton_storage.records.applied import Applied
from sexton_storage.records.artefacts import Artefact
from sexton_storage.records.auth_sessions import AuthSession
from sexton_storage.records.blobs import Blob
from sexton_storage.records.charges import Charge
from sexton_storage.records.chats import ChatInstall, ChatNotice, ChatPost
from sexton_storage.records.configs import ConfigVersion
from sexton_storage.records.credentials import Credential
from sexton_storage.records.crons import CronEntry, ScheduleNote
from sexton_storage.records.deliveries import RefusalCount, WebhookDelivery
from sexton_storage.records.erasures import Erasure
from sexton_storage.records.event_files import EventFile
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.failures import FAILED, FailureGroup
from sexton_storage.records.follow_ups import FollowUp
from sexton_storage.records.frames import Frame, NewFrame
from sexton_storage.records.gates import Gate
from sexton_storage.records.grants import Grant
from sexton_storage.records.improvement import Proposal, Score
from sexton_storage.records.jobs import Job
from sexton_storage.records.kept_workspaces import Snapshot, Start
from sexton_storage.records.key_uses import KeyUse
from sexton_storage.records.leases import Lease
from sexton_storage.records.mcp_servers import McpServer
from sexton_storage.records.memories import Memory
from sexton_storage.records.metering import MeteringPeriod
from sexton_storage.records.nodes import NodeQuestion, NodeRecord
from sexton_storage.records.plans import Plan
from sexton_storage.records.providers import PlatformKey, TenantProvider
from sexton_storage.records.retention import RetentionPolicy
from sexton_storage.records.runners import EnrolmentToken, Runner, RunnerChange
from sexton_storage.records.sign_ins import BrowserSession, SignInAttempt, SignInLink
from sexton_storage.records.tenants import Tenant
from sexton_storage.records.transcripts import Transcript, TranscriptEntry
from sexton_storage.records.users import User
from sexton_storage.records.workspaces import Workspace
from sexton_storage.records.zombies import Zombie

A = TypeVar("A")
AUDITED: Final = (
    "agent_keys",
    "api_keys",
    "artefacts",
    "auth_sessions",
    "browser_sessions",
    "chat_installs",
    "configs",
    "context_tokens",
    "credentials",
    "deliveries",
    "enrolments",
    "erasures",
    "failure_groups",
    "follow_ups",
    "grants",
    "jobs",
    "mcp_servers",
    "plans",
    "platform_keys",
    "proposals",
    "retention_policies",
    "runners",
    "schedule_notes",
    "sign_in_links",
    "tenant_providers",
    "users",
    "workspace_resets",
    "workspaces",
    "zombies",
)
"""What takes a line of the audit log along when it changes, as credits do; the migration names the same."""
SHOWN: Final = frozenset({"deliveries", "failure_groups", "jobs", "schedule_notes"})
"""What open pages hear of when a round changes it; of what people change their line tells."""
CHANGES_KEPT: Final = 4_096


@dataclass(slots=True)
class Tables:
    """All rows of one installation. ``now`` is the database's clock, in ms."""

    now: Callable[[], int]
    audit: AuditLogs = field(init=False)
    tenants: dict[UUID, Tenant] = field(default_factory=dict)
    credits: list[tuple[UUID, int, str, str]] = field(default_factory=list)
    credit_ids: set[UUID] = field(default_factory=set)
    plans: AuditedRows[UUID, Plan] = field(init=False)
    charges: dict[UUID, Charge] = field(default_factory=dict)
    event_counts: dict[tuple[UUID, int], int] = field(default_factory=dict)
    """By tenant and UTC day."""
    tenant_providers: AuditedRows[UUID, TenantProvider] = field(init=False)
    platform_keys: AuditedRows[tuple[UUID, str], PlatformKey] = field(init=False)
    workspaces: AuditedRows[UUID, Workspace] = field(init=False)
    users: AuditedRows[UUID, User] = field(init=False)
    api_keys: AuditedRows[UUID, ApiKey] = field(init=False)
    credentials: AuditedRows[tuple[UUID, str], Credential] = field(init=False)
    zombies: AuditedRows[UUID, Zombie] = field(init=False)
    configs: AuditedRows[UUID, ConfigVersion] = field(init=False)
    heads: dict[UUID, Head] = field(default_factory=dict)
    events: dict[UUID, Event] = field(default_factory=dict)
    arrivals: dict[UUID, int] = field(default_factory=dict)
    """Event to the number of its arrival; kept when the event is purged, so that none is given twice."""
    waiting: dict[UUID, set[UUID]] = field(default_factory=dict)
    """Agent to its received events; kept by ``put_event``."""
    waits_at: dict[UUID, UUID] = field(default_factory=dict)
    """Event to the gate it waits at."""
    lease_counts: dict[UUID, int] = field(default_factory=dict)
    """Event to the number of leases it ever had."""
    leases: dict[UUID, Lease] = field(default_factory=dict)
    gates: dict[UUID, Gate] = field(default_factory=dict)
    frames: dict[UUID, list[Frame]] = field(default_factory=dict)
    frame_commits: dict[tuple[UUID, int], int] = field(default_factory=dict)
    """By agent and number: in which order they were written; kept when they are pruned."""
    frames_written: int = 0
    """How many there were ever, those of deleted agents too, and changes of other rows that pages show."""
    page_changes: deque[tuple[UUID, int]] = field(default_factory=lambda: deque(maxlen=CHANGES_KEPT))
    """For whom, and at which place among the frames that were written."""
    metering: dict[UUID, dict[tuple[int, int], MeteringPeriod]] = field(default_factory=dict)
    """By event, then by attempt and slice."""
    metered_tenants: dict[UUID, UUID] = field(default_factory=dict)
    """Event to tenant, kept when the event is purged."""
    spend: dict[tuple[UUID, int], int] = field(default_factory=dict)
    dedup: dict[tuple[UUID, bytes], DedupKey] = field(default_factory=dict)
    """By agent and key."""
    crons: dict[tuple[UUID, str, str], CronEntry] = field(default_factory=dict)
    """By agent, schedule and time zone."""
    schedule_notes: AuditedRows[tuple[UUID, str, str], ScheduleNote] = field(init=False)
    follow_ups: AuditedRows[UUID, FollowUp] = field(init=False)
    jobs: AuditedRows[UUID, Job] = field(init=False)
    unsorted_failures: dict[UUID, None] = field(default_factory=dict)
    """Events that failed and are in no group yet; kept by ``put_event``."""
    failure_of: dict[UUID, UUID] = field(default_factory=dict)
    """Event to the group of its failure."""
    failure_groups: AuditedRows[UUID, FailureGroup] = field(init=False)
    failure_hours: dict[tuple[UUID, int], int] = field(default_factory=dict)
    """By group and hour since 1970."""
    deliveries: AuditedRows[UUID, WebhookDelivery] = field(init=False)
    delivery_bodies: dict[UUID, bytes] = field(default_factory=dict)
    """By delivery."""
    refusals: dict[tuple[UUID, int], RefusalCount] = field(default_factory=dict)
    """Refused webhooks by agent and hour since 1970."""
    proposals: AuditedRows[UUID, Proposal] = field(init=False)
    scores: dict[UUID, Score] = field(default_factory=dict)
    """By event."""
    context_tokens: AuditedRows[UUID, int] = field(init=False)
    """By workspace."""
    retention_policies: AuditedRows[UUID, RetentionPolicy] = field(init=False)
    """By workspace."""
    runners: AuditedRows[UUID, Runner] = field(init=False)
    runner_changes: list[RunnerChange] = field(default_factory=list)
    enrolments: AuditedRows[bytes, EnrolmentToken] = field(init=False)
    auth_sessions: AuditedRows[UUID, AuthSession] = field(init=False)
    sign_in_links: AuditedRows[bytes, SignInLink] = field(init=False)
    browser_sessions: AuditedRows[UUID, BrowserSession] = field(init=False)
    sign_in_attempts: dict[bytes, SignInAttempt] = field(default_factory=dict)
    key_uses: dict[tuple[UUID, bytes], KeyUse] = field(default_factory=dict)
    chat_installs: AuditedRows[UUID, ChatInstall] = field(init=False)
    """By workspace."""
    chat_posts: dict[UUID, ChatPost] = field(default_factory=dict)
    chat_notices: dict[UUID, ChatNotice] = field(default_factory=dict)
    """By gate."""
    agent_keys: AuditedRows[UUID, AgentKey] = field(init=False)
    grants: AuditedRows[UUID, Grant] = field(init=False)
    mcp_servers: AuditedRows[tuple[UUID, str], McpServer] = field(init=False)
    """By workspace and name."""
    applied: dict[UUID, Applied] = field(default_factory=dict)
    """By workspace."""
    memories: dict[UUID, dict[str, Memory]] = field(default_factory=dict)
    """By agent, then by key."""
    artefacts: AuditedRows[UUID, Artefact] = field(init=False)
    erasures: AuditedRows[UUID, Erasure] = field(init=False)
    erasure_events: dict[UUID, dict[UUID, bool]] = field(default_factory=dict)
    """By erasure: the events that it has come to; True: all of the event goes."""
    erasure_changes: int = 0
    event_files: dict[tuple[UUID, int], EventFile] = field(default_factory=dict)
    """By event and number."""
    blobs: dict[UUID, Blob] = field(default_factory=dict)
    blob_chunks: dict[UUID, list[bytes]] = field(default_factory=dict)
    """By blob, in their order."""
    workspace_snapshots: dict[UUID, Snapshot] = field(default_factory=dict)
    """By lease."""
    workspace_starts: dict[tuple[UUID, UUID], Start] = field(default_factory=dict)
    """By agent and event."""
    workspace_resets: AuditedRows[UUID, int] = field(init=False)
    """Agent to the fencing token up to which snapshots count no more."""
    transcripts: dict[tuple[UUID, UUID, int], Transcript] = field(default_factory=dict)
    """By agent, event and attempt."""
    transcript_entries: dict[tuple[UUID, UUID, int], dict[int, TranscriptEntry]] = field(default_factory=dict)
    """By the same, then by number."""
    nodes: dict[UUID, NodeRecord] = field(default_factory=dict)
    node_questions: dict[UUID, NodeQuestion] = field(default_factory=dict)
    node_answers: dict[UUID, bytes | None] = field(default_factory=dict)
    """By question, of those that were taken; None while there is no answer."""
    settings: dict[str, bytes] = field(default_factory=dict)
    started: bool = False
    new_heads: dict[UUID, int] = field(default_factory=dict)
    """Agents with frames that listeners have not heard of, with their newest number."""

    def __post_init__(self) -> None:
        self.audit = AuditLogs(self.now, self.note_change)
        for name in AUDITED:
            setattr(self, name, AuditedRows(self.audit, self._shown if name in SHOWN else None))

    def note_change(self, scope_id: UUID) -> None:
        """Let open pages hear of a change that leaves no frame."""
        self.frames_written += 1
        self.page_changes.append((scope_id, self.frames_written))

    def _shown(self, row: Job | FailureGroup | WebhookDelivery | ScheduleNote) -> None:
        if not isinstance(row, ScheduleNote):
            self.note_change(row.workspace_id)
        elif (agent := self.zombies.get(row.zombie_id)) is not None:
            self.note_change(agent.workspace_id)

    def append_frames(self, frames: Iterable[NewFrame]) -> None:
        """Number them in the order given; those of an agent that is gone are dropped."""
        for new in frames:
            head = self.heads.get(new.zombie_id)
            if head is None:
                continue
            seq = head.frame_seq + 1
            self.heads[new.zombie_id] = replace(head, frame_seq=seq)
            text = to_json(new.data)
            kept, size = from_json(text), len(text.encode())
            frame = Frame(new.zombie_id, seq, new.event_id, new.kind, new.at_ms, kept, size)
            self.frames.setdefault(new.zombie_id, []).append(frame)
            self.frames_written += 1
            self.frame_commits[new.zombie_id, seq] = self.frames_written
            self.new_heads[new.zombie_id] = seq

    def spent(self, zombie_id: UUID, now: int) -> Spent:
        """What the agent was charged in the UTC day and in the UTC month of ``now``."""
        day = day_of(now)
        month = month_of(day)
        in_month = sum(self.spend.get((zombie_id, d), 0) for d in range(month.first_day, month.end_day))
        return Spent(self.spend.get((zombie_id, day), 0), in_month)

    def event_row(self, event_id: UUID) -> EventRow | None:
        event = self.events.get(event_id)
        if event is None:
            return None
        return EventRow(event, self.waits_at.get(event_id), self.lease_counts.get(event_id, 0))

    def put(self, decided: Decided[A]) -> A:
        """Put the rows down, append the frames, and give the answer."""
        for row in decided.rows:
            self._put_row(row)
        self.append_frames(decided.frames)
        return decided.answer

    def _put_row(self, row: Row) -> None:
        match row:
            case EventRow():
                self.put_event_row(row)
            case MeteringPeriod():
                self._add_metering(row)
            case DaySpend():
                self.spend[row.zombie_id, row.day] = row.nanos
            case DayCount():
                self.event_counts[row.tenant_id, row.day] = row.events
            case DedupKey():
                self.dedup[row.zombie_id, row.key] = row
            case CronEntry():
                self.crons[row.zombie_id, row.schedule, row.timezone] = row
            case Head():
                self.heads[row.zombie_id] = row
            case Score():
                self.scores[row.event_id] = row
            case Lease():
                self.leases[row.id] = row
            case Gate():
                self.gates[row.id] = row
            case Tenant():
                self.tenants[row.id] = row
            case Zombie():
                self.zombies[row.id] = row
            case FollowUp():
                self.follow_ups[row.id] = row
            case Charge():
                self.charges[row.id] = row
            case Proposal():
                self.proposals[row.id] = row
            case _:
                assert_never(row)

    def _add_metering(self, period: MeteringPeriod) -> None:
        rows = self.metering.setdefault(period.event_id, {})
        key = (period.attempt, period.slice_seq)
        if key in rows:
            raise RowRefused(f"slice {key} of event {period.event_id} is there already")
        rows[key] = period
        self.metered_tenants[period.event_id] = self.events[period.event_id].tenant_id

    def metered(self, event_id: UUID) -> int:
        """The sum of the event's metering rows."""
        return sum(row.charged_nanos for row in self.metering.get(event_id, {}).values())

    def put_event(self, event: Event) -> None:
        """Save the event as given, and leave the rest of its row."""
        row = self.event_row(event.id) or EventRow(event)
        self.put_event_row(replace(row, event=event))

    def put_event_row(self, row: EventRow) -> None:
        """Save the row as given; a new one takes the next number of arrival."""
        event = row.event
        self.events[event.id] = event
        self.arrivals.setdefault(event.id, len(self.arrivals) + 1)
        self.lease_counts[event.id] = row.lease_count
        if row.waits_at is None:
            self.waits_at.pop(event.id, None)
        else:
            self.waits_at[event.id] = row.waits_at
        if event.status in FAILED and event.shadow_job is None and event.id not in self.failure_of:
            self.unsorted_failures[event.id] = None
        waiting = self.waiting.setdefault(event.zombie_id, set())
        if event.status is EventStatus.RECEIVED:
            waiting.add(event.id)
        else:
            waiting.discard(event.id)

    def live_lease(self, zombie_id: UUID) -> Lease | None:
        """The lease that the agent's head names."""
        head = self.heads.get(zombie_id)
        return None if head is None or head.live_lease_id is None else self.leases[head.live_lease_id]

    def received(self, zombie_id: UUID) -> Sequence[Event]:
        """The agent's events that wait to be leased, in the order in which they came."""
        ids = sorted(self.waiting.get(zombie_id, ()), key=self.arrivals.__getitem__)
        return [self.events[i] for i in ids]
