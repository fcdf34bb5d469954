"""Stands in for a model: answers each question with the next turn of a script, as providers do."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import trio

from sexton_cli.exits import USAGE, Fault
from sexton_http.wire.server import open_doors, serve
from sexton_http.wire.stop_signal import Stop
from sexton_runner.providers.registry import MESSAGES, SERVICES

MAX_BYTES: Final = 4 * 1024 * 1024
FORM: Final = (
    'A script is a JSON list of turns: [{"text": "…", "calls": [{"tool": "…", "arguments": {}}]}, …].'
)
MESSAGES_PATH: Final = "/v1/messages"
CHAT_PATH: Final = "/v1/chat/completions"
PATHS: Final = frozenset({MESSAGES_PATH, CHAT_PATH})

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Event = dict[str, Any]


class ToolCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The model asks for a tool."""

    tool: Annotated[str, msgspec.Meta(pattern="^[a-zA-Z0-9_-]{1,64}$")]
    arguments: dict[str, Any] = {}


class Turn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One answer of the model, and the tokens that it is to have cost."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    input_tokens: Annotated[int, msgspec.Meta(ge=0, le=10**9)] = 0
    output_tokens: Annotated[int, msgspec.Meta(ge=0, le=10**9)] = 0


def read_script(file: Path) -> tuple[Turn, ...]:
    """Read a script. Raises Fault."""
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    except OSError as fault:
        raise Fault(f"{file}: {fault.strerror}", status=USAGE) from fault
    if len(content) > MAX_BYTES:
        raise Fault(f"{file} has more than {MAX_BYTES} bytes", status=USAGE)
    try:
        return msgspec.json.decode(content, type=tuple[Turn, ...])
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        raise Fault(f"{file}: {fault}", FORM, status=USAGE) from fault


def provider_addresses(base_url: str) -> dict[str, str]:
    """The variables that lead each known provider to a server at this address."""
    return {
        f"SEXTON_{name.upper().replace('-', '_')}_BASE_URL": (
            base_url if service.dialect is MESSAGES else f"{base_url}/v1"
        )
        for name, service in SERVICES.items()
    }


class _Message(msgspec.Struct, frozen=True):
    role: str


class _Question(msgspec.Struct, frozen=True):
    """What both protocols have of it."""

    model: str = ""
    messages: tuple[_Message, ...] = ()


class ScriptedModel:
    """An ASGI application that speaks both protocols; ``asked`` counts the questions.

    Each question gets the next turn. With ``by_conversation`` it gets the one that its conversation has come
    to, so that the script begins again with each run.
    """

    def __init__(self, turns: Sequence[Turn], *, by_conversation: bool = False) -> None:
        self._turns = turns
        self._by_conversation = by_conversation
        self.asked = 0

    def __repr__(self) -> str:
        return f"<ScriptedModel {self.asked}/{len(self._turns)}>"

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request; whatever is asked, the next turn is the answer."""
        if scope["type"] != "http":
            return
        body = bytearray()
        while (piece := await receive())["type"] == "http.request":
            body += piece.get("body", b"")
            if not piece.get("more_body"):
                break
        status, media, content = self._answer(scope["path"], bytes(body))
        head = [(b"content-type", media), (b"content-length", str(len(content)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": content})

    def _answer(self, path: str, body: bytes) -> tuple[int, bytes, bytes]:
        spell = {MESSAGES_PATH: _messages_events, CHAT_PATH: _chat_chunks}.get(path)
        if spell is None:
            return _refusal(404, f"the scripted model knows no {path}")
        try:
            question = msgspec.json.decode(body, type=_Question)
        except (msgspec.DecodeError, UnicodeDecodeError) as fault:
            return _refusal(400, str(fault))
        said = sum(message.role == "assistant" for message in question.messages)
        number = said if self._by_conversation else self.asked
        if number >= len(self._turns):
            return _refusal(400, f"the script of the model is over after {len(self._turns)} turns")
        self.asked += 1
        words = spell(self._turns[number], question.model, number + 1)
        return 200, b"text/event-stream", b"".join(words)


def _refusal(status: int, why: str) -> tuple[int, bytes, bytes]:
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": why}}
    return status, b"application/json", msgspec.json.encode(error)


def _messages_events(turn: Turn, model: str, number: int) -> Iterator[bytes]:
    usage = {"input_tokens": turn.input_tokens, "output_tokens": 0}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "content": [], "model": model}
    yield _event({"type": "message_start", "message": message | {"stop_reason": None, "usage": usage}})
    for index, (block, delta) in enumerate(_blocks(turn, number)):
        yield _event({"type": "content_block_start", "index": index, "content_block": block})
        yield _event({"type": "content_block_delta", "index": index, "delta": delta})
        yield _event({"type": "content_block_stop", "index": index})
    stop = {"stop_reason": "tool_use" if turn.calls else "end_turn", "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": stop, "usage": {"output_tokens": turn.output_tokens}})
    yield _event({"type": "message_stop"})


def _blocks(turn: Turn, number: int) -> Iterator[tuple[Event, Event]]:
    if turn.text:
        yield {"type": "text", "text": ""}, {"type": "text_delta", "text": turn.text}
    for place, call in enumerate(turn.calls):
        block = {"type": "tool_use", "id": _call_id(number, place), "name": call.tool, "input": {}}
        yield block, {"type": "input_json_delta", "partial_json": _spelled(call)}


def _chat_chunks(turn: Turn, model: str, number: int) -> Iterator[bytes]:
    calls = [
        {
            "index": place,
            "id": _call_id(number, place),
            "type": "function",
            "function": {"name": call.tool, "arguments": _spelled(call)},
        }
        for place, call in enumerate(turn.calls)
    ]
    delta: Event = {"role": "assistant", "content": turn.text} | ({"tool_calls": calls} if calls else {})
    finish = "tool_calls" if turn.calls else "stop"
    usage = {
        "prompt_tokens": turn.input_tokens,
        "completion_tokens": turn.output_tokens,
        "total_tokens": turn.input_tokens + turn.output_tokens,
    }
    shared = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": 0, "model": model}
    for choices, used in (
        ([{"index": 0, "delta": delta, "finish_reason": None}], None),
        ([{"index": 0, "delta": {}, "finish_reason": finish}], None),
        ([], usage),
    ):
        yield b"data: %b\n\n" % msgspec.json.encode(shared | {"choices": choices, "usage": used})
    yield b"data: [DONE]\n\n"


def _call_id(number: int, place: int) -> str:
    return f"call_{number}_{place}"


def _spelled(call: ToolCall) -> str:
    return msgspec.json.encode(call.arguments).decode()


def _event(event: Event) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), msgspec.json.encode(event))


@asynccontextmanager
async def open_scripted_model(turns: tuple[Turn, ...] | None) -> AsyncIterator[Mapping[str, str]]:
    """Give the variables that lead a runner to the scripted model; none without a script."""
    if turns is None:
        yield {}
        return
    doors, stop = await open_doors("127.0.0.1", 0), Stop()
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(serve, ScriptedModel(turns), doors, stop=stop, grace_s=0))
        try:
            yield provider_addresses(doors.base_url)
        finally:
            stop.set()
