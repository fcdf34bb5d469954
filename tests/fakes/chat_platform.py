"""Slack as a real HTTP server on loopback: consent, exchange, messages, tests, and their error forms."""

import json
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import trio
from hypercorn.config import Config
from hypercorn.trio import serve as hypercorn_serve
from quart import Response, redirect, request
from quart_trio import QuartTrio
from slack_sdk.signature import SignatureVerifier

from sexton_http.outbound.slack import SlackSettings
from tests.patience import PATIENCE_S

CLIENT_ID, CLIENT_SECRET, SIGNING_SECRET = "1.2", "a client secret", "8f742231b10e8888abcd99yyyzzz85a5"
TEAM, CHANNEL, BOT = "T1", "C1", "UB1"
SECTION_CHARS = 3000


@dataclass
class Message:
    channel: str
    ts: str
    body: dict[str, Any]

    @property
    def text(self) -> str:
        return str(self.body["blocks"][0]["text"]["text"])

    @property
    def values(self) -> list[str]:
        """Of its buttons."""
        return [
            element["value"]
            for block in self.body["blocks"]
            if block["type"] == "actions"
            for element in block["elements"]
        ]


@dataclass
class SlackServer:
    """What tests may turn: which errors come next, and what an end point answers instead."""

    url: str = ""
    team: str = TEAM
    channels: set[str] = field(default_factory=lambda: {CHANNEL})
    codes: dict[str, str] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    messages: dict[str, Message] = field(default_factory=dict)
    by_client_id: dict[str, str] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    errors: dict[str, list[str]] = field(default_factory=dict)
    """By method, what it answers first; ``429`` and ``500`` are statuses."""
    raw: dict[str, list[bytes]] = field(default_factory=dict)
    """By method, bodies that it answers first."""
    unheard: list[str] = field(default_factory=list)
    """Methods that do their work once, and whose answer is lost."""
    hold: trio.Event | None = None
    """Answers are given only once it is set, though the work is done."""
    consent: str | None = None
    """What the person says instead of yes."""
    told: dict[str, Any] = field(default_factory=dict)
    """Put over the answer of the exchange; None takes one out."""
    _changed: trio.Event = field(default_factory=trio.Event)

    @property
    def settings(self) -> SlackSettings:
        return SlackSettings(
            CLIENT_ID,
            CLIENT_SECRET,
            SIGNING_SECRET,
            authorize_url=f"{self.url}/oauth/v2/authorize",
            api_url=f"{self.url}/api",
        )

    def note(self, method: str) -> None:
        self.calls.append(method)
        self._changed.set()
        self._changed = trio.Event()

    async def until(self, true: Callable[[], bool]) -> None:
        """Until a call has made it true."""
        with trio.fail_after(PATIENCE_S):
            while not true():
                await self._changed.wait()

    def press(self, value: str, user: str = "U7", **changes: Any) -> bytes:
        """The form that a pressed button sends."""
        payload = {
            "type": "block_actions",
            "team": {"id": self.team, "domain": "team"},
            "user": {"id": user, "username": "pat", "team_id": self.team},
            "actions": [{"type": "button", "action_id": "x", "block_id": "b", "value": value}],
            "response_url": f"{self.url}/actions/1",
            **changes,
        }
        return urlencode({"payload": json.dumps(payload)}).encode()


def signed(body: bytes, at_s: float, secret: str = SIGNING_SECRET) -> dict[str, str]:
    """As Slack's own library signs."""
    stamp = str(int(at_s))
    signature = SignatureVerifier(secret).generate_signature(timestamp=stamp, body=body)
    assert signature is not None
    return {
        "content-type": "application/x-www-form-urlencoded",
        "x-slack-request-timestamp": stamp,
        "x-slack-signature": signature,
    }


def _error(name: str) -> Any:
    if name == "429":
        return Response("", 429, {"retry-after": "1"})
    if name == "500":
        return Response("oops", 500)
    return {"ok": False, "error": name}


