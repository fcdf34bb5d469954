"""What people meet in a browser: signing in by a link, the overview, the page that approves a terminal."""

from uuid import UUID

from sexton_actors.protocol.auth_session import Read
from sexton_actors.refusal import Refusal
from sexton_http.answers import Answer, Headers, Problem
from sexton_http.bodies.shapes import Body, Shape
from sexton_http.gateway.audit_entries import entry_by
from sexton_http.gateway.call import Call
from sexton_http.gateway.limits import Quota
from sexton_http.gateway.operations import Auth, NoBody, NoQuery, operation
from sexton_http.identity.issuers.builtin import TOKEN_S
from sexton_http.identity.same_origin import check_same_origin
from sexton_http.pages.accept import prefers_pages
from sexton_http.pages.assets import ASSETS, BY_ADDRESS
from sexton_http.pages.headers import HEADERS
from sexton_http.pages.people import (
    FIRST_PAGE,
    device_page,
    home_page,
    link_page,
    no_device_page,
    sign_in_page,
    used_link_page,
)
from sexton_storage.attribution import attributed

TAG = "Browser"
SEE_OTHER = 303
GONE = 410
GUESSES = Quota(count=30, window_s=60)
"""At sign-in links, from one address."""


class TokenWish(Body):
    session_id: UUID | None = None
    """The terminal that it is for. Such a token outlives the browser's sign-out; any other does not.

    The terminal can have a lasting sign-in for it, once.
    """


class TokenMade(Shape):
    token: str
    expires_at: int


@operation("GET", "/", tag=TAG, auth=Auth.PUBLIC, media="text/html")
async def show_home(call: Call[NoBody, NoQuery]) -> Answer:
    """Show who is signed in, and the workspaces; or how to sign in."""
    who = await call.services.browsers.find(call.head)
    if who is None:
        return sign_in_page(call.services.ways)
    return home_page(who, await call.ctx.world.storage.workspaces.list(who.tenant.id))


@operation(
    "GET",
    "/auth/sign-in/{token}",
    tag=TAG,
    auth=Auth.PUBLIC,
    media="text/html",
    extra_statuses=(GONE,),
    codes=("UZ-AUTH-012",),
    quota=GUESSES,
)
async def show_sign_in_link(call: Call[NoBody, NoQuery]) -> Answer:
    """Show the button that uses a sign-in link up.

    Looking changes nothing, so previews of links, scanners and prefetching browsers sign nobody in.
    """
    link = await call.services.browsers.find_link(call.text("token"))
    return _used_link(call) if link is None else link_page()


@operation(
    "POST",
    "/auth/sign-in/{token}",
    tag=TAG,
    auth=Auth.PUBLIC,
    media="text/html",
    status=SEE_OTHER,
    extra_statuses=(GONE,),
    codes=("UZ-AUTH-001", "UZ-AUTH-012"),
    quota=GUESSES,
)
async def use_sign_in_link(call: Call[NoBody, NoQuery]) -> Answer:
    """Sign this browser in, once, and go to what waits now. Only from the page of the link itself."""
    check_same_origin(call.head, call.ctx.settings.base_url)
    browsers = call.services.browsers
    link = await browsers.find_link(call.text("token"))
    user = None if link is None else await call.ctx.world.storage.users.load(link.user_id)
    if user is None:
        return _used_link(call)
    with attributed(entry_by(call, user.tenant_id, f"user:{user.id}", user.name, target=str(user.id))):
        cookie = await browsers.sign_in(call.head, user.id, link)
    return _used_link(call) if cookie is None else _go_to(FIRST_PAGE, cookie)


@operation("POST", "/auth/sign-out", tag=TAG, auth=Auth.BROWSER, media="text/html", status=SEE_OTHER)
async def sign_out(call: Call[NoBody, NoQuery]) -> Answer:
    """Sign this browser out; its tokens and streams end with it."""
    services, session_id = call.services, call.signed_in.session.id
    return _go_to("/", await services.browsers.sign_out(session_id))


@operation("POST", "/auth/token", tag=TAG, auth=Auth.BROWSER)
async def make_token(call: Call[TokenWish, NoQuery]) -> TokenMade:
    """Mint a user token for fifteen minutes, for a page or for the terminal that it approves."""
    who, now = call.signed_in, call.ctx.world.now_ms()
    token = call.ctx.issuer.mint(
        subject=str(who.user.id),
        tenant_id=who.tenant.id,
        role=who.user.role,
        now_s=now / 1000,
        platform_admin=who.user.platform_admin,
        browser=None if call.body.session_id is not None else who.session.id,
        device=call.body.session_id,
    )
    return TokenMade(token, (now // 1000 + TOKEN_S) * 1000)


@operation(
    "GET",
    "/auth/device/{session_id}",
    tag=TAG,
    auth=Auth.PUBLIC,
    media="text/html",
    extra_statuses=(404,),
    codes=("UZ-AUTH-005",),
)
async def show_device(call: Call[NoBody, NoQuery]) -> Answer:
    """Show the page on which a signed-in person approves a terminal and reads the code."""
    session_id, who = call.id("session_id"), await call.services.browsers.find(call.head)
    if who is None:
        return sign_in_page(call.services.ways, f"?next=/auth/device/{session_id}")
    seen = await call.ctx.system.ask("session", session_id, Read(take=False))
    if isinstance(seen, Refusal):
        if seen.code != "UZ-AUTH-005" or not prefers_pages(call.head):
            raise Problem(seen.code, seen.detail, wait_s=seen.retry_after_s)
        return no_device_page(who)
    return device_page(who, seen, call.ctx.settings.sign_ins)


@operation(
    "GET",
    "/cli-auth/{session_id}",
    tag=TAG,
    auth=Auth.PUBLIC,
    media="text/html",
    status=SEE_OTHER,
    no_io=True,
)
async def show_cli_auth(call: Call[NoBody, NoQuery]) -> Answer:
    """Go to the page on which a terminal is approved; older command lines open this address."""
    location = f"/auth/device/{call.id('session_id')}".encode()
    return Answer(SEE_OTHER, ((b"location", location), *HEADERS), b"")


@operation(
    "GET",
    "/assets/{name}",
    tag=TAG,
    auth=Auth.PUBLIC,
    media="text/css, text/javascript",
    codes=("UZ-REQ-003",),
)
async def show_asset(call: Call[NoBody, NoQuery]) -> Answer:
    """Give out a file that pages load."""
    name = call.text("name")
    versioned = BY_ADDRESS.get(f"/assets/{name}")
    asset = versioned or ASSETS.get(name)
    if asset is None:
        raise Problem("UZ-REQ-003", "there is no such file")
    kept = b"no-cache" if versioned is None else b"public, max-age=31536000, immutable"
    headers = ((b"content-type", asset.content_type), *HEADERS[1:-1], (b"cache-control", kept))
    return Answer(200, headers, asset.body)


def _go_to(path: str, cookie: tuple[bytes, bytes]) -> Answer:
    headers: Headers = ((b"location", path.encode()), cookie, *HEADERS)
    return Answer(SEE_OTHER, headers, b"")


def _used_link(call: Call[NoBody, NoQuery]) -> Answer:
    """It is not told which of these it is."""
    if not prefers_pages(call.head):
        raise Problem("UZ-AUTH-012", "the sign-in link is unknown, used or expired")
    return used_link_page()
