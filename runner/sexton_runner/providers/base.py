"""What a model is asked and what it answers, in the same words for every provider."""

import enum
from collections.abc import AsyncGenerator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, Protocol

import msgspec

from sexton_runner.pictures import Picture

NOTHING_SHOWN: Mapping[str, bytes] = MappingProxyType({})


class Text(msgspec.Struct, frozen=True, tag="text", omit_defaults=True):
    """Words, of either side. ``citations`` are their provider's, which wants them back as they were."""

    text: str
    citations: tuple[dict[str, Any], ...] = ()


class ToolUse(msgspec.Struct, frozen=True, tag="tool_use"):
    """The model asks for a tool.

    With a ``fault`` its arguments could not be read, and are empty here: it must not be carried out.
    """

    id: str
    name: str
    arguments: dict[str, Any] = {}
    fault: str = ""


class ToolAnswer(msgspec.Struct, frozen=True, tag="tool_answer"):
    """What came of the ``ToolUse`` with the same id."""

    id: str
    content: str
    ok: bool = True
    pictures: tuple[Picture, ...] = ()


class Opaque(msgspec.Struct, frozen=True, tag="opaque"):
    """Something that only its provider understands, and wants back as it was."""

    provider: str
    block: dict[str, Any]


Part = Text | ToolUse | ToolAnswer | Opaque | Picture


class Message(msgspec.Struct, frozen=True):
    """One turn of a conversation; tool answers stand in a user's turn."""

    role: Literal["user", "assistant"]
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """All its words."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        """What it asks for, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolUse))


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool as the model sees it."""

    name: str
    description: str
    input_schema: Mapping[str, Any]


class Prompt(msgspec.Struct, frozen=True):
    """One question to a model: the whole conversation so far."""

    model: str
    messages: Sequence[Message]
    system: str = ""
    tools: Sequence[ToolSpec] = ()
    max_output_tokens: int | None = None
    temperature: float | None = None
    effort: str | None = None
    """``low`` to ``max``."""
    thinking_tokens: int | None = None
    """How many tokens the model may think before it answers; for providers that take a number."""
    pictures: Mapping[str, bytes] = NOTHING_SHOWN
    """The bytes of each picture of ``messages``, by its hash."""


class Usage(msgspec.Struct, frozen=True):
    """Tokens; ``input_tokens`` without those that were read from a cache or written to it."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.cached_input_tokens + other.cached_input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )

    @property
    def read(self) -> int:
        """All that the model has read."""
        return self.input_tokens + self.cached_input_tokens + self.cache_write_tokens

    @property
    def total(self) -> int:
        """How full the model's window is after the answer."""
        return self.read + self.output_tokens

    def at_least(self, other: "Usage") -> "Usage":
        """Give the larger of each count: what was told once does not go back."""
        return Usage(
            max(self.input_tokens, other.input_tokens),
            max(self.cached_input_tokens, other.cached_input_tokens),
            max(self.output_tokens, other.output_tokens),
            max(self.cache_write_tokens, other.cache_write_tokens),
        )


class Stop(enum.Enum):
    """Why an answer ended."""

    END = "end"
    TOOLS = "tools"
    LENGTH = "length"
    """The bound on output was reached in the middle of something."""
    PAUSED = "paused"
    """The provider takes a pause within its turn: the turn has to be sent back as it is."""
    WINDOW = "window"
    """The model's context is full."""
    REFUSED = "refused"


class TextDelta(msgspec.Struct, frozen=True):
    """The next words."""

    text: str


class ToolCalled(msgspec.Struct, frozen=True):
    """One tool use is complete."""

    use: ToolUse


class Used(msgspec.Struct, frozen=True):
    """Tokens of this question so far; cumulative within one try."""

    usage: Usage


class Again(msgspec.Struct, frozen=True):
    """The question is asked again from its beginning; with ``void`` words of the broken answer were shown."""

    why: str
    void: bool = False
    model: str = ""
    """Who is asked now, where there are several."""


class Asking(msgspec.Struct, frozen=True):
    """The model at this place of the chain is asked; what is counted from here on is its."""

    place: int


class Reply(msgspec.Struct, frozen=True):
    """The whole answer; always the last delta."""

    message: Message
    stop: Stop
    usage: Usage
    pictures: tuple[bytes, ...] = ()
    """What the model has drawn, as it came."""


Delta = TextDelta | ToolCalled | Used | Asking | Again | Reply


class Provider(Protocol):
    """One account at one provider."""

    def stream(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        """Ask once. The generator must be closed; closing it ends the call at once.

        Ends with a ``Reply``, or raises a ``ModelFault``.
        """
        ...
