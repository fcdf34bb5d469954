"""An OpenID Connect provider on loopback: discovery, authorize, token, keys, userinfo."""

import base64
import hashlib
import json
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from html import escape
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote, urlencode

import jwt
import trio
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key as generate_ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as generate_rsa
from hypercorn.config import Config
from hypercorn.trio import serve as hypercorn_serve
from quart import Response, redirect, request
from quart_trio import QuartTrio

CLIENT_ID, CLIENT_SECRET = "sexton at work", "a secret: with/signs"
MAKERS: dict[str, Callable[[], Any]] = {
    "RS256": lambda: generate_rsa(65537, 2048),
    "ES256": lambda: generate_ec(SECP256R1()),
    "EdDSA": Ed25519PrivateKey.generate,
}


@dataclass
class SigningKey:
    """A private key, its id, and the algorithm that it is for."""

    algorithm: str
    key_id: str
    key: Any = None

    def __post_init__(self) -> None:
        self.key = self.key or MAKERS[self.algorithm]()

    def sign(self, claims: dict[str, Any], **header: Any) -> str:
        return jwt.encode(claims, self.key, self.algorithm, {"kid": self.key_id, **header})

    @property
    def public(self) -> dict[str, Any]:
        maker: Any = {
            "RS256": jwt.algorithms.RSAAlgorithm,
            "ES256": jwt.algorithms.ECAlgorithm,
            "EdDSA": jwt.algorithms.OKPAlgorithm,
        }[self.algorithm]
        row = maker.to_jwk(self.key.public_key(), as_dict=True)
        return {**row, "kid": self.key_id, "use": "sig", "alg": self.algorithm}


@cache
def _first_key() -> SigningKey:
    """The key of every provider, until a test gives it another: to make one is slow."""
    return SigningKey("RS256", "k1")


@dataclass
class Grant:
    """A code that was given out, and for what."""

    challenge: str
    redirect_uri: str
    nonce: str | None


@dataclass
class OidcServer:
    """What tests may turn: who signs in, which keys there are, what is down, what lies."""

    issuer: str = ""
    keys: list[SigningKey] = field(default_factory=lambda: [_first_key()])
    person: dict[str, Any] = field(
        default_factory=lambda: {
            "sub": "p-1",
            "name": "Pat Example",
            "email": "pat@example.com",
            "email_verified": True,
        }
    )
    refuses: str | None = None
    asks: bool = False
    """A person has to say yes on a page."""
    down: bool = False
    """Every end point answers 503."""
    lies: dict[str, Any] = field(default_factory=dict)
    """Put over the claims of ID tokens; None takes one out."""
    discovery_lies: dict[str, Any] = field(default_factory=dict)
    raw: dict[str, bytes] = field(default_factory=dict)
    """What an end point answers instead, by its path."""
    asked: dict[str, int] = field(default_factory=dict)
    grants: dict[str, Grant] = field(default_factory=dict)
    access_tokens: set[str] = field(default_factory=set)
    clock: Callable[[], float] = time.time
    """Unix seconds."""

    @property
    def discovery(self) -> dict[str, Any]:
        at = self.issuer
        return {
            "issuer": at,
            "authorization_endpoint": f"{at}/authorize",
            "token_endpoint": f"{at}/token",
            "jwks_uri": f"{at}/jwks",
            "userinfo_endpoint": f"{at}/userinfo",
            "code_challenge_methods_supported": ["S256"],
            **self.discovery_lies,
        }

    def id_token(self, nonce: str | None) -> str:
        at = self.clock()
        claims = {
            "iss": self.issuer,
            "aud": CLIENT_ID,
            "iat": int(at),
            "exp": int(at) + 300,
            "nonce": nonce,
            **self.person,
            **self.lies,
        }
        return self.keys[-1].sign({name: value for name, value in claims.items() if value is not None})