def make_app(slack: SlackServer) -> QuartTrio:
    app = QuartTrio("slack")

    @app.get("/oauth/v2/authorize")
    async def authorize() -> Any:
        asked = request.args
        assert asked["client_id"] == CLIENT_ID
        assert {"chat:write", "incoming-webhook"} <= set(asked["scope"].split(","))
        if slack.consent is not None:
            return redirect(
                f"{asked['redirect_uri']}?{urlencode({'error': slack.consent, 'state': asked['state']})}"
            )
        code = secrets.token_urlsafe(8)
        slack.codes[code] = asked["redirect_uri"]
        return redirect(f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}")

    @app.post("/api/<method>")
    async def api(method: str) -> Any:
        waiting = slack.errors.get(method)
        if waiting:
            name = waiting.pop(0)
            slack.note(method)
            return _error(name)
        if bodies := slack.raw.get(method):
            whole = bodies.pop(0)
            slack.note(method)
            return Response(whole, 200, content_type="application/json")
        if method == "oauth.v2.access":
            answer = _exchange(slack, dict(await request.form))
        else:
            token = request.headers.get("authorization", "").removeprefix("Bearer ")
            if token not in slack.tokens:
                answer = _error("invalid_auth")
            else:
                body = await request.get_json() if request.is_json else dict(await request.form)
                answer = METHODS[method](slack, token, body)
        slack.note(method)
        if slack.hold is not None:
            await slack.hold.wait()
        if method in slack.unheard:
            slack.unheard.remove(method)
            return Response("the answer is lost", 502)
        return answer

    return app


def _exchange(slack: SlackServer, form: dict[str, str]) -> Any:
    if (form.get("client_id"), form.get("client_secret")) != (CLIENT_ID, CLIENT_SECRET):
        return _error("bad_client_secret")
    if slack.codes.pop(form.get("code", ""), None) != form.get("redirect_uri"):
        return _error("invalid_code")
    token = f"xoxb-{secrets.token_hex(8)}"
    slack.tokens.add(token)
    answer = {
        "ok": True,
        "access_token": token,
        "token_type": "bot",
        "scope": "chat:write,incoming-webhook",
        "bot_user_id": BOT,
        "app_id": "A1",
        "team": {"id": slack.team, "name": "The Team"},
        "enterprise": None,
        "authed_user": {"id": "U7"},
        "incoming_webhook": {"channel": "#ops", "channel_id": CHANNEL, "url": "https://hooks.example"},
        **slack.told,
    }
    return {name: value for name, value in answer.items() if value is not None}


def _post(slack: SlackServer, _token: str, body: dict[str, Any]) -> Any:
    fault = _fault(slack, body)
    if fault is not None:
        return _error(fault)
    ts = slack.by_client_id.get(body["client_msg_id"])
    if ts is None:
        ts = f"1700000000.{len(slack.messages):06}"
        slack.by_client_id[body["client_msg_id"]] = ts
        slack.messages[ts] = Message(body["channel"], ts, body)
    return {"ok": True, "channel": body["channel"], "ts": ts, "message": {}}


def _update(slack: SlackServer, _token: str, body: dict[str, Any]) -> Any:
    fault = _fault(slack, body)
    if fault is not None:
        return _error(fault)
    message = slack.messages.get(body["ts"])
    if message is None or message.channel != body["channel"]:
        return _error("message_not_found")
    message.body = body
    return {"ok": True, "channel": body["channel"], "ts": body["ts"], "text": body["text"]}


def _fault(slack: SlackServer, body: dict[str, Any]) -> str | None:
    if body["channel"] not in slack.channels:
        return "channel_not_found"
    for block in body["blocks"]:
        if block["type"] == "section" and not 1 <= len(block["text"]["text"]) <= SECTION_CHARS:
            return "invalid_blocks"
        for element in block.get("elements", ()):
            if len(element["value"]) > 2000 or len(element["action_id"]) > 255:
                return "invalid_blocks"
    return None


def _test(slack: SlackServer, _token: str, _body: dict[str, Any]) -> Any:
    return {"ok": True, "team": "The Team", "team_id": slack.team, "user": "sexton", "user_id": BOT}


def _revoke(slack: SlackServer, token: str, _body: dict[str, Any]) -> Any:
    slack.tokens.discard(token)
    return {"ok": True, "revoked": True}


METHODS: dict[str, Callable[[SlackServer, str, dict[str, Any]], Any]] = {
    "chat.postMessage": _post,
    "chat.update": _update,
    "auth.test": _test,
    "auth.revoke": _revoke,
}


@asynccontextmanager
async def open_slack_server() -> AsyncIterator[SlackServer]:
    """A platform that answers until the block is left."""
    slack, stop = SlackServer(), trio.Event()
    config = Config()
    config.bind, config.errorlog, config.accesslog = ["127.0.0.1:0"], None, None
    app: Any = make_app(slack)
    async with trio.open_nursery() as nursery:

        async def run(task_status: trio.TaskStatus[list[str]]) -> None:
            await hypercorn_serve(app, config, shutdown_trigger=stop.wait, task_status=task_status)

        (slack.url, *_) = await nursery.start(run)
        yield slack
        stop.set()
