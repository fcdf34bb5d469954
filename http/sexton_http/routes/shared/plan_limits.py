"""What the caller's plan allows, for a route."""

from typing import Any

from sexton_actors.entitlements import Entitled
from sexton_actors.refusal import Refusal
from sexton_http.answers import Problem
from sexton_http.gateway.call import Call


async def entitled_of(call: Call[Any, Any]) -> Entitled:
    """The tenant's tier and limits. Raises Problem UZ-ENTL-001 when they cannot be read now."""
    entitled = await call.ctx.world.entitlements.of(call.member.tenant_id)
    if isinstance(entitled, Refusal):
        raise Problem(entitled.code, entitled.detail, wait_s=entitled.retry_after_s)
    return entitled
