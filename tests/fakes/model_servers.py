"""Model servers on loopback that speak each provider's protocol in full, as its documentation describes it.

A server answers from its script, one entry a question; every question is held against the protocol first.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import h11
import msgspec
import orjson
import trio

from tests.patience import PATIENCE_S

KEY = "sk-canary-0123456789abcdef"

Send = Callable[[bytes], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Call:
    """The model asks for a tool; its arguments are streamed in ``pieces`` parts."""

    name: str
    arguments: Mapping[str, Any] | str
    id: str = ""
    pieces: int = 3


@dataclass(frozen=True, slots=True)
class Say:
    """An answer. ``stop`` None: what the protocol says for what was asked; ``fault`` breaks the stream."""

    text: str = ""
    calls: Sequence[Call] = ()
    stop: str | None = None
    input_tokens: int = 100
    cached: int = 0
    written: int = 0
    output_tokens: int = 20
    refusal: str = ""
    thinking: str = ""
    signature: str = "c2lnbmVk"
    """What ends a thought; a thought that was cut has none."""
    blocks: Sequence[Mapping[str, Any]] = ()
    """What else the Messages API has to say, after the words; an ``input`` and citations come in pieces."""
    drawn: Sequence[str] = ()
    """Addresses of pictures, of the chat API."""
    wait_for: trio.Event | None = None
    hang_after: int | None = None
    """Events that are sent before the server falls silent for ever."""
    cut_after: int | None = None
    """Events that are sent before the connection is closed."""
    garbage_after: int | None = None
    garbage: bytes = b"data: {not json\n\n"


@dataclass(frozen=True, slots=True)
class Fail:
    """An error answer instead of a stream."""

    status: int
    kind: str = "api_error"
    message: str = "scripted"
    headers: Mapping[str, str] = field(default_factory=dict)


Answer = Say | Fail | Callable[[dict[str, Any]], "Say | Fail"]


class Gone(Exception):
    """The script wants the connection closed here."""


@dataclass
class ModelServer:
    """The script and the record of one model server."""

    protocol: Literal["anthropic", "openai"]
    script: list[Answer] = field(default_factory=list)
    otherwise: Answer | None = None
    """What is answered when the script is over."""
    base_url: str = ""
    key: str = KEY
    asked: list[dict[str, Any]] = field(default_factory=list)
    heads: list[dict[str, str]] = field(default_factory=list)
    left: int = 0
    """Clients that hung up during an answer."""
    _changed: trio.Event = field(default_factory=trio.Event)

    def changed(self) -> None:
        """Wake whoever waits in ``until``."""
        self._changed.set()
        self._changed = trio.Event()

    async def until(self, ready: Callable[[], object]) -> None:
        """Wait for ``ready``; a test that waits for ever is broken, so this gives up loudly."""
        with trio.fail_after(PATIENCE_S):
            while not ready():
                await self._changed.wait()

    def next_answer(self, question: dict[str, Any]) -> Say | Fail:
        """Take the next entry of the script."""
        entry = self.script.pop(0) if self.script else self.otherwise
        if entry is None:
            return Fail(400, "invalid_request_error", "the script is over")
        return entry if isinstance(entry, Say | Fail) else entry(question)


# --- what a question must look like -------------------------------------------------------------------


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    """No other fields than these."""


class Cache(Strict):
    type: Literal["ephemeral"]


class TextBlock(Strict, tag="text"):
    text: Annotated[str, msgspec.Meta(min_length=1, pattern=r"\S")]
    citations: list[dict[str, Any]] | None = None
    cache_control: Cache | None = None


class ToolUseBlock(Strict, tag="tool_use"):
    id: Annotated[str, msgspec.Meta(pattern=r"^[a-zA-Z0-9_-]+$")]
    name: str
    input: dict[str, Any]
    cache_control: Cache | None = None


class ImageSource(Strict):
    type: Literal["base64"]
    media_type: Literal["image/png", "image/jpeg", "image/gif", "image/webp"]
    data: bytes


class ImageBlock(Strict, tag="image"):
    source: ImageSource
    cache_control: Cache | None = None


class ToolResultBlock(Strict, tag="tool_result"):
    tool_use_id: str
    content: str | Annotated[list[TextBlock | ImageBlock], msgspec.Meta(min_length=1)]
    is_error: bool = False
    cache_control: Cache | None = None


class ThinkingBlock(Strict, tag="thinking"):
    thinking: str
    signature: Annotated[str, msgspec.Meta(min_length=1)]


class ServerToolUseBlock(Strict, tag="server_tool_use"):
    id: Annotated[str, msgspec.Meta(pattern=r"^srvtoolu_[a-zA-Z0-9_]+$")]
    name: Literal["web_search", "web_fetch", "code_execution"]
    input: Annotated[dict[str, Any], msgspec.Meta(min_length=1)]


class SearchResultBlock(Strict, tag="web_search_tool_result"):
    tool_use_id: str
    content: list[dict[str, Any]]


Block = (
    TextBlock
    | ImageBlock
    | ToolUseBlock
    | ToolResultBlock
    | ThinkingBlock
    | ServerToolUseBlock
    | SearchResultBlock
)


class Turn(Strict):
    role: Literal["user", "assistant"]
    content: Annotated[list[Block], msgspec.Meta(min_length=1)]


class AnthropicTool(Strict):
    name: Annotated[str, msgspec.Meta(pattern=r"^[a-zA-Z0-9_-]{1,128}$")]
    description: str
    input_schema: dict[str, Any]


class Thinking(Strict):
    type: Literal["enabled"]
    budget_tokens: Annotated[int, msgspec.Meta(ge=1024)]


class OutputConfig(Strict):
    effort: Literal["low", "medium", "high", "xhigh", "max"]


class AnthropicQuestion(Strict):
    model: Annotated[str, msgspec.Meta(min_length=1)]
    max_tokens: Annotated[int, msgspec.Meta(ge=1)]
    messages: Annotated[list[Turn], msgspec.Meta(min_length=1)]
    stream: Literal[True]
    system: list[TextBlock] | None = None
    tools: list[AnthropicTool] | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    thinking: Thinking | None = None
    output_config: OutputConfig | None = None


class ChatFunction(Strict):
    name: Annotated[str, msgspec.Meta(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
    arguments: str


class ChatCall(Strict):
    id: str
    type: Literal["function"]
    function: ChatFunction


class SystemTurn(Strict, tag_field="role", tag="system"):
    content: str


class ChatText(Strict, tag="text"):
    text: Annotated[str, msgspec.Meta(min_length=1)]


class ChatUrl(Strict):
    url: Annotated[str, msgspec.Meta(pattern="^data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+=*$")]


class ChatPicture(Strict, tag="image_url"):
    image_url: ChatUrl


class UserTurn(Strict, tag_field="role", tag="user"):
    content: str | Annotated[list[ChatText | ChatPicture], msgspec.Meta(min_length=1)]


class AssistantTurn(Strict, tag_field="role", tag="assistant"):
    content: str | None = None
    tool_calls: list[ChatCall] | None = None


class ToolTurn(Strict, tag_field="role", tag="tool"):
    tool_call_id: str
    content: str


class ChatToolFunction(Strict):
    name: Annotated[str, msgspec.Meta(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
    description: str
    parameters: dict[str, Any]


class ChatTool(Strict):
    type: Literal["function"]
    function: ChatToolFunction


class StreamOptions(Strict):
    include_usage: Literal[True]


class ChatQuestion(Strict):
    model: Annotated[str, msgspec.Meta(min_length=1)]
    messages: Annotated[list[SystemTurn | UserTurn | AssistantTurn | ToolTurn], msgspec.Meta(min_length=1)]
    stream: Literal[True]
    stream_options: StreamOptions
    tools: list[ChatTool] | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None


def fault_in(protocol: str, question: dict[str, Any]) -> str | None:
    """Say what the real service would refuse."""
    try:
        if protocol == "anthropic":
            return _fault_in_turns(msgspec.convert(question, AnthropicQuestion))
        return _fault_in_chat(msgspec.convert(question, ChatQuestion))
    except msgspec.ValidationError as fault:
        return str(fault)


def _fault_in_turns(question: AnthropicQuestion) -> str | None:
    if question.thinking is not None and question.thinking.budget_tokens >= question.max_tokens:
        return "max_tokens must be greater than thinking.budget_tokens"
    if question.messages[0].role != "user":
        return "messages: first message must use the user role"
    marked = sum(
        getattr(block, "cache_control", None) is not None
        for turn in [*question.messages, Turn("user", list(question.system or []))]
        for block in turn.content
    )
    if marked > 4:
        return "A maximum of 4 blocks with cache_control may be provided"
    open_uses: set[str] = set()
    for turn in question.messages:
        answered = [block.tool_use_id for block in turn.content if isinstance(block, ToolResultBlock)]
        if set(answered) != open_uses or len(answered) != len(set(answered)):
            return "`tool_use` ids were found without `tool_result` blocks immediately after"
        open_uses = {block.id for block in turn.content if isinstance(block, ToolUseBlock)}
    return "final assistant content cannot hold open tool uses" if open_uses else None


def _fault_in_chat(question: ChatQuestion) -> str | None:
    open_calls: set[str] = set()
    for turn in question.messages:
        if isinstance(turn, ToolTurn):
            if turn.tool_call_id not in open_calls:
                return "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
            open_calls.discard(turn.tool_call_id)
            continue
        if open_calls:
            return "An assistant message with 'tool_calls' must be followed by tool messages"
        if isinstance(turn, AssistantTurn):
            open_calls = {call.id for call in turn.tool_calls or []}
            for call in turn.tool_calls or []:
                orjson.loads(call.function.arguments)
    return "An assistant message with 'tool_calls' must be followed by tool messages" if open_calls else None


# --- what an answer looks like ------------------------------------------------------------------------


def _cut(text: str, pieces: int) -> list[str]:
    size = max(1, -(-len(text) // max(1, pieces)))
    return [text[at : at + size] for at in range(0, len(text), size)]


def _spelt(arguments: Mapping[str, Any] | str) -> str:
    return arguments if isinstance(arguments, str) else orjson.dumps(dict(arguments)).decode()


def _in_pieces(block: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Part a block into its beginning and its deltas."""
    match block:
        case {"input": given}:
            pieces = ("", *_cut(_spelt(given), 3))
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
            return {**block, "input": {}}, deltas
        case {"type": "text", "text": text, "citations": citations}:
            deltas = [{"type": "citations_delta", "citation": citation} for citation in citations]
            deltas += [{"type": "text_delta", "text": piece} for piece in _cut(text, 2)]
            return {"type": "text", "text": "", "citations": []}, deltas
        case _:
            return dict(block), []


