"""Who may do what: every kind of token, every role, every tenant."""

from typing import Any
from uuid import UUID

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sexton_actors.plans import STARTER_CREDIT_NANOS
from sexton_http.answers import Problem
from sexton_http.identity.bootstrap import bootstrap
from sexton_http.identity.issuers.builtin import LEEWAY_S, TOKEN_S, BuiltinIssuer
from sexton_storage.memory import open_memory_storage
from sexton_storage.records.users import Role
from sexton_storage.stores import Storage
from tests.worlds.http import HttpWorld
from tests.worlds.samples import START_MS, Ids, PlainSealer

NOW_S = 1_000_000.0
TENANT = UUID(int=7)
ELSEWHERE = UUID("019363b0-0000-7000-8000-00000000ffff")


def issuer(seed: int = 1) -> BuiltinIssuer:
    return BuiltinIssuer.from_bytes(bytes([seed]) * 32)


def minted(by: BuiltinIssuer, **more: Any) -> str:
    return by.mint(subject="u", tenant_id=TENANT, role=Role.USER, now_s=NOW_S, **more)


def forged(claims: dict[str, Any], algorithm: str = "EdDSA", key: Any = None, kid: str | None = None) -> str:
    base = {
        "iss": "sexton",
        "aud": "sexton",
        "sub": "u",
        "exp": NOW_S + 100,
        "tenant_id": str(TENANT),
        "role": "admin",
    }
    kept = {name: value for name, value in {**base, **claims}.items() if value is not None}
    signer = Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32) if key is None else key
    return jwt.encode(kept, signer, algorithm, {"kid": kid or issuer().key_id})


async def test_a_token_says_who_it_is_for_until_it_expires() -> None:
    token = minted(issuer(), workspace_id=ELSEWHERE, platform_admin=True)
    claims = await issuer().verify(token, NOW_S + TOKEN_S + LEEWAY_S - 1)
    assert (claims.tenant_id, claims.role, claims.workspace_id) == (TENANT, "user", ELSEWHERE)
    assert (claims.subject, claims.platform_admin) == ("u", True)

    with pytest.raises(Problem, match="UZ-AUTH-003"):
        await issuer().verify(token, NOW_S + TOKEN_S + LEEWAY_S)


@pytest.mark.parametrize(
    "token",
    [
        minted(issuer(2)),
        forged({"iss": "another"}),
        forged({"aud": "another"}),
        forged({"aud": None}),
        forged({"sub": None}),
        forged({"exp": None}),
        forged({"tenant_id": "x"}),
        forged({"tenant_id": None}),
        forged({"nbf": NOW_S + 1000}),
        forged({"exp": "soon"}),
        forged({}, "none", ""),
        forged({}, "HS256", "a secret that is long enough to be taken for one"),
        forged({}, key=Ed25519PrivateKey.from_private_bytes(bytes([2]) * 32)),
        forged({}, kid="another"),
        "a.b.c",
        minted(issuer())[:-6] + "AAAAAA",
    ],
)
async def test_a_token_that_is_not_wholly_ours_is_no_token(token: str) -> None:
    with pytest.raises(Problem, match="UZ-AUTH-002"):
        await issuer().verify(token, NOW_S)


async def test_the_first_start_makes_what_later_ones_find() -> None:
    new_id, made = Ids(), iter(range(1, 100))
    async with open_memory_storage(clock=lambda: START_MS) as memory:
        storage: Storage = memory

        async def start() -> Any:
            return await bootstrap(
                storage,
                PlainSealer(),
                new_id=new_id,
                new_token=lambda size: next(made).to_bytes(size).hex(),
            )

        first, second = await start(), await start()
        assert first.api_key is not None
        assert second.api_key is None
        assert (second.tenant_id, second.workspace_id, second.user_id) == (
            first.tenant_id,
            first.workspace_id,
            first.user_id,
        )
        assert second.issuer.key_id == first.issuer.key_id

        tenant = await storage.tenants.load(first.tenant_id)
        assert tenant is not None
        assert tenant.balance_nanos == STARTER_CREDIT_NANOS

        claims = await first.issuer.verify(second.admin_token(START_MS), START_MS / 1000)
        assert (claims.role, claims.platform_admin) == ("admin", True)


