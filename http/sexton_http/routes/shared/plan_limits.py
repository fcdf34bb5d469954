"""What the caller's plan allows, for a route."""

from typing import Any, Final

from sexton_actors.entitlements import Entitled
from sexton_actors.refusal import Refusal
from sexton_http.answers import Problem
from sexton_http.gateway.call import Call
from sexton_storage.records.holdings import Holding

FULL: Final = ("UZ-ENTL-001", "UZ-ENTL-005")
"""What is told who makes something that the tenant has enough of."""


async def entitled_of(call: Call[Any, Any]) -> Entitled:
    """The tenant's tier and limits. Raises Problem UZ-ENTL-001 when they cannot be read now."""
    entitled = await call.ctx.world.entitlements.of(call.member.tenant_id)
    if isinstance(entitled, Refusal):
        raise Problem(entitled.code, entitled.detail, wait_s=entitled.retry_after_s)
    return entitled


async def leave_room(call: Call[Any, Any], holding: Holding) -> None:
    """Raises Problem UZ-ENTL-005 when the tenant has as many of these as its plan allows, or UZ-ENTL-001."""
    refusal = await call.ctx.world.entitlements.may_add(call.member.tenant_id, holding)
    if refusal is not None:
        raise Problem(refusal.code, refusal.detail, facts=refusal.facts, wait_s=refusal.retry_after_s)
