"""A workspace's chat: connecting it, looking at it, letting it go, and the buttons that are pressed there."""

from typing import Annotated, Final
from uuid import UUID

import msgspec

from sexton_actors.ports.chat import BotIdentity, ChatFault
from sexton_actors.protocol.chat import Install, Probe, Uninstall
from sexton_actors.protocol.gate import Resolve
from sexton_actors.refusal import Refusal
from sexton_http.answers import Answer, Problem, RequestHead
from sexton_http.bodies.shapes import Query, Shape
from sexton_http.gateway.audit_entries import ask, entry_by
from sexton_http.gateway.call import Call
from sexton_http.gateway.limits import Quota
from sexton_http.gateway.operations import MAX_CHAT_FORM_BYTES, Auth, NoBody, NoQuery, operation
from sexton_http.identity.browsers import read_cookie
from sexton_http.identity.context import HttpContext
from sexton_http.identity.tokens import TOKEN_BYTES, digest, same
from sexton_http.outbound.slack import Slack
from sexton_http.pages.chat import installed_page
from sexton_http.pages.headers import HEADERS
from sexton_http.routes.shared.gate_decisions import GateDecided, decide, or_denied
from sexton_http.routes.shared.slack_actions import check_team, press_of_app
from sexton_storage.attribution import attributed
from sexton_storage.records.chats import ChatInstall
from sexton_storage.records.gates import Gate
from sexton_storage.records.sign_ins import SignInAttempt
from sexton_storage.records.users import Role

TAG = "Chat"
SEE_OTHER: Final = 303
ATTEMPT_MS: Final = 10 * 60 * 1000
"""How long a person may take at the platform."""
STATE_BYTES: Final = 16
ARRIVALS: Final = Quota(count=20, window_s=60)
"""From one address."""
PLATFORM: Final = "chat:slack"
"""Among the attempts: no name of an identity provider has a colon."""
COOKIE: Final = "sexton-chat"
CALLBACK: Final = "/v1/chat/slack/callback"
NO_PLATFORM: Final = ("UZ-REQ-003",)

Text = Annotated[str, msgspec.Meta(max_length=4096)]


class ChatView(Shape):
    """Without an install nothing else is known."""

    installed: bool
    team_id: str | None = None
    team_name: str | None = None
    channel_id: str | None = None
    channel_name: str | None = None
    installed_by: str | None = None
    created_at: int | None = None
    updated_at: int | None = None
    revoked_at: int | None = None
    """Since when the platform refuses the token."""


class ChatStanding(Shape):
    """The token is good, here and now."""

    ok: bool
    team_id: str
    team_name: str
    bot_user_id: str


class ChatReturn(Query):
    state: Text | None = None
    code: Text | None = None
    error: Text | None = None


class _Kept(msgspec.Struct, frozen=True):
    """What is sealed into an attempt. ``bound``: it was begun in a browser, and has to end there."""

    workspace_id: UUID
    tenant_id: UUID
    by: str
    bound: bool


@operation("GET", "/v1/workspaces/{workspace_id}/chat/slack", tag=TAG, cookie=True)
async def show_chat(call: Call[NoBody, NoQuery]) -> ChatView:
    """Show where the workspace's approval requests are posted."""
    install = await call.ctx.world.storage.chats.load(call.id("workspace_id"))
    if install is None:
        return ChatView(installed=False)
    return ChatView(
        installed=True,
        team_id=install.team_id,
        team_name=install.team_name,
        channel_id=install.channel_id,
        channel_name=install.channel_name,
        installed_by=install.installed_by,
        created_at=install.created_at,
        updated_at=install.updated_at,
        revoked_at=install.revoked_at,
    )


