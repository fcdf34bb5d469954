"""What may stand in the file of identity providers and issuers, and what is said of mistakes in it."""

from uuid import UUID

import httpx2
import pytest
import trio

from sexton_http.identity.settings import IdentityMistake, IdentitySettings, open_identity, read_identity
from sexton_http.outbound.http import Elsewhere, is_safe

CODE_HOST = """
[[provider]]
name = "codehost"
label = "Code Host"
client_id = "abc"
client_secret_env = "CODE_HOST_SECRET"
authorize_url = "https://code.example.com/login/oauth/authorize"
token_url = "https://code.example.com/login/oauth/access_token"
userinfo_url = "https://api.code.example.com/user"
subject_field = "id"
name_field = "login"
scopes = ["read:user"]
admit = ["4711"]
"""
OIDC = """
[[provider]]
name = "work"
client_id = "abc"
issuer = "https://id.example.com"
admit = ["*@Example.com"]

[[issuer]]
issuer = "https://ci.example.com"
audience = "sexton"
"""
PLAIN = """
[[provider]]
name = "work"
client_id = "abc"
client_secret = "s"
issuer = "https://id.example.com"
admit = ["*"]
"""


async def test_a_file_names_providers_and_issuers() -> None:
    settings = read_identity(CODE_HOST + OIDC, {"CODE_HOST_SECRET": "s"})
    host, work = settings.providers
    assert (host.client_secret, host.scopes, host.subject_field) == ("s", ("read:user",), "id")
    assert (work.label, work.scopes, work.admit) == (
        "work",
        ("openid", "email", "profile"),
        ("*@example.com",),
    )
    assert not settings.holds_secrets

    async with httpx2.AsyncClient() as client:
        issuers, providers = open_identity(settings, Elsewhere(client), trio.current_time, UUID(int=1))
    assert [issuer.name for issuer in issuers] == ["https://ci.example.com"]
    assert [provider.name for provider in providers] == ["codehost", "work"]


async def test_an_issuer_is_trusted_with_the_tenants_that_are_named_or_with_the_first_ones() -> None:
    home, other = UUID(int=1), UUID(int=2)
    named = {
        "": (frozenset({home}), False),
        f'tenants = ["{other}"]': (frozenset({other}), False),
        'tenants = ["*"]': (frozenset(), True),
    }
    async with httpx2.AsyncClient() as client:
        for line, trusted in named.items():
            settings = read_identity(f"{OIDC}\n{line}", {})
            [issuer], _ = open_identity(settings, Elsewhere(client), trio.current_time, home)
            assert issuer.trusted_with == trusted
    with pytest.raises(IdentityMistake, match="tenants are ids"):
        read_identity(f'{OIDC}\ntenants = ["acme"]', {})


def test_an_empty_file_trusts_nobody() -> None:
    assert read_identity("", {}) == IdentitySettings()


def test_a_secret_in_the_file_is_noticed() -> None:
    assert read_identity(PLAIN, {}).holds_secrets


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[provider", "Expected"),
        ("provider = 1", "array"),
        ("[[provider]]\nname = 'x'", "client_id"),
        ("[[other]]", "other"),
        (PLAIN + "colour = 'red'", "colour"),
        (PLAIN.replace('"work"', '"Work Place"'), "small letter"),
        (PLAIN.replace('["*"]', "[]"), "admit"),
        (PLAIN.replace("https://id.example.com", "http://id.example.com"), "neither HTTPS"),
        (PLAIN.replace("https://id.example.com", "ftp://id.example.com"), "neither HTTPS"),
        (PLAIN + PLAIN, "twice"),
        (PLAIN + 'scopes = ["email"]', "openid is among the scopes"),
        (PLAIN + 'client_secret_env = "X"', "not both"),
        (PLAIN + 'client_auth = "mtls"', "mtls"),
        (CODE_HOST, "the environment has no CODE_HOST_SECRET"),
        (CODE_HOST.replace("token_url", "jwks_url"), "without an issuer it needs"),
        ("[[issuer]]\nissuer = 'sexton'\naudience = 'x'", "what the server calls itself"),
        ("[[issuer]]\nissuer = 'http://id.example.com'\naudience = 'x'", "neither HTTPS"),
        ("[[issuer]]\nissuer = 'https://id.example.com'", "audience"),
    ],
)
def test_a_mistake_is_named(text: str, words: str) -> None:
    with pytest.raises(IdentityMistake, match=words):
        read_identity(text, {})


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("https://id.example.com/x", True),
        ("https://", False),
        ("http://127.0.0.1:1/x", True),
        ("http://[::1]:1/x", True),
        ("http://localhost/x", True),
        ("http://localhost.evil.example.com/x", False),
        ("http://10.0.0.1/x", False),
        ("file:///etc/passwd", False),
        ("", False),
    ],
)
def test_plain_http_stays_on_this_machine(url: str, safe: bool) -> None:
    assert is_safe(url) is safe
