"""The OpenAI-compatible chat API, by the official client; most hosted and local servers speak it."""

from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import urlsplit

import httpx2
import msgspec
import openai

from sexton_runner.providers import openai_wire as wire
from sexton_runner.providers.base import (
    Delta,
    Message,
    Part,
    Prompt,
    Reply,
    Stop,
    Text,
    TextDelta,
    ToolCalled,
    ToolUse,
    Usage,
    Used,
)
from sexton_runner.providers.faults import ModelAway, ModelFault
from sexton_runner.providers.statuses import fault_of
from sexton_runner.providers.tool_arguments import read_arguments
from sexton_runner.providers.transport import cut_off, data_of

NO_KEY = "none"  # Local servers ask for none, but the client wants to send one.
OWN_HOST = "api.openai.com"
DONE = b"[DONE]"


class OpenAIProvider:
    """One account, or one local server. The pool is its opener's; nothing is taken from the environment."""

    def __init__(self, http: httpx2.AsyncClient, base_url: str, api_key: str) -> None:
        # Tries are counted and spaced by us, so that a cut stream counts as one too.
        self._client = openai.AsyncOpenAI(
            api_key=api_key or NO_KEY, base_url=base_url, http_client=http, max_retries=0
        )
        # The client reads these from the environment, where they are the operator's, not this tenant's.
        self._client.organization = self._client.project = self._client.admin_api_key = None
        # Its own service has renamed the bound on output; the others know the old name.
        own = urlsplit(base_url).hostname == OWN_HOST
        self._bound = "max_completion_tokens" if own else "max_tokens"

    def __repr__(self) -> str:
        return f"<OpenAIProvider {self._client.base_url}>"

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        """Ask once, as ``Provider`` says."""
        try:
            chat = self._client.chat.completions.with_streaming_response
            answer = _Answer()
            async with (
                chat.create(stream=True, **self._spell(prompt)) as response,
                data_of(response.http_response) as chunks,
            ):
                async for data in chunks:
                    if data == DONE:
                        break
                    for delta in answer.take(data):
                        yield delta
            for delta in answer.calls():
                yield delta
            yield answer.reply()
        except (openai.APIError, httpx2.HTTPError, msgspec.DecodeError) as fault:
            raise _translated(fault) from fault

    def _spell(self, prompt: Prompt) -> dict[str, Any]:
        spelt: dict[str, Any] = {
            "model": prompt.model,
            "messages": wire.spell_messages(prompt.system, prompt.messages, prompt.pictures),
            "stream_options": {"include_usage": True},
        }
        if tools := wire.spell_tools(prompt.tools):
            spelt["tools"] = tools
        if prompt.max_output_tokens is not None:
            spelt[self._bound] = prompt.max_output_tokens
        if prompt.temperature is not None:
            spelt["temperature"] = prompt.temperature
        if prompt.effort is not None:
            spelt["reasoning_effort"] = prompt.effort
        return spelt


class _Call:
    """One tool call while it comes in."""

    def __init__(self, call_id: str) -> None:
        self.id, self.name, self.spelt = call_id, "", ""
        self.given: dict[str, Any] | None = None

    def take(self, function: wire.Function) -> None:
        # Names come whole; a server that repeats one with every piece means the same name.
        self.name = self.name or function.name or ""
        match function.arguments:
            case str(text):
                self.spelt += text
            case dict(given):
                self.given = given
            case _:
                pass

    def use(self) -> ToolUse:
        if not self.name:
            raise msgspec.ValidationError("a tool call without a name")
        if self.given is not None:
            return ToolUse(self.id, self.name, self.given)
        return read_arguments(self.id, self.name, self.spelt)


