"""Whether an agent may be woken, what an event becomes, and how its status changes."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import msgspec

from sexton_actors.manifest.resources import needs_of
from sexton_actors.refusal import Refusal
from sexton_actors.zombie.compiled_version import Compiled
from sexton_storage.records.audit import AuditEntry
from sexton_storage.records.chats import ChatNotice
from sexton_storage.records.configs import ConfigVersion
from sexton_storage.records.crons import Firing
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.frame_kinds import FrameKind
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.records.improvement import Proposal
from sexton_storage.records.sources import Source
from sexton_storage.records.zombies import Zombie, ZombieStatus
from sexton_storage.writes import AppendEvent

MESSAGE_MAX_BYTES = 8192

_ASKABLE = frozenset({ZombieStatus.ACTIVE, ZombieStatus.STOPPED, ZombieStatus.KILLED})


class Change(msgspec.Struct, frozen=True):
    """The agent as it will be, with the frame that says so."""

    zombie: Zombie
    frames: tuple[NewFrame, ...]
    config: ConfigVersion | None = None
    """The agent's new active version, if it has one."""
    proposal: Proposal | None = None
    """The proposal that this applies, as decided."""
    notice: ChatNotice | None = None
    """What the workspace's chat is told of it, once."""


class Unchanged(msgspec.Struct, frozen=True):
    """It is so already, and that is no conflict."""


class WakeUp(msgspec.Struct, frozen=True):
    """Where an event comes from and what it says."""

    actor: str
    event_type: str
    request: Mapping[str, Any]
    text: str | None = None
    """How ``request`` is written, where somebody else wrote it: it is kept so, to the last digit."""
    dedup_key: bytes | None = None
    body_key: bytes | None = None
    """The body's key, for a delivery whose ``dedup_key`` is an id that could be dropped."""
    firing: Firing | None = None
    follow_up_id: UUID | None = None
    source_event_id: str | None = None
    resumes_event_id: UUID | None = None
    audit: AuditEntry | None = None
    """What the audit log tells of whoever asked for it."""
    replayed_by: str = ""
    """Who asked for it, where it is the replay of an event."""
    traceparent: str | None = None
    asked_version: int | None = None
    """The number of the agent's version that it is to run under; None: the one that is active then."""
    trial_id: UUID | None = None
    """The trial of a version that it counts in."""
    repeats: Event | None = None
    """The event that it is the replay of."""
    source: Source | None = None
    """What it was made from, as it was read."""
    shadow_job: UUID | None = None
    """The bulk job that has it run without effects."""
    event_id: UUID | None = None
    """What the event is to be called, where something was kept for it before; None: it gets a new id."""


def change_status(zombie: Zombie, wanted: str, by: str, now: int) -> Change | Unchanged | Refusal:
    """What a person asks for: active, stopped or killed.

    active from paused or stopped (and active again changes nothing); stopped from active or paused; killed
    from any but killed. ``paused`` is the platform's own and cannot be asked for.
    """
    if wanted not in _ASKABLE:
        return Refusal("UZ-REQ-001", f"/status: must be active, stopped or killed, not {wanted!r}.")
    status = ZombieStatus(wanted)
    current = zombie.status
    if current is ZombieStatus.KILLED or (current is status and status is ZombieStatus.STOPPED):
        return Refusal("UZ-ZMB-010", f"The agent is {current} already.", {"current_state": str(current)})
    if current is status:
        return Unchanged()
    return _changed(zombie, status, by, now)


def rotate_token(zombie: Zombie, token_hash: bytes, now: int) -> Change | Unchanged | Refusal:
    """The old approval token opens nothing from then on. A killed agent has nothing left to approve.

    Only operators and above rotate it: whatever was handed to somebody below is out with the old one.
    """
    if zombie.status is ZombieStatus.KILLED:
        return Refusal("UZ-ZMB-010", "The agent is killed already.", {"current_state": "killed"})
    if zombie.approval_token_hash == token_hash:
        return Unchanged()
    changed = msgspec.structs.replace(
        zombie,
        approval_token_hash=token_hash,
        decides_by_token=True,
        version=zombie.version + 1,
        updated_at=now,
    )
    return Change(changed, ())


