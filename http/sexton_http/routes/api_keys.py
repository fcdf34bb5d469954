"""Tenant API keys: minted, shown once, revoked, deleted."""

from enum import StrEnum
from typing import Annotated
from uuid import UUID

import msgspec

from sexton_http.answers import Problem
from sexton_http.bodies.names import fitting
from sexton_http.bodies.shapes import MAX_PAGE, Body, KeyItem, KeyMade, KeyPage, Positive, Query, Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Creates, NoBody, NoQuery, operation
from sexton_http.identity.principals import RANK
from sexton_http.identity.tokens import TokenKind, digest, mint
from sexton_storage.errors import NameTaken
from sexton_storage.records.api_keys import ApiKey
from sexton_storage.records.users import Role

TAG = "API keys"
NAME = r"^[A-Za-z0-9_-]{1,64}$"


class KeySort(StrEnum):
    CREATED = "created_at"
    NEWEST = "-created_at"
    NAME = "key_name"
    NAME_DOWN = "-key_name"


class KeyQuery(Query):
    page: Positive = 1
    page_size: Annotated[int, msgspec.Meta(ge=1, le=100)] = 25
    sort: KeySort = KeySort.NEWEST


class NewKey(Body):
    key_name: Annotated[str, fitting(NAME)]
    description: Annotated[str, msgspec.Meta(max_length=256)] = ""
    role: Role = Role.OPERATOR
    platform_admin: bool = False
    """Only a platform admin makes such a key. It reaches the fleet and all else that is the platform's."""


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
    )
    return KeyPage([_item(key) for key in rows], total, query.page, query.page_size)


@operation(
    "POST",
    "/v1/api-keys",
    tag=TAG,
    role=Role.OPERATOR,
    tenant_wide=True,
    status=201,
    creates=Creates.AGAIN,
    codes=("UZ-APIKEY-005", "UZ-AUTH-021"),
)
async def create_api_key(call: Call[NewKey, NoQuery]) -> KeyMade:
    """Mint a key; its role is never above its maker's, and only a platform admin makes a platform admin's."""
    body, world = call.body, call.ctx.world
    if RANK[body.role] > RANK[call.member.role]:
        raise Problem("UZ-AUTH-009", f"a key of role {body.role.value} is above the caller's role")
    if body.platform_admin and not call.member.platform_admin:
        raise Problem("UZ-AUTH-021", "a key with platform_admin is made by a platform admin")
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
    )
    try:
        await world.storage.api_keys.create(key)
    except NameTaken as taken:
        made = await world.storage.api_keys.load(key.tenant_id, key.id)
        if made is not None and made.token_hash == key.token_hash:
            return KeyMade(made.id, made.key_name, token, made.created_at)  # Before its server died.
        raise Problem("UZ-APIKEY-005", f"there is a key named {body.key_name!r}") from taken
    return KeyMade(key.id, key.key_name, token, key.created_at)


@operation(
    "PATCH",
    "/v1/api-keys/{key_id}",
    tag=TAG,
    role=Role.OPERATOR,
    tenant_wide=True,
    codes=("UZ-APIKEY-003", "UZ-APIKEY-006", "UZ-APIKEY-007"),
)
async def change_api_key(call: Call[KeyPatch, NoQuery]) -> KeyChanged:
    """Revoke a key; what is revoked stays so."""
    key = await _load(call)
    if call.body.active:
        if key.revoked_at is not None:
            raise Problem("UZ-APIKEY-007", f"{key.key_name!r} was revoked; create another")
        return KeyChanged(key.id, active=True, revoked_at=None)
    if key.revoked_at is not None:
        raise Problem(
            "UZ-APIKEY-006", f"{key.key_name!r} was revoked before", facts={"revoked_at": key.revoked_at}
        )
    world = call.ctx.world
    revoked = await world.storage.api_keys.revoke(call.member.tenant_id, key.id, world.now_ms())
    call.services.authenticator.forget(key.token_hash)
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
    """Delete a key that was revoked."""
    key = await _load(call)
    if key.revoked_at is None or not await call.ctx.world.storage.api_keys.delete(key.tenant_id, key.id):
        raise Problem("UZ-APIKEY-008", f"{key.key_name!r} is active; revoke it first")


async def _load(call: Call[KeyPatch, NoQuery] | Call[NoBody, NoQuery]) -> ApiKey:
    key_id = call.id("key_id")
    key = await call.ctx.world.storage.api_keys.load(call.member.tenant_id, key_id)
    if key is None:
        raise Problem("UZ-APIKEY-003", f"there is no key {key_id}")
    return key


def _item(key: ApiKey) -> KeyItem:
    return KeyItem(
        id=key.id,
        key_name=key.key_name,
        description=key.description,
        role=key.role,
        platform_admin=key.platform_admin,
        active=key.revoked_at is None,
        created_at=key.created_at,
        last_used_at=key.last_used_at,
        revoked_at=key.revoked_at,
    )
