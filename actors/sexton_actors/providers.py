"""Decides whose model and key a run, or a preview, is given."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import msgspec

from sexton_actors.catalogue import Catalogue
from sexton_actors.refusal import Refusal
from sexton_actors.secrets import Secrets
from sexton_storage.records.leases import ModelShare
from sexton_storage.records.providers import PlatformKey, ProviderMode, ProviderStore, TenantProvider
from sexton_storage.stores import DatabaseClock

LLM_CREDENTIAL: Final = "llm/key"
"""Where a workspace's own model key is kept: with a slash no person can give, read or lend it."""
KEY_FIELD: Final = "api_key"
UNKNOWN_CAP_TOKENS: Final = 32_768
"""The context of a model that nobody has said more of."""
CHOICE_KEEP_MS: Final = 1000
"""How long another node may go on with a choice that was changed on this one."""
CHOICE_KEEP_COUNT: Final = 4096

NONE_CONFIGURED: Final = "UZ-RELAY-001"
OWN_KEY_MISSING: Final = "UZ-CRED-001"
PLATFORM_KEY_MISSING: Final = "UZ-CRED-003"


class ProviderChoice(msgspec.Struct, frozen=True):
    """All that a call of a model needs."""

    provider: str
    model: str
    api_key: str
    context_cap_tokens: int
    own_key: bool
    """The tenant's, whose tokens cost nothing here; else the platform's."""


class ModelChain(msgspec.Struct, frozen=True):
    """The models of a run: the first, and those that are asked in its place when it is busy."""

    first: ProviderChoice | Refusal | None
    """None for a run that has no model."""
    fallbacks: tuple[ProviderChoice, ...] = ()

    def shares(self, catalogue: Catalogue) -> tuple[ModelShare, ...] | None:
        """What each is billed by; None where there is only one."""
        if not self.fallbacks or not isinstance(self.first, ProviderChoice):
            return None
        return tuple(
            catalogue.share(choice.provider, choice.model, own_key=choice.own_key)
            for choice in (self.first, *self.fallbacks)
        )


class _Wanted(msgspec.Struct, frozen=True):
    """What the workspace and the tenant have set up, without any key of a vault."""

    chosen: TenantProvider | None
    lent: Mapping[str, PlatformKey]
    at: int