def make_app(server: OidcServer) -> QuartTrio:
    app = QuartTrio("oidc")

    @app.before_request
    async def count() -> Any:
        server.asked[request.path] = server.asked.get(request.path, 0) + 1
        if server.down:
            return Response("down", 503)
        if request.path in server.raw:
            return Response(server.raw[request.path], 200, content_type="application/json")
        return None

    @app.get("/.well-known/openid-configuration")
    async def discovery() -> Any:
        return server.discovery

    @app.get("/jwks")
    async def jwks() -> Any:
        return {"keys": [key.public for key in server.keys]}

    @app.get("/authorize")
    async def authorize() -> Any:
        asked = request.args
        wrong = [
            name
            for name, wanted in (
                ("response_type", "code"),
                ("client_id", CLIENT_ID),
                ("code_challenge_method", "S256"),
            )
            if asked.get(name) != wanted
        ]
        if wrong or len(asked.get("code_challenge", "")) != 43 or not asked.get("state"):
            return Response(f"bad request: {wrong}", 400)
        back = {"state": asked["state"], "iss": server.issuer}
        if server.refuses is not None:
            return redirect(f"{asked['redirect_uri']}?{urlencode({**back, 'error': server.refuses})}")
        code = secrets.token_urlsafe(16)
        server.grants[code] = Grant(asked["code_challenge"], asked["redirect_uri"], asked.get("nonce"))
        away = f"{asked['redirect_uri']}?{urlencode({**back, 'code': code})}"
        if server.asks:
            return f'<p>Let Sexton know who you are?</p><a href="{escape(away)}">Yes</a>'
        return redirect(away)

    @app.post("/token")
    async def token() -> Any:
        form = dict(parse_qsl(str(await request.get_data(as_text=True))))
        if _client(request.headers.get("authorization"), form) != (CLIENT_ID, CLIENT_SECRET):
            return Response(json.dumps({"error": "invalid_client"}), 401, content_type="application/json")
        grant = server.grants.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        right = grant is not None and (grant.challenge, grant.redirect_uri) == (
            challenge,
            form.get("redirect_uri"),
        )
        if not right or grant is None or form.get("grant_type") != "authorization_code":
            return Response(json.dumps({"error": "invalid_grant"}), 400, content_type="application/json")
        access = secrets.token_urlsafe(16)
        server.access_tokens.add(access)
        return {
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": 300,
            "id_token": server.id_token(grant.nonce),
        }

    @app.get("/userinfo")
    async def userinfo() -> Any:
        _, _, access = request.headers.get("authorization", "").partition(" ")
        if access not in server.access_tokens:
            return Response("no", 401)
        return server.person

    _add_strangers(app)
    return app


def _add_strangers(app: QuartTrio) -> None:
    """Pages of another site, which would like to use a person's cookie."""

    @app.get("/evil")
    async def evil() -> Any:
        target = escape(request.args["at"])
        return f'<form method="post" action="{target}/auth/sign-out"><button>Send</button></form>'

    @app.get("/favicon.ico")
    async def icon() -> Any:
        return Response(b"", 204)

    @app.get("/frame")
    async def frame() -> Any:
        return f'<iframe src="{escape(request.args["at"])}"></iframe>'


def _client(authorization: str | None, form: dict[str, str]) -> tuple[str, str]:
    if authorization is None:
        return form.get("client_id", ""), form.get("client_secret", "")
    name, _, secret = base64.b64decode(authorization.partition(" ")[2]).decode().partition(":")
    return unquote(name), unquote(secret)


@asynccontextmanager
async def open_oidc_server() -> AsyncIterator[OidcServer]:
    """A provider that answers until the block is left."""
    server, stop = OidcServer(), trio.Event()
    config = Config()
    config.bind, config.errorlog, config.accesslog = ["127.0.0.1:0"], None, None
    app: Any = make_app(server)
    async with trio.open_nursery() as nursery:

        async def run(task_status: trio.TaskStatus[list[str]]) -> None:
            await hypercorn_serve(app, config, shutdown_trigger=stop.wait, task_status=task_status)

        (server.issuer, *_) = await nursery.start(run)
        yield server
        stop.set()


def query_of(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(url.partition("?")[2]).items()}
