"""For an agent's owner: why a webhook is refused, and another approval token."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Annotated, Final
from uuid import UUID

import msgspec
import trio

from sexton_actors.manifest.model import WebhookTrigger, from_json
from sexton_actors.protocol.zombie import RotateToken, TokenRotated
from sexton_actors.refusal import Refusal
from sexton_actors.webhooks.bodies import SMALL_BODY, find_text
from sexton_actors.webhooks.diagnosis import Explained, explain, refused, trigger_of
from sexton_actors.webhooks.model import MALFORMED, Malformed, Rejected
from sexton_actors.webhooks.trigger_secrets import secrets_of
from sexton_http.answers import Problem
from sexton_http.bodies.names import fitting
from sexton_http.bodies.shapes import Body, Shape
from sexton_http.gateway.audit_entries import ask
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import MAX_BODY_BYTES, MAX_WEBHOOK_BYTES, Creates, NoQuery, operation
from sexton_http.identity.tokens import TokenKind, digest, mint
from sexton_storage.records.users import Role
from sexton_storage.records.zombies import Zombie

TAG = "Webhooks"
MAX_HEADERS: Final = 128
BASE64: Final = r"^[A-Za-z0-9+/]*={0,2}$"
"""As much as is quick to look for in 2 MiB; the rest is seen when it is decoded."""
HELD = ("UZ-ZMB-009",)

Value = Annotated[str, msgspec.Meta(max_length=8192)]


class Sample(Body):
    """One delivery as it was sent; ``body`` as text, or ``body_base64`` where its bytes are no UTF-8."""

    headers: Annotated[dict[str, Value], msgspec.Meta(max_length=MAX_HEADERS)]
    body: str | None = None
    body_base64: Annotated[str, fitting(BASE64)] | None = None
    """Counts before ``body``; neither is an empty one."""
    source: Annotated[str, msgspec.Meta(min_length=1, max_length=128)] | None = None
    """The trigger's, or the secret of an address; none: the agent's first webhook trigger."""
    received_at: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """When it came, in ms; none: now."""


class Verified(Shape):
    """What would have become of the delivery; nothing of it was kept."""

    ok: bool
    """It would have been answered with a success."""
    source: str | None
    signature_ok: bool
    outcome: str
    error_code: str | None
    detail: str
    event_type: str | None
    hints: Sequence[str]


class NewApprovalToken(Body):
    """It has no fields."""


class ApprovalToken(Shape):
    zombie_id: UUID
    approval_token: str
    """Shown in this answer only."""


@operation(
    "POST",
    "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/webhooks:verify",
    tag=TAG,
    role=Role.OPERATOR,
    codes=HELD,
    max_body=MAX_BODY_BYTES,
)
async def verify_webhook(call: Call[Sample, NoQuery]) -> Verified:
    """Say whether a sample of a webhook is genuine, and if not, why not.

    The answer never holds a secret, nor the signature that would be right.
    """
    zombie = await _zombie(call)
    return _view(await _explain(call, zombie, _bytes_of(call.body)))


@operation(
    "POST",
    "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/approval-token",
    tag="Approvals",
    role=Role.OPERATOR,
    status=201,
    creates=Creates.AGAIN,
    secret=True,
    codes=(*HELD, "UZ-ZMB-010"),
)
async def rotate_approval_token(call: Call[NewApprovalToken, NoQuery]) -> ApprovalToken | Refusal:
    """Give the agent another approval token; the old one is out at once."""
    zombie = await _zombie(call)
    token = mint(TokenKind.APPROVAL, call.new_token)
    match await ask(call.ctx.system, "zombie", zombie.id, RotateToken(digest(token))):
        case Refusal() as refusal:
            return refusal
        case TokenRotated():
            return ApprovalToken(zombie.id, token)


async def _zombie(call: Call[Sample, NoQuery] | Call[NewApprovalToken, NoQuery]) -> Zombie:
    zombie = await call.ctx.world.storage.zombies.load(call.id("zombie_id"))
    if zombie is None or zombie.workspace_id != call.id("workspace_id"):
        raise Problem("UZ-ZMB-009", f"the workspace has no agent {call.id('zombie_id')}")
    return zombie


async def _explain(call: Call[Sample, NoQuery], zombie: Zombie, body: bytes) -> Explained:
    sample = call.body
    trigger = trigger_of(from_json(zombie.compiled), zombie.url_secret_hashes, sample.source)
    if isinstance(trigger, Rejected):
        return refused(trigger)
    if len(body) > MAX_WEBHOOK_BYTES:
        detail = f"The body is over {MAX_WEBHOOK_BYTES} bytes."
        return Explained(
            trigger.source, signature_ok=False, outcome="too_large", code="UZ-WH-030", detail=detail
        )
    at = call.ctx.world.now_ms() if sample.received_at is None else sample.received_at
    headers = {name.lower(): value for name, value in sample.headers.items()}
    secrets = await _secrets(call, zombie, trigger)
    if len(body) <= SMALL_BODY:
        return explain(trigger, headers, body, secrets, at)
    if isinstance(text := await find_text(body), Malformed):
        return Explained(
            trigger.source, signature_ok=False, outcome="malformed_body", code=MALFORMED, detail=text.detail
        )
    # To sign a large body many times, for the hints, takes long; the interpreter's lock is free meanwhile.
    return await trio.to_thread.run_sync(explain, trigger, headers, body, secrets, at)


async def _secrets(call: Call[Sample, NoQuery], zombie: Zombie, trigger: WebhookTrigger) -> Sequence[str]:
    if trigger.signature is None:
        return ()
    data: Mapping[str, object] | None = await call.ctx.world.secrets.open(
        zombie.workspace_id, trigger.signature.secret_ref
    )
    return () if data is None else secrets_of(data)


def _bytes_of(sample: Sample) -> bytes:
    if sample.body_base64 is not None:
        try:
            return base64.b64decode(sample.body_base64)
        except binascii.Error as fault:
            facts = {"pointer": "/body_base64"}
            raise Problem("UZ-REQ-001", f"/body_base64: not base64: {fault}", facts=facts) from fault
    return (sample.body or "").encode()


def _view(explained: Explained) -> Verified:
    return Verified(
        ok=explained.outcome in {"accepted", "ignored", "challenge"},
        source=explained.source,
        signature_ok=explained.signature_ok,
        outcome=explained.outcome,
        error_code=explained.code,
        detail=explained.detail,
        event_type=explained.event_type,
        hints=list(explained.hints),
    )