class Providers:
    """The only place where a key is chosen; callers never keep what they are given."""

    def __init__(
        self, store: ProviderStore, secrets: Secrets, catalogue: Catalogue, clock: DatabaseClock
    ) -> None:
        self._store = store
        self._secrets = secrets
        self._catalogue = catalogue
        self._clock = clock
        self._known: dict[UUID, _Wanted] = {}

    def __repr__(self) -> str:
        return f"<Providers of {len(self._known)} tenants>"

    def forget(self, tenant_id: UUID) -> None:
        """It was changed on this node, and is so from now on. Shared keys concern all tenants."""
        self._known.pop(tenant_id, None)

    def forget_all(self) -> None:
        self._known.clear()

    async def resolve_provider(
        self, *, tenant_id: UUID, workspace_id: UUID, provider: str | None = None, model: str | None = None
    ) -> ProviderChoice | Refusal:
        """The provider, model and key for a workspace; ``provider`` and ``model`` are an agent's wishes.

        The key is the workspace's own for that provider, else the tenant's, else the platform's. Refused
        with UZ-RELAY-001 when nothing is set up, UZ-CRED-001 when the tenant's own key is missing,
        UZ-CRED-003 when the platform's is. Raises StorageUnavailable.
        """
        wanted = await self._wanted(tenant_id)
        own = await self._secrets.open(workspace_id, LLM_CREDENTIAL) or {}
        name = provider or self._provider_for(model, wanted, own)
        if name is None:
            return Refusal(NONE_CONFIGURED, "No provider of language models is set up.")
        found = await self._key(name, workspace_id, wanted, own)
        if isinstance(found, Refusal):
            return found
        if found is None:
            known = provider is not None and self._catalogue.first_of(provider) is not None
            return _missing(name, wanted, needs_key=known)
        key, own_key = found
        return self._choice(name, model, key, wanted.chosen, own_key=own_key)

    async def resolve_chain(
        self, *, tenant_id: UUID, workspace_id: UUID, wishes: Sequence[tuple[str | None, str | None]]
    ) -> ModelChain:
        """The models for these wishes, each a provider and a model, in their order; there is at least one.

        One that cannot be used, as its key is missing, is passed over. When none can be used the first tells
        why. Raises StorageUnavailable.
        """
        found = [
            await self.resolve_provider(
                tenant_id=tenant_id, workspace_id=workspace_id, provider=provider, model=model
            )
            for provider, model in wishes
        ]
        usable = [choice for choice in found if isinstance(choice, ProviderChoice)]
        if not usable:
            return ModelChain(found[0])
        return ModelChain(usable[0], tuple(usable[1:]))

    async def _wanted(self, tenant_id: UUID) -> _Wanted:
        now = self._clock.now_ms()
        known = self._known.get(tenant_id)
        if known is not None and 0 <= now - known.at < CHOICE_KEEP_MS:
            return known
        chosen = await self._store.load(tenant_id)
        lent = {key.provider: key for key in await self._store.lent_keys(tenant_id)}
        if len(self._known) >= CHOICE_KEEP_COUNT:
            self._known.clear()
        known = self._known[tenant_id] = _Wanted(chosen, lent, now)
        return known

    def _provider_for(self, model: str | None, wanted: _Wanted, own: Mapping[str, Any]) -> str | None:
        """The choice for the requested model, if the catalogue knows it; else the nearest set up."""
        row = None if model is None else self._catalogue.find(model)
        if row is not None:
            return row.provider
        if own:
            return str(own["provider"])
        if wanted.chosen is not None:
            return wanted.chosen.provider
        return next(iter(wanted.lent), None)

    async def _key(
        self, provider: str, workspace_id: UUID, wanted: _Wanted, own: Mapping[str, Any]
    ) -> tuple[str, bool] | Refusal | None:
        """The key and whether it is the tenant's own; None when nobody has one."""
        if own.get("provider") == provider:
            return str(own[KEY_FIELD]), True
        if key := await self._named_key(workspace_id, provider):
            return key, True
        chosen, lent = wanted.chosen, wanted.lent.get(provider)
        if chosen is not None and chosen.provider == provider and chosen.mode is ProviderMode.SELF_MANAGED:
            return await self._tenants_key(chosen)
        if lent is None:
            return None
        if key := await self._key_of(lent.source_workspace_id, provider):
            return key, False
        return Refusal(PLATFORM_KEY_MISSING, f"The vault that lends the key for {provider} has none.")

    async def _tenants_key(self, chosen: TenantProvider) -> tuple[str, bool] | Refusal:
        place, name = chosen.credential_workspace_id, chosen.credential_ref
        data = None if place is None or name is None else await self._secrets.open(place, name)
        key = key_in(data)
        if key is None:
            return Refusal(OWN_KEY_MISSING, f"The vault has no {KEY_FIELD} in the credential {name}.")
        return key, True

    async def _key_of(self, workspace_id: UUID, provider: str) -> str | None:
        own = await self._secrets.open(workspace_id, LLM_CREDENTIAL)
        if own is not None and own.get("provider") == provider:
            return key_in(own)
        return await self._named_key(workspace_id, provider)

    async def _named_key(self, workspace_id: UUID, provider: str) -> str | None:
        return key_in(await self._secrets.open(workspace_id, f"{provider}_api_key"))

    def _choice(
        self, provider: str, model: str | None, key: str, chosen: TenantProvider | None, *, own_key: bool
    ) -> ProviderChoice | Refusal:
        preset = chosen if chosen is not None and chosen.provider == provider else None
        name = model or (preset.model if preset else None) or self._catalogue.first_of(provider)
        if name is None:
            detail = f"No model of {provider} is set up: name one in the agent, or for the tenant."
            return Refusal(NONE_CONFIGURED, detail)
        row = self._catalogue.find(name)
        if preset is not None and preset.model == name:
            cap = preset.context_cap_tokens
        else:
            cap = UNKNOWN_CAP_TOKENS if row is None else row.context_cap_tokens
        return ProviderChoice(provider, name, key, cap, own_key)


def key_in(data: Mapping[str, Any] | None) -> str | None:
    """The key in a credential's data, if it has one.

    >>> key_in({"api_key": "k"}), key_in({"api_key": ""}), key_in({"token": "k"})
    ('k', None, None)
    """
    key = None if data is None else data.get(KEY_FIELD)
    return key if isinstance(key, str) and key else None


def lacking(data: Mapping[str, Any], fields: Sequence[str]) -> Sequence[str]:
    """Those fields that are no text in a credential's data.

    >>> lacking({"provider": "anthropic", "api_key": 7}, ("provider", "api_key"))
    ['api_key']
    """
    return [name for name in fields if not isinstance(data.get(name), str) or not data[name]]


def _missing(provider: str, wanted: _Wanted, *, needs_key: bool) -> Refusal:
    """A provider that the catalogue does not know may be a server of one's own, which asks for no key."""
    chosen = wanted.chosen
    if chosen is not None and chosen.provider == provider and chosen.mode is ProviderMode.PLATFORM:
        return Refusal(PLATFORM_KEY_MISSING, f"The platform has no key for {provider}.")
    if needs_key:
        return Refusal(OWN_KEY_MISSING, f"The workspace has no key for {provider} ({provider}_api_key).")
    return Refusal(NONE_CONFIGURED, f"No key for {provider} is set up.")