@operation(
    "GET",
    "/v1/workspaces/{workspace_id}/chat/slack/install",
    tag=TAG,
    role=Role.OPERATOR,
    status=SEE_OTHER,
    media="text/html",
    codes=NO_PLATFORM,
    cookie=True,
)
async def install_chat(call: Call[NoBody, NoQuery]) -> Answer:
    """Go to the platform's consent page, to allow the bot and choose its channel.

    The address it redirects to is good once, within ten minutes; begun in a signed-in browser, it has to be
    ended in the same one.
    """
    ctx, slack, now = call.ctx, _slack(call.ctx), call.ctx.world.now_ms()
    browser = ctx.world.new_token(TOKEN_BYTES)
    state = ctx.keys.sign(bytes.fromhex(ctx.world.new_token(STATE_BYTES)))
    bound = b"authorization" not in call.head.headers
    kept = _Kept(call.id("workspace_id"), call.member.tenant_id, call.member.by, bound)
    hashed = digest(state)
    sealed = ctx.keys.seal(msgspec.json.encode(kept).decode(), hashed)
    attempt = SignInAttempt(hashed, PLATFORM, digest(browser), sealed, now, now + ATTEMPT_MS)
    await ctx.world.storage.sign_ins.begin(attempt)
    to = slack.consent_url(state, _back(ctx))
    headers = ((b"location", to.encode()), _cookie(ctx, browser, ATTEMPT_MS // 1000), *HEADERS)
    return Answer(SEE_OTHER, headers, b"")


@operation(
    "GET",
    CALLBACK,
    tag=TAG,
    auth=Auth.PUBLIC,
    media="text/html",
    codes=(*NO_PLATFORM, "UZ-CHATPLUGIN-001", "UZ-CHATPLUGIN-002"),
    quota=ARRIVALS,
)
async def arrive_from_chat(call: Call[NoBody, ChatReturn]) -> Answer:
    """Come back from the platform's consent page: the bot's token is kept in the vault."""
    ctx, slack = call.ctx, _slack(call.ctx)
    kept = await _attempt(ctx, call.head, call.query)
    if not call.query.code:
        raise Problem("UZ-CHATPLUGIN-002", "the platform sent no code: the consent was not given")
    given = await slack.exchange(call.query.code, _back(ctx))
    if isinstance(given, ChatFault):
        raise Problem("UZ-CHATPLUGIN-002", f"the platform gave no token: {given.detail}")
    now = ctx.world.now_ms()
    install = ChatInstall(
        workspace_id=kept.workspace_id,
        tenant_id=kept.tenant_id,
        team_id=given.team_id,
        team_name=given.team_name,
        channel_id=given.channel_id,
        channel_name=given.channel_name,
        bot_user_id=given.bot_user_id,
        installed_by=kept.by,
        created_at=now,
        updated_at=now,
    )
    with attributed(entry_by(call, kept.tenant_id, kept.by, workspace_id=kept.workspace_id)):
        await ask(ctx.system, "chat", kept.workspace_id, Install(install, given.token))
    return installed_page(given.team_name, given.channel_name, _cookie(ctx, "", 0))


@operation(
    "POST",
    "/v1/workspaces/{workspace_id}/chat/slack/test",
    tag=TAG,
    role=Role.OPERATOR,
    codes=("UZ-CHATPLUGIN-002", "UZ-CHATPLUGIN-003"),
)
async def probe_chat(call: Call[NoBody, NoQuery]) -> ChatStanding | Refusal:
    """Ask the platform whether the bot's token is still good."""
    match await call.ctx.system.ask("chat", call.id("workspace_id"), Probe()):
        case Refusal() as refusal:
            return refusal
        case BotIdentity() as bot:
            return ChatStanding(
                ok=True,
                team_id=bot.team_id,
                team_name=bot.team_name,
                bot_user_id=bot.bot_user_id,
            )


@operation(
    "DELETE",
    "/v1/workspaces/{workspace_id}/chat/slack",
    tag=TAG,
    role=Role.OPERATOR,
    status=204,
)
async def uninstall_chat(call: Call[NoBody, NoQuery]) -> None:
    """Give the bot's token back and forget it; one that is not there is forgotten already."""
    await ask(call.ctx.system, "chat", call.id("workspace_id"), Uninstall())


@operation(
    "POST",
    "/v1/chat/slack/interactions",
    tag=TAG,
    auth=Auth.PUBLIC,
    codes=("UZ-APPROVAL-002", "UZ-APPROVAL-003", "UZ-APPROVAL-004", "UZ-REQ-001"),
    max_body=MAX_CHAT_FORM_BYTES,
    takes_bytes=True,
)
async def press_in_chat(call: Call[NoBody, NoQuery]) -> GateDecided | Refusal:
    """Decide a gate by a button of the server's own chat app, in any workspace that it is installed in.

    The address to give the app for its interactivity. The form is proven by its signature, and the button
    counts only in the chat that the gate's workspace has installed.
    """
    press = press_of_app(call)
    gate = await _gate(call, press.subject)
    await check_team(call, press, gate.workspace_id)
    with attributed(entry_by(call, gate.tenant_id, press.by, workspace_id=gate.workspace_id)):
        return await decide(call.ctx, gate.id, Resolve(approve=press.approve, by=press.by))


async def _gate(call: Call[NoBody, NoQuery], subject: str) -> Gate:
    """Raises Problem UZ-APPROVAL-002."""
    try:
        gate_id = UUID(subject)
    except ValueError:
        gate = None
    else:
        gate = await or_denied(call.ctx.world.storage.gates.load(gate_id))
    if gate is None:
        raise Problem("UZ-APPROVAL-002", "there is no such gate")
    return gate


def _slack(ctx: HttpContext) -> Slack:
    if ctx.slack is None:
        raise Problem("UZ-REQ-003", "no chat platform is configured here")
    return ctx.slack


async def _attempt(ctx: HttpContext, head: RequestHead, query: ChatReturn) -> _Kept:
    """What was kept at the departure; given once. Raises Problem UZ-CHATPLUGIN-001."""
    wrong = Problem("UZ-CHATPLUGIN-001", "it was used, took too long, or began elsewhere; begin again")
    if query.state is None or ctx.keys.check(query.state) is None:
        raise wrong
    attempt = await ctx.world.storage.sign_ins.take(digest(query.state))
    if attempt is None or attempt.provider != PLATFORM or attempt.expires_at <= ctx.world.now_ms():
        raise wrong
    kept = msgspec.json.decode(ctx.keys.open(attempt.sealed, attempt.state_hash), type=_Kept)
    if kept.bound and not same(attempt.browser_hash, digest(read_cookie(head, COOKIE) or "")):
        raise wrong
    return kept


def _back(ctx: HttpContext) -> str:
    return f"{ctx.settings.base_url}{CALLBACK}"


def _cookie(ctx: HttpContext, value: str, age_s: int) -> tuple[bytes, bytes]:
    # Not strict: the platform sends the browser back from another site, and it has to bring this one along.
    secure = "; Secure" if ctx.settings.base_url.startswith("https:") else ""
    text = f"{COOKIE}={value}; Path={CALLBACK}; Max-Age={age_s}; HttpOnly; SameSite=Lax{secure}"
    return b"set-cookie", text.encode()
