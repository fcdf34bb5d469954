"""Lasting sign-ins: terminals that renew their tokens, and where somebody is signed in."""

from typing import Annotated
from uuid import UUID

import msgspec

from sexton_http.answers import Problem
from sexton_http.bodies.shapes import Body, Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.limits import Quota
from sexton_http.gateway.operations import Auth, Creates, NoBody, NoQuery, operation
from sexton_http.identity.issuers.builtin import TOKEN_S
from sexton_http.identity.sign_in_terms import SignInTerms
from sexton_http.identity.tokens import TokenKind, digest, mint
from sexton_storage.errors import NameTaken
from sexton_storage.records.sign_ins import BrowserSession, SignInKind
from sexton_storage.records.users import Role

TAG = "Sign-ins"
MAX_LISTED = 200
NAME_CHARS = 64
RENEWALS = Quota(count=120, window_s=60)
"""From one address; a token lasts for fifteen minutes."""


class NewSignIn(Body):
    name: Annotated[str, msgspec.Meta(max_length=NAME_CHARS)] = ""
    """What the list calls this terminal."""


class SignInMade(Shape):
    id: UUID
    refresh_token: str
    """Shown in this answer only."""
    expires_at: int
    """Moved on by use, up to a year in all."""


class SignInItem(Shape):
    id: UUID
    kind: SignInKind
    name: str
    created_at: int
    last_used_at: int
    expires_at: int
    current: bool
    """Whether the caller's own token belongs to it."""


class SignInList(Shape):
    items: list[SignInItem]
    total: int


class Renewal(Body):
    refresh_token: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]


class Renewed(Shape):
    token: str
    expires_at: int


@operation(
    "POST",
    "/v1/auth/sign-ins",
    tag=TAG,
    role=Role.VIEWER,
    tenant_wide=True,
    status=201,
    creates=Creates.AGAIN,
    secret=True,
    codes=("UZ-AUTH-001", "UZ-AUTH-012"),
)
async def create_sign_in(call: Call[NewSignIn, NoQuery]) -> SignInMade:
    """Make the sign-in of a terminal last: exchange the token that was approved for it, once.

    Only the token that the approval page made for this terminal is taken.
    """
    device, user_id = call.member.device, call.member.user_id
    if device is None or user_id is None:
        raise Problem("UZ-AUTH-001", "only a token that was approved for a terminal can be made to last")
    token, now = mint(TokenKind.REFRESH, call.new_token), call.ctx.world.now_ms()
    terms = call.ctx.settings.sign_ins
    session = BrowserSession(
        id=device,
        token_hash=digest(token),
        user_id=user_id,
        created_at=now,
        seen_at=now,
        idle_ends_at=now + terms.idle_of(SignInKind.TERMINAL),
        ends_at=now + terms.life_of(SignInKind.TERMINAL),
        kind=SignInKind.TERMINAL,
        name=call.body.name,
    )
    sign_ins = call.ctx.world.storage.sign_ins
    try:
        await sign_ins.sign_in(session, link_hash=None)
    except NameTaken:
        made = await sign_ins.load_session(device)
        if made is None or made.token_hash != session.token_hash:
            raise Problem("UZ-AUTH-012", "this terminal has a lasting sign-in already") from None
        session = made  # Before its server died.
    return SignInMade(session.id, token, terms.ends_at(session))


@operation("GET", "/v1/auth/sign-ins", tag=TAG, codes=("UZ-AUTH-001",))
async def list_sign_ins(call: Call[NoBody, NoQuery]) -> SignInList:
    """List where the caller is signed in, in browsers and terminals, newest first."""
    rows = await call.ctx.world.storage.sign_ins.list_sessions(_user(call), limit=MAX_LISTED)
    return SignInList(
        [_item(row, call.member.browser, call.ctx.settings.sign_ins) for row in rows], len(rows)
    )


@operation(
    "DELETE",
    "/v1/auth/sign-ins/{sign_in_id}",
    tag=TAG,
    role=Role.VIEWER,
    status=204,
    codes=("UZ-AUTH-001", "UZ-AUTH-005"),
)
async def end_sign_in(call: Call[NoBody, NoQuery]) -> None:
    """Sign the caller out there: its tokens end at once on this server, within a second on others."""
    sign_in_id, user_id = call.id("sign_in_id"), _user(call)
    session = await call.ctx.world.storage.sign_ins.load_session(sign_in_id)
    if session is None or session.user_id != user_id:
        raise Problem("UZ-AUTH-005", f"the caller has no sign-in {sign_in_id}")
    await call.services.browsers.sign_out(sign_in_id)


@operation(
    "POST",
    "/v1/auth/tokens",
    tag=TAG,
    auth=Auth.PUBLIC,
    codes=("UZ-AUTH-002",),
    quota=RENEWALS,
)
async def renew_token(call: Call[Renewal, NoQuery]) -> Renewed:
    """Mint a user token for fifteen minutes with the refresh token of a terminal.

    The role is the one that the user has now.
    """
    found = await call.services.browsers.find_terminal(call.body.refresh_token)
    if found is None:
        raise Problem("UZ-AUTH-002", "the sign-in of this terminal has ended; sign in again")
    session, user = found
    now = call.ctx.world.now_ms()
    token = call.ctx.issuer.mint(
        subject=str(user.id),
        tenant_id=user.tenant_id,
        role=user.role,
        now_s=now / 1000,
        platform_admin=user.platform_admin,
        browser=session.id,
    )
    return Renewed(token, (now // 1000 + TOKEN_S) * 1000)


def _user(call: Call[NoBody, NoQuery]) -> UUID:
    if call.member.user_id is None:
        raise Problem("UZ-AUTH-001", "only somebody who signed in at this server has sign-ins")
    return call.member.user_id


def _item(session: BrowserSession, current: UUID | None, terms: SignInTerms) -> SignInItem:
    return SignInItem(
        id=session.id,
        kind=session.kind,
        name=session.name,
        created_at=session.created_at,
        last_used_at=session.seen_at,
        expires_at=terms.ends_at(session),
        current=session.id == current,
    )