async def test_a_first_start_that_ended_before_it_showed_its_key_makes_another() -> None:
    new_id, made = Ids(), iter(range(1, 100))
    async with open_memory_storage(clock=lambda: START_MS) as memory:
        storage: Storage = memory

        async def start() -> Any:
            return await bootstrap(
                storage,
                PlainSealer(),
                new_id=new_id,
                new_token=lambda size: next(made).to_bytes(size).hex(),
            )

        first = await start()
        memory.tables.settings.pop("first_api_key")
        again = await start()

        assert again.api_key not in {None, first.api_key}


# --- over HTTP ----------------------------------------------------------------------------------------------


async def code(
    world: HttpWorld, method: str, path: str, token: str | None, body: Any = None
) -> tuple[int, str]:
    answer = await world.call(method, path, token, json={} if body is None else body)
    return answer.status_code, answer.json().get("error_code", "")


async def test_a_route_for_members_takes_no_other_token(world: HttpWorld) -> None:
    path = "/v1/api-keys"
    runner = await world.enrol()
    assert await code(world, "GET", path, None) == (401, "UZ-AUTH-002")

    for token in ("x", "zmb_t_" + "0" * 64, "zre_" + "0" * 64, "zap_x", runner, "a.b.c"):
        assert await code(world, "GET", path, token) == (401, "UZ-AUTH-002"), token
    basic = await world.call("GET", path, None, headers={"authorization": "Basic eDp5"})
    assert basic.status_code == 401
    assert basic.headers["www-authenticate"].startswith("Bearer")
    assert await code(world, "GET", path, world.user_token()) == (200, "")


async def test_a_route_for_runners_takes_no_other_token(world: HttpWorld) -> None:
    path = "/v1/runners/me"
    for token in (None, world.api_key, world.admin_token(), "zrn_" + "0" * 64):
        assert await code(world, "GET", path, token) == (401, "UZ-RUN-001")
        assert await code(world, "POST", f"{path}/heartbeats", token) == (401, "UZ-RUN-001")

    assert await code(world, "GET", path, await world.enrol()) == (200, "")


async def test_a_revoked_runner_is_turned_away_at_once(world: HttpWorld) -> None:
    token = await world.enrol()
    me = (await world.get("/v1/runners/me", token)).json()["id"]
    path = f"/v1/fleet/runners/{me}"
    revoked = await world.call("PATCH", path, world.admin_token(), json={"admin_state": "revoked"})

    assert revoked.json()["admin_state"] == "revoked"
    assert await code(world, "POST", "/v1/runners/me/heartbeats", token) == (401, "UZ-RUN-009")


async def test_the_fleet_is_for_platform_admins(world: HttpWorld) -> None:
    for method, path in (
        ("GET", "/v1/fleet/runners"),
        ("GET", "/v1/fleet/queue"),
        ("GET", "/v1/fleet/supervisor"),
        ("POST", "/v1/fleet/enrolment-tokens"),
    ):
        assert await code(world, method, path, world.api_key) == (403, "UZ-AUTH-021")
        assert await code(world, method, path, world.user_token(Role.ADMIN)) == (403, "UZ-AUTH-021")
        assert (await code(world, method, path, world.admin_token()))[0] in {200, 201}


