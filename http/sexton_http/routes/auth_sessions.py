"""Device login: a terminal waits, a person approves in a browser, the token goes over encrypted."""

from enum import StrEnum
from typing import Annotated
from uuid import UUID

import msgspec

from sexton_actors.protocol.auth_session import Abort, Approve, Complete, HandedOver, Open, Read, Seen, Verify
from sexton_actors.refusal import Refusal
from sexton_http.answers import Problem
from sexton_http.bodies.names import fitting
from sexton_http.bodies.sealed_token import (
    MAX_CIPHERTEXT_CHARS,
    MAX_NAME_CHARS,
    check_ciphertext,
    check_code,
    check_nonce,
    check_public_key,
    check_token_name,
)
from sexton_http.bodies.shapes import Body, Shape
from sexton_http.ceilings import networks_of
from sexton_http.gateway.audit_entries import ask
from sexton_http.gateway.call import Call
from sexton_http.gateway.limits import Quota
from sexton_http.gateway.operations import Auth, Creates, NoBody, NoQuery, operation
from sexton_storage.records.auth_sessions import AuthSession
from sexton_storage.records.users import Role

TAG = "Auth sessions"
CREATIONS = Quota(count=10, window_s=60)
"""From one address."""
MAX_ABORTS = 1024
"""By one request."""

# What has a code of its own when it is wrong is described here and checked in the handler.
PublicKey = Annotated[
    str,
    msgspec.Meta(
        description="A P-256 public key, SPKI DER, base64url.",
        extra_json_schema={"minLength": 122, "maxLength": 124, "pattern": "^[A-Za-z0-9_-]+={0,2}$"},
    ),
]
TokenName = Annotated[str, msgspec.Meta(extra_json_schema={"minLength": 1, "maxLength": MAX_NAME_CHARS})]
Ciphertext = Annotated[
    str,
    msgspec.Meta(
        description="base64url; the tag is at its end.",
        extra_json_schema={
            "minLength": 23,
            "maxLength": MAX_CIPHERTEXT_CHARS,
            "pattern": "^[A-Za-z0-9_-]+={0,2}$",
        },
    ),
]
Nonce = Annotated[
    str,
    msgspec.Meta(
        description="Twelve bytes, base64url.",
        extra_json_schema={"minLength": 16, "maxLength": 16, "pattern": "^[A-Za-z0-9_-]+$"},
    ),
]
Code = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": "^[0-9]{6}$"})]
Token = Annotated[str, msgspec.Meta(min_length=1, max_length=8192), fitting(r"^[!-~]+$")]


class NewSession(Body):
    public_key: PublicKey | None = None
    token_name: TokenName | None = None


class SessionMade(Shape):
    session_id: UUID
    login_url: str
    expires_at_ms: int


class SessionState(StrEnum):
    PENDING = "pending"
    VERIFICATION_PENDING = "verification_pending"
    COMPLETE = "complete"
    CONSUMED = "consumed"
    EXPIRED = "expired"
    ABORTED = "aborted"


class SessionView(Shape):
    session_id: UUID
    status: SessionState
    cli_public_key: str | None
    token_name: str | None
    expires_at_ms: int
    token: str | msgspec.UnsetType = msgspec.UNSET
    """Only of a session that was completed by PATCH, and only once."""


class Target(StrEnum):
    COMPLETE = "complete"


class Completion(Body):
    token: Token
    status: Target = Target.COMPLETE


class Completed(Shape):
    status: Target
    token: str


class Approval(Body):
    dashboard_public_key: PublicKey
    ciphertext: Ciphertext
    nonce: Nonce
    verification_code: Code


class Approved(Shape):
    session_id: UUID
    status: SessionState
    expires_at_ms: int


class Verification(Body):
    verification_code: Code


class HandOver(Shape):
    dashboard_public_key: str
    ciphertext: str
    nonce: str


class Aborted(Shape):
    aborted_count: int


@operation(
    "POST",
    "/v1/auth/sessions",
    tag=TAG,
    auth=Auth.PUBLIC,
    status=201,
    quota=CREATIONS,
    codes=("UZ-AUTH-008", "UZ-AUTH-016", "UZ-AUTH-017"),
    creates=Creates.ONCE,
)
async def create_auth_session(call: Call[NewSession, NoQuery]) -> SessionMade | Refusal:
    """Begin to wait for a token.

    `login_url` is the page on which a person approves. Without a `public_key` the token can only be attached
    by PATCH.
    """
    body, ctx = call.body, call.ctx
    public_key = None if body.public_key is None else check_public_key(body.public_key)
    token_name = None if body.token_name is None else check_token_name(body.token_name)
    origin = ctx.keys.origin_mac(networks_of(call.head.client))
    made = await ctx.system.ask("session", call.new_id(), Open(public_key, token_name, origin))
    if isinstance(made, Refusal):
        return made
    return SessionMade(made.id, f"{ctx.settings.base_url}/auth/device/{made.id}", made.expires_at)


@operation("GET", "/v1/auth/sessions/{session_id}", tag=TAG, auth=Auth.PUBLIC, codes=("UZ-AUTH-005",))
async def get_auth_session(call: Call[NoBody, NoQuery]) -> SessionView | Refusal:
    """Show how far a session is.

    A token that was attached by PATCH is in the first answer after it, and in no other.
    """
    session_id = call.id("session_id")
    seen = await call.ctx.system.ask("session", session_id, Read(take=call.head.method == "GET"))
    return seen if isinstance(seen, Refusal) else _view(call, seen)


