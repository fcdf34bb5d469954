"""The form of ``sexton.yaml``, from which its checks and its JSON Schema are made."""

from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec

from sexton_actors.secret_uses import MAX_USES, Use

FORMAT: Final = 1
NAME: Final = r"^[A-Za-z0-9_-]{1,64}$"
AGENT_NAME: Final = "^[a-z0-9][a-z0-9-]{0,63}$"
SERVER_NAME: Final = "^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$"
MAX_HOSTS: Final = 32

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=1_024)]
Unset = msgspec.UnsetType
UNSET: Final = msgspec.UNSET


class Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mapping of the file; a key that is not known is a mistake."""


class SecretSource(Form, frozen=True):
    """Where a secret comes from: a variable of the environment, or a file outside of the folder."""

    env: Annotated[str, msgspec.Meta(pattern="^[A-Za-z_][A-Za-z0-9_]{0,127}$")] | Unset = UNSET
    file: Text | Unset = UNSET
    """Relative to the folder, or absolute."""


class Credential(Form, frozen=True):
    """A credential of the vault. Without `data` and `object` the vault has it already."""

    data: dict[Annotated[str, msgspec.Meta(pattern=NAME)], SecretSource] | Unset = UNSET
    """The fields, each from a source of its own."""
    object: SecretSource | Unset = UNSET
    """All of it, as one JSON object."""
    hosts: Annotated[list[Text], msgspec.Meta(max_length=MAX_HOSTS)] | Unset = UNSET
    use: Annotated[list[Use], msgspec.Meta(max_length=MAX_USES)] | Unset = UNSET


class ModelKey(Form, frozen=True):
    """The workspace's own key of a model provider."""

    provider: Text
    api_key: SecretSource | Unset = UNSET
    """Left out: the vault has it already."""


class McpServer(Form, frozen=True):
    """An MCP server that the workspace gives its agents: either a `url` or a `command`."""

    url: Text | Unset = UNSET
    command: Text | Unset = UNSET
    headers: dict[str, str] | Unset = UNSET
    env: dict[str, str] | Unset = UNSET
    tools: list[Text] | Unset = UNSET


class Standing(StrEnum):
    ACTIVE = "active"
    STOPPED = "stopped"


class PausedSchedule(Form, frozen=True):
    schedule: Text
    timezone: Text = "UTC"


class Agent(Form, frozen=True):
    """What an agent has beside its two files."""

    status: Standing | Unset = UNSET
    paused_schedules: list[PausedSchedule] | Unset = UNSET
    """The schedules of the agent that are to rest."""
    grants: list[Annotated[str, msgspec.Meta(pattern="^[a-z0-9_-]{1,64}$")]] | Unset = UNSET
    """Services of `integrations` that it may use."""
    credential_grants: list[Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]] | Unset = UNSET
    """Credentials that it may be lent, where a person's own agent waits for that."""

    pin: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | Unset = UNSET
    """The number of the version that it is to stay at; files of the folder that are newer wait."""


class Scoring(Form, frozen=True):
    context_tokens: int


class Declaration(Form, frozen=True):
    """One workspace."""

    format: Annotated[int, msgspec.Meta(ge=FORMAT, le=FORMAT)]
    folder: Annotated[str, msgspec.Meta(pattern=AGENT_NAME)]
    """What the folder is called: what it has applied is remembered under this name."""
    workspace: Annotated[str, msgspec.Meta(min_length=1, max_length=64)] | Unset = UNSET
    """The name; a workspace is made where there is none. Left out: the one in use."""
    paused: bool | Unset = UNSET
    scoring: Scoring | Unset = UNSET
    model_key: ModelKey | Unset = UNSET
    credentials: dict[Annotated[str, msgspec.Meta(pattern=NAME)], Credential] = {}
    mcp_servers: dict[Annotated[str, msgspec.Meta(pattern=SERVER_NAME)], McpServer] = {}
    agents: dict[Annotated[str, msgspec.Meta(pattern=AGENT_NAME)], Agent] = {}
    """Settings of agents whose files are in `agents/NAME`."""


def json_schema() -> dict[str, Any]:
    """For editors: JSON Schema 2020-12."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "sexton.yaml",
        **msgspec.json.schema(Declaration),
    }
