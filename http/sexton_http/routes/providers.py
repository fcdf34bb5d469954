"""Signing in elsewhere: off to an identity provider, and back with proof."""

import re
from typing import Annotated, Final

import msgspec

from sexton_actors.plans import STARTER_CREDIT_NANOS
from sexton_http.answers import Answer, Problem, RequestHead
from sexton_http.bodies.shapes import Query
from sexton_http.gateway.audit_entries import entry_by
from sexton_http.gateway.call import Call
from sexton_http.gateway.limits import Quota
from sexton_http.gateway.operations import Auth, NoBody, operation
from sexton_http.identity.browsers import read_cookie
from sexton_http.identity.context import HttpContext, Person, Provider
from sexton_http.identity.oauth import challenge_of
from sexton_http.identity.tokens import TOKEN_BYTES, digest, same
from sexton_http.outbound.errors import Unreachable
from sexton_http.pages.accept import prefers_pages
from sexton_http.pages.headers import HEADERS
from sexton_http.pages.people import FIRST_PAGE, FORBIDDEN, UNAVAILABLE, refused_page, signed_in_page
from sexton_storage.attribution import attributed
from sexton_storage.errors import NameTaken
from sexton_storage.records.sign_ins import SignInAttempt
from sexton_storage.records.tenants import PlanTier, Tenant
from sexton_storage.records.users import Role, User
from sexton_storage.records.workspaces import Workspace

TAG = "Browser"
SEE_OTHER = 303
ATTEMPT_MS: Final = 10 * 60 * 1000
"""How long a person may take at the provider."""
STATE_BYTES: Final = 16
ATTEMPTS: Final = Quota(count=20, window_s=60)
"""From one address."""
COOKIE: Final = "sexton-login"
MAX_NAME_CHARS: Final = 128
# Named one by one: whatever else an address says would lead to somebody else's page sooner or later.
_WHERE_TO: Final = re.compile(
    r"/auth/device/[0-9a-f-]{36}|/keys|/workspaces|/members|/grants|/console(/[0-9a-z-]{1,40}){0,4}"
)
_REASON: Final = re.compile(r"[a-z_]{1,64}")

Text = Annotated[str, msgspec.Meta(max_length=4096)]


class Departure(Query):
    next: Text | None = None
    """A page of this server to go back to: the approval of a terminal, a page of the console. None: *Now*."""


class SignInReturn(Query):
    state: Text | None = None
    code: Text | None = None
    error: Text | None = None
    iss: Text | None = None


class _Kept(msgspec.Struct, frozen=True):
    """What is sealed into an attempt."""

    verifier: str
    nonce: str
    going_on: str


class _Refused(Exception):
    """Nobody is signed in, and a page says why."""