def _view(call: Call[NoBody, NoQuery], seen: Seen) -> SessionView:
    session, token = seen.session, seen.sealed_token
    return SessionView(
        session_id=session.id,
        status=SessionState(seen.status),
        cli_public_key=session.public_key,
        token_name=session.token_name,
        expires_at_ms=session.expires_at,
        token=msgspec.UNSET if token is None else call.ctx.keys.open(token, session.id.bytes),
    )


@operation(
    "PATCH",
    "/v1/auth/sessions/{session_id}",
    tag=TAG,
    role=Role.VIEWER,
    codes=(
        "UZ-AUTH-005",
        "UZ-AUTH-006",
        "UZ-AUTH-007",
        "UZ-AUTH-013",
        "UZ-AUTH-015",
    ),
)
async def complete_auth_session(call: Call[Completion, NoQuery]) -> Completed | Refusal:
    """Attach a token in plain text."""
    session_id, token = call.id("session_id"), call.body.token
    sealed = call.ctx.keys.seal(token, session_id.bytes)
    done = await ask(call.ctx.system, "session", session_id, Complete(sealed, call.member.by))
    return done if isinstance(done, Refusal) else Completed(Target.COMPLETE, token)


@operation(
    "PATCH",
    "/v1/auth/sessions/{session_id}/approve",
    tag=TAG,
    role=Role.VIEWER,
    codes=(
        "UZ-AUTH-005",
        "UZ-AUTH-006",
        "UZ-AUTH-007",
        "UZ-AUTH-012",
        "UZ-AUTH-013",
        "UZ-AUTH-015",
        "UZ-AUTH-016",
        "UZ-AUTH-018",
        "UZ-AUTH-019",
        "UZ-AUTH-020",
    ),
)
async def approve_auth_session(call: Call[Approval, NoQuery]) -> Approved | Refusal:
    """Attach a token that only the terminal can read, behind a code."""
    session_id, body = call.id("session_id"), call.body
    message = Approve(
        dashboard_public_key=check_public_key(body.dashboard_public_key),
        ciphertext=check_ciphertext(body.ciphertext),
        nonce=check_nonce(body.nonce),
        code_mac=call.ctx.keys.code_mac(session_id, check_code(body.verification_code)),
        by=call.member.by,
    )
    approved: AuthSession | Refusal = await ask(call.ctx.system, "session", session_id, message)
    if isinstance(approved, Refusal):
        return approved
    return Approved(session_id, SessionState(approved.status), approved.expires_at)


@operation(
    "POST",
    "/v1/auth/sessions/{session_id}/verify",
    tag=TAG,
    auth=Auth.PUBLIC,
    codes=(
        "UZ-AUTH-005",
        "UZ-AUTH-006",
        "UZ-AUTH-007",
        "UZ-AUTH-011",
        "UZ-AUTH-012",
        "UZ-AUTH-013",
        "UZ-AUTH-014",
        "UZ-AUTH-018",
    ),
)
async def verify_auth_session(call: Call[Verification, NoQuery]) -> HandOver | Refusal:
    """Take the encrypted token over, with the code that the approval page shows.

    The fifth wrong code ends the session. The same client may ask again for a minute.
    """
    session_id, keys = call.id("session_id"), call.ctx.keys
    message = Verify(
        code_mac=keys.code_mac(session_id, check_code(call.body.verification_code)),
        client_mac=keys.client_mac(session_id, call.head.client),
    )
    given: HandedOver | Refusal = await ask(call.ctx.system, "session", session_id, message)
    if isinstance(given, Refusal):
        return given
    return HandOver(given.dashboard_public_key, given.ciphertext, given.nonce)


@operation("DELETE", "/v1/auth/sessions/all", tag=TAG, role=Role.VIEWER)
async def abort_auth_sessions(call: Call[NoBody, NoQuery]) -> Aborted:
    """End the open sessions that the caller approved; for a platform admin, all that are open.

    The oldest 1,024 at a time: with that many ended there may be more.
    """
    ctx, member = call.ctx, call.member
    everybody = member.platform_admin and member.workspace_id is None
    approved_by = None if everybody else member.by
    ids = await ctx.world.storage.auth_sessions.list_open(approved_by=approved_by, limit=MAX_ABORTS)
    # One after the other: a thousand at most, and rarely more than a few.
    replies = [await ask(ctx.system, "session", session_id, Abort()) for session_id in ids]
    return Aborted(sum(reply is True for reply in replies))


@operation(
    "DELETE",
    "/v1/auth/sessions/{session_id}",
    tag=TAG,
    auth=Auth.PUBLIC,
    status=204,
    codes=("UZ-AUTH-005",),
)
async def abort_auth_session(call: Call[NoBody, NoQuery]) -> None:
    """End a session. Needs no token: the terminal that waits has none, and the id is what it knows."""
    done = await call.ctx.system.ask("session", call.id("session_id"), Abort())
    if isinstance(done, Refusal):
        raise Problem(done.code, done.detail, facts=done.facts, wait_s=done.retry_after_s)
