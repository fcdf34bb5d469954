"""The model and key that runs use: a workspace's own, the tenant's choice, and what the platform lends."""

from typing import Annotated, Any
from uuid import UUID

import msgspec

from sexton_actors.providers import KEY_FIELD, LLM_CREDENTIAL, UNKNOWN_CAP_TOKENS, lacking
from sexton_http.answers import Problem
from sexton_http.bodies.names import fitting
from sexton_http.bodies.shapes import Body, Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery, operation
from sexton_storage.records.providers import PlatformKey, ProviderMode, TenantProvider
from sexton_storage.records.users import Role
from sexton_storage.records.workspaces import Workspace

TAG = "Models and keys"
NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,31}$"
CREDENTIAL = r"^[A-Za-z0-9_-]{1,64}$"
MODEL = r"^[!-~]{0,128}$"
KEY_FIELDS = ("provider", KEY_FIELD, "model")
"""What the credential of a self-managed provider holds."""

ProviderName = Annotated[str, fitting(NAME)]
ModelName = Annotated[str, fitting(MODEL)]
MIN_CAP_TOKENS = 1024


class NewLlmKey(Body):
    provider: ProviderName
    api_key: Annotated[str, msgspec.Meta(min_length=1, max_length=512)]
    """Kept sealed, and never shown."""


class LlmKey(Shape):
    provider: str | None
    has_key: bool


class NewTenantProvider(Body):
    mode: ProviderMode
    provider: ProviderName | None = None
    """Left out: the model's, or the credential's."""
    model: ModelName | None = None
    """Left out or empty: the credential's, or the provider's first in the catalogue."""
    context_cap_tokens: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] | None = None
    """At least 1,024. Left out or 0: the catalogue's."""
    credential_ref: Annotated[str, fitting(CREDENTIAL)] | None = None


class TenantProviderView(Shape):
    mode: ProviderMode
    provider: str | None
    """Null while nothing was chosen, like the rest."""
    model: str | None
    context_cap_tokens: int | None
    credential_ref: str | None


class NewPlatformKey(Body):
    source_workspace_id: UUID
    provider: ProviderName | None = None
    """The provider in the path, repeated."""


class NewPlatformKeyEntry(Body):
    provider: ProviderName
    source_workspace_id: UUID


class PlatformKeyView(Shape):
    provider: str
    source_workspace_id: UUID
    shared: bool
    """Lent to tenants that have no entry of their own."""


class PlatformKeyList(Shape):
    items: list[PlatformKeyView]


# --- the workspace's own key --------------------------------------------------------------------------------

LLM = "/v1/workspaces/{workspace_id}/credentials/llm"


@operation("PUT", LLM, tag=TAG, role=Role.OPERATOR, status=204)
async def put_llm_key(call: Call[NewLlmKey, NoQuery]) -> None:
    """Keep the workspace's own model key, replacing the one there was."""
    await call.ctx.world.secrets.put(
        call.id("workspace_id"), LLM_CREDENTIAL, msgspec.structs.asdict(call.body)
    )


@operation("GET", LLM, tag=TAG)
async def get_llm_key(call: Call[NoBody, NoQuery]) -> LlmKey:
    """Tell the provider of the workspace's own key; the key is never shown."""
    data = await call.ctx.world.secrets.open(call.id("workspace_id"), LLM_CREDENTIAL)
    return LlmKey(None, has_key=False) if data is None else LlmKey(data["provider"], has_key=True)


@operation("DELETE", LLM, tag=TAG, role=Role.OPERATOR, status=204)
async def delete_llm_key(call: Call[NoBody, NoQuery]) -> None:
    """Forget the workspace's own key; where there is none, it is forgotten already."""
    await call.ctx.world.secrets.delete(call.id("workspace_id"), LLM_CREDENTIAL)


# --- the tenant's choice ------------------------------------------------------------------------------------

CHOICE = "/v1/tenants/me/provider"
NOTHING_CHOSEN = TenantProviderView(ProviderMode.PLATFORM, None, None, None, None)
CHOICE_CODES = ("UZ-PROVIDER-001", "UZ-PROVIDER-002", "UZ-PROVIDER-003", "UZ-PROVIDER-004")


@operation("GET", CHOICE, tag=TAG)
async def get_tenant_provider(call: Call[NoBody, NoQuery]) -> TenantProviderView:
    """Show the provider that the tenant's runs use where nothing nearer says otherwise."""
    kept = await call.ctx.world.storage.providers.load(call.member.tenant_id)
    return NOTHING_CHOSEN if kept is None else _shown(kept)


