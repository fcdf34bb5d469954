"""First start: a tenant, a workspace, an admin, a key to come in with, and the key that signs user tokens."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import msgspec

from sexton_actors.plans import STARTER_CREDIT_NANOS
from sexton_actors.secrets import Sealer
from sexton_http.identity.auth_keys import SECRET_BYTES, AuthKeys
from sexton_http.identity.issuers.builtin import BuiltinIssuer
from sexton_http.identity.tokens import TokenKind, digest, mint
from sexton_storage.errors import NameTaken
from sexton_storage.records.api_keys import ApiKey
from sexton_storage.records.tenants import PlanTier, Tenant
from sexton_storage.records.users import Role, User
from sexton_storage.records.workspaces import Workspace
from sexton_storage.stores import Storage

ADMIN_SUBJECT: Final = "local:admin"
KEY_NAME: Final = "admin"

FIRST: Final = "first_start"
ISSUER_KEY: Final = "issuer_key"
KEY_MADE: Final = "first_api_key"
AUTH_KEY: Final = "auth_key"
CATALOGUE_KEY: Final = "catalogue_key"
CATALOGUE_KEY_BYTES: Final = 12
_IDENTITY: Final = b"setting:issuer_key"
_AUTH_IDENTITY: Final = b"setting:auth_key"


class _First(msgspec.Struct, frozen=True):
    tenant_id: UUID
    workspace_id: UUID
    user_id: UUID


@dataclass(frozen=True, slots=True)
class Installation:
    """What the first start made, as any later start finds it."""

    tenant_id: UUID
    workspace_id: UUID
    user_id: UUID
    issuer: BuiltinIssuer
    keys: AuthKeys
    catalogue_key: str
    """Part of the public catalogue's address."""
    api_key: str | None
    """Only from the start that made it: what is kept is its hash."""

    def admin_token(self, now_ms: int) -> str:
        """A user token of the admin, who is platform admin; lives fifteen minutes."""
        return self.issuer.mint(
            subject=str(self.user_id),
            tenant_id=self.tenant_id,
            role=Role.ADMIN,
            now_s=now_ms / 1000,
            platform_admin=True,
        )


async def bootstrap(
    storage: Storage,
    sealer: Sealer,
    *,
    new_id: Callable[[], UUID],
    new_token: Callable[[int], str],
    credit_nanos: int | None = STARTER_CREDIT_NANOS,
) -> Installation:
    """Make what is missing and find what is there; safe for many starters at once, and after any crash.

    ``credit_nanos``: what the first tenant begins with; None: no balance stops it, from this start on.
    """
    if await storage.instance.setting(FIRST) is None:
        await _first_start(storage, sealer, new_id, new_token, credit_nanos)
    first = msgspec.json.decode(await _required(storage, FIRST), type=_First)
    await storage.tenants.set_unlimited(first.tenant_id, unlimited=credit_nanos is None)
    issuer = BuiltinIssuer.from_bytes(sealer.open(await _required(storage, ISSUER_KEY), _IDENTITY))
    api_key = None
    if await storage.instance.setting(KEY_MADE) is None:
        api_key = await _make_key(storage, first, new_id, new_token)
    keys = await _auth_keys(storage, sealer, new_token)
    fresh = new_token(CATALOGUE_KEY_BYTES).encode()
    public = (await storage.instance.settle_setting(CATALOGUE_KEY, fresh)).decode()
    return Installation(first.tenant_id, first.workspace_id, first.user_id, issuer, keys, public, api_key)


async def first_admin(storage: Storage) -> UUID | None:
    """The user that the first start made, or who runs the platform instead; None before that start."""
    kept = await storage.instance.setting(FIRST)
    if kept is None:
        return None
    user = await storage.users.load(msgspec.json.decode(kept, type=_First).user_id)
    return user.id if user is not None and user.is_admitted else await storage.members.platform_admin()


async def _auth_keys(storage: Storage, sealer: Sealer, new_token: Callable[[int], str]) -> AuthKeys:
    """Made by the first start that needs it; of many at once, the first to commit."""
    kept = await storage.instance.setting(AUTH_KEY)
    if kept is None:
        fresh = sealer.seal(bytes.fromhex(new_token(SECRET_BYTES)), _AUTH_IDENTITY)
        kept = await storage.instance.settle_setting(AUTH_KEY, fresh)
    return AuthKeys(sealer.open(kept, _AUTH_IDENTITY), new_token)


async def _first_start(
    storage: Storage,
    sealer: Sealer,
    new_id: Callable[[], UUID],
    new_token: Callable[[int], str],
    credit_nanos: int | None,
) -> None:
    now = storage.clock.now_ms()
    first = _First(new_id(), new_id(), new_id())
    issuer = BuiltinIssuer.from_bytes(bytes.fromhex(new_token(32)))
    settings = {
        FIRST: msgspec.json.encode(first),
        ISSUER_KEY: sealer.seal(issuer.to_bytes(), _IDENTITY),
    }
    tenant = Tenant(
        id=first.tenant_id,
        name="default",
        plan_tier=PlanTier.ENTERPRISE,
        balance_nanos=STARTER_CREDIT_NANOS if credit_nanos is None else credit_nanos,
        exhausted_at=now if credit_nanos == 0 else None,
        created_at=now,
        updated_at=now,
        unlimited=credit_nanos is None,
    )
    workspace = Workspace(first.workspace_id, first.tenant_id, "default", paused=False, created_at=now)
    admin = User(
        first.user_id, first.tenant_id, ADMIN_SUBJECT, Role.ADMIN, platform_admin=True, created_at=now
    )
    # Who comes second finds what the first has made: one commit decides.
    await storage.instance.first_start(tenant, workspace, admin, settings)


async def _make_key(
    storage: Storage, first: _First, new_id: Callable[[], UUID], new_token: Callable[[int], str]
) -> str:
    token, key_id = mint(TokenKind.API_KEY, new_token), new_id()
    key = ApiKey(
        id=key_id,
        tenant_id=first.tenant_id,
        key_name=KEY_NAME,
        description="Made at first start.",
        role=Role.ADMIN,
        token_hash=digest(token),
        created_at=storage.clock.now_ms(),
        owner_id=first.user_id,
    )
    try:
        await storage.api_keys.create(key)
    except NameTaken:
        # A start before this one made its key and ended before it could say so; nobody has seen that one.
        await storage.api_keys.create(msgspec.structs.replace(key, key_name=f"{KEY_NAME}-{key_id.hex[-8:]}"))
    await storage.instance.put_setting(KEY_MADE, key_id.bytes)
    return token


async def _required(storage: Storage, name: str) -> bytes:
    value = await storage.instance.setting(name)
    if value is None:
        raise LookupError(f"the database has the first start without its setting {name!r}")
    return value
