"""Reads which identity providers and issuers a server trusts, from a TOML file."""

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Final
from uuid import UUID

import msgspec

from sexton_http.bodies.ids import as_id
from sexton_http.identity.issuers.builtin import ISSUER
from sexton_http.identity.issuers.oidc import IssuerSettings, OidcIssuer
from sexton_http.identity.oauth import ClientAuth, OAuthProvider, ProviderSettings
from sexton_http.outbound.http import Elsewhere, is_safe
from sexton_http.outbound.slack import API_URL, AUTHORIZE_URL, SCOPES, Slack, SlackSettings

MAX_EACH: Final = 16
EVERY_TENANT: Final = "*"
_SLUG: Final = re.compile(r"[a-z][a-z0-9-]{0,31}")

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=2048)]


class IdentityMistake(Exception):
    """The file says something that cannot be; the message names the entry."""


class _Provider(msgspec.Struct, forbid_unknown_fields=True):
    name: Text
    client_id: Text
    admit: Annotated[list[Text], msgspec.Meta(min_length=1, max_length=1024)]
    label: Text | None = None
    client_secret: Text | None = None
    client_secret_env: Text | None = None
    client_auth: ClientAuth | None = None
    issuer: Text | None = None
    authorize_url: Text | None = None
    token_url: Text | None = None
    jwks_url: Text | None = None
    userinfo_url: Text | None = None
    subject_field: Text = "sub"
    name_field: Text = "name"
    scopes: list[Text] | None = None


class _Issuer(msgspec.Struct, forbid_unknown_fields=True):
    issuer: Text
    audience: Text
    jwks_url: Text | None = None
    platform_admins: bool = False
    tenants: Annotated[list[Text], msgspec.Meta(min_length=1, max_length=1024)] | None = None


class _Slack(msgspec.Struct, forbid_unknown_fields=True):
    client_id: Text
    client_secret: Text | None = None
    client_secret_env: Text | None = None
    signing_secret: Text | None = None
    signing_secret_env: Text | None = None
    authorize_url: Text = AUTHORIZE_URL
    api_url: Text = API_URL
    scopes: list[Text] | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    provider: Annotated[list[_Provider], msgspec.Meta(max_length=MAX_EACH)] = msgspec.field(
        default_factory=list
    )
    issuer: Annotated[list[_Issuer], msgspec.Meta(max_length=MAX_EACH)] = msgspec.field(default_factory=list)
    slack: _Slack | None = None


class IdentitySettings(msgspec.Struct, frozen=True):
    """The issuers and providers that a server trusts beside itself."""

    providers: tuple[ProviderSettings, ...] = ()
    issuers: tuple[IssuerSettings, ...] = ()
    holds_secrets: bool = False
    """A secret stands in the file itself."""
    slack: SlackSettings | None = None


def read_identity(text: str, environ: Mapping[str, str]) -> IdentitySettings:
    """Raises IdentityMistake."""
    try:
        file = msgspec.convert(tomllib.loads(text), _File)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as fault:
        raise IdentityMistake(str(fault)) from fault
    providers = tuple(_read_provider(row, environ) for row in file.provider)
    issuers = tuple(_read_issuer(row) for row in file.issuer)
    _once("provider", [row.name for row in providers])
    _once("issuer", [row.issuer for row in issuers])
    holds = any(row.client_secret for row in file.provider)
    slack = None if file.slack is None else _read_slack(file.slack, environ)
    if file.slack is not None:
        holds = holds or bool(file.slack.client_secret or file.slack.signing_secret)
    return IdentitySettings(providers, issuers, holds, slack)


def open_identity(
    settings: IdentitySettings, elsewhere: Elsewhere, monotonic: Callable[[], float], home: UUID
) -> tuple[tuple[OidcIssuer, ...], tuple[OAuthProvider, ...]]:
    """Issuers and providers; nothing is asked of them until somebody comes.

    An issuer of which no tenants are named is trusted with ``home`` alone, the tenant of the first start.
    """
    issuers = tuple(OidcIssuer(_at_home(row, home), elsewhere, monotonic) for row in settings.issuers)
    return issuers, tuple(OAuthProvider(row, elsewhere, monotonic) for row in settings.providers)


