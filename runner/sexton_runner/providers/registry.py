"""The table of providers: which protocol each speaks, and where. A new one is a row here, or a variable."""

import importlib
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import trio

from sexton_runner.providers.base import Provider
from sexton_runner.providers.chain import Link, ModelChain
from sexton_runner.providers.faults import ProviderMissing
from sexton_runner.providers.retries import Patience
from sexton_runner.providers.transport import open_pool


@dataclass(frozen=True, slots=True)
class Dialect:
    """A protocol: our module that speaks it, its class there, and the package that it needs."""

    module: str
    maker: str
    package: str


MESSAGES = Dialect("sexton_runner.providers.anthropic_api", "AnthropicProvider", "anthropic")
CHAT = Dialect("sexton_runner.providers.openai_api", "OpenAIProvider", "openai")


@dataclass(frozen=True, slots=True)
class Service:
    """One provider; ``keyless`` ones are servers of one's own, which ask for no key unless told to."""

    dialect: Dialect
    base_url: str
    keyless: bool = False


SERVICES: Mapping[str, Service] = {
    "anthropic": Service(MESSAGES, "https://api.anthropic.com"),
    "openai": Service(CHAT, "https://api.openai.com/v1"),
    "deepseek": Service(CHAT, "https://api.deepseek.com/v1"),
    "fireworks": Service(CHAT, "https://api.fireworks.ai/inference/v1"),
    "groq": Service(CHAT, "https://api.groq.com/openai/v1"),
    "mistral": Service(CHAT, "https://api.mistral.ai/v1"),
    "openrouter": Service(CHAT, "https://openrouter.ai/api/v1"),
    "together": Service(CHAT, "https://api.together.xyz/v1"),
    "xai": Service(CHAT, "https://api.x.ai/v1"),
    "llamacpp": Service(CHAT, "http://127.0.0.1:8080/v1", keyless=True),
    "lmstudio": Service(CHAT, "http://127.0.0.1:1234/v1", keyless=True),
    "ollama": Service(CHAT, "http://127.0.0.1:11434/v1", keyless=True),
    "vllm": Service(CHAT, "http://127.0.0.1:8000/v1", keyless=True),
}


def service_of(name: str, addresses: Mapping[str, str]) -> Service:
    """Find a provider; one that no row names speaks the chat API at its address.

    Raises ``ProviderMissing``.
    """
    name = name.lower().replace("_", "-")
    known, address = SERVICES.get(name), addresses.get(name)
    if known is None and address is None:
        variable = f"SEXTON_{name.upper().replace('-', '_')}_BASE_URL"
        known_names = ", ".join(SERVICES)
        raise ProviderMissing(f"no provider {name!r} is known: use one of {known_names}, or set {variable}")
    service = known or Service(CHAT, address or "", keyless=True)
    place = urlsplit(address or service.base_url)
    if place.scheme not in ("http", "https") or not place.hostname:
        raise ProviderMissing(f"the address of provider {name!r} is no http:// or https:// address")
    return Service(service.dialect, address or service.base_url, service.keyless)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """One model of a run. ``place`` is that in the lease; the key stays out of ``repr``."""

    place: int
    provider: str
    model: str
    api_key: str | None = field(default=None, repr=False)


@asynccontextmanager
async def open_chain(
    choices: Sequence[ModelChoice],
    *,
    addresses: Mapping[str, str],
    patience: Patience,
    rng: random.Random,
    gives_back: bool,
) -> AsyncIterator[ModelChain]:
    """Open the way to all models of one run. Raises ``ProviderMissing``."""
    async with AsyncExitStack() as stack:
        links = [
            Link(
                choice.place,
                await stack.enter_async_context(_open(choice.provider, choice.api_key, addresses)),
                choice.model,
            )
            for choice in choices
        ]
        yield ModelChain(links, patience, rng, gives_back=gives_back)


@asynccontextmanager
async def open_provider(
    name: str,
    api_key: str | None,
    *,
    addresses: Mapping[str, str],
    patience: Patience,
    rng: random.Random,
) -> AsyncIterator[Provider]:
    """Open the way to a provider for one question. Raises ``ProviderMissing``."""
    async with _open(name, api_key, addresses) as provider:
        yield ModelChain([Link(0, provider)], patience, rng)


@asynccontextmanager
async def _open(name: str, api_key: str | None, addresses: Mapping[str, str]) -> AsyncIterator[Provider]:
    service = service_of(name, addresses)
    if not api_key and not service.keyless:
        raise ProviderMissing(f"provider {name!r} needs a key, and the lease has none")
    maker = await _load(service.dialect)
    async with open_pool(service.base_url) as http:
        yield maker(http, service.base_url, api_key or "")


async def _load(dialect: Dialect) -> Any:
    # A client takes a second to import, on a thread: leases of other runs are renewed meanwhile.
    try:
        module = await trio.to_thread.run_sync(importlib.import_module, dialect.module)
    except ImportError as fault:
        raise ProviderMissing(
            f"the package {dialect.package!r} cannot be imported ({fault}) by this runner: install sexton"
            " with the extra models, as in pip install 'sexton[models]'"
        ) from fault
    return getattr(module, dialect.maker)