class _Answer:
    """One answer while it comes in."""

    def __init__(self) -> None:
        self._text = ""
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._usage = Usage()
        self._finish: str | None = None
        self._refused = False
        self._pictures: list[bytes] = []

    def take(self, data: bytes) -> list[Delta]:
        """Take a chunk and give what it adds.

        Raises ``msgspec.DecodeError`` for a senseless one, and what an error in its place tells.
        """
        chunk = msgspec.json.decode(data, type=wire.Chunk)
        if chunk.error is not None:
            raise _within(chunk.error)
        found: list[Delta] = []
        for choice in chunk.choices:
            if choice.index == 0:
                found += self._choice(choice)
        if chunk.usage is not None:
            self._usage = chunk.usage.usage()
            found.append(Used(self._usage))
        return found

    def calls(self) -> list[Delta]:
        """Give the tool uses, which are known to be whole only at the end."""
        self._check()
        return [ToolCalled(call.use()) for call in self._calls]

    def reply(self) -> Reply:
        """Give the whole answer. Raises ``ModelAway`` when it was not whole."""
        self._check()
        uses = tuple(call.use() for call in self._calls)
        parts: tuple[Part, ...] = (*((Text(self._text),) if self._text else ()), *uses)
        drawn = tuple(self._pictures)
        return Reply(Message("assistant", parts), self._stop(bool(uses)), self._usage, drawn)

    def _stop(self, asks: bool) -> Stop:  # noqa: FBT001 - a private rule with one meaning
        if self._refused:
            return Stop.REFUSED
        stop = wire.STOPS.get(self._finish or "", Stop.END)
        # Some servers say "stop" also when they ask for tools.
        return Stop.TOOLS if asks and stop is Stop.END else stop

    def _check(self) -> None:
        if self._finish is None:
            raise cut_off("the stream ended before the message did")

    def _choice(self, choice: wire.Choice) -> list[Delta]:
        words = (choice.delta.content or "") + (choice.delta.refusal or "")
        self._refused = self._refused or bool(choice.delta.refusal)
        self._text += words
        for piece in choice.delta.tool_calls or ():
            self._call(piece).take(piece.function)
        for drawn in choice.delta.images or ():
            content = wire.content_of(drawn.image_url.url)
            if content is not None and len(self._pictures) < wire.MAX_DRAWN:
                self._pictures.append(content)
        self._finish = choice.finish_reason or self._finish
        return [TextDelta(words)] if words else []

    def _call(self, piece: wire.CallPiece) -> _Call:
        known = None if piece.index is None else self._by_index.get(piece.index)
        # A server that numbers all its calls 0 tells a new one by its id.
        if known is None or (piece.id and piece.id != known.id and piece.function.name):
            known = _Call(piece.id or f"call_{len(self._calls)}")
            self._calls.append(known)
            if piece.index is not None:
                self._by_index[piece.index] = known
        return known


def _translated(fault: Exception) -> ModelFault:
    match fault:
        case openai.APIStatusError():
            message, codes = _told(fault)
            return fault_of(fault.status_code, codes, message, fault.response.headers)
        case openai.APIConnectionError():
            return ModelAway(f"no answer: {fault.__cause__ or fault}")
        case httpx2.HTTPError():
            return cut_off(f"{type(fault).__name__}: {fault}".rstrip(": "))
        case _:
            return cut_off(f"an event that makes no sense: {fault}")


def _within(error: object) -> ModelFault:
    """Say what an error within a stream means: it has no status, so one without a code may be passing."""
    message, codes = _named(error)
    found = fault_of(200, codes, message, {})
    return found if codes else ModelAway(str(found))


def _told(fault: openai.APIStatusError) -> tuple[str, frozenset[str]]:
    body = fault.body
    message, codes = _named(body.get("error", body) if isinstance(body, dict) else body)
    return message or fault.message, codes


def _named(error: object) -> tuple[str, frozenset[str]]:
    if not isinstance(error, dict):
        # Some servers put a text where the object should be.
        return error if isinstance(error, str) else "", frozenset()
    codes = {value for name in ("type", "code") if isinstance(value := error.get(name), str)}
    message = error.get("message")
    return message if isinstance(message, str) else "", frozenset(codes)
