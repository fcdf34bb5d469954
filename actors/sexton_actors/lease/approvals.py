"""Lets a run ask people for approval, and bills its time again once they have answered."""

from uuid import UUID

import msgspec

from sexton_actors.gate_requests.creation import gate_for
from sexton_actors.lease.record import HeldLease, wait_of
from sexton_actors.lease.transitions.approvals import open_gate
from sexton_actors.lease.transitions.state import STALE, LeaseState, fenced
from sexton_actors.manifest.model import Manifest, from_json
from sexton_actors.protocol import lease as m
from sexton_actors.protocol.gate import Opened
from sexton_actors.protocol.zombie import Pause
from sexton_actors.refusal import Refusal
from sexton_engine import EngineError
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.records.leases import Lease
from sexton_storage.records.zombies import Zombie
from sexton_storage.refusals import Lost


async def ask_approval(held: HeldLease, message: m.AskApproval) -> Gate | Refusal:
    """The gate of that action, opened if there is none; its time is not billed while it is pending."""

    async def attempt(state: LeaseState, now: int) -> Gate | Refusal | Lost:
        if refusal := fenced(state.lease, message.runner_id, message.fencing_token, now, STALE):
            return refusal
        zombie = await held.world.storage.zombies.load(state.lease.zombie_id)
        if zombie is None:
            return held.unknown()
        manifest = await _manifest(held, zombie, state.lease)
        shadow = state.lease.shadow
        gate = gate_for(
            zombie,
            manifest,
            state.lease,
            message,
            earlier=() if shadow else await _earlier(held, manifest, zombie.id, message, now),
            gate_id=held.world.new_id(),
            now=now,
        )
        if gate.status is not GateStatus.PENDING:
            if (answered := await _answered(held, gate)) is not None:
                return answered
            kills = gate.status is GateStatus.AUTO_KILLED and not shadow
            if kills and (refusal := await _pause(held, gate)):
                return refusal
        opened = await held.world.storage.journal.write(open_gate(state, gate, now))
        return opened if isinstance(opened, Lost) else _gate_opened(held, state, opened.gate)

    return await held.until_kept(attempt)


async def _manifest(held: HeldLease, zombie: Zombie, lease: Lease) -> Manifest:
    """The agent's files as they are now; of an event that asked for a version, those that it was given."""
    if lease.config_version_id not in {None, zombie.config_version_id}:
        event = await held.world.storage.events.load(lease.event_id)
        if event is not None and event.asked_version is not None:
            asked = await held.world.storage.zombies.load_version(zombie.id, event.asked_version)
            if asked is not None and asked.compiled:
                return from_json(asked.compiled)
    return from_json(zombie.compiled)


async def _earlier(
    held: HeldLease, manifest: Manifest, zombie_id: UUID, message: m.AskApproval, now: int
) -> tuple[int, ...]:
    """When this action was asked for before, as far as the anomaly rules look back; not by this very ask."""
    rules = manifest.gates.anomaly_rules
    if not rules:
        return ()
    asked = await held.world.storage.gates.asked(
        zombie_id,
        message.tool_name,
        message.action_name,
        since=now - 1_000 * max(rule.threshold_window_s for rule in rules),
        limit=max(rule.threshold_count for rule in rules),
    )
    return tuple(at for at, action_id in asked if action_id != message.action_id)


async def _answered(held: HeldLease, gate: Gate) -> Gate | None:
    """The gate of the same action, if it has its outcome: asking again pauses nobody again."""
    found = await held.world.storage.gates.find_by_action(gate.zombie_id, gate.action_id)
    if found is None or found.event_id != gate.event_id or found.status is GateStatus.PENDING:
        return None
    return found


async def _pause(held: HeldLease, gate: Gate) -> Refusal | None:
    # Before the gate is kept: a crash in between leaves an agent paused for nothing, never one that runs on.
    reason = f"auto_kill: {gate.tool_name} {gate.action_name}"
    try:
        return await held.context.ask("zombie", gate.zombie_id, Pause(reason=reason))
    except EngineError as fault:
        return Refusal("UZ-APPROVAL-004", f"The agent could not be paused, so the answer is no: {fault}")


def _gate_opened(held: HeldLease, state: LeaseState, gate: Gate) -> Gate:
    if gate.status is GateStatus.PENDING:
        held.context.tell("gate", gate.id, Opened(gate))
    if gate.lease_id == state.lease.id:
        others = tuple(wait for wait in state.waits if wait.gate_id != gate.id)
        held.adopt(LeaseState(state.lease, (*others, wait_of(gate))))
    return gate


def gate_closed(held: HeldLease, message: m.GateClosed) -> None:
    """From here on its time is billed again."""
    state = held.record
    if state is None:
        return
    waits = tuple(
        msgspec.structs.replace(wait, until=message.at)
        if wait.gate_id == message.gate_id and wait.until is None
        else wait
        for wait in state.waits
    )
    held.adopt(LeaseState(state.lease, waits))
