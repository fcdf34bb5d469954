"""Tenant API keys: minted, shown once, revoked, deleted."""

from enum import StrEnum
from typing import Annotated
from uuid import UUID

import msgspec

from sexton_http.answers import Problem
from sexton_http.bodies.names import fitting
from sexton_http.bodies.shapes import (
    EXPIRES_SOON_MS,
    MAX_PAGE,
    Body,
    KeyItem,
    KeyMade,
    KeyPage,
    Moment,
    Positive,
    Query,
    Shape,
)
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Creates, NoBody, NoQuery, operation
from sexton_http.identity.principals import check_covers
from sexton_http.identity.tokens import TokenKind, digest, mint
from sexton_http.routes.shared.plan_limits import FULL, leave_room
from sexton_storage.errors import NameTaken
from sexton_storage.records.api_keys import ApiKey
from sexton_storage.records.holdings import Holding
from sexton_storage.records.users import Rank, Role

TAG = "API keys"
KeyName = Annotated[str, fitting(r"^[A-Za-z0-9_-]{1,64}$")]
Description = Annotated[str, msgspec.Meta(max_length=256)]


class KeySort(StrEnum):
    CREATED = "created_at"
    NEWEST = "-created_at"
    NAME = "key_name"
    NAME_DOWN = "-key_name"


class KeyQuery(Query):
    page: Positive = 1
    page_size: Annotated[int, msgspec.Meta(ge=1, le=100)] = 25
    sort: KeySort = KeySort.NEWEST
    owner_id: UUID | None = None
    """The keys of one member."""


class NewKey(Body):
    key_name: KeyName
    description: Description = ""
    role: Role = Role.OPERATOR
    platform_admin: bool = False
    """Only a platform admin makes such a key. It reaches the fleet and all else that is the platform's."""
    expires_at: Moment | None = None
    """When it ends by itself, in ms; without it, the key lasts until it is revoked."""


class KeyPatch(Body):
    active: bool


class KeyChanged(Shape):
    id: UUID
    active: bool
    revoked_at: int | None


@operation("GET", "/v1/api-keys", tag=TAG)
async def list_api_keys(call: Call[NoBody, KeyQuery]) -> KeyPage:
    """List the tenant's keys; their values are never shown."""
    query = call.query
    rows, total = await call.ctx.world.storage.api_keys.list(
        call.member.tenant_id,
        page=min(query.page, MAX_PAGE),
        page_size=query.page_size,
        sort=query.sort.value,
        owner_id=query.owner_id,
    )
    now = call.ctx.world.now_ms()
    return KeyPage([_item(key, now) for key in rows], total, query.page, query.page_size)


@operation(
    "POST",
    "/v1/api-keys",
    tag=TAG,
    role=Role.OPERATOR,
    tenant_wide=True,
    status=201,
    creates=Creates.AGAIN,
    secret=True,
    codes=("UZ-APIKEY-005", "UZ-AUTH-021", *FULL),
)
async def create_api_key(call: Call[NewKey, NoQuery]) -> KeyMade:
    """Mint a key; its role is never above its maker's, and only a platform admin makes a platform admin's.

    The key is its maker's: where he is suspended it is refused, and when he is removed it ends or has another
    owner. One that was made with a key has the owner of that key.
    """
    body, world = call.body, call.ctx.world
    check_covers(call.member, Rank(body.role), f"a key of role {body.role.value}")
    if body.platform_admin and not call.member.platform_admin:
        raise Problem("UZ-AUTH-021", "a key with platform_admin is made by a platform admin")
    if body.expires_at is not None and body.expires_at <= world.now_ms():
        raise Problem("UZ-REQ-001", "/expires_at: this is past", facts={"pointer": "/expires_at"})
    await leave_room(call, Holding.API_KEYS)
    token = mint(TokenKind.API_KEY, call.new_token)
    key = ApiKey(
        id=call.new_id(),
        tenant_id=call.member.tenant_id,
        key_name=body.key_name,
        description=body.description,
        role=body.role,
        token_hash=digest(token),
        created_at=world.now_ms(),
        platform_admin=body.platform_admin,
        expires_at=body.expires_at,
        owner_id=call.member.person,
    )
    try:
        await world.storage.api_keys.create(key)
    except NameTaken as taken:
        made = await world.storage.api_keys.load(key.tenant_id, key.id)
        if made is not None and made.token_hash == key.token_hash:
            return _made(made, token)  # Before its server died.
        raise Problem("UZ-APIKEY-005", f"there is a key named {body.key_name!r}") from taken
    return _made(key, token)


