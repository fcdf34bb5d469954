"""Signs people in elsewhere by OAuth 2.0 with PKCE: with OpenID Connect, or a code host without it."""

import base64
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, Literal
from urllib.parse import quote, urlencode

from sexton_http.answers import Problem
from sexton_http.identity.context import Person
from sexton_http.identity.issuers.builtin import LEEWAY_S
from sexton_http.identity.issuers.jwks import KeySet
from sexton_http.identity.issuers.oidc import discover, text_of, unauthorized, verify_signed
from sexton_http.identity.tokens import same
from sexton_http.outbound.errors import Unreachable
from sexton_http.outbound.http import Elsewhere

DESCRIPTION_S: Final = 3600.0
"""How long an issuer's discovery document is kept."""
MAX_SUBJECT_CHARS: Final = 255
ClientAuth = Literal["basic", "post"]


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """One place to sign in. With ``issuer`` it speaks OpenID Connect; addresses not given are discovered."""

    name: str
    label: str
    client_id: str
    admit: tuple[str, ...]
    """Patterns of who may come: with an ``@`` of verified addresses, else of subjects. ``*`` is everybody."""
    client_secret: str | None = None
    client_auth: ClientAuth | None = None
    issuer: str | None = None
    authorize_url: str | None = None
    token_url: str | None = None
    jwks_url: str | None = None
    userinfo_url: str | None = None
    """Asked for who it is where there is no ID token."""
    subject_field: str = "sub"
    name_field: str = "name"
    scopes: tuple[str, ...] = ("openid", "email", "profile")


def challenge_of(verifier: str) -> str:
    """PKCE, method S256 (RFC 7636, appendix B).

    >>> challenge_of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
    'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
    """
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


class OAuthProvider:
    """One provider, over HTTP."""

    def __init__(
        self, settings: ProviderSettings, elsewhere: Elsewhere, monotonic: Callable[[], float]
    ) -> None:
        self._settings = settings
        self._elsewhere = elsewhere
        self._monotonic = monotonic
        self._keys = KeySet(settings.issuer or settings.name, self._fetch_keys, monotonic)
        self._described: tuple[float, dict[str, Any]] | None = None

    def __repr__(self) -> str:
        return f"<OAuthProvider {self.name}>"

    @property
    def name(self) -> str:
        return self._settings.name

    @property
    def label(self) -> str:
        return self._settings.label

    @property
    def issuer(self) -> str | None:
        return self._settings.issuer

    async def depart(self, *, state: str, nonce: str, challenge: str, redirect_uri: str) -> str:
        """Where to send the browser. Raises Unreachable."""
        settings = self._settings
        at = settings.authorize_url or await self._described_as("authorization_endpoint")
        query = {
            "response_type": "code",
            "client_id": settings.client_id,
            "redirect_uri": redirect_uri,
            "scope": " ".join(settings.scopes),
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        if settings.issuer is not None:
            query["nonce"] = nonce
        return f"{at}{'&' if '?' in at else '?'}{urlencode(query)}"

    async def arrive(
        self, *, code: str, verifier: str, nonce: str, redirect_uri: str, now_s: float
    ) -> Person:
        """Who has come back. Raises Unreachable, and Problem UZ-AUTH-002, -004 or -001 for a stranger."""
        given = await self._exchange(code, verifier, redirect_uri)
        if self._settings.issuer is None:
            claims = await self._ask_who(given)
        else:
            claims = await self._read_id_token(given, nonce, now_s)
        return self._admit(claims)

    async def _exchange(self, code: str, verifier: str, redirect_uri: str) -> dict[str, Any]:
        settings = self._settings
        at = settings.token_url or await self._described_as("token_endpoint")
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        headers: dict[str, str] = {}
        auth = settings.client_auth or ("post" if settings.issuer is None else "basic")
        if settings.client_secret is not None and auth == "basic":
            pair = f"{quote(settings.client_id, safe='')}:{quote(settings.client_secret, safe='')}"
            headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            form["client_id"] = settings.client_id
            if settings.client_secret is not None:
                form["client_secret"] = settings.client_secret
        return await self._elsewhere.post(at, form, headers)

    async def _read_id_token(self, given: Mapping[str, Any], nonce: str, now_s: float) -> dict[str, Any]:
        token, settings = given.get("id_token"), self._settings
        if not isinstance(token, str):
            raise unauthorized("the provider gave no ID token")
        issuer, audience = settings.issuer or "", settings.client_id
        claims = await verify_signed(self._keys, token, issuer=issuer, audience=audience)
        several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if (several or "azp" in claims) and claims.get("azp") != audience:
            raise unauthorized("the ID token is for another client")
        expires, given_nonce = claims["exp"], claims.get("nonce")
        if not isinstance(expires, int | float) or now_s >= expires + LEEWAY_S:
            raise unauthorized("the ID token has expired")
        if not isinstance(given_nonce, str) or not same(given_nonce.encode(), nonce.encode()):
            raise unauthorized("the ID token is of another sign-in")
        return claims

    async def _ask_who(self, given: Mapping[str, Any]) -> dict[str, Any]:
        token, settings = given.get("access_token"), self._settings
        if not isinstance(token, str) or settings.userinfo_url is None:
            raise unauthorized("the provider gave no token")
        claims = await self._elsewhere.get(settings.userinfo_url, {"authorization": f"Bearer {token}"})
        # Who may be told from here only by a name that the provider does not give to another.
        return {**claims, "email_verified": False}

    def _admit(self, claims: Mapping[str, Any]) -> Person:
        settings, subject = self._settings, claims.get(self._settings.subject_field)
        if not isinstance(subject, str | int) or not 1 <= len(str(subject)) <= MAX_SUBJECT_CHARS:
            raise unauthorized("the provider did not say who it is")
        email = claims.get("email") if claims.get("email_verified") is True else None
        address = email.lower() if isinstance(email, str) else None
        if not any(_fits(pattern, str(subject), address) for pattern in settings.admit):
            raise Problem("UZ-AUTH-001", "this server does not admit you")
        shown = claims.get(settings.name_field)
        return Person(
            subject=f"{settings.issuer or settings.name}#{subject}",
            name=shown
            if isinstance(shown, str) and shown.isprintable() and shown
            else address or str(subject),
        )

    async def _described_as(self, field: str) -> str:
        issuer = self._settings.issuer
        if issuer is None:
            raise Unreachable(f"{self.name} has no {field}")
        now = self._monotonic()
        if self._described is None or now - self._described[0] >= DESCRIPTION_S:
            self._described = now, await discover(self._elsewhere, issuer)
        return text_of(self._described[1], field)

    async def _fetch_keys(self) -> dict[str, Any]:
        return await self._elsewhere.get(self._settings.jwks_url or await self._described_as("jwks_uri"))


def _fits(pattern: str, subject: str, address: str | None) -> bool:
    """Whether a pattern admits somebody. A subject that looks like an address is none.

    >>> _fits("*@example.com", "me@example.com", None), _fits("*@example.com", "7", "me@example.com")
    (False, True)
    """
    if "@" in pattern:
        return address is not None and fnmatchcase(address, pattern)
    return fnmatchcase(subject, pattern)
