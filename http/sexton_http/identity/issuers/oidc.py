"""Checks user tokens of an OpenID Connect issuer elsewhere."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

import jwt

from sexton_http.answers import Problem
from sexton_http.identity.context import Claims
from sexton_http.identity.issuers.builtin import read_claims
from sexton_http.identity.issuers.jwks import KeySet
from sexton_http.outbound.errors import Unreachable
from sexton_http.outbound.http import Elsewhere

DISCOVERY: Final = "/.well-known/openid-configuration"
_OPTIONS: Final[Any] = {
    "require": ["iss", "sub", "aud", "exp"],
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
}
"""The times are checked by our clock, not by PyJWT's."""


@dataclass(frozen=True, slots=True)
class IssuerSettings:
    """An issuer whose tokens are taken. ``jwks_url`` None: found by discovery."""

    issuer: str
    audience: str
    jwks_url: str | None = None
    platform_admins: bool = False
    """Whether its claim ``platform_admin`` counts."""
    tenants: frozenset[UUID] = frozenset()
    """The tenants that its tokens may name."""
    every_tenant: bool = False
    """It may name any, those that are made later too."""


async def discover(elsewhere: Elsewhere, issuer: str) -> dict[str, Any]:
    """The issuer's description of itself. Raises Unreachable, also when it says to be another."""
    document = await elsewhere.get(issuer.rstrip("/") + DISCOVERY)
    if document.get("issuer") != issuer:
        raise Unreachable(f"{issuer} calls itself {document.get('issuer')!r}")
    return document


def text_of(document: dict[str, Any], name: str) -> str:
    """A text of a document from elsewhere. Raises Unreachable."""
    value = document.get(name)
    if not isinstance(value, str) or not value:
        raise Unreachable(f"its description has no {name}")
    return value


async def verify_signed(
    keys: KeySet, token: str, *, issuer: str, audience: str, options: Any = None
) -> dict[str, Any]:
    """The claims of a token with a good signature, issuer and audience; not its times.

    Raises Problem UZ-AUTH-002, or UZ-AUTH-004 when the keys cannot be had.
    """
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, RecursionError) as fault:
        raise unauthorized("the token cannot be read") from fault
    key_id = header.get("kid")
    key = await keys.find(key_id if isinstance(key_id, str) else None)
    if key is None:
        raise unauthorized("the token was signed with a key that its issuer has not")
    try:
        claims: dict[str, Any] = jwt.decode(
            token,
            key.key,
            [key.algorithm],
            audience=audience,
            issuer=issuer,
            options=_OPTIONS if options is None else options,
        )
    except (jwt.PyJWTError, RecursionError) as fault:
        raise unauthorized("the token is not valid") from fault
    return claims


class OidcIssuer:
    """One issuer, asked for its keys only."""

    def __init__(
        self, settings: IssuerSettings, elsewhere: Elsewhere, monotonic: Callable[[], float]
    ) -> None:
        self._settings = settings
        self._elsewhere = elsewhere
        self._keys = KeySet(settings.issuer, self._fetch, monotonic)

    def __repr__(self) -> str:
        return f"<OidcIssuer {self._settings.issuer}>"

    @property
    def name(self) -> str:
        return self._settings.issuer

    @property
    def trusted_with(self) -> tuple[frozenset[UUID], bool]:
        """The tenants that its tokens may name, and whether it may name any."""
        return self._settings.tenants, self._settings.every_tenant

    async def verify(self, token: str, now_s: float) -> Claims:
        """Check all of a token. Raises Problem UZ-AUTH-002, -003 or -004."""
        issuer, audience = self._settings.issuer, self._settings.audience
        signed = await verify_signed(self._keys, token, issuer=issuer, audience=audience)
        claims = read_claims(signed, now_s)
        if not self._settings.every_tenant and claims.tenant_id not in self._settings.tenants:
            raise unauthorized("the token names a tenant that its issuer is not trusted with")
        return replace(claims, platform_admin=claims.platform_admin and self._settings.platform_admins)

    async def _fetch(self) -> dict[str, Any]:
        url = self._settings.jwks_url
        if url is None:
            url = text_of(await discover(self._elsewhere, self._settings.issuer), "jwks_uri")
        return await self._elsewhere.get(url)


def unauthorized(detail: str) -> Problem:
    return Problem("UZ-AUTH-002", detail)
