"""Closes a gate: by a person's answer, by its time-out, or because its run is over."""

from collections.abc import Callable

from msgspec.structs import replace

from sexton_actors.gate import transitions
from sexton_actors.gate.origin import may_approve, read_origin
from sexton_actors.gate.record import HeldGate
from sexton_actors.protocol import gate as m
from sexton_actors.refusal import Refusal
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.refusals import Lost
from sexton_storage.writes import ResolveGate


async def resolve(held: HeldGate, message: m.Resolve) -> m.Resolved | Refusal:
    """The first answer stands: later ones are told what it was. Raises StorageUnavailable."""

    async def attempt(gate: Gate, now: int) -> m.Resolved | Refusal | Lost:
        write = await _allowed(held, gate, message) or transitions.resolve(gate, message, now)
        if isinstance(write, Refusal):
            return write
        # A time-out that was due is nobody's answer.
        answered = write.status is not GateStatus.TIMED_OUT
        saved = await held.save(replace(write, audit=message.audit) if answered else write)
        if isinstance(saved, Lost):
            return saved
        # What was due already is a time-out, whoever happens to write it.
        in_time = saved.status is not GateStatus.TIMED_OUT
        return m.Resolved(saved) if in_time else transitions.already_resolved(saved)

    return await held.until_kept(attempt)


async def _allowed(held: HeldGate, gate: Gate, message: m.Resolve) -> Refusal | None:
    limited = message.own is not None or message.by_token
    if not limited or not message.approve or gate.status is not GateStatus.PENDING:
        return None
    return may_approve(await read_origin(held.world.storage, gate), message)


async def close(held: HeldGate, decide: Callable[[Gate, int], ResolveGate | None]) -> None:
    """Close it without a person, if ``decide`` says so; else its time-out is watched on."""

    async def attempt(gate: Gate, now: int) -> Gate | Lost:
        write = decide(gate, now)
        return held.adopt(gate) if write is None else await held.save(write)

    await held.until_kept(attempt)
