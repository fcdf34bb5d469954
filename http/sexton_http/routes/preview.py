"""The preview of a specification: a language model's answer, streamed as it is given."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from enum import StrEnum
from typing import Annotated, Any, Final, assert_never

import msgspec

from sexton_actors.providers import NONE_CONFIGURED
from sexton_actors.refusal import Refusal
from sexton_http.answers import Headers, Problem, StreamAnswer
from sexton_http.bodies.names import fitting
from sexton_http.bodies.shapes import Body
from sexton_http.gateway.call import Call
from sexton_http.gateway.heartbeats import with_heartbeats
from sexton_http.gateway.operations import MAX_BODY_BYTES, NoQuery, Wait, operation
from sexton_http.outbound.previews import Done, Draft, Failed, Offered, Piece, Said, TextDelta, ToolUse
from sexton_http.wire.stop_signal import Stop

MAX_MESSAGES: Final = 200
MAX_CONTENT_CHARS: Final = 200_000
MAX_TOOLS: Final = 64
MAX_DESCRIPTION_CHARS: Final = 4096

HEADERS: Final[Headers] = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
)


KEEP: Final = b": keep\n\n"
"""A comment, for those in between who end what is silent."""


class PreviewRole(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"


class PreviewMessage(Body):
    role: PreviewRole
    content: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_CONTENT_CHARS)]


class PreviewTool(Body):
    name: Annotated[str, fitting("^[A-Za-z0-9_-]{1,64}$")]
    description: Annotated[str, msgspec.Meta(max_length=MAX_DESCRIPTION_CHARS)]
    input_schema: dict[str, Any]


class PreviewBody(Body):
    messages: Annotated[tuple[PreviewMessage, ...], msgspec.Meta(min_length=1, max_length=MAX_MESSAGES)]
    """The last that is not the system's is a user's."""
    tools: Annotated[tuple[PreviewTool, ...], msgspec.Meta(max_length=MAX_TOOLS)] = ()


@operation(
    "POST",
    "/v1/workspaces/{workspace_id}/spec/preview",
    tag="Preview",
    wait=Wait.STREAM,
    media="text/event-stream",
    starts_work=True,
    codes=("UZ-BILLING-005", "UZ-CRED-001", "UZ-CRED-003", "UZ-ENTL-001", "UZ-RELAY-001"),
    max_body=MAX_BODY_BYTES,
)
async def preview_spec(call: Call[PreviewBody, NoQuery]) -> StreamAnswer | Refusal:
    """Ask the workspace's language model, and stream what it says.

    Frames: `text_delta {text}` as the words come, `tool_use {id, name, input}` for a tool that the model
    would call, at the end `done {usage, provider, model}` or `error {code, message}`; a comment every
    15 s while the model is silent. A client that leaves ends the call of the model. On the platform's key the
    tenant needs credit.
    """
    ctx, tenant_id = call.ctx, call.member.tenant_id
    draft = draft_of(call.body)
    if ctx.previewer is None:
        return Refusal(NONE_CONFIGURED, "This server has no way to a language model.")
    choice = await ctx.world.providers.resolve_provider(
        tenant_id=tenant_id, workspace_id=call.id("workspace_id")
    )
    if isinstance(choice, Refusal):
        return choice
    if not choice.own_key and (refusal := await ctx.world.entitlements.may_ask_for_work(tenant_id)):
        return refusal
    heartbeat_s = ctx.settings.stream_heartbeat_s
    return StreamAnswer(HEADERS, _frames(ctx.previewer.preview(choice, draft), heartbeat_s, ctx.stop))


def draft_of(body: PreviewBody) -> Draft:
    """The question as a model takes it, what the system says above the conversation. Raises Problem."""
    system = [message.content for message in body.messages if message.role is PreviewRole.SYSTEM]
    said = [
        Said("user" if message.role is PreviewRole.USER else "assistant", message.content)
        for message in body.messages
        if message.role is not PreviewRole.SYSTEM
    ]
    if not said or said[-1].role != "user":
        raise Problem(
            "UZ-REQ-001", "/messages: the last message that is not from the system must be from the user"
        )
    tools = tuple(Offered(tool.name, tool.description, tool.input_schema) for tool in body.tools)
    return Draft("\n\n".join(system), tuple(said), tools)


async def _frames(
    answer: AsyncGenerator[Piece, None], heartbeat_s: float, stop: Stop
) -> AsyncGenerator[bytes, None]:
    async with aclosing(with_heartbeats(answer, heartbeat_s, stop)) as pieces:
        async for piece in pieces:
            yield KEEP if piece is None else encode_piece(piece)


def encode_piece(piece: Piece) -> bytes:
    r"""One frame of the stream.

    >>> encode_piece(TextDelta("Hello\n"))
    b'event: text_delta\ndata: {"text":"Hello\\n"}\n\n'
    """
    match piece:
        case TextDelta():
            kind = b"text_delta"
        case ToolUse():
            kind = b"tool_use"
        case Done():
            kind = b"done"
        case Failed():
            kind = b"error"
        case _:
            assert_never(piece)
    return b"event: %b\ndata: %b\n\n" % (kind, msgspec.json.encode(piece))