def open_slack(settings: IdentitySettings, elsewhere: Elsewhere) -> Slack | None:
    """The server's own Slack app, where there is one."""
    return None if settings.slack is None else Slack(settings.slack, elsewhere)


def _read_provider(row: _Provider, environ: Mapping[str, str]) -> ProviderSettings:
    where = f"provider {row.name!r}"
    if _SLUG.fullmatch(row.name) is None:
        raise IdentityMistake(f"{where}: a name is a small letter, then small letters, digits and hyphens")
    _safe(where, row.issuer, row.authorize_url, row.token_url, row.jwks_url, row.userinfo_url)
    if row.issuer is None and None in {row.authorize_url, row.token_url, row.userinfo_url}:
        raise IdentityMistake(
            f"{where}: without an issuer it needs authorize_url, token_url and userinfo_url"
        )
    scopes = ["openid", "email", "profile"] if row.scopes is None and row.issuer else row.scopes or []
    if row.issuer is not None and "openid" not in scopes:
        raise IdentityMistake(f"{where}: with an issuer, openid is among the scopes")
    return ProviderSettings(
        name=row.name,
        label=row.label or row.name,
        client_id=row.client_id,
        admit=tuple(pattern.lower() if "@" in pattern else pattern for pattern in row.admit),
        client_secret=_secret(where, row, environ),
        client_auth=row.client_auth,
        issuer=row.issuer,
        authorize_url=row.authorize_url,
        token_url=row.token_url,
        jwks_url=row.jwks_url,
        userinfo_url=row.userinfo_url,
        subject_field=row.subject_field,
        name_field=row.name_field,
        scopes=tuple(scopes),
    )


def _read_slack(row: _Slack, environ: Mapping[str, str]) -> SlackSettings:
    _safe("slack", row.authorize_url, row.api_url)
    secret = _one_secret("slack", "client_secret", row.client_secret, row.client_secret_env, environ)
    signing = _one_secret("slack", "signing_secret", row.signing_secret, row.signing_secret_env, environ)
    if secret is None or signing is None:
        raise IdentityMistake("slack: it needs client_secret and signing_secret, or where they are")
    return SlackSettings(
        client_id=row.client_id,
        client_secret=secret,
        signing_secret=signing,
        authorize_url=row.authorize_url,
        api_url=row.api_url.rstrip("/"),
        scopes=SCOPES if row.scopes is None else tuple(row.scopes),
    )


def _read_issuer(row: _Issuer) -> IssuerSettings:
    where = f"issuer {row.issuer!r}"
    if row.issuer == ISSUER:
        raise IdentityMistake(f"{where}: this is what the server calls itself")
    _safe(where, *([] if row.jwks_url else [row.issuer]), row.jwks_url)
    named = row.tenants or []
    ids = [as_id(one) for one in named if one != EVERY_TENANT]
    if None in ids:
        raise IdentityMistake(f"{where}: tenants are ids, or {EVERY_TENANT!r} for all of them")
    return IssuerSettings(
        issuer=row.issuer,
        audience=row.audience,
        jwks_url=row.jwks_url,
        platform_admins=row.platform_admins,
        tenants=frozenset(one for one in ids if one is not None),
        every_tenant=EVERY_TENANT in named,
    )


def _at_home(row: IssuerSettings, home: UUID) -> IssuerSettings:
    return row if row.tenants or row.every_tenant else replace(row, tenants=frozenset({home}))


def _secret(where: str, row: _Provider, environ: Mapping[str, str]) -> str | None:
    return _one_secret(where, "client_secret", row.client_secret, row.client_secret_env, environ)


def _one_secret(
    where: str, field: str, given: str | None, variable: str | None, environ: Mapping[str, str]
) -> str | None:
    if variable is None:
        return given
    if given is not None:
        raise IdentityMistake(f"{where}: {field} or {field}_env, not both")
    secret = environ.get(variable)
    if not secret:
        raise IdentityMistake(f"{where}: the environment has no {variable}")
    return secret


def _safe(where: str, *urls: str | None) -> None:
    for url in urls:
        if url is not None and not is_safe(url):
            raise IdentityMistake(f"{where}: {url} is neither HTTPS nor on this machine")


def _once(kind: str, names: list[str]) -> None:
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise IdentityMistake(f"{kind} {min(twice)!r} stands there twice")
