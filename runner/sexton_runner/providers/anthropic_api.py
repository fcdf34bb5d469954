"""Anthropic's Messages API, by the official client."""

from collections.abc import AsyncGenerator
from typing import Any, assert_never

import anthropic
import httpx2
import msgspec

from sexton_runner.providers import anthropic_wire as wire
from sexton_runner.providers.base import (
    Delta,
    Message,
    Opaque,
    Part,
    Prompt,
    Reply,
    Stop,
    Text,
    TextDelta,
    ToolCalled,
    ToolUse,
    Used,
)
from sexton_runner.providers.faults import ModelAway, ModelFault
from sexton_runner.providers.statuses import fault_of
from sexton_runner.providers.tool_arguments import read_arguments
from sexton_runner.providers.transport import cut_off, data_of


class AnthropicProvider:
    """One account. The pool is its opener's; nothing is taken from the environment."""

    def __init__(self, http: httpx2.AsyncClient, base_url: str, api_key: str) -> None:
        # Tries are counted and spaced by us, so that a cut stream counts as one too.
        self._client = anthropic.AsyncAnthropic(
            api_key=api_key, base_url=base_url, http_client=http, max_retries=0, open_telemetry=False
        )

    def __repr__(self) -> str:
        return f"<AnthropicProvider {self._client.base_url}>"

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        """Ask once, as ``Provider`` says."""
        try:
            asking = self._client.messages.with_streaming_response.create(stream=True, **_spell(prompt))
            answer = _Answer()
            async with asking as response, data_of(response.http_response) as events:
                async for data in events:
                    for delta in answer.take(data):
                        yield delta
                    if answer.over:
                        break
            yield answer.reply()
        except (anthropic.APIError, httpx2.HTTPError, msgspec.DecodeError) as fault:
            raise _translated(fault) from fault


def _spell(prompt: Prompt) -> dict[str, Any]:
    spelt: dict[str, Any] = {
        "model": prompt.model,
        "max_tokens": prompt.max_output_tokens
        or wire.DEFAULT_MAX_OUTPUT_TOKENS + (prompt.thinking_tokens or 0),
        "messages": wire.spell_messages(prompt.messages, prompt.pictures),
    }
    if system := wire.spell_system(prompt.system):
        spelt["system"] = system
    if tools := wire.spell_tools(prompt.tools):
        spelt["tools"] = tools
    if prompt.temperature is not None:
        # The client has no word for it, but the API takes it.
        spelt["extra_body"] = {"temperature": prompt.temperature}
    if prompt.effort is not None:
        spelt["output_config"] = {"effort": prompt.effort}
    if prompt.thinking_tokens is not None:
        spelt["thinking"] = {"type": "enabled", "budget_tokens": prompt.thinking_tokens}
    return spelt