async def test_an_enrolment_token_works_once(world: HttpWorld) -> None:
    minted_token = (await world.post("/v1/fleet/enrolment-tokens", token=world.admin_token())).json()["token"]
    body = {"host_id": "h", "sandbox_tier": "bubblewrap", "labels": ["gpu"], "slots": 2}
    assert await code(world, "POST", "/v1/runners", minted_token, body) == (201, "")
    assert await code(world, "POST", "/v1/runners", minted_token, body) == (401, "UZ-RUN-015")
    assert await code(world, "POST", "/v1/runners", "zre_" + "0" * 64, body) == (401, "UZ-RUN-015")
    assert await code(world, "POST", "/v1/runners", world.api_key, body) == (403, "UZ-AUTH-021")
    assert await code(world, "POST", "/v1/runners", world.admin_token(), body) == (201, "")
    assert await code(world, "POST", "/v1/runners", None, body) == (401, "UZ-AUTH-002")

    listed = (await world.get("/v1/fleet/runners", world.admin_token())).json()
    assert [item["liveness"] for item in listed["items"]] == ["registered", "registered"]
    assert "token_hash" not in listed["items"][0]


async def test_a_role_reaches_what_it_may_and_no_more(world: HttpWorld) -> None:
    user, operator = world.user_token(Role.USER), world.user_token(Role.OPERATOR)
    key = {"key_name": "k"}
    assert await code(world, "POST", "/v1/api-keys", user, key) == (403, "UZ-AUTH-009")
    assert await code(world, "POST", "/v1/api-keys", operator, {"key_name": "a", "role": "admin"}) == (
        403,
        "UZ-AUTH-009",
    )
    assert await code(world, "POST", "/v1/api-keys", operator, key) == (201, "")

    credential = {"name": "c", "data": {"a": "b"}}
    assert await code(world, "POST", f"{world.ws}/credentials", user, credential) == (403, "UZ-AUTH-009")
    assert await code(world, "POST", f"{world.ws}/credentials", operator, credential) == (201, "")
    assert await code(world, "POST", "/v1/workspaces", user, {"name": "mine"}) == (201, "")


async def test_a_role_that_does_not_exist_here_is_told_so(world: HttpWorld) -> None:
    key = Ed25519PrivateKey.from_private_bytes(world.installation.issuer.to_bytes())
    now_s = world.actors_world.now_ms() / 1000
    claims = {"role": "owner", "tenant_id": str(world.installation.tenant_id), "exp": now_s + 100}
    token = forged(claims, key=key, kid=world.installation.issuer.key_id)
    assert await code(world, "GET", "/v1/api-keys", token) == (403, "UZ-AUTH-010")

    gone = forged({**claims, "exp": now_s - 100}, key=key, kid=world.installation.issuer.key_id)
    assert await code(world, "GET", "/v1/api-keys", gone) == (401, "UZ-AUTH-003")

    strange = forged(
        {**claims, "role": "user", "tenant_id": str(ELSEWHERE)}, key=key, kid=world.installation.issuer.key_id
    )
    assert await code(world, "GET", "/v1/api-keys", strange) == (401, "UZ-AUTH-002")


async def test_a_workspace_that_is_not_the_callers_is_not_there(world: HttpWorld) -> None:
    assert await code(world, "GET", f"/v1/workspaces/{ELSEWHERE}", "") == (404, "UZ-WORKSPACE-001")
    assert await code(world, "GET", f"/v1/workspaces/{ELSEWHERE}/zombies", "") == (404, "UZ-WORKSPACE-001")

    made = (await world.post("/v1/workspaces", {"name": "second"})).json()["workspace_id"]
    limited = world.user_token(Role.ADMIN, workspace_id=UUID(made))
    assert await code(world, "GET", f"/v1/workspaces/{made}", limited) == (200, "")
    assert await code(world, "GET", world.ws, limited) == (403, "UZ-AUTH-001")

    listed = (await world.get("/v1/tenants/me/workspaces", limited)).json()
    assert [item["name"] for item in listed["items"]] == ["second"]

    zombie = await world.install()
    other = f"/v1/workspaces/{made}/zombies/{zombie['zombie_id']}"
    for path in (other, f"{other}/events", f"{other}/events/stream"):
        assert await code(world, "GET", path, "") == (404, "UZ-ZMB-009")
    assert await code(world, "PATCH", other, "", {"status": "stopped"}) == (404, "UZ-ZMB-009")
    assert await code(world, "POST", f"{other}/messages", "", {"message": "hi"}) == (404, "UZ-ZMB-009")


