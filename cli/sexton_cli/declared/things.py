"""The things that a folder and a workspace have, as flat fields that can be compared one by one."""

import hashlib
import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec

from sexton_actors.secret_uses import DEFAULT
from sexton_storage.terms import DEFAULT_CONTEXT_TOKENS

Fields = Mapping[str, Any]
"""By name, as JSON; what is not there has no value."""
Things = Mapping[str, Fields]
"""By key, as ``agent/herald``."""

SECRET: Final = "(secret)"  # noqa: S105 - what stands in its place
OTHER_SECRET: Final = "(another secret)"  # noqa: S105 - likewise
SHORT_CHARS: Final = 200


class Kind(StrEnum):
    """In the order in which they are made; they are removed in the opposite one."""

    WORKSPACE = "workspace"
    CREDENTIAL = "credential"
    MODEL_KEY = "model_key"
    MCP_SERVER = "mcp_server"
    AGENT = "agent"


DEFAULTS: Final[Mapping[Kind, Fields]] = {
    Kind.WORKSPACE: {"paused": False, "scoring.context_tokens": DEFAULT_CONTEXT_TOKENS},
    Kind.CREDENTIAL: {"hosts": [], "use": list(msgspec.to_builtins(DEFAULT))},
    Kind.MODEL_KEY: {},
    Kind.MCP_SERVER: {"tools": []},
    Kind.AGENT: {"status": "active"},
}
"""What a field has that nobody names any more; every other is taken away."""
STAY: Final = frozenset({"data", "api_key", "provider", "skill", "trigger"})
"""A folder that does not say them any more leaves them as they are."""
SECRETS: Final = frozenset({"data", "api_key"})
TEXTS: Final[Mapping[str, str]] = {"skill": "SKILL.md", "trigger": "TRIGGER.md"}
"""Fields that are files, by the file."""


def key_of(kind: Kind, name: str) -> str:
    return f"{kind.value}/{name}"


def kind_of(key: str) -> Kind:
    """The kind of the thing that has this key.

    >>> kind_of("agent/herald"), name_of("agent/herald")
    (<Kind.AGENT: 'agent'>, 'herald')
    """
    return Kind(key.partition("/")[0])


def name_of(key: str) -> str:
    return key.partition("/")[2]


def note_of(value: Any) -> str:
    r"""A value as it is remembered: short JSON, or the SHA-256 of what is longer.

    >>> note_of(["b", 1]), note_of("é")
    ('["b",1]', '"\\u00e9"')
    >>> note_of("x" * 500)[:12]
    'sha256:c1c39'
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    if len(text) <= SHORT_CHARS:
        return text
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