@operation(
    "PATCH",
    "/v1/api-keys/{key_id}",
    tag=TAG,
    role=Role.OPERATOR,
    tenant_wide=True,
    codes=("UZ-APIKEY-003", "UZ-APIKEY-006", "UZ-APIKEY-007"),
)
async def change_api_key(call: Call[KeyPatch, NoQuery]) -> KeyChanged:
    """Revoke a key of at most the caller's rank; what is revoked stays so."""
    key = await _load(call)
    check_covers(call.member, key.rank, f"the key {key.key_name!r}")
    if call.body.active:
        if key.revoked_at is not None:
            raise Problem("UZ-APIKEY-007", f"{key.key_name!r} was revoked; create another")
        return KeyChanged(key.id, active=is_good(key, call.ctx.world.now_ms()), revoked_at=None)
    if key.revoked_at is not None:
        raise Problem(
            "UZ-APIKEY-006", f"{key.key_name!r} was revoked before", facts={"revoked_at": key.revoked_at}
        )
    world = call.ctx.world
    revoked = await world.storage.api_keys.revoke(call.member.tenant_id, key.id, world.now_ms())
    call.services.access.tell(key.id)
    if revoked is None:
        raise Problem("UZ-APIKEY-003", f"there is no key {key.id}")
    return KeyChanged(revoked.id, active=False, revoked_at=revoked.revoked_at)


@operation(
    "DELETE",
    "/v1/api-keys/{key_id}",
    tag=TAG,
    role=Role.OPERATOR,
    tenant_wide=True,
    status=204,
    codes=("UZ-APIKEY-003", "UZ-APIKEY-008"),
)
async def delete_api_key(call: Call[NoBody, NoQuery]) -> None:
    """Delete a key of at most the caller's rank that was revoked."""
    key = await _load(call)
    check_covers(call.member, key.rank, f"the key {key.key_name!r}")
    if key.revoked_at is None or not await call.ctx.world.storage.api_keys.delete(key.tenant_id, key.id):
        raise Problem("UZ-APIKEY-008", f"{key.key_name!r} is active; revoke it first")


async def _load(call: Call[KeyPatch, NoQuery] | Call[NoBody, NoQuery]) -> ApiKey:
    key_id = call.id("key_id")
    key = await call.ctx.world.storage.api_keys.load(call.member.tenant_id, key_id)
    if key is None:
        raise Problem("UZ-APIKEY-003", f"there is no key {key_id}")
    return key


def _made(key: ApiKey, token: str) -> KeyMade:
    expires_at = msgspec.UNSET if key.expires_at is None else key.expires_at
    return KeyMade(key.id, key.key_name, token, key.created_at, expires_at)


def is_good(key: ApiKey, now: int) -> bool:
    """Whether it was neither revoked nor has run out."""
    return key.revoked_at is None and (key.expires_at is None or key.expires_at > now)


def _item(key: ApiKey, now: int) -> KeyItem:
    good = is_good(key, now)
    return KeyItem(
        id=key.id,
        key_name=key.key_name,
        description=key.description,
        role=key.role,
        platform_admin=key.platform_admin,
        active=good,
        created_at=key.created_at,
        last_used_at=key.last_used_at,
        revoked_at=key.revoked_at,
        expires_at=key.expires_at,
        expires_soon=good and key.expires_at is not None and key.expires_at - now <= EXPIRES_SOON_MS,
        owner_id=key.owner_id,
    )