async def test_an_api_key_lives_until_it_is_revoked_and_may_then_be_deleted(world: HttpWorld) -> None:
    made = (await world.post("/v1/api-keys", {"key_name": "k", "description": "d", "role": "user"})).json()
    path = f"/v1/api-keys/{made['id']}"
    assert await code(world, "POST", "/v1/api-keys", "", {"key_name": "k"}) == (409, "UZ-APIKEY-005")
    assert await code(world, "GET", "/v1/api-keys", made["key"]) == (200, "")
    assert await code(world, "DELETE", path, "") == (409, "UZ-APIKEY-008")
    assert await code(world, "PATCH", path, "", {"active": True}) == (200, "")
    assert await code(world, "PATCH", path, "", {"active": False}) == (200, "")
    assert await code(world, "GET", "/v1/api-keys", made["key"]) == (401, "UZ-APIKEY-004")
    assert await code(world, "PATCH", path, "", {"active": False}) == (409, "UZ-APIKEY-006")
    assert await code(world, "PATCH", path, "", {"active": True}) == (409, "UZ-APIKEY-007")
    assert (await world.call("DELETE", path)).status_code == 204
    assert await code(world, "DELETE", path, "") == (404, "UZ-APIKEY-003")

    listed = (await world.get("/v1/api-keys", params={"sort": "key_name"})).json()
    assert (listed["total"], listed["page"], listed["page_size"]) == (1, 1, 25)
    assert listed["items"][0]["last_used_at"] is not None
    assert "token_hash" not in listed["items"][0]


async def test_the_public_keys_of_the_issuer_check_its_tokens(world: HttpWorld) -> None:
    keys = (await world.get("/.well-known/jwks.json", None)).json()["keys"]
    key = jwt.PyJWK(keys[0]).key
    options: Any = {"verify_exp": False, "verify_iat": False}
    claims = jwt.decode(world.admin_token(), key, ["EdDSA"], audience="sexton", options=options)

    assert claims["tenant_id"] == str(world.installation.tenant_id)


async def test_an_approval_token_decides_for_its_own_agent_only(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    another = await world.install("another")
    ask = {"action_id": "a1", "tool_name": "http", "action_name": "POST"}
    gate = (await world.post(f"/v1/runners/me/leases/{lease['lease_id']}/gates", ask, token)).json()
    path = f"/v1/webhooks/{zombie['zombie_id']}/approval"
    good, wrong = zombie["approval_token"], another["approval_token"]
    body = {"approval_id": gate["gate_id"], "decision": "approve"}
    for bad in (None, wrong, world.api_key, "zap_" + "0" * 64):
        assert await code(world, "POST", path, bad, body) == (401, "UZ-AUTH-002")
    assert await code(world, "POST", f"/v1/webhooks/{ELSEWHERE}/approval", good, body) == (404, "UZ-WH-001")
    assert await code(world, "POST", path, good, {**body, "decision": "maybe"}) == (400, "UZ-REQ-001")
    assert await code(world, "POST", path, good, {**body, "approval_id": "a9"}) == (404, "UZ-APPROVAL-002")

    elsewhere = f"/v1/webhooks/{another['zombie_id']}/approval"
    assert await code(world, "POST", elsewhere, wrong, body) == (404, "UZ-APPROVAL-002")

    done = await world.post(path, {"approval_id": "a1", "decision": "deny"}, good)
    assert (done.status_code, done.json()["status"]) == (200, "denied")
    assert await code(world, "POST", path, good, body) == (404, "UZ-APPROVAL-002")