@operation(
    "GET",
    "/auth/login/{provider}",
    tag=TAG,
    auth=Auth.PUBLIC,
    media="text/html",
    status=SEE_OTHER,
    extra_statuses=(UNAVAILABLE,),
    codes=("UZ-REQ-003",),
    quota=ATTEMPTS,
)
async def depart(call: Call[NoBody, Departure]) -> Answer:
    """Send a person to an identity provider to sign in."""
    ctx, provider = call.ctx, _provider(call.ctx, call.text("provider"))
    new_token, now = ctx.world.new_token, ctx.world.now_ms()
    verifier, nonce, browser = new_token(TOKEN_BYTES), new_token(TOKEN_BYTES), new_token(TOKEN_BYTES)
    state = ctx.keys.sign(bytes.fromhex(new_token(STATE_BYTES)))
    try:
        url = await provider.depart(
            state=state, nonce=nonce, challenge=challenge_of(verifier), redirect_uri=_back(ctx, provider)
        )
    except Unreachable:
        return refused_page(f"{provider.label} cannot be reached now.", UNAVAILABLE)
    hashed, kept = digest(state), _Kept(verifier, nonce, _going_on(call.query.next))
    sealed = ctx.keys.seal(msgspec.json.encode(kept).decode(), hashed)
    attempt = SignInAttempt(hashed, provider.name, digest(browser), sealed, now, now + ATTEMPT_MS)
    await ctx.world.storage.sign_ins.begin(attempt)
    headers = ((b"location", url.encode()), _cookie(ctx, browser, ATTEMPT_MS // 1000), *HEADERS)
    return Answer(SEE_OTHER, headers, b"")


@operation(
    "GET",
    "/auth/callback/{provider}",
    tag=TAG,
    auth=Auth.PUBLIC,
    media="text/html",
    extra_statuses=(FORBIDDEN, UNAVAILABLE),
    codes=("UZ-AUTH-001", "UZ-REQ-003"),
    quota=ATTEMPTS,
)
async def arrive(call: Call[NoBody, SignInReturn]) -> Answer:
    """Sign in whom an identity provider sends back, in the browser that left, once."""
    ctx, provider = call.ctx, _provider(call.ctx, call.text("provider"))
    try:
        kept = await _attempt(ctx, provider, call.head, call.query)
        person = await provider.arrive(
            code=_code(call.query),
            verifier=kept.verifier,
            nonce=kept.nonce,
            redirect_uri=_back(ctx, provider),
            now_s=ctx.world.now_ms() / 1000,
        )
    except _Refused as refused:
        return _refuse(call, str(refused))
    except Unreachable:
        return refused_page(
            f"{provider.label} cannot be reached now, or did not accept the code.", UNAVAILABLE
        )
    except Problem as problem:
        if problem.code not in {"UZ-AUTH-001", "UZ-AUTH-002", "UZ-AUTH-004"}:
            raise
        reason = f"{provider.label}: {problem.detail}."
        return refused_page(reason, UNAVAILABLE) if problem.code == "UZ-AUTH-004" else _refuse(call, reason)
    user = await _user_of(ctx, person)
    if not user.is_admitted:
        # Not as a stranger, with a tenant of his own: who was removed comes back by an invitation.
        return _refuse(
            call, f"You are {user.status.value} here. Ask an admin of your tenant to let you in again."
        )
    with attributed(entry_by(call, user.tenant_id, f"user:{user.id}", user.name, target=str(user.id))):
        cookie = await call.services.browsers.sign_in(call.head, user.id)
    if cookie is None:
        raise RuntimeError("a session without a link is always made")
    return signed_in_page(kept.going_on, (cookie, _cookie(ctx, "", 0)))


async def _attempt(ctx: HttpContext, provider: Provider, head: RequestHead, query: SignInReturn) -> _Kept:
    """What was kept when this browser left; given once."""
    again = "This sign-in was used before, took too long, or began in another browser."
    if query.state is None or ctx.keys.check(query.state) is None:
        raise _Refused(again)
    attempt = await ctx.world.storage.sign_ins.take(digest(query.state))
    browser = read_cookie(head, COOKIE) or ""
    if (
        attempt is None
        or attempt.provider != provider.name
        or attempt.expires_at <= ctx.world.now_ms()
        or not same(attempt.browser_hash, digest(browser))
    ):
        raise _Refused(again)
    if query.iss is not None and provider.issuer is not None and query.iss != provider.issuer:
        raise _Refused("Another provider answered than the one that was asked.")
    return msgspec.json.decode(ctx.keys.open(attempt.sealed, attempt.state_hash), type=_Kept)


def _code(query: SignInReturn) -> str:
    if query.error is not None:
        reason = query.error if _REASON.fullmatch(query.error) else "an error"
        raise _Refused(f"The provider answered: {reason}.")
    if not query.code:
        raise _Refused("The provider sent no code.")
    return query.code


async def _user_of(ctx: HttpContext, person: Person) -> User:
    """The user of this subject; the first sign-in makes a tenant with a workspace."""
    storage = ctx.world.storage
    found = await storage.users.find_by_subject(person.subject)
    if found is not None:
        return found
    new_id, now, credit = ctx.world.new_id, ctx.world.now_ms(), ctx.world.terms.sign_in_nanos
    tenant = Tenant(
        id=new_id(),
        name=person.name[:MAX_NAME_CHARS],
        plan_tier=PlanTier.FREE,
        balance_nanos=STARTER_CREDIT_NANOS if credit is None else credit,
        exhausted_at=now if credit == 0 else None,
        created_at=now,
        updated_at=now,
        unlimited=credit is None,
    )
    workspace = Workspace(new_id(), tenant.id, "default", paused=False, created_at=now)
    user = User(
        id=new_id(),
        tenant_id=tenant.id,
        subject=person.subject,
        role=Role.ADMIN,
        platform_admin=False,
        created_at=now,
        name=tenant.name,
    )
    try:
        await storage.tenants.create(tenant, workspace, user)
    except NameTaken:
        # Two sign-ins of the same person at once: both are of the tenant that was first.
        first = await storage.users.find_by_subject(person.subject)
        if first is None:
            raise
        return first
    return user


def _provider(ctx: HttpContext, name: str) -> Provider:
    for provider in ctx.providers:
        if provider.name == name:
            return provider
    raise Problem("UZ-REQ-003", "there is no such sign-in provider")


def _back(ctx: HttpContext, provider: Provider) -> str:
    return f"{ctx.settings.base_url}/auth/callback/{provider.name}"


def _going_on(asked: str | None) -> str:
    return asked if asked is not None and _WHERE_TO.fullmatch(asked) else FIRST_PAGE


def _cookie(ctx: HttpContext, value: str, age_s: int) -> tuple[bytes, bytes]:
    # Not strict: the provider sends the browser back from another site, and it has to bring this one along.
    secure = "; Secure" if ctx.settings.base_url.startswith("https:") else ""
    text = f"{COOKIE}={value}; Path=/auth/callback; Max-Age={age_s}; HttpOnly; SameSite=Lax{secure}"
    return b"set-cookie", text.encode()


def _refuse(call: Call[NoBody, SignInReturn], reason: str) -> Answer:
    if not prefers_pages(call.head):
        raise Problem("UZ-AUTH-001", reason)
    return refused_page(reason)