def pause(zombie: Zombie, reason: str, now: int) -> Change | Unchanged:
    """The platform's own stop; only an active agent can be paused."""
    if zombie.status is not ZombieStatus.ACTIVE:
        return Unchanged()
    return _changed(zombie, ZombieStatus.PAUSED, f"system:{reason}", now)


def reconfigure(
    zombie: Zombie, compiled: Compiled, secret_hashes: Mapping[str, str], by: str, now: int
) -> Change:
    """Another version becomes active; what runs goes on as it began, the next lease is given the new one."""
    config, manifest = compiled.config, compiled.manifest
    data = {"config_version_id": str(config.id), "config_revision": config.revision, "by": by}
    changed = msgspec.structs.replace(
        zombie,
        name=manifest.name,
        version=zombie.version + 1,
        config_version_id=config.id,
        config_revision=config.revision,
        compiled=config.compiled,
        required_tags=needs_of(manifest),
        url_secret_hashes=secret_hashes,
        allows_unsandboxed=manifest.allow_unsandboxed,
        updated_at=now,
    )
    return Change(changed, (NewFrame(zombie.id, None, FrameKind.CONFIG_UPDATED, now, data),), config)


def may_be_configured(zombie: Zombie) -> Refusal | None:
    """None unless it was killed: that ends everything."""
    if zombie.status is not ZombieStatus.KILLED:
        return None
    return Refusal("UZ-ZMB-010", "The agent is killed.", {"current_state": str(zombie.status)})


def kill(zombie: Zombie, by: str, now: int) -> Change | Unchanged:
    """Before it is deleted, whatever its status."""
    if zombie.status is ZombieStatus.KILLED:
        return Unchanged()
    return _changed(zombie, ZombieStatus.KILLED, by, now)


def _changed(zombie: Zombie, status: ZombieStatus, by: str, now: int) -> Change:
    data = {"status": str(status), "previous": str(zombie.status), "by": by}
    changed = msgspec.structs.replace(zombie, status=status, version=zombie.version + 1, updated_at=now)
    return Change(changed, (NewFrame(zombie.id, None, FrameKind.STATUS_CHANGED, now, data),))


def may_be_delivered_to(zombie: Zombie, *, workspace_paused: bool) -> Refusal | None:
    """None when a genuine webhook may wake the agent."""
    if zombie.status is not ZombieStatus.ACTIVE:
        return Refusal("UZ-WH-003", f"The agent is {zombie.status}.", {"current_state": str(zombie.status)})
    return _workspace_paused() if workspace_paused else None


def may_be_messaged(zombie: Zombie, message: str, *, workspace_paused: bool) -> Refusal | None:
    """None when the message may wake the agent."""
    if not 1 <= len(message.encode("utf-8", "surrogatepass")) <= MESSAGE_MAX_BYTES:
        return Refusal("UZ-REQ-001", f"/message: between 1 and {MESSAGE_MAX_BYTES} bytes.")
    return may_be_asked(zombie, workspace_paused=workspace_paused)


def may_be_asked(zombie: Zombie, *, workspace_paused: bool) -> Refusal | None:
    """None when a person may have the agent work."""
    if zombie.status is not ZombieStatus.ACTIVE:
        return Refusal("UZ-ZMB-012", f"The agent is {zombie.status}.", {"current_state": str(zombie.status)})
    return _workspace_paused() if workspace_paused else None


def may_be_replayed(zombie: Zombie, event: Event, *, workspace_paused: bool) -> Refusal | None:
    """None when the event may be worked on once more: it is over, and its agent takes work."""
    if event.completed_at is None:
        detail = f"The event is {event.status}; only one that is over can be replayed."
        return Refusal("UZ-REQ-009", detail, {"current_state": str(event.status)})
    if zombie.status is not ZombieStatus.ACTIVE:
        return Refusal("UZ-ZMB-012", f"The agent is {zombie.status}.", {"current_state": str(zombie.status)})
    return _workspace_paused() if workspace_paused else None


def _workspace_paused() -> Refusal:
    return Refusal("UZ-WORKSPACE-002", "The workspace is paused; nothing new is started in it.")