@operation("PUT", CHOICE, tag=TAG, role=Role.OPERATOR, tenant_wide=True, codes=CHOICE_CODES)
async def put_tenant_provider(call: Call[NewTenantProvider, NoQuery]) -> TenantProviderView:
    """Choose it: on the platform's key, or on the tenant's own from a credential of a workspace's vault.

    Mode `platform` and nothing else is to choose nothing, as with `DELETE`.
    """
    world, body = call.ctx.world, _without_empties(call.body)
    if body == NewTenantProvider(ProviderMode.PLATFORM):
        await _choose_nothing(call)
        return NOTHING_CHOSEN
    data: dict[str, Any] = {}
    place: UUID | None = None
    if body.mode is ProviderMode.SELF_MANAGED:
        place, data = await _own(call)
    elif body.credential_ref is not None:
        detail = "/credential_ref: the platform's key is used in mode platform"
        raise Problem("UZ-REQ-001", detail, facts={"pointer": "/credential_ref"})
    model = body.model or data.get("model") or world.catalogue.first_of(body.provider or "")
    row = None if model is None else world.catalogue.find(model)
    cap = body.context_cap_tokens or (None if row is None else row.context_cap_tokens)
    # A model of one's own need not be in the catalogue, where somebody says how much it can hold.
    if model is None or (row is None and (place is None or body.context_cap_tokens is None)):
        raise Problem("UZ-PROVIDER-004", f"/model: the catalogue has no {model or 'model to choose'}")
    if place is None and row is not None and body.provider not in {None, row.provider}:
        raise Problem("UZ-PROVIDER-004", f"/provider: the catalogue has {model} of {row.provider}")
    provider = body.provider or data.get("provider") or ("" if row is None else row.provider)
    kept = TenantProvider(
        tenant_id=call.member.tenant_id,
        mode=body.mode,
        provider=provider,
        model=model,
        context_cap_tokens=cap or UNKNOWN_CAP_TOKENS,
        credential_ref=None if place is None else body.credential_ref,
        credential_workspace_id=place,
        updated_at=world.now_ms(),
    )
    await world.storage.providers.put(kept)
    world.providers.forget(kept.tenant_id)
    return _shown(kept)


@operation("DELETE", CHOICE, tag=TAG, role=Role.OPERATOR, tenant_wide=True)
async def delete_tenant_provider(call: Call[NoBody, NoQuery]) -> TenantProviderView:
    """Choose nothing: runs use what their workspace or the platform has. The answer is what holds now."""
    await _choose_nothing(call)
    return NOTHING_CHOSEN


def _without_empties(body: NewTenantProvider) -> NewTenantProvider:
    """An empty model and a cap of 0 are what some clients write for none."""
    cap = body.context_cap_tokens or None
    if cap is not None and cap < MIN_CAP_TOKENS:
        pointer = "/context_cap_tokens"
        raise Problem("UZ-REQ-001", f"{pointer}: 0, or at least {MIN_CAP_TOKENS}", facts={"pointer": pointer})
    return msgspec.structs.replace(body, model=body.model or None, context_cap_tokens=cap)


async def _choose_nothing(call: Call[Any, Any]) -> None:
    tenant_id = call.member.tenant_id
    await call.ctx.world.storage.providers.delete(tenant_id)
    call.ctx.world.providers.forget(tenant_id)


async def _own(call: Call[NewTenantProvider, NoQuery]) -> tuple[UUID, dict[str, Any]]:
    """The credential with the tenant's own key, of the oldest workspace whose vault has it."""
    name, secrets = call.body.credential_ref, call.ctx.world.secrets
    if name is None:
        raise Problem("UZ-PROVIDER-001", "/credential_ref: name the credential of a self-managed provider")
    for workspace in await _workspaces(call):
        data = await secrets.open(workspace.id, name)
        if data is None:
            continue
        if missing := lacking(data, KEY_FIELDS):
            detail = f"/credential_ref: the credential {name} lacks {', '.join(missing)}"
            raise Problem("UZ-PROVIDER-003", detail, facts={"missing": list(missing)})
        return workspace.id, dict(data)
    raise Problem("UZ-PROVIDER-002", f"/credential_ref: no vault has a credential named {name}")


