"""Every kind of token that somebody may come with, and what it is worth by the contract."""

import base64
import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from sexton_storage.records.tenants import PlanTier, Tenant
from sexton_storage.records.users import Role, User
from sexton_storage.records.workspaces import Workspace
from tests.worlds.http import HttpWorld
from tests.worlds.samples import START_MS

TENANT_B = UUID("019363b0-0000-7000-8000-0000000000b0")
WORKSPACE_B = UUID("019363b0-0000-7000-8000-0000000000b1")
USER_B = UUID("019363b0-0000-7000-8000-0000000000b2")
MINUTE_S = 60


@dataclass(frozen=True)
class Worth:
    """What a token gets on each kind of route: a code, or nothing where it is let in."""

    member: str = "UZ-AUTH-002"
    """Where members call."""
    role: Role = Role.USER
    """Of a member."""
    platform: bool = False
    workspace: str = ""
    """Of a member, in the workspace of the first tenant."""
    limited: bool = False
    """To one workspace: nothing that is the whole tenant's."""
    runner: str = "UZ-RUN-001"
    enroller: str | None = None
    """Where runners are enrolled; None: as for members, of whom only platform admins are let in."""
    approver: str = "UZ-AUTH-002"
    agent: str = ""
    """Where agents' keys are let in: whose it is, ``own`` or ``other``; else as a member."""


Make = Callable[[HttpWorld], Awaitable[str | None]]


@dataclass(frozen=True)
class Kind:
    """``make`` gives the Authorization header."""

    make: Make
    worth: Worth


def encoded(part: bytes) -> str:
    return base64.urlsafe_b64encode(part).rstrip(b"=").decode()


def bearer(token: str) -> str:
    return f"Bearer {token}"


def given(header: str | None) -> Make:
    async def make(world: HttpWorld) -> str | None:
        return header

    return make


def claims_of(world: HttpWorld, **changes: Any) -> dict[str, Any]:
    """Of a valid token of an admin who is platform admin; a change to None leaves the claim out."""
    claims = {
        "iss": "sexton",
        "aud": "sexton",
        "sub": "u1",
        "exp": world.actors_world.now_ms() // 1000 + 10 * MINUTE_S,
        "tenant_id": str(world.installation.tenant_id),
        "role": "admin",
        "platform_admin": True,
    }
    return {name: value for name, value in {**claims, **changes}.items() if value is not None}


def signed(world: HttpWorld, sign: Callable[[bytes], bytes], algorithm: str = "EdDSA", **claims: Any) -> str:
    """A token of the built-in issuer's form under any signature, made by hand: no library would make some."""
    head = {"typ": "JWT", "alg": algorithm, "kid": world.installation.issuer.key_id}
    text = ".".join(encoded(json.dumps(part).encode()) for part in (head, claims_of(world, **claims)))
    return f"{text}.{encoded(sign(text.encode()))}"


def private(world: HttpWorld) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(world.installation.issuer.to_bytes())


def true(**claims: Any) -> Make:
    """Signed by the issuer's own key."""

    async def make(world: HttpWorld) -> str:
        return bearer(signed(world, private(world).sign, **claims))

    return make


async def expired(world: HttpWorld) -> str:
    past = world.actors_world.now_ms() // 1000 - MINUTE_S
    return bearer(signed(world, private(world).sign, exp=past))


async def not_yet(world: HttpWorld) -> str:
    soon = world.actors_world.now_ms() // 1000 + MINUTE_S
    return bearer(signed(world, private(world).sign, nbf=soon))


async def unsigned(world: HttpWorld) -> str:
    return bearer(signed(world, lambda text: b"", "none"))


async def of_another_key(world: HttpWorld) -> str:
    return bearer(signed(world, Ed25519PrivateKey.from_private_bytes(b"\7" * 32).sign))


def confused(spell: Callable[[bytes, bytes], bytes]) -> Make:
    """HS256 with what everybody knows, the public key, as the secret."""

    async def make(world: HttpWorld) -> str:
        public = private(world).public_key()
        raw = public.public_bytes(Encoding.Raw, PublicFormat.Raw)
        pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        secret = spell(raw, pem)
        return bearer(signed(world, lambda text: hmac.new(secret, text, hashlib.sha256).digest(), "HS256"))

    return make


async def key_of(world: HttpWorld, role: Role) -> dict[str, Any]:
    answer = await world.post("/v1/api-keys", {"key_name": f"k-{role.value}", "role": role.value})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def api_key(role: Role) -> Make:
    async def make(world: HttpWorld) -> str:
        return bearer((await key_of(world, role))["key"])

    return make


async def revoked_key(world: HttpWorld) -> str:
    made = await key_of(world, Role.ADMIN)
    answer = await world.call("PATCH", f"/v1/api-keys/{made['id']}", json={"active": False})
    assert answer.status_code == 200
    return bearer(made["key"])