class _Answer:
    """One answer while it comes in: blocks by their index, counts, and why it stopped."""

    def __init__(self) -> None:
        self._blocks: dict[int, dict[str, Any]] = {}
        self._done: dict[int, Part] = {}
        self._counts = wire.Counts()
        self._stop: str | None = None
        self.over = False

    def take(self, data: bytes) -> list[Delta]:
        """Take an event and give what it adds.

        Raises ``msgspec.DecodeError`` for a senseless one, and what an ``error`` event tells.
        """
        event = wire.read_event(data)
        match event:
            case None:
                return []
            case wire.MessageStart(message=message):
                return self._count(message.usage)
            case wire.BlockStart(index=index, content_block=block):
                self._blocks[index] = {"json": "", **block}
                return self._words(str(block.get("text") or "")) if block.get("type") == "text" else []
            case wire.BlockDelta(index=index, delta=piece):
                return self._piece(self._open(index), piece)
            case wire.BlockStop(index=index):
                return self._close(index)
            case wire.MessageDelta(delta=ended, usage=usage):
                self._stop = ended.stop_reason or self._stop
                return self._count(usage)
            case wire.MessageStop():
                self.over = True
                return []
            case wire.Failed(error=error):
                raise fault_of(200, frozenset({error.type}), error.message, {})
            case _:
                assert_never(event)

    def reply(self) -> Reply:
        """Give the whole answer. Raises ``ModelAway`` when it was not whole."""
        if not self.over or self._stop is None or self._blocks:
            raise cut_off("the stream ended before the message did")
        parts = tuple(self._done[index] for index in sorted(self._done))
        stop = wire.STOPS.get(self._stop, Stop.END)
        return Reply(Message("assistant", parts), stop, self._counts.usage())

    def _open(self, index: int) -> dict[str, Any]:
        if index not in self._blocks:
            raise msgspec.ValidationError(f"a piece of block {index}, which was not begun")
        return self._blocks[index]

    def _count(self, counts: wire.Counts) -> list[Delta]:
        self._counts = counts.over(self._counts)
        return [Used(self._counts.usage())]

    def _words(self, text: str) -> list[Delta]:
        return [TextDelta(text)] if text else []

    def _piece(self, block: dict[str, Any], piece: wire.BlockPiece) -> list[Delta]:
        match piece.type:
            case "text_delta":
                block["text"] = str(block.get("text") or "") + piece.text
                return self._words(piece.text)
            case "input_json_delta":
                block["json"] += piece.partial_json
            case "thinking_delta":
                block["thinking"] = str(block.get("thinking") or "") + piece.thinking
            case "signature_delta":
                block["signature"] = piece.signature
            case "citations_delta":
                block["citations"] = [*(block.get("citations") or ()), piece.citation or {}]
            case _:
                pass  # A kind that the API added later; what it belongs to is kept as it began.
        return []

    def _close(self, index: int) -> list[Delta]:
        block = dict(self._open(index))
        del self._blocks[index]
        spelt = block.pop("json")
        part = _part(block, spelt)
        self._done[index] = part
        return [ToolCalled(part)] if isinstance(part, ToolUse) else []


def _part(block: dict[str, Any], spelt: str) -> Part:
    match block.get("type"):
        case "text":
            return Text(str(block.get("text") or ""), tuple(block.get("citations") or ()))
        case "tool_use":
            call_id, name = block.get("id"), block.get("name")
            if not isinstance(call_id, str) or not isinstance(name, str):
                raise msgspec.ValidationError("a tool use without its id or name")
            given = block.get("input")
            # Arguments come in pieces; a server that does not stream them gives them at once.
            return (
                ToolUse(call_id, name, given) if given and not spelt else read_arguments(call_id, name, spelt)
            )
        case _:
            # The provider's own tools get their arguments in pieces too.
            given = _read_input(spelt) if spelt else {}
            return Opaque(wire.NAME, block | given)


def _read_input(spelt: str) -> dict[str, Any]:
    try:
        return {"input": msgspec.json.decode(spelt, type=dict[str, Any])}
    except msgspec.DecodeError:
        return {}  # Cut at the bound on output; the rest of the answer is whole.


def _translated(fault: Exception) -> ModelFault:
    match fault:
        case anthropic.APIStatusError():
            return fault_of(fault.status_code, _codes(fault.body), _message(fault), fault.response.headers)
        case anthropic.APIConnectionError():
            return ModelAway(f"no answer: {fault.__cause__ or fault}")
        case httpx2.HTTPError():
            return cut_off(f"{type(fault).__name__}: {fault}".rstrip(": "))
        case _:
            return cut_off(f"an event that makes no sense: {fault}")


def _error(body: object) -> dict[str, Any]:
    inner = body.get("error") if isinstance(body, dict) else None
    return inner if isinstance(inner, dict) else {}


def _codes(body: object) -> frozenset[str]:
    kind = _error(body).get("type")
    return frozenset({kind}) if isinstance(kind, str) else frozenset()


def _message(fault: anthropic.APIStatusError) -> str:
    told = _error(fault.body).get("message")
    return told if isinstance(told, str) else fault.message
