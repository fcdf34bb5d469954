"""User tokens of issuers elsewhere: algorithms, keys that change, outages, and tokens that lie."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import httpx2
import jwt
import pytest
import trio
from trio.testing import MockClock

from sexton_http.answers import Problem
from sexton_http.identity.context import Claims
from sexton_http.identity.issuers.builtin import LEEWAY_S
from sexton_http.identity.issuers.jwks import FLOOR_S, FRESH_S, RETRY_S, KeySet, read_keys
from sexton_http.identity.issuers.oidc import IssuerSettings, OidcIssuer
from sexton_http.outbound.http import MAX_BYTES, Elsewhere
from tests.fakes.identity_provider import OidcServer, SigningKey, open_oidc_server
from tests.worlds.http import HttpWorld, open_http_world
from tests.worlds.trust import TRUST

AUDIENCE = "sexton"
TENANT = UUID(int=7)
NOW = 1_000_000.0


@dataclass
class Setting:
    """A provider, and our side of it on a clock that stands until it is moved."""

    server: OidcServer
    issuer: OidcIssuer
    clock: list[float] = field(default_factory=lambda: [0.0])

    def claims(self, **changes: Any) -> dict[str, Any]:
        base = {
            "iss": self.server.issuer,
            "aud": AUDIENCE,
            "sub": "u1",
            "exp": NOW + 100,
            "tenant_id": str(TENANT),
            "role": "operator",
        }
        return {name: value for name, value in {**base, **changes}.items() if value is not None}

    def token(self, key: SigningKey | None = None, **changes: Any) -> str:
        return (key or self.server.keys[-1]).sign(self.claims(**changes))

    async def verify(self, token: str, now: float = NOW) -> Claims:
        return await self.issuer.verify(token, now)

    async def code(self, token: str, now: float = NOW) -> str:
        with pytest.raises(Problem) as caught:
            await self.verify(token, now)
        return caught.value.code

    def fetches(self) -> int:
        return self.server.asked.get("/jwks", 0)


@asynccontextmanager
async def open_setting(**settings: Any) -> AsyncIterator[Setting]:
    clock = [0.0]
    async with open_oidc_server() as server, httpx2.AsyncClient(verify=TRUST) as client:
        known = IssuerSettings(server.issuer, AUDIENCE, **{"every_tenant": True, **settings})
        yield Setting(server, OidcIssuer(known, Elsewhere(client), lambda: clock[0]), clock)


@pytest.fixture
async def setting() -> AsyncIterator[Setting]:
    async with open_setting() as opened:
        yield opened


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
async def test_tokens_of_each_algorithm_are_taken(setting: Setting, algorithm: str) -> None:
    setting.server.keys = [SigningKey(algorithm, "k")]
    claims = await setting.verify(setting.token(workspace_id=str(UUID(int=9))))
    assert (claims.issuer, claims.subject, claims.tenant_id) == (setting.server.issuer, "u1", TENANT)
    assert (claims.role, claims.workspace_id) == ("operator", UUID(int=9))

    for _ in range(5):
        await setting.verify(setting.token())
    assert (setting.fetches(), setting.server.asked["/.well-known/openid-configuration"]) == (1, 1)


async def test_an_issuer_names_no_tenant_but_those_that_it_is_trusted_with() -> None:
    async with open_setting(every_tenant=False, tenants=frozenset({TENANT})) as setting:
        assert (await setting.verify(setting.token())).tenant_id == TENANT
        assert await setting.code(setting.token(tenant_id=str(UUID(int=8)))) == "UZ-AUTH-002"
    async with open_setting(every_tenant=False) as setting:
        assert await setting.code(setting.token()) == "UZ-AUTH-002"


async def test_many_who_come_at_once_cost_one_fetch(setting: Setting) -> None:
    token = setting.token()
    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(setting.verify, token)

    assert setting.fetches() == 1


async def test_the_addresses_of_the_keys_can_be_given() -> None:
    async with open_oidc_server() as server, httpx2.AsyncClient(verify=TRUST) as client:
        known = IssuerSettings(server.issuer, AUDIENCE, f"{server.issuer}/jwks", every_tenant=True)
        setting = Setting(server, OidcIssuer(known, Elsewhere(client), lambda: 0.0))
        await setting.verify(setting.token())

        assert server.asked == {"/jwks": 1}


async def test_a_new_key_is_fetched_when_a_token_names_it(setting: Setting) -> None:
    await setting.verify(setting.token())
    old = setting.server.keys[0]
    setting.server.keys = [old, SigningKey("ES256", "k2")]
    assert await setting.code(setting.token()) == "UZ-AUTH-002", "the floor between fetches"

    setting.clock[0] += FLOOR_S
    assert (await setting.verify(setting.token())).subject == "u1"
    assert setting.fetches() == 2
    assert (await setting.verify(setting.token(old))).subject == "u1"


async def test_made_up_key_ids_cost_no_more_than_a_fetch_each_floor(setting: Setting) -> None:
    await setting.verify(setting.token())
    stranger = SigningKey("RS256", "nobody")
    for _ in range(20):
        setting.clock[0] += FLOOR_S / 10
        assert await setting.code(setting.token(stranger)) == "UZ-AUTH-002"

    assert setting.fetches() == 3


async def test_a_key_that_was_withdrawn_counts_for_an_hour(setting: Setting) -> None:
    token = setting.token()
    await setting.verify(token)
    setting.server.keys = [SigningKey("RS256", "k2")]
    setting.clock[0] = FRESH_S - 1
    assert (await setting.verify(token)).subject == "u1"

    setting.clock[0] = FRESH_S
    assert await setting.code(token) == "UZ-AUTH-002"


async def test_an_issuer_that_is_down_from_the_start_is_told_from_a_bad_token(setting: Setting) -> None:
    setting.server.down = True
    token = setting.token()
    assert await setting.code(token) == "UZ-AUTH-004"

    asked = dict(setting.server.asked)
    setting.server.down = False
    assert await setting.code(token) == "UZ-AUTH-004"
    assert setting.server.asked == asked, "not asked again at once"

    setting.clock[0] += RETRY_S
    assert (await setting.verify(token)).subject == "u1"


async def test_an_issuer_that_goes_down_is_not_needed_for_keys_that_are_known(setting: Setting) -> None:
    token = setting.token()
    await setting.verify(token)
    setting.server.down = True
    setting.clock[0] = 10 * FRESH_S

    assert (await setting.verify(token)).subject == "u1"
    assert await setting.code(setting.token(SigningKey("RS256", "k9"))) == "UZ-AUTH-002"


async def test_an_issuer_that_is_slow_holds_up_nobody_whose_key_is_known(
    autojump_clock: MockClock,
) -> None:
    key, slow_s, asked = SigningKey("EdDSA", "k1"), 0.0, []

    async def fetch() -> dict[str, Any]:
        asked.append(trio.current_time())
        await trio.sleep(slow_s)
        return {"keys": [key.public]}

    keys, waited = KeySet("https://id.example.com", fetch, trio.current_time), []

    async def find() -> None:
        began = trio.current_time()
        assert await keys.find("k1") is not None
        waited.append(trio.current_time() - began)

    await find()
    await trio.sleep(FRESH_S)
    slow_s = 5.0
    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(find)

    assert sorted(waited) == [0, 0, 0, 0, 5]
    assert len(asked) == 2


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"not json",
        b"[]",
        b"{}",
        b'{"keys": []}',
        b'{"keys": {}}',
        b'{"keys": [1, null, "x", {"kty": "RSA"}, {"kty": "oct", "k": "AAAA", "kid": "k1"}]}',
        b'{"keys": [], "fill": "' + b"x" * MAX_BYTES + b'"}',
    ],
)
async def test_keys_that_cannot_be_read_are_no_keys(setting: Setting, answer: bytes) -> None:
    setting.server.raw["/jwks"] = answer
    assert await setting.code(setting.token()) == "UZ-AUTH-004"


async def test_an_issuer_that_calls_itself_another_is_not_asked_for_keys(setting: Setting) -> None:
    setting.server.discovery_lies["issuer"] = "https://evil.example.com"

    assert await setting.code(setting.token()) == "UZ-AUTH-004"
    assert setting.fetches() == 0


async def test_an_issuer_cannot_send_us_to_plain_http_elsewhere(setting: Setting) -> None:
    setting.server.discovery_lies["jwks_uri"] = "http://198.51.100.1/jwks"
    assert await setting.code(setting.token()) == "UZ-AUTH-004"


async def test_a_token_is_taken_with_half_a_minute_of_grace(setting: Setting) -> None:
    token = setting.token(exp=NOW, nbf=NOW - 50)
    assert (await setting.verify(token, NOW + LEEWAY_S - 1)).subject == "u1"
    assert await setting.code(token, NOW + LEEWAY_S) == "UZ-AUTH-003"

    early = setting.token(nbf=NOW + LEEWAY_S)
    assert (await setting.verify(early)).subject == "u1"
    assert await setting.code(setting.token(nbf=NOW + LEEWAY_S + 1)) == "UZ-AUTH-002"


async def test_a_token_with_a_claim_amiss_is_no_token(setting: Setting) -> None:
    amiss: list[dict[str, Any]] = [
        {"iss": "https://another.example.com"},
        {"iss": None},
        {"aud": "another"},
        {"aud": ["another", "third"]},
        {"aud": None},
        {"sub": None},
        {"sub": 7},
        {"exp": None},
        {"exp": "soon"},
        {"tenant_id": None},
        {"tenant_id": "x"},
        {"role": None},
        {"role": ["admin"]},
        {"workspace_id": "x"},
    ]
    for changes in amiss:
        assert await setting.code(setting.token(**changes)) == "UZ-AUTH-002", changes


async def test_the_key_chooses_the_algorithm_and_the_token_does_not(setting: Setting) -> None:
    key = setting.server.keys[0]
    claims = setting.claims()
    header = {"kid": key.key_id}
    shared_secret = str(key.public["n"])
    forged = [
        jwt.encode(claims, "", "none", header),
        jwt.encode(claims, shared_secret, "HS256", header),
        jwt.encode(claims, key.key, "RS512", header),
        jwt.encode(claims, key.key, "PS256", header),
        SigningKey("ES256", key.key_id).sign(claims),
        SigningKey("RS256", key.key_id).sign(claims),
        key.sign(claims)[:-4] + "AAAA",
        "a.b.c",
        "..",
    ]
    for token in forged:
        assert await setting.code(token) == "UZ-AUTH-002", token


async def test_a_token_without_a_key_id_is_for_the_only_key(setting: Setting) -> None:
    bare = jwt.encode(setting.claims(), setting.server.keys[0].key, "RS256")
    assert (await setting.verify(bare)).subject == "u1"

    setting.server.keys.append(SigningKey("RS256", "k2"))
    setting.clock[0] = FRESH_S
    assert await setting.code(bare) == "UZ-AUTH-002"


def test_keys_that_are_not_for_checking_signatures_are_passed_over() -> None:
    good = SigningKey("ES256", "good").public
    rows: list[Any] = [
        {**good, "kid": "a", "use": "enc"},
        {**good, "kid": "b", "alg": "ES512"},
        {**good, "kid": "c", "d": "AAAA"},
        {**good, "kid": "d", "crv": "P-384"},
        {**good, "kid": "e", "x": "!"},
        {"kty": "RSA", "kid": "f", "n": "AQAB", "e": "AQAB"},
        {"kty": "unheard of", "kid": "g"},
        good,
    ]

    assert read_keys({"keys": rows}).keys() == {"good"}


async def test_whether_a_platform_admin_can_be_made_elsewhere_is_said_here() -> None:
    for trusted in (False, True):
        async with open_setting(platform_admins=trusted) as setting:
            claims = await setting.verify(setting.token(platform_admin=True))
            assert claims.platform_admin is trusted


async def test_no_issuer_elsewhere_hangs_a_token_on_a_browser(setting: Setting) -> None:
    assert (await setting.verify(setting.token(browser=str(UUID(int=3))))).browser is None


# --- over HTTP ----------------------------------------------------------------------------------------------


@asynccontextmanager
async def open_trusting() -> AsyncIterator[tuple[HttpWorld, Setting]]:
    async with open_setting() as setting, open_http_world(other_issuers=(setting.issuer,)) as world:
        yield world, setting


async def test_a_server_takes_tokens_of_both_issuers_and_of_no_third() -> None:
    async with open_trusting() as (world, setting):
        tenant, now_s = str(world.installation.tenant_id), world.actors_world.now_ms() / 1000
        mine = setting.token(tenant_id=tenant, exp=now_s + 60)
        assert (await world.get("/v1/api-keys", mine)).status_code == 200
        assert (await world.get("/v1/api-keys", world.user_token())).status_code == 200

        amiss: list[tuple[dict[str, Any], str]] = [
            ({"iss": "https://third.example.com"}, "UZ-AUTH-002"),
            ({"role": "owner"}, "UZ-AUTH-010"),
            ({"tenant_id": str(UUID(int=1))}, "UZ-AUTH-002"),
            ({"exp": now_s - 60}, "UZ-AUTH-003"),
        ]
        for changes, code in amiss:
            claims: dict[str, Any] = {"tenant_id": tenant, "exp": now_s + 60, **changes}
            token = setting.token(**claims)
            assert (await world.get("/v1/api-keys", token)).json()["error_code"] == code


async def test_a_server_says_that_the_issuer_is_away() -> None:
    async with open_trusting() as (world, setting):
        setting.server.down = True
        tenant, now_s = str(world.installation.tenant_id), world.actors_world.now_ms() / 1000
        answer = await world.get("/v1/api-keys", setting.token(tenant_id=tenant, exp=now_s + 60))

        assert (answer.status_code, answer.json()["error_code"]) == (503, "UZ-AUTH-004")
        assert int(answer.headers["retry-after"]) >= 5
        assert (await world.get("/v1/api-keys", world.user_token())).status_code == 200
