"""Makes the gate that a run or a delivery must pass, by the agent's own rules."""

from collections.abc import Mapping
from typing import Any, assert_never
from uuid import UUID

import msgspec

from sexton_actors.gate_requests.evidence import reach_of
from sexton_actors.gate_rules.anomaly import anomaly
from sexton_actors.gate_rules.model import Behaviour
from sexton_actors.gate_rules.rules import match_rules
from sexton_actors.manifest.model import Manifest
from sexton_actors.protocol.lease import AskApproval
from sexton_storage.records.events import Event
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.records.leases import Lease
from sexton_storage.records.zombies import Zombie

BY_RULE = "system:auto_kill"
BY_DENY = "system:deny"
BY_ANOMALY = "system:anomaly"
BY_SHADOW = "system:shadow"
ANOMALY_KIND = "anomaly"
DETAILS = {
    BY_RULE: "A rule of the agent forbids this (auto_kill). Nobody was asked, and the agent is paused.",
    BY_DENY: "A rule of the agent refuses this (deny). Nobody was asked, and the agent goes on.",
    BY_SHADOW: "A shadow run: people would have been asked, and were not. Nothing that it does takes effect.",
    BY_ANOMALY: "This was done too often for an anomaly rule. Nobody was asked, and the agent is paused.",
}


def gate_for(
    zombie: Zombie,
    manifest: Manifest,
    lease: Lease,
    ask: AskApproval,
    *,
    earlier: tuple[int, ...] = (),
    gate_id: UUID,
    now: int,
) -> Gate:
    """The gate for a question from inside a run; killed at once where a rule says so.

    ``earlier``: when the agent asked for the same action before. A runner that itself counts the calls for
    which nobody is asked says so by the kind ``anomaly``: it can only be stricter than the rules.
    """
    fields: Mapping[str, Any] = ask.evidence
    behaviour = match_rules(manifest.gates, ask.tool_name, ask.action_name, fields)
    gate = Gate(
        id=gate_id,
        zombie_id=zombie.id,
        workspace_id=zombie.workspace_id,
        tenant_id=zombie.tenant_id,
        event_id=lease.event_id,
        lease_id=lease.id,
        action_id=ask.action_id,
        status=GateStatus.PENDING,
        requested_at=now,
        timeout_at=now + manifest.gates.timeout_ms,
        zombie_name=zombie.name,
        tool_name=ask.tool_name,
        action_name=ask.action_name,
        gate_kind=ask.gate_kind,
        proposed_action=ask.proposed_action,
        evidence=ask.evidence,
        blast_radius=ask.blast_radius,
    )
    if manifest.gates.anomaly_rules and (
        ask.gate_kind == ANOMALY_KIND or anomaly(manifest.gates, earlier, now).rule is not None
    ):
        return killed(gate, BY_ANOMALY, now)
    ruled = by_rule(gate, behaviour, now)
    return in_shadow(ruled, now) if lease.shadow else ruled


def gate_before_lease(
    zombie: Zombie,
    manifest: Manifest,
    event: Event,
    *,
    evidence: Mapping[str, Any],
    gate_id: UUID,
    now: int,
) -> Gate:
    """The gate for an event that a rule stops before its first lease; ``evidence`` shows the event."""
    return Gate(
        id=gate_id,
        zombie_id=zombie.id,
        workspace_id=zombie.workspace_id,
        tenant_id=zombie.tenant_id,
        event_id=event.id,
        lease_id=None,
        action_id=f"event:{event.id}",
        status=GateStatus.PENDING,
        requested_at=now,
        timeout_at=now + manifest.gates.timeout_ms,
        zombie_name=zombie.name,
        tool_name=event.event_type,
        action_name=event.actor,
        gate_kind="event",
        proposed_action=f"Let {zombie.name} work on {event.event_type} from {event.actor}.",
        evidence=evidence,
        blast_radius=reach_of(manifest),
    )


def by_rule(gate: Gate, behaviour: Behaviour | None, now: int) -> Gate:
    """The gate as the rule that matched leaves it: waiting for a person, or closed at once."""
    match behaviour:
        case Behaviour.AUTO_KILL:
            return killed(gate, BY_RULE, now)
        case Behaviour.DENY:
            return _closed(gate, GateStatus.DENIED, BY_DENY, now)
        case Behaviour.APPROVE | None:
            return gate
        case _:
            assert_never(behaviour)


def in_shadow(gate: Gate, now: int) -> Gate:
    """The gate of a shadow run: what a rule refuses is refused, and nobody is asked about the rest."""
    return _closed(gate, GateStatus.APPROVED, BY_SHADOW, now) if gate.status is GateStatus.PENDING else gate


def killed(gate: Gate, by: str, now: int) -> Gate:
    """The same gate, closed by the platform in the moment it is made."""
    return _closed(gate, GateStatus.AUTO_KILLED, by, now)


def _closed(gate: Gate, status: GateStatus, by: str, now: int) -> Gate:
    return msgspec.structs.replace(
        gate, status=status, updated_at=now, resolved_by=by, detail=DETAILS.get(by, "")
    )