async def _workspaces(call: Call[Any, Any]) -> list[Workspace]:
    """Those that the token reaches, oldest first."""
    member = call.member
    rows = await call.ctx.world.storage.workspaces.list(member.tenant_id)
    return [row for row in rows if member.workspace_id in {None, row.id}]


def _shown(kept: TenantProvider) -> TenantProviderView:
    return TenantProviderView(
        kept.mode, kept.provider, kept.model, kept.context_cap_tokens, kept.credential_ref
    )


# --- what the platform lends --------------------------------------------------------------------------------

KEYS = "/v1/admin/platform-keys"
KEY_CODES = ("UZ-WORKSPACE-001", "UZ-AUTH-021")


@operation("GET", KEYS, tag=TAG, role=Role.ADMIN, tenant_wide=True)
async def list_platform_keys(call: Call[NoBody, NoQuery]) -> PlatformKeyList:
    """List the tenant's entries: for which providers a workspace's vault lends its key."""
    rows = await call.ctx.world.storage.providers.platform_keys(call.member.tenant_id)
    return PlatformKeyList([_entry(row) for row in rows])


@operation(
    "GET", KEYS + "/{provider}", tag=TAG, role=Role.ADMIN, tenant_wide=True, codes=("UZ-PROVIDER-005",)
)
async def get_platform_key(call: Call[NoBody, NoQuery]) -> PlatformKeyView:
    """Show the entry of one provider."""
    row = await _find(call, call.text("provider"))
    if row is None:
        raise Problem("UZ-PROVIDER-005", f"there is no entry for {call.text('provider')}")
    return _entry(row)


@operation("PUT", KEYS, tag=TAG, role=Role.ADMIN, tenant_wide=True, codes=KEY_CODES)
async def put_platform_key(call: Call[NewPlatformKeyEntry, NoQuery]) -> PlatformKeyView:
    """Lend the key of a workspace's vault to the whole tenant; a platform admin's serves all tenants."""
    return await _put(call, call.body.provider, call.body.source_workspace_id)


@operation("PUT", KEYS + "/{provider}", tag=TAG, role=Role.ADMIN, tenant_wide=True, codes=KEY_CODES)
async def put_named_platform_key(call: Call[NewPlatformKey, NoQuery]) -> PlatformKeyView:
    """The same, with the provider in the path."""
    try:
        provider = msgspec.convert(call.text("provider"), ProviderName)
    except msgspec.ValidationError as fault:
        raise Problem("UZ-REQ-001", f"provider: {fault}") from fault
    if call.body.provider not in {None, provider}:
        raise Problem(
            "UZ-REQ-001", "/provider: differs from the one in the path", facts={"pointer": "/provider"}
        )
    return await _put(call, provider, call.body.source_workspace_id)


@operation(
    "DELETE",
    KEYS + "/{provider}",
    tag=TAG,
    role=Role.ADMIN,
    tenant_wide=True,
    status=204,
    codes=("UZ-AUTH-021",),
)
async def delete_platform_key(call: Call[NoBody, NoQuery]) -> None:
    """Lend it no more; where there is no entry, it is not lent already."""
    await _may_change(call, call.text("provider"))
    world = call.ctx.world
    await world.storage.providers.delete_platform_key(call.member.tenant_id, call.text("provider"))
    world.providers.forget_all()


async def _put(call: Call[Any, Any], provider: str, source_workspace_id: UUID) -> PlatformKeyView:
    member, world = call.member, call.ctx.world
    if source_workspace_id not in {row.id for row in await _workspaces(call)}:
        raise Problem("UZ-WORKSPACE-001", f"there is no workspace {source_workspace_id}")
    await _may_change(call, provider)
    key = PlatformKey(member.tenant_id, provider, source_workspace_id, member.platform_admin, world.now_ms())
    await world.storage.providers.put_platform_key(key)
    world.providers.forget_all()
    return _entry(key)


async def _may_change(call: Call[Any, Any], provider: str) -> None:
    row = await _find(call, provider)
    if row is not None and row.shared and not call.member.platform_admin:
        raise Problem("UZ-AUTH-021", "the entry serves other tenants: only a platform admin changes it")


async def _find(call: Call[Any, Any], provider: str) -> PlatformKey | None:
    rows = await call.ctx.world.storage.providers.platform_keys(call.member.tenant_id)
    return next((row for row in rows if row.provider == provider), None)


def _entry(row: PlatformKey) -> PlatformKeyView:
    return PlatformKeyView(row.provider, row.source_workspace_id, row.shared)
