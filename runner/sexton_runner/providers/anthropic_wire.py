"""The events of Anthropic's Messages API, parsed defensively, and the prompt in its format."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, assert_never

import msgspec

from sexton_runner.pictures import Picture
from sexton_runner.providers.base import (
    NOTHING_SHOWN,
    Message,
    Opaque,
    Part,
    Stop,
    Text,
    ToolAnswer,
    ToolSpec,
    ToolUse,
    Usage,
)

NAME = "anthropic"
CACHED = {"cache_control": {"type": "ephemeral"}}
DEFAULT_MAX_OUTPUT_TOKENS = 8192  # The API demands a bound; every current model can answer this much.
STOPS = {
    "end_turn": Stop.END,
    "stop_sequence": Stop.END,
    "tool_use": Stop.TOOLS,
    "max_tokens": Stop.LENGTH,
    "pause_turn": Stop.PAUSED,
    "model_context_window_exceeded": Stop.WINDOW,
    "refusal": Stop.REFUSED,
}


class Counts(msgspec.Struct, frozen=True):
    """Cumulative; what is absent has not changed."""

    input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens: int | None = None

    def over(self, before: "Counts") -> "Counts":
        """Put these over the older ones."""
        own = {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}
        return msgspec.structs.replace(before, **own)

    def usage(self) -> Usage:
        """Give them in our words."""
        return Usage(
            self.input_tokens or 0,
            self.cache_read_input_tokens or 0,
            self.output_tokens or 0,
            self.cache_creation_input_tokens or 0,
        )


class Began(msgspec.Struct, frozen=True):
    usage: Counts


class MessageStart(msgspec.Struct, frozen=True, tag="message_start"):
    message: Began


class BlockStart(msgspec.Struct, frozen=True, tag="content_block_start"):
    index: int
    content_block: dict[str, Any]


class BlockPiece(msgspec.Struct, frozen=True):
    type: str
    text: str = ""
    partial_json: str = ""
    thinking: str = ""
    signature: str = ""
    citation: dict[str, Any] | None = None


class BlockDelta(msgspec.Struct, frozen=True, tag="content_block_delta"):
    index: int
    delta: BlockPiece


class BlockStop(msgspec.Struct, frozen=True, tag="content_block_stop"):
    index: int


class Ended(msgspec.Struct, frozen=True):
    stop_reason: str | None = None


class MessageDelta(msgspec.Struct, frozen=True, tag="message_delta"):
    delta: Ended
    usage: Counts = Counts()


class MessageStop(msgspec.Struct, frozen=True, tag="message_stop"):
    pass


class Error(msgspec.Struct, frozen=True):
    type: str
    message: str = ""


class Failed(msgspec.Struct, frozen=True, tag="error"):
    error: Error


class Kind(msgspec.Struct, frozen=True):
    type: str


Event = MessageStart | BlockStart | BlockDelta | BlockStop | MessageDelta | MessageStop | Failed
KNOWN = frozenset(
    {
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "error",
    }
)


def read_event(data: bytes) -> Event | None:
    """Read one event; None for a ping, and for a kind that came later. Raises ``msgspec.DecodeError``."""
    kind = msgspec.json.decode(data, type=Kind).type
    return msgspec.json.decode(data, type=Event) if kind in KNOWN else None


def spell_system(system: str) -> list[dict[str, Any]]:
    """Spell the system prompt, to be cached together with the tools before it."""
    return [{"type": "text", "text": system, **CACHED}] if system else []


def spell_tools(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """Spell the tools."""
    return [
        {"name": tool.name, "description": tool.description, "input_schema": dict(tool.input_schema)}
        for tool in tools
    ]


def spell_messages(
    messages: Iterable[Message], pictures: Mapping[str, bytes] = NOTHING_SHOWN
) -> list[dict[str, Any]]:
    """Spell the conversation; all of it is cached for the next question, which begins with the same words."""
    spelt: list[dict[str, Any]] = []
    for message in messages:
        blocks = [block for part in message.parts if (block := _spell(part, pictures)) is not None]
        if blocks:
            spelt.append({"role": message.role, "content": blocks})
    # A paused turn stands last and goes back as it came: the mark is then on the turn before it.
    for turn in reversed(spelt):
        if turn["role"] == "user":
            turn["content"][-1] |= CACHED
            break
    return spelt


def _spell(part: Part, shown: Mapping[str, bytes]) -> dict[str, Any] | None:
    match part:
        case Text(text=text, citations=citations):
            # The API refuses empty text, and text of white space alone.
            cited = {"citations": list(citations)} if citations else {}
            return {"type": "text", "text": text, **cited} if text.strip() else None
        case ToolUse(id=call_id, name=name, arguments=arguments):
            return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
        case ToolAnswer(id=call_id, content=content, ok=ok, pictures=pictures):
            told: Any = content
            if pictures:
                words = [{"type": "text", "text": content}] if content.strip() else []
                told = [*words, *(_picture(one, shown) for one in pictures)]
            return {"type": "tool_result", "tool_use_id": call_id, "content": told, "is_error": not ok}
        case Picture():
            return _picture(part, shown)
        case Opaque(provider=provider, block=block):
            return dict(block) if provider == NAME and _is_whole(block) else None
        case _:
            assert_never(part)


def _picture(picture: Picture, shown: Mapping[str, bytes]) -> dict[str, Any]:
    data = base64.b64encode(shown[picture.sha256]).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": picture.media_type, "data": data}}


def _is_whole(block: dict[str, Any]) -> bool:
    # A thought that was cut at the bound on output bears no signature, and the API refuses it.
    return block.get("type") != "thinking" or bool(block.get("signature"))