async def deleted_key(world: HttpWorld) -> str:
    header = await revoked_key(world)
    keys = world.memory.tables.api_keys
    name = f"k-{Role.ADMIN.value}"
    [key_id] = [key.id for key in keys.values() if key.key_name == name]
    assert (await world.call("DELETE", f"/v1/api-keys/{key_id}")).status_code == 204
    return header


async def settle_tenant_b(world: HttpWorld) -> None:
    tenant = Tenant(TENANT_B, "b", PlanTier.ENTERPRISE, 10**9, None, START_MS, START_MS)
    workspace = Workspace(WORKSPACE_B, TENANT_B, "b", paused=False, created_at=START_MS)
    user = User(USER_B, TENANT_B, "b", Role.ADMIN, platform_admin=False, created_at=START_MS)
    await world.storage.tenants.create(tenant, workspace, user)


async def neighbour(world: HttpWorld) -> str:
    await settle_tenant_b(world)
    return bearer(world.user_token(Role.ADMIN, tenant_id=TENANT_B))


async def neighbours_key(world: HttpWorld) -> str:
    await settle_tenant_b(world)
    answer = await world.post(
        "/v1/api-keys", {"key_name": "b", "role": "admin"}, world.user_token(Role.ADMIN, tenant_id=TENANT_B)
    )
    return bearer(answer.json()["key"])


async def orphan(world: HttpWorld) -> str:
    return bearer(world.user_token(Role.ADMIN, tenant_id=TENANT_B))


async def orphaned_key(world: HttpWorld) -> str:
    header = await neighbours_key(world)
    del world.memory.tables.tenants[TENANT_B]
    return header


async def confined(world: HttpWorld, **claims: Any) -> str:
    """Limited to a workspace that is not the first."""
    made = (await world.post("/v1/workspaces", {"name": "second"})).json()["workspace_id"]
    return bearer(world.user_token(Role.ADMIN, workspace_id=UUID(made), **claims))


async def confined_platform_admin(world: HttpWorld) -> str:
    return await confined(world, platform_admin=True)


async def at_home(world: HttpWorld) -> str:
    """Limited to the first workspace."""
    return bearer(world.user_token(Role.ADMIN, workspace_id=world.installation.workspace_id))


async def runner(world: HttpWorld) -> str:
    return bearer(await world.enrol())


async def revoked_runner(world: HttpWorld) -> str:
    token = await world.enrol()
    me = (await world.get("/v1/runners/me", token)).json()["id"]
    path = f"/v1/fleet/runners/{me}"
    answer = await world.call("PATCH", path, world.admin_token(), json={"admin_state": "revoked"})
    assert answer.status_code == 200
    return bearer(token)


async def enrolment(world: HttpWorld) -> str:
    answer = await world.post("/v1/fleet/enrolment-tokens", token=world.admin_token())
    token: str = answer.json()["token"]
    return bearer(token)


async def spent_enrolment(world: HttpWorld) -> str:
    header = await enrolment(world)
    body = {"host_id": "h", "sandbox_tier": "bubblewrap"}
    answer = await world.post("/v1/runners", body, header.removeprefix("Bearer "))
    assert answer.status_code == 201
    return header


async def approval(world: HttpWorld) -> str:
    """Of another agent of the same workspace."""
    other: dict[str, str] = await world.install("another")
    return bearer(other["approval_token"])


async def agent_key(world: HttpWorld, zombie_id: str, name: str = "k") -> dict[str, Any]:
    answer = await world.post(f"{world.ws}/agent-keys", {"zombie_id": zombie_id, "name": name})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def own_agent_key(world: HttpWorld) -> str:
    """Of the agent that was installed first."""
    zombies = world.memory.tables.zombies.values()
    first = min(zombies, key=lambda zombie: zombie.id)
    return bearer((await agent_key(world, str(first.id)))["key"])


async def other_agent_key(world: HttpWorld) -> str:
    other = await world.install("another")
    return bearer((await agent_key(world, other["zombie_id"]))["key"])


async def deleted_agent_key(world: HttpWorld) -> str:
    other = await world.install("another")
    made = await agent_key(world, other["zombie_id"])
    path = f"{world.ws}/agent-keys/{made['agent_id']}"
    assert (await world.call("DELETE", path)).status_code == 204
    return bearer(made["key"])


async def purged_agent_key(world: HttpWorld) -> str:
    """Of an agent that was deleted, and its keys with it."""
    other = await world.install("another")
    made = await agent_key(world, other["zombie_id"])
    assert await world.storage.zombies.delete(UUID(other["zombie_id"]))
    return bearer(made["key"])


LOST = Worth()
ADMIN = Worth(member="", role=Role.ADMIN)

