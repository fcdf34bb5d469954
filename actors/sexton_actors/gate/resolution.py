"""Closes a gate: by a person's answer, by its time-out, or because its run is over."""

from collections.abc import Callable

from sexton_actors.gate import transitions
from sexton_actors.gate.record import GateRecord
from sexton_actors.protocol import gate as m
from sexton_actors.refusal import Refusal
from sexton_actors.terms import MAX_RACES
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.writes import ResolveGate


async def resolve(record: GateRecord, gate: Gate, message: m.Resolve) -> m.Resolved | Refusal:
    """The first answer stands: later ones are told what it was. Raises StorageUnavailable."""
    for _ in range(MAX_RACES):
        write = transitions.resolve(gate, message, record.world.now_ms())
        if isinstance(write, Refusal):
            return write
        saved = await record.save(write)
        if saved is not None:
            # What was due already is a time-out, whoever happens to write it.
            in_time = saved.status is not GateStatus.TIMED_OUT
            return m.Resolved(saved) if in_time else transitions.already_resolved(saved)
        found = await record.load()
        if found is None:
            break
        gate = found
    return Refusal("UZ-APPROVAL-002", f"There is no gate {record.id} any more.")


async def close(record: GateRecord, gate: Gate, decide: Callable[[Gate, int], ResolveGate | None]) -> None:
    """Close it without a person, if ``decide`` says so; else its time-out is watched on."""
    write = decide(gate, record.world.now_ms())
    if write is None:
        record.adopt(gate)
    elif await record.save(write) is None:
        await record.load()
