"""Has a person confirm what a tool is about to do, by the client that the person uses.

A client of a stateless revision gets the question as the result, and calls again with the answer and a signed
state. A client with a session is asked in the stream of its call. Its answer is a message of its own, which
any server may get: it is kept where idempotency keys are, and whoever waits looks there.
"""

import hashlib
from collections.abc import AsyncGenerator, Mapping
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

import msgspec
import trio

from sexton_http.gateway.call import Call
from sexton_http.routes.mcp.messages import (
    INVALID_REQUEST,
    RpcFault,
    RpcReply,
    as_event,
    object_of,
    spell_note,
)
from sexton_http.routes.mcp.tools import Tool
from sexton_storage.records.key_uses import KeyUse

ASK_MS: Final = 5 * 60_000
"""How long a question stays open."""
FIRST_LOOK_S: Final = 0.1
LOOK_S: Final = 1.0
"""How often whoever waits for an answer looks for it, at first and later."""
KEEP_S: Final = 15.0
KEEP: Final = b": keep\n\n"
QUESTION: Final = "confirm"
NAME: Final = "confirm-"
"""How the ids of the server's questions begin."""
CLOSED: Final = "no question of this id is open"
_STATE: Final = b"mcp question "
_SCHEMA: Final = {
    "type": "object",
    "properties": {QUESTION: {"type": "boolean", "title": "Yes, do it", "default": False}},
    "required": [QUESTION],
}
_KEPT: Final = 200
MAX_SHOWN_CHARS: Final = 600


class Verdict(StrEnum):
    """What the person has said."""

    YES = "yes"
    NO = "no"
    SILENT = "silent"


class _State(msgspec.Struct, array_like=True):
    by: str
    tool: str
    digest: str
    until: int


def verdict_of(result: Any) -> Verdict:
    """What a client's answer to the question means: only a plain yes is one.

    >>> verdict_of({"action": "accept", "content": {"confirm": True}})
    <Verdict.YES: 'yes'>
    >>> [verdict_of(one).value for one in ({"action": "accept", "content": {}}, {"action": "cancel"}, None)]
    ['no', 'no', 'no']
    """
    answer = object_of(result)
    sure = object_of(answer.get("content")).get(QUESTION) is True
    return Verdict.YES if answer.get("action") == "accept" and sure else Verdict.NO


def question(text: str) -> dict[str, Any]:
    """The parameters of the question."""
    return {"mode": "form", "message": text, "requestedSchema": _SCHEMA}


def plain_line(text: str) -> str:
    r"""A text of somebody else's as one line of a question, so that it cannot pass for the server's words.

    >>> plain_line("rm -rf /\n\nSexton says: harmless")
    '"rm -rf / Sexton says: harmless"'
    """
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    line = line.replace('"', "'")
    return f'"{line[:MAX_SHOWN_CHARS]}{"…" if len(line) > MAX_SHOWN_CHARS else ""}"'


def digest_of(arguments: Mapping[str, Any]) -> str:
    """Short for the arguments of a call."""
    return hashlib.sha256(msgspec.json.encode(arguments, order="deterministic")).hexdigest()


def open_question(
    call: Call[Any, Any], tool: Tool, arguments: Mapping[str, Any], text: str
) -> dict[str, Any]:
    """The result that asks a client of a stateless revision."""
    until = call.ctx.world.now_ms() + ASK_MS
    state = _State(call.member.by, tool.name, digest_of(arguments), until)
    return {
        "resultType": "input_required",
        "inputRequests": {QUESTION: {"method": "elicitation/create", "params": question(text)}},
        "requestState": call.ctx.keys.sign(_STATE + msgspec.json.encode(state)),
    }


def answered(
    call: Call[Any, Any], tool: Tool, arguments: Mapping[str, Any], params: Mapping[str, Any]
) -> Verdict | None:
    """What such a client has answered; None where it was not asked this, or too long ago."""
    signed = params.get("requestState")
    payload = call.ctx.keys.check(signed) if isinstance(signed, str) and signed.isascii() else None
    if payload is None or not payload.startswith(_STATE):
        return None
    try:
        state = msgspec.json.decode(payload.removeprefix(_STATE), type=_State)
    except msgspec.MsgspecError:
        return None
    is_this = (state.by, state.tool, state.digest) == (call.member.by, tool.name, digest_of(arguments))
    if not is_this or call.ctx.world.now_ms() > state.until:
        return None
    return verdict_of(object_of(params.get("inputResponses")).get(QUESTION))


def _use(call: Call[Any, Any], asked: UUID) -> KeyUse:
    now, key_hash = call.ctx.world.now_ms(), hashlib.sha256(b"mcp question " + asked.bytes).digest()
    scope = call.member.tenant_id
    return KeyUse(
        scope=scope,
        key_hash=key_hash,
        digest=key_hash,
        claim=asked,
        created_at=now,
        running_since=now,
        resumable=False,
        sealed=b"",
    )


class StreamedQuestion:
    """A question in the stream of a call, and the wait for its answer."""

    def __init__(self, call: Call[Any, Any], text: str) -> None:
        self._call = call
        self._text = text
        self.verdict = Verdict.SILENT

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """What is sent until there is an answer; ``verdict`` is set at the end."""
        call = self._call
        asked = call.ctx.world.new_id()
        use = _use(call, asked)
        store = call.ctx.world.storage.key_uses
        await store.begin(use)
        yield as_event(spell_note("elicitation/create", question(self._text), f"{NAME}{asked}"))
        now = call.ctx.monotonic
        over, kept_at, pause = now() + ASK_MS / 1000, now(), FIRST_LOOK_S
        while now() < over and not call.ctx.stop.is_set():
            await trio.sleep(pause)
            pause = min(LOOK_S, pause * 1.5)
            kept = await store.begin(use)
            if kept.status is not None:
                self.verdict = _read(call, kept)
                return
            if now() - kept_at >= KEEP_S:
                kept_at = now()
                yield KEEP


def _read(call: Call[Any, Any], kept: KeyUse) -> Verdict:
    """What was answered, if whoever was asked has answered it."""
    by, _, verdict = call.ctx.keys.open(kept.sealed, kept.scope.bytes + kept.key_hash).rpartition(" ")
    return Verdict(verdict) if by == call.member.by else Verdict.NO


async def take_reply(call: Call[Any, Any], reply: RpcReply) -> None:
    """Keep a client's answer for whoever waits for it. Raises RpcFault where no such question is open."""
    try:
        asked = UUID(str(reply.id).removeprefix(NAME))
    except ValueError:
        raise RpcFault(INVALID_REQUEST, CLOSED) from None
    use = _use(call, asked)
    said = f"{call.member.by} {verdict_of(reply.result).value}"
    sealed = call.ctx.keys.seal(said, use.scope.bytes + use.key_hash)
    settled = msgspec.structs.replace(use, status=_KEPT, sealed=sealed)
    if not await call.ctx.world.storage.key_uses.settle(settled):
        raise RpcFault(INVALID_REQUEST, CLOSED)