KINDS: dict[str, Kind] = {
    "none": Kind(given(None), LOST),
    "another scheme": Kind(given("Basic eDp5"), LOST),
    "a scheme without a token": Kind(given("Bearer"), LOST),
    "malformed": Kind(given("Bearer x"), LOST),
    "malformed JWT": Kind(given("Bearer a.b.c"), LOST),
    "malformed API key": Kind(given("Bearer zmb_t_short"), LOST),
    "unknown API key": Kind(given(f"Bearer zmb_t_{'0' * 64}"), LOST),
    "revoked API key": Kind(revoked_key, Worth(member="UZ-APIKEY-004")),
    "deleted API key": Kind(deleted_key, LOST),
    "API key of a deleted tenant": Kind(orphaned_key, LOST),
    "API key of another tenant": Kind(
        neighbours_key, Worth(member="", role=Role.ADMIN, workspace="UZ-WORKSPACE-001")
    ),
    "API key of role viewer": Kind(api_key(Role.VIEWER), Worth(member="", role=Role.VIEWER)),
    "API key of role user": Kind(api_key(Role.USER), Worth(member="", role=Role.USER)),
    "API key of role operator": Kind(api_key(Role.OPERATOR), Worth(member="", role=Role.OPERATOR)),
    "API key of role admin": Kind(api_key(Role.ADMIN), ADMIN),
    "expired JWT": Kind(expired, Worth(member="UZ-AUTH-003")),
    "JWT that is not valid yet": Kind(not_yet, LOST),
    "JWT of a wrong issuer": Kind(true(iss="https://elsewhere.example"), LOST),
    "JWT for a wrong audience": Kind(true(aud="elsewhere"), LOST),
    "JWT without an audience": Kind(true(aud=None), LOST),
    "JWT without an expiry": Kind(true(exp=None), LOST),
    "JWT without a subject": Kind(true(sub=None), LOST),
    "JWT without a tenant": Kind(true(tenant_id=None), LOST),
    "JWT with alg none": Kind(unsigned, LOST),
    "JWT with HS256 under the raw public key": Kind(confused(lambda raw, pem: raw), LOST),
    "JWT with HS256 under the PEM of the public key": Kind(confused(lambda raw, pem: pem), LOST),
    "JWT of another key": Kind(of_another_key, LOST),
    "JWT of an unknown role": Kind(true(role="owner"), Worth(member="UZ-AUTH-010")),
    "JWT of another tenant": Kind(neighbour, Worth(member="", role=Role.ADMIN, workspace="UZ-WORKSPACE-001")),
    "JWT of a deleted tenant": Kind(orphan, LOST),
    "JWT limited to another workspace": Kind(
        confined, Worth(member="", role=Role.ADMIN, workspace="UZ-AUTH-001", limited=True)
    ),
    "JWT limited to the workspace": Kind(at_home, Worth(member="", role=Role.ADMIN, limited=True)),
    "JWT of a platform admin, limited to another workspace": Kind(
        confined_platform_admin,
        Worth(member="", role=Role.ADMIN, platform=True, workspace="UZ-AUTH-001", limited=True),
    ),
    "JWT of role user": Kind(true(role="user", platform_admin=None), Worth(member="", role=Role.USER)),
    "JWT of role operator": Kind(
        true(role="operator", platform_admin=None), Worth(member="", role=Role.OPERATOR)
    ),
    "JWT of role admin": Kind(true(platform_admin=None), ADMIN),
    "JWT of a platform admin": Kind(true(), Worth(member="", role=Role.ADMIN, platform=True)),
    "JWT of a user who is platform admin": Kind(
        true(role="user"), Worth(member="", role=Role.USER, platform=True)
    ),
    "runner token": Kind(runner, Worth(runner="")),
    "unknown runner token": Kind(given(f"Bearer zrn_{'0' * 64}"), LOST),
    "revoked runner token": Kind(revoked_runner, Worth(runner="UZ-RUN-009")),
    "enrolment token": Kind(enrolment, Worth(enroller="")),
    "spent enrolment token": Kind(spent_enrolment, Worth(enroller="UZ-RUN-015")),
    "unknown enrolment token": Kind(given(f"Bearer zre_{'0' * 64}"), Worth(enroller="UZ-RUN-015")),
    "approval token of another agent": Kind(approval, LOST),
    "agent key of the agent": Kind(own_agent_key, Worth(member="UZ-AUTH-001", agent="own")),
    "agent key of another agent": Kind(other_agent_key, Worth(member="UZ-AUTH-001", agent="other")),
    "deleted agent key": Kind(deleted_agent_key, LOST),
    "agent key of a deleted agent": Kind(purged_agent_key, LOST),
    "unknown agent key": Kind(given(f"Bearer zmb_a_{'0' * 64}"), LOST),
    "unknown approval token": Kind(given(f"Bearer zap_{'0' * 64}"), LOST),
}
