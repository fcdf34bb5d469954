"""Puts a decision to a gate, whoever brings it, and says no where the gate cannot be reached."""

from collections.abc import Awaitable
from typing import Final, TypeVar
from uuid import UUID

from sexton_actors.protocol.gate import Resolve, Resolved
from sexton_actors.refusal import Refusal
from sexton_http.answers import Problem
from sexton_http.bodies.shapes import Shape
from sexton_http.gateway.audit_entries import ask
from sexton_http.identity.context import HttpContext
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.gates import Gate, GateStatus

R = TypeVar("R")

STORE_WAIT_S: Final = 2


class GateDecided(Shape):
    gate_id: UUID
    action_id: str
    status: GateStatus
    resolved_at: int | None
    resolved_by: str | None


async def or_denied(asked: Awaitable[R]) -> R:
    """What is asked of the gates' store; while that is away nothing passes.

    Raises Problem UZ-APPROVAL-004.
    """
    try:
        return await asked
    except StorageUnavailable:
        raise Problem(
            "UZ-APPROVAL-004", "the gates cannot be reached now, so the answer is no", wait_s=STORE_WAIT_S
        ) from None


async def decide(ctx: HttpContext, gate_id: UUID, message: Resolve) -> GateDecided | Refusal:
    match await or_denied(ask(ctx.system, "gate", gate_id, message)):
        case Refusal() as refusal:
            return refusal
        case Resolved(gate=done):
            return decided(done)


def decided(gate: Gate) -> GateDecided:
    return GateDecided(gate.id, gate.action_id, gate.status, gate.updated_at, gate.resolved_by)
