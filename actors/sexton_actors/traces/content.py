"""How much of what runs read and said goes into their spans."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec

from sexton_actors.traces.spans import Value

MAX_CONTENT: Final = 16_384
"""Characters of one attribute; what is beyond it is left out."""


class ContentMode(StrEnum):
    """What is sent of prompts, answers, arguments and results, all of them redacted by their runner."""

    NONE = "none"
    """Nothing: names, times, counts and costs only."""
    METADATA = "metadata"
    """How long they are, and which arguments were given; who sent the event, and what a gate was about."""
    FULL = "full"
    """The texts themselves, as the transcript has them."""


class Part(msgspec.Struct, frozen=True, gc=False):
    """A piece of what a model was given to read."""

    role: str
    text: str
    call_id: str = ""
    """The call that this is the result of; empty: it is none."""


def spelled(value: object) -> str:
    """JSON of at most ``MAX_CONTENT`` characters.

    >>> spelled({"a": 1}), len(spelled("x" * 99_999)) == MAX_CONTENT
    ('{"a":1}', True)
    """
    return msgspec.json.encode(value).decode()[:MAX_CONTENT]


def question(mode: ContentMode, parts: Sequence[Part]) -> dict[str, Value]:
    """What a model read since it was asked before.

    >>> question(ContentMode.METADATA, [Part("user", "hello"), Part("system", "be kind")])
    {'sexton.content.input_chars': 12}
    >>> question(ContentMode.FULL, [Part("user", "hello")])["gen_ai.input.messages"]
    '[{"role":"user","parts":[{"type":"text","content":"hello"}]}]'
    """
    if mode is ContentMode.NONE or not parts:
        return {}
    found: dict[str, Value] = {"sexton.content.input_chars": sum(len(part.text) for part in parts)}
    if mode is ContentMode.METADATA:
        return found
    system = [{"type": "text", "content": part.text} for part in parts if part.role == "system"]
    others = [{"role": part.role, "parts": [_part(part)]} for part in parts if part.role != "system"]
    if system:
        found["gen_ai.system_instructions"] = spelled(system)
    if others:
        found["gen_ai.input.messages"] = spelled(others)
    return found


def _part(part: Part) -> dict[str, str]:
    if part.call_id:
        return {"type": "tool_call_response", "id": part.call_id, "response": part.text}
    return {"type": "text", "content": part.text}


def answer(mode: ContentMode, text: str, calls: Sequence[Mapping[str, str]], stop: str) -> dict[str, Value]:
    """What a model said.

    >>> answer(ContentMode.METADATA, "hi", [], "end")
    {'sexton.content.output_chars': 2}
    """
    if mode is ContentMode.NONE:
        return {}
    found: dict[str, Value] = {"sexton.content.output_chars": len(text)}
    if mode is ContentMode.FULL:
        said = [{"type": "text", "content": text}] if text else []
        asked = [{"type": "tool_call", **call} for call in calls]
        message = {"role": "assistant", "parts": [*said, *asked], "finish_reason": stop}
        found["gen_ai.output.messages"] = spelled([message])
    return found


def arguments(mode: ContentMode, given: object) -> dict[str, Value]:
    """What a tool was called with.

    >>> arguments(ContentMode.METADATA, {"url": "https://example.com", "method": "GET"})
    {'sexton.tool.arguments': ('method', 'url')}
    >>> arguments(ContentMode.NONE, {"url": "https://example.com"})
    {}
    """
    match mode:
        case ContentMode.NONE:
            return {}
        case ContentMode.METADATA:
            names = sorted(map(str, given))[:32] if isinstance(given, Mapping) else []
            return {"sexton.tool.arguments": tuple(name[:128] for name in names)}
        case ContentMode.FULL:
            return {"gen_ai.tool.call.arguments": spelled(given)}


def result(mode: ContentMode, text: str) -> dict[str, Value]:
    """What a tool answered.

    >>> result(ContentMode.METADATA, "42"), result(ContentMode.FULL, "42")
    ({'sexton.content.result_chars': 2}, {'gen_ai.tool.call.result': '42'})
    """
    match mode:
        case ContentMode.NONE:
            return {}
        case ContentMode.METADATA:
            return {"sexton.content.result_chars": len(text)}
        case ContentMode.FULL:
            return {"gen_ai.tool.call.result": text}


def only_known(mode: ContentMode, attributes: Mapping[str, Any]) -> dict[str, Value]:
    """What is told unless nothing of content may be."""
    return {} if mode is ContentMode.NONE else dict(attributes)