def anthropic_events(say: Say, model: str) -> list[bytes]:
    """Spell an answer as the Messages API streams it, pings and all."""
    usage = {
        "input_tokens": say.input_tokens,
        "cache_creation_input_tokens": say.written,
        "cache_read_input_tokens": say.cached,
        "output_tokens": 1,
        "service_tier": "standard",
    }
    message: dict[str, Any] = {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "content": [],
        "model": model,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if say.thinking:
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _cut(say.thinking, 2)]
        if say.signature:
            deltas.append({"type": "signature_delta", "signature": say.signature})
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, deltas))
    if say.text:
        deltas = [{"type": "text_delta", "text": piece} for piece in _cut(say.text, 3)]
        blocks.append(({"type": "text", "text": ""}, deltas))
    blocks += [_in_pieces(block) for block in say.blocks]
    for number, call in enumerate(say.calls):
        deltas = [
            {"type": "input_json_delta", "partial_json": piece}
            for piece in ("", *_cut(_spelt(call.arguments), call.pieces))
        ]
        call_id = call.id or f"toolu_{number}"
        blocks.append(({"type": "tool_use", "id": call_id, "name": call.name, "input": {}}, deltas))
    for index, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
        events.append({"type": "ping"})
    stop = say.stop or ("refusal" if say.refusal else "tool_use" if say.calls else "end_turn")
    ended = {"stop_reason": stop, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": ended, "usage": {"output_tokens": say.output_tokens}})
    events.append({"type": "message_stop"})
    return [b"event: %b\ndata: %b\n\n" % (event["type"].encode(), orjson.dumps(event)) for event in events]


def chat_chunks(say: Say, model: str) -> list[bytes]:
    """Spell an answer as the chat API streams it, usage in the last chunk, then ``[DONE]``."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "", "refusal": None}]
    deltas += [{"content": piece} for piece in _cut(say.text, 3)]
    deltas += [{"refusal": piece} for piece in _cut(say.refusal, 2)]
    deltas += [{"images": [{"type": "image_url", "image_url": {"url": url}}]} for url in say.drawn]
    for index, call in enumerate(say.calls):
        first = {
            "index": index,
            "id": call.id or f"call_{index}",
            "type": "function",
            "function": {"name": call.name, "arguments": ""},
        }
        deltas.append({"tool_calls": [first]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            for piece in _cut(_spelt(call.arguments), call.pieces)
        ]
    shared = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_760_000_000, "model": model}
    finish = say.stop or ("tool_calls" if say.calls else "stop")
    choices: list[tuple[dict[str, Any], str | None]] = [*((delta, None) for delta in deltas), ({}, finish)]
    chunks = [
        shared | {"choices": [{"index": 0, "delta": delta, "finish_reason": end}], "usage": None}
        for delta, end in choices
    ]
    prompt = say.input_tokens + say.cached
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": say.output_tokens,
        "total_tokens": prompt + say.output_tokens,
        "prompt_tokens_details": {"cached_tokens": say.cached, "audio_tokens": 0},
    }
    chunks.append(shared | {"choices": [], "usage": usage})
    return [*(b"data: %b\n\n" % orjson.dumps(chunk) for chunk in chunks), b"data: [DONE]\n\n"]


def error_body(protocol: str, fail: Fail) -> dict[str, Any]:
    """Spell an error as the service does."""
    if protocol == "anthropic":
        return {"type": "error", "error": {"type": fail.kind, "message": fail.message}, "request_id": "req_1"}
    return {"error": {"message": fail.message, "type": fail.kind, "param": None, "code": fail.kind}}


# --- the server ---------------------------------------------------------------------------------------

PATHS = {"anthropic": "/v1/messages", "openai": "/v1/chat/completions"}


def _authorised(server: ModelServer, headers: Mapping[str, str]) -> bool:
    if server.protocol == "anthropic":
        if not re.fullmatch(r"20\d\d-\d\d-\d\d", headers.get("anthropic-version", "")):
            return False
        if headers.get("x-api-key") == server.key:
            return True
    return headers.get("authorization") == f"Bearer {server.key}"


def _decide(
    server: ModelServer, target: str, headers: Mapping[str, str], body: bytes
) -> tuple[Say | Fail, str]:
    if target.split("?", maxsplit=1)[0] != PATHS[server.protocol]:
        return Fail(404, "not_found_error", f"no {target}"), ""
    if not _authorised(server, headers):
        kind = "authentication_error" if server.protocol == "anthropic" else "invalid_api_key"
        return Fail(401, kind, f"wrong key {headers.get('x-api-key') or headers.get('authorization')}"), ""
    question = orjson.loads(body)
    if fault := fault_in(server.protocol, question):
        return Fail(400, "invalid_request_error", fault), ""
    server.heads.append(dict(headers))
    server.asked.append(question)
    answer = server.next_answer(question)
    server.changed()
    return answer, question["model"]


async def _converse(server: ModelServer, stream: trio.SocketStream) -> None:
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 24)
    try:
        while True:
            head, body = None, b""
            while not isinstance(event := connection.next_event(), h11.EndOfMessage):
                if event is h11.NEED_DATA:
                    connection.receive_data(await stream.receive_some(65536))
                elif isinstance(event, h11.Request):
                    head = event
                elif isinstance(event, h11.Data):
                    body += event.data
                else:
                    return
            assert head is not None
            headers = {name.decode(): value.decode() for name, value in head.headers}
            answer, model = _decide(server, head.target.decode(), headers, body)
            if isinstance(answer, Fail):
                await _fail(server, connection, stream, answer)
            else:
                try:
                    await _say(server, connection, stream, answer, model)
                except trio.BrokenResourceError:
                    server.left += 1
                    server.changed()
                    raise
            connection.start_next_cycle()
    except (trio.BrokenResourceError, trio.ClosedResourceError, h11.ProtocolError, Gone):
        pass
    finally:
        await trio.aclose_forcefully(stream)


async def _fail(
    server: ModelServer, connection: h11.Connection, stream: trio.SocketStream, fail: Fail
) -> None:
    content = orjson.dumps(error_body(server.protocol, fail))
    lines = [("content-type", "application/json"), ("content-length", str(len(content)))]
    sent = connection.send(h11.Response(status_code=fail.status, headers=[*lines, *fail.headers.items()]))
    sent += connection.send(h11.Data(data=content)) + connection.send(h11.EndOfMessage())
    await stream.send_all(sent)


async def _say(
    server: ModelServer, connection: h11.Connection, stream: trio.SocketStream, say: Say, model: str
) -> None:
    spell = anthropic_events if server.protocol == "anthropic" else chat_chunks
    lines = [("content-type", "text/event-stream; charset=utf-8"), ("transfer-encoding", "chunked")]
    if say.wait_for is not None:
        await _or_gone(server, stream, say.wait_for.wait)
    await stream.send_all(connection.send(h11.Response(status_code=200, headers=lines)))
    for number, event in enumerate(spell(say, model)):
        if number == say.cut_after:
            raise Gone
        if number == say.hang_after:
            await _or_gone(server, stream, trio.sleep_forever)
        if number == say.garbage_after:
            await stream.send_all(connection.send(h11.Data(data=say.garbage)))
        await stream.send_all(connection.send(h11.Data(data=event)))
    await stream.send_all(connection.send(h11.EndOfMessage()))


async def _or_gone(
    server: ModelServer, stream: trio.SocketStream, wait: Callable[[], Awaitable[object]]
) -> None:
    """Wait, and notice when the client hangs up meanwhile."""
    gone = False
    async with trio.open_nursery() as nursery:

        async def watch() -> None:
            nonlocal gone
            try:
                while await stream.receive_some(4096):
                    pass
            except trio.BrokenResourceError:
                pass
            gone = True
            nursery.cancel_scope.cancel()

        nursery.start_soon(watch)
        await wait()
        nursery.cancel_scope.cancel()
    if gone:
        server.left += 1
        server.changed()
        raise Gone


@asynccontextmanager
async def open_model(
    protocol: Literal["anthropic", "openai"], *script: Answer, otherwise: Answer | None = None
) -> AsyncIterator[ModelServer]:
    """Serve a model on a free port of loopback."""
    server = ModelServer(protocol, list(script), otherwise)
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    root = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
    server.base_url = root if protocol == "anthropic" else f"{root}/v1"

    async def serve(stream: trio.SocketStream) -> None:
        await _converse(server, stream)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, serve, listeners)
        yield server
        nursery.cancel_scope.cancel()


def words_of(question: Mapping[str, Any]) -> str:
    """Give all that a question says, as one text to search in."""
    return re.sub(r"\\n", "\n", orjson.dumps(question).decode())
