"""Notes for the log of deliveries what a webhook brought and what it was answered."""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from sexton_actors.protocol.zombie import Accepted, AlreadyAccepted, Challenge, Deliver, Ignored, TurnedAway
from sexton_actors.refusal import Refusal
from sexton_actors.webhooks.delivery_log import Arrival
from sexton_actors.zombie.redelivery import reason_of
from sexton_http.answers import RequestHead
from sexton_http.gateway.services import Services
from sexton_storage.records.deliveries import DeliveryVerdict as Verdict

LARGE: Final = 1024 * 1024 + 1
"""What is told of a body that was too large to be read to its end."""
Taken = Accepted | AlreadyAccepted | Ignored | Challenge


def headers_of(head: RequestHead) -> dict[str, str]:
    """As a delivery is verified by them."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers.items()}


async def note_answered(
    services: Services, zombie_id: UUID, message: Deliver, reply: Taken | Refusal
) -> None:
    """What an agent has judged; of one that does not exist nothing is noted."""
    refusal = reply if isinstance(reply, Refusal) else None
    scope = None if refusal is None else await services.scopes.zombie(zombie_id)
    if refusal is not None and scope is None:
        return
    world = services.ctx.world
    verdict, event_id, reason = _told(reply)
    world.delivery_log.note(
        Arrival(
            zombie_id=zombie_id,
            workspace_id=None if scope is None else scope.workspace_id,
            at=world.now_ms(),
            segment=message.segment,
            multisig=message.multisig,
            headers=message.headers,
            body=message.body if event_id is None else None,
            size=len(message.body),
            verdict=verdict,
            code=None if refusal is None else refusal.code,
            reason=reason,
            detail="" if refusal is None else refusal.detail,
            event_id=event_id,
        )
    )


def turn_away(
    services: Services,
    workspace_id: UUID,
    params: Mapping[str, Any],
    head: RequestHead | None,
    *,
    code: str,
    reason: str,
    detail: str,
) -> None:
    """What was refused before it was looked at: shown in the agent's stream, and noted without its body."""
    zombie_id, segment, ctx = params["zombie_id"], params.get("segment"), services.ctx
    ctx.system.tell("zombie", zombie_id, TurnedAway(segment, reason))
    ctx.world.delivery_log.note(
        Arrival(
            zombie_id=zombie_id,
            workspace_id=workspace_id,
            at=ctx.world.now_ms(),
            segment=segment,
            multisig=False,
            headers={} if head is None else headers_of(head),
            body=None,
            size=LARGE if head is None else max(1, _announced(head)),
            verdict=Verdict.REFUSED,
            code=code,
            reason=reason,
            detail=detail,
        )
    )


def _told(reply: Taken | Refusal) -> tuple[Verdict, UUID | None, str]:
    match reply:
        case Accepted(event_id=event_id):
            return Verdict.ACCEPTED, event_id, ""
        case AlreadyAccepted(event_id=event_id):
            return Verdict.DUPLICATE, event_id, ""
        case Ignored(reason=reason):
            return Verdict.IGNORED, None, reason
        case Challenge():
            return Verdict.CHALLENGE, None, ""
        case Refusal() as refusal:
            return Verdict.REFUSED, None, reason_of(refusal)


def _announced(head: RequestHead) -> int:
    length = head.header(b"content-length") or ""
    return int(length) if length.isascii() and length.isdigit() and len(length) < 16 else 0  # noqa: PLR2004
