"""What a preview asks of a language model, and what comes back; who speaks with models is not this wing."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Literal, Protocol

import msgspec

from sexton_actors.providers import ProviderChoice


class Said(msgspec.Struct, frozen=True):
    """One message of the conversation to go on with."""

    role: Literal["user", "assistant"]
    content: str


class Offered(msgspec.Struct, frozen=True):
    """A tool that the model may ask for; nobody carries it out."""

    name: str
    description: str
    input_schema: Mapping[str, Any]


class Draft(msgspec.Struct, frozen=True):
    """The question."""

    system: str
    messages: tuple[Said, ...]
    tools: tuple[Offered, ...] = ()


class TextDelta(msgspec.Struct, frozen=True):
    text: str


class ToolUse(msgspec.Struct, frozen=True):
    id: str
    name: str
    input: Mapping[str, Any]


class Tokens(msgspec.Struct, frozen=True):
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int


class Done(msgspec.Struct, frozen=True):
    usage: Tokens
    provider: str
    model: str


class Failed(msgspec.Struct, frozen=True):
    code: str
    """UZ-EXEC-012: the provider will have none of it. UZ-EXEC-013: it gave no whole answer."""
    message: str


Piece = TextDelta | ToolUse | Done | Failed


class Previewer(Protocol):
    """Whoever can speak with models."""

    def preview(self, choice: ProviderChoice, draft: Draft) -> AsyncGenerator[Piece, None]:
        """Ask once. Ends with ``Done`` or ``Failed``; closing it ends the call of the provider at once."""
        ...