def append(
    zombie: Zombie, waking: WakeUp, event_id: UUID, budgets: tuple[int | None, int | None], now: int
) -> AppendEvent:
    """The event as it is kept, ready to be claimed; ``budgets`` by day and month, in nanos."""
    event = Event(
        id=event_id,
        zombie_id=zombie.id,
        workspace_id=zombie.workspace_id,
        tenant_id=zombie.tenant_id,
        actor=waking.actor,
        event_type=waking.event_type,
        status=EventStatus.RECEIVED,
        request_json=msgspec.json.encode(waking.request).decode() if waking.text is None else waking.text,
        created_at=now,
        updated_at=now,
        source_event_id=waking.source_event_id,
        resumes_event_id=waking.resumes_event_id,
        traceparent=waking.traceparent,
        asked_version=waking.asked_version,
        trial_id=waking.trial_id,
        shadow_job=waking.shadow_job,
    )
    data: dict[str, Any] = {
        "actor": event.actor,
        "event_type": event.event_type,
        "source_event_id": event.source_event_id,
    }
    if waking.resumes_event_id is not None:
        data |= {"resumes_event_id": str(waking.resumes_event_id)}
    if waking.replayed_by:
        data |= {"replayed_by": waking.replayed_by}
    if waking.shadow_job is not None:
        data |= {"shadow_job_id": str(waking.shadow_job)}
    if waking.asked_version is not None:
        data |= {"agent_version": waking.asked_version}
    return AppendEvent(
        event=event,
        dedup_key=waking.dedup_key,
        body_key=waking.body_key,
        firing=waking.firing,
        follow_up_id=waking.follow_up_id,
        audit=waking.audit,
        source=waking.source,
        budget_daily_nanos=budgets[0],
        budget_monthly_nanos=budgets[1],
        frames=(NewFrame(zombie.id, event_id, FrameKind.EVENT_RECEIVED, now, data),),
    )


def held_at(write: AppendEvent, gate: Gate) -> AppendEvent:
    """The same event, stopped at a gate before its first lease; ended where a rule closed the gate."""
    if gate.status is GateStatus.APPROVED:
        # Nobody is asked about a shadow run: the gate says what people would have been asked.
        told = {"gate_id": str(gate.id), "status": str(gate.status), "resolved_by": gate.resolved_by}
        asked = {"action_id": gate.action_id, "tool_name": gate.tool_name, "action_name": gate.action_name}
        frame = NewFrame(
            gate.zombie_id, gate.event_id, FrameKind.GATE_RESOLVED, gate.requested_at, asked | told
        )
        return msgspec.structs.replace(write, gate=gate, frames=(*write.frames, frame))
    pending = gate.status is GateStatus.PENDING
    label = "approval_denied" if gate.status is GateStatus.DENIED else "policy_deny"
    event = msgspec.structs.replace(
        write.event,
        status=EventStatus.WAITING_APPROVAL if pending else EventStatus.GATE_BLOCKED,
        failure_label=None if pending else label,
        completed_at=None if pending else write.event.created_at,
    )
    data: dict[str, Any] = {
        "gate_id": str(gate.id),
        "action_id": gate.action_id,
        "tool_name": gate.tool_name,
        "action_name": gate.action_name,
    }
    data |= (
        {"proposed_action": gate.proposed_action, "timeout_at": gate.timeout_at}
        if pending
        else {"status": str(gate.status), "resolved_by": gate.resolved_by}
    )
    if gate.status is GateStatus.AUTO_KILLED:
        # The pause that comes before it has ended the plan of a schedule; that it is kept once, its key says.
        write = msgspec.structs.replace(write, firing=None)
    kind = FrameKind.GATE_PENDING if pending else FrameKind.GATE_RESOLVED
    frames = [NewFrame(gate.zombie_id, gate.event_id, kind, gate.requested_at, data)]
    if not pending:
        end = {"status": str(event.status), "failure_label": event.failure_label}
        frames.append(
            NewFrame(gate.zombie_id, gate.event_id, FrameKind.EVENT_COMPLETE, gate.requested_at, end)
        )
    return msgspec.structs.replace(write, event=event, gate=gate, frames=(*write.frames, *frames))
