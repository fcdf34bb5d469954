"""Finds the model that the demo may use: the environment says whose, or that there is none."""

from collections.abc import Mapping
from typing import NamedTuple

PROVIDERS = ("anthropic", "openai")
NO_KEY = "none"
"""What is sent to a server of one's own, which asks for no key but is reached by a provider's name."""


class Model(NamedTuple):
    provider: str
    api_key: str


def find_model(environment: Mapping[str, str]) -> Model | None:
    """Give the first provider whose key, or whose address, is there.

    >>> find_model({"ANTHROPIC_API_KEY": "", "OPENAI_API_KEY": "k-1"})
    Model(provider='openai', api_key='k-1')
    >>> find_model({"SEXTON_ANTHROPIC_BASE_URL": "http://127.0.0.1:9000"})
    Model(provider='anthropic', api_key='none')
    >>> find_model({"HOME": "/root"})
    """
    for provider in PROVIDERS:
        name = provider.upper()
        key = environment.get(f"{name}_API_KEY", "")
        if key or environment.get(f"SEXTON_{name}_BASE_URL"):
            return Model(provider, key or NO_KEY)
    return None
