"""The chunks of the OpenAI-compatible chat API, parsed defensively, and the prompt in its format."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, assert_never

import msgspec
import orjson

from sexton_runner.pictures import Picture
from sexton_runner.providers.base import (
    NOTHING_SHOWN,
    Message,
    Opaque,
    Stop,
    Text,
    ToolAnswer,
    ToolSpec,
    ToolUse,
    Usage,
)

MAX_DRAWN = 8
"""Pictures of one answer; more are left out."""
STOPS = {
    "stop": Stop.END,
    "tool_calls": Stop.TOOLS,
    "function_call": Stop.TOOLS,
    "length": Stop.LENGTH,
    "content_filter": Stop.REFUSED,
}


class Function(msgspec.Struct, frozen=True):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None
    """Text in pieces; some servers give the object at once."""


class CallPiece(msgspec.Struct, frozen=True):
    index: int | None = None
    id: str | None = None
    function: Function = Function()


class PictureUrl(msgspec.Struct, frozen=True):
    url: str = ""


class Drawn(msgspec.Struct, frozen=True):
    """A picture that the model has drawn, as several servers send it: whole, in a ``data:`` address."""

    image_url: PictureUrl = PictureUrl()


class Piece(msgspec.Struct, frozen=True):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[CallPiece] | None = None
    images: list[Drawn] | None = None


class Choice(msgspec.Struct, frozen=True):
    delta: Piece = Piece()
    finish_reason: str | None = None
    index: int = 0


class CachedTokens(msgspec.Struct, frozen=True):
    cached_tokens: int | None = None


class Counts(msgspec.Struct, frozen=True):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: CachedTokens | None = None

    def usage(self) -> Usage:
        """Give them in our words: here the prompt's tokens include the cached ones."""
        details = self.prompt_tokens_details
        cached = min((details.cached_tokens or 0) if details else 0, self.prompt_tokens)
        return Usage(self.prompt_tokens - cached, cached, self.completion_tokens)


class Chunk(msgspec.Struct, frozen=True):
    choices: list[Choice] = []
    usage: Counts | None = None
    error: Any = None


def spell_messages(
    system: str, messages: Iterable[Message], pictures: Mapping[str, bytes] = NOTHING_SHOWN
) -> list[dict[str, Any]]:
    """Spell the conversation; tool answers are messages of their own, before the words of their turn."""
    spelt: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    for message in messages:
        spelt += _assistant(message) if message.role == "assistant" else _user(message, pictures)
    return spelt


def content_of(url: str) -> bytes | None:
    """Give the bytes of a ``data:`` address; None for any other.

    >>> content_of("data:image/png;base64,aGVyb24="), content_of("https://example.org/a.png")
    (b'heron', None)
    """
    head, _, data = url.partition(",")
    if not (head.startswith("data:") and head.endswith(";base64")):
        return None
    try:
        return base64.b64decode(data, validate=True)
    except ValueError:
        return None


def _user(message: Message, shown: Mapping[str, bytes]) -> list[dict[str, Any]]:
    spelt: list[dict[str, Any]] = []
    beside: list[dict[str, Any]] = []
    for part in message.parts:
        match part:
            case ToolAnswer(id=call_id, content=content, pictures=pictures):
                spelt.append({"role": "tool", "tool_call_id": call_id, "content": content})
                # A tool's message is words alone, so what it shows comes after all of them.
                for picture in pictures:
                    beside += [_words(f"{picture.path}, of the call {call_id}:"), _picture(picture, shown)]
            case Text(text=text):
                beside += [_words(text)] if text else []
            case Picture():
                beside.append(_picture(part, shown))
            case ToolUse() | Opaque():
                pass
            case _:
                assert_never(part)
    if all(block["type"] == "text" for block in beside):
        return [*spelt, {"role": "user", "content": message.text}] if message.text else spelt
    return [*spelt, {"role": "user", "content": beside}]


def _words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _picture(picture: Picture, shown: Mapping[str, bytes]) -> dict[str, Any]:
    data = base64.b64encode(shown[picture.sha256]).decode()
    return {"type": "image_url", "image_url": {"url": f"data:{picture.media_type};base64,{data}"}}


def _assistant(message: Message) -> list[dict[str, Any]]:
    spelt: dict[str, Any] = {"role": "assistant", "content": message.text or None}
    calls = [_call(use) for use in message.tool_uses]
    if calls:
        spelt["tool_calls"] = calls
    return [spelt] if calls or message.text else []


def _call(use: ToolUse) -> dict[str, Any]:
    function = {"name": use.name, "arguments": orjson.dumps(use.arguments).decode()}
    return {"id": use.id, "type": "function", "function": function}


def spell_tools(tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """Spell the tools."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.input_schema),
            },
        }
        for tool in tools
    ]
