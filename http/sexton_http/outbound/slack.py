"""Slack over HTTP: the consent page, the exchange, and the few methods that our messages need."""

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

import msgspec

from sexton_actors.ports.chat import BotIdentity, ChatFault, Notice, Shown, Subject, Trouble
from sexton_http.outbound.errors import Unreachable
from sexton_http.outbound.http import Elsewhere

AUTHORIZE_URL: Final = "https://slack.com/oauth/v2/authorize"
API_URL: Final = "https://slack.com/api"
SCOPES: Final = ("chat:write", "chat:write.public", "incoming-webhook")
"""The last one has the person who installs choose a channel."""
BUSY_S: Final = 5
MAX_BUSY_S: Final = 900
OK: Final = 200
TOO_MANY: Final = 429
FAULTY: Final = 500

_REVOKED: Final = frozenset(
    {
        "account_inactive",
        "invalid_auth",
        "missing_scope",
        "not_allowed_token_type",
        "not_authed",
        "token_expired",
        "token_revoked",
    }
)
_BUSY: Final = frozenset(
    {
        "fatal_error",
        "internal_error",
        "rate_limited",
        "ratelimited",
        "request_timeout",
        "service_unavailable",
        "team_added_to_org",
    }
)
_METADATA: Final = {
    Subject.GATE: ("sexton_approval", "gate_id"),
    Subject.TRIAL: ("sexton_canary", "canary_id"),
}


@dataclass(frozen=True, slots=True)
class SlackSettings:
    """One Slack app of the server's own."""

    client_id: str
    client_secret: str
    signing_secret: str
    authorize_url: str = AUTHORIZE_URL
    api_url: str = API_URL
    scopes: tuple[str, ...] = SCOPES


class _Team(msgspec.Struct):
    id: str
    name: str = ""


class _Channel(msgspec.Struct):
    channel_id: str
    channel: str = ""


class _Exchanged(msgspec.Struct):
    access_token: str
    bot_user_id: str
    team: _Team
    incoming_webhook: _Channel


class _Message(msgspec.Struct):
    channel: str
    ts: str


class _Tested(msgspec.Struct):
    team_id: str
    user_id: str
    team: str = ""


@dataclass(frozen=True, slots=True)
class Installed:
    """What the exchange of a code gave: a bot, and the channel that was chosen for it."""

    token: str
    bot_user_id: str
    team_id: str
    team_name: str
    channel_id: str
    channel_name: str

    def __repr__(self) -> str:
        return f"<Installed in {self.team_id}>"


class Slack:
    """One Slack app. A ``ChatPlatform``; raises nothing, but says what went wrong."""

    def __init__(self, settings: SlackSettings, elsewhere: Elsewhere) -> None:
        self._settings = settings
        self._elsewhere = elsewhere

    def __repr__(self) -> str:
        return f"<Slack app {self._settings.client_id}>"

    @property
    def signing_secret(self) -> str:
        return self._settings.signing_secret

    def consent_url(self, state: str, redirect_uri: str) -> str:
        """Where a person allows the app into a workspace and chooses its channel."""
        settings = self._settings
        query = {
            "client_id": settings.client_id,
            "scope": ",".join(settings.scopes),
            "redirect_uri": redirect_uri,
            "state": state,
        }
        joint = "&" if "?" in settings.authorize_url else "?"
        return f"{settings.authorize_url}{joint}{urlencode(query)}"

    async def exchange(self, code: str, redirect_uri: str) -> Installed | ChatFault:
        form = {
            "client_id": self._settings.client_id,
            "client_secret": self._settings.client_secret,
            "code": code,
            "redirect_uri": redirect_uri,
        }
        answer = await self._call("oauth.v2.access", _Exchanged, data=form)
        if isinstance(answer, ChatFault):
            return answer
        team, channel = answer.team, answer.incoming_webhook
        return Installed(
            token=answer.access_token,
            bot_user_id=answer.bot_user_id,
            team_id=team.id,
            team_name=team.name,
            channel_id=channel.channel_id,
            channel_name=channel.channel,
        )

    async def post(
        self, token: str, channel_id: str, notice: Notice, subject: Subject, key: UUID
    ) -> Shown | ChatFault:
        # The same client_msg_id is the same message to Slack; the metadata says so to those who read.
        event_type, name = _METADATA[subject]
        metadata = {"event_type": event_type, "event_payload": {name: str(key)}}
        body = {"channel": channel_id, "client_msg_id": str(key), "metadata": metadata, **_words(notice)}
        return await self._show("chat.postMessage", token, body)

    async def update(self, token: str, channel_id: str, message_id: str, notice: Notice) -> Shown | ChatFault:
        return await self._show(
            "chat.update", token, {"channel": channel_id, "ts": message_id, **_words(notice)}
        )

    async def test(self, token: str) -> BotIdentity | ChatFault:
        answer = await self._call("auth.test", _Tested, token=token, data={})
        if isinstance(answer, ChatFault):
            return answer
        return BotIdentity(answer.team_id, answer.team, answer.user_id)

    async def revoke(self, token: str) -> None:
        await self._call("auth.revoke", msgspec.Struct, token=token, data={})

    async def _show(self, method: str, token: str, body: dict[str, Any]) -> Shown | ChatFault:
        answer = await self._call(method, _Message, token=token, json=body)
        return answer if isinstance(answer, ChatFault) else Shown(answer.channel, answer.ts)

    async def _call(self, method: str, shape: type[Any], token: str | None = None, **sent: Any) -> Any:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        try:
            reply = await self._elsewhere.ask(
                "POST", f"{self._settings.api_url}/{method}", headers=headers, **sent
            )
        except Unreachable as fault:
            return ChatFault(Trouble.BUSY, f"{method}: {fault}", BUSY_S, heard=False)
        if reply.status == TOO_MANY:
            return ChatFault(
                Trouble.BUSY, f"{method}: too many calls", _wait_s(reply.headers.get("retry-after"))
            )
        if reply.status >= FAULTY:
            return ChatFault(Trouble.BUSY, f"{method}: {reply.status}", BUSY_S, heard=False)
        return _read(method, reply.status, reply.body, shape)


def _read(method: str, status: int, body: bytes, shape: type[Any]) -> Any:
    try:
        document = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return ChatFault(Trouble.BUSY, f"{method}: {status} without JSON", BUSY_S, heard=False)
    if status != OK or document.get("ok") is not True:
        return _fault(method, document.get("error"))
    try:
        return msgspec.convert(document, shape)
    except msgspec.ValidationError as fault:
        return ChatFault(Trouble.REFUSED, f"{method}: {fault}", heard=False)


def _fault(method: str, error: object) -> ChatFault:
    name = error if isinstance(error, str) and error.isascii() and error.isprintable() else "unknown_error"
    detail = f"{method}: {name[:64]}"
    if name in _REVOKED:
        return ChatFault(Trouble.REVOKED, detail)
    if name in _BUSY:
        return ChatFault(Trouble.BUSY, detail, BUSY_S, heard="rate" in name)
    return ChatFault(Trouble.REFUSED, detail)


def _words(notice: Notice) -> dict[str, Any]:
    return {"text": notice.text, "blocks": list(notice.blocks)}


def _wait_s(header: str | None) -> int:
    return min(int(header), MAX_BUSY_S) if header is not None and header.isdecimal() else BUSY_S
