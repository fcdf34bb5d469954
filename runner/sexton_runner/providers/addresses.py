"""Reads the addresses of providers that an operator has set in the environment."""

import re
from collections.abc import Mapping

VARIABLE = re.compile(r"SEXTON_([A-Z0-9_]{1,64})_BASE_URL")


def read_addresses(environment: Mapping[str, str]) -> dict[str, str]:
    """Give the addresses that an operator has set, by provider.

    >>> read_addresses({"SEXTON_OLLAMA_BASE_URL": "http://gpu:11434/v1", "HOME": "/root"})
    {'ollama': 'http://gpu:11434/v1'}
    """
    found = {}
    for name, value in environment.items():
        if (match := VARIABLE.fullmatch(name)) and value:
            found[match[1].lower().replace("_", "-")] = value.rstrip("/")
    return found
