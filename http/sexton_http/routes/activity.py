"""Shows what a run does, frame by frame."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple

import msgspec

from sexton_actors.protocol.lease import Activity, FrameIn, FramesTaken
from sexton_actors.refusal import Refusal
from sexton_http.answers import Problem
from sexton_http.bodies.fencing_token import FENCED, HOT_S, TAG, Token
from sexton_http.bodies.shapes import MAX_NUMBER, Body, Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import MAX_BODY_BYTES, Auth, NoQuery, operation
from sexton_storage.records.frame_kinds import RUN_KINDS, FrameKind

MAX_FRAMES = 256


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    # JSON has one kind of number: 9.0 is the integer nine.
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return whole and not isinstance(value, bool) and 0 <= value <= MAX_NUMBER


def _is_verdict(value: Any) -> bool:
    return isinstance(value, bool)


class _Field(NamedTuple):
    fits: Callable[[Any], bool]
    what: str
    schema: Mapping[str, Any]


STREAM_FIELDS = frozenset({"seq", "event_id", "zombie_id"})
"""The stream says these of every frame; what a runner says is not taken over."""
TEXT = _Field(_is_text, "a text", {"type": "string"})
MS = _Field(_is_count, "milliseconds", {"type": "integer", "minimum": 0})
COUNT = _Field(_is_count, "a count", {"type": "integer", "minimum": 0})
VERDICT = _Field(_is_verdict, "true or false", {"type": "boolean"})
FRAME_FIELDS: Mapping[str, Mapping[str, _Field]] = {
    FrameKind.TOOL_CALL_STARTED: {"name": TEXT},
    FrameKind.TOOL_CALL_PROGRESS: {"name": TEXT, "elapsed_ms": MS},
    FrameKind.TOOL_CALL_COMPLETED: {"name": TEXT, "ms": MS, "ok": VERDICT},
    FrameKind.CHUNK: {"text": TEXT},
    FrameKind.CONNECTION: {
        "host": TEXT,
        "port": COUNT,
        "verdict": TEXT,
        "why": TEXT,
        "bytes_in": COUNT,
        "bytes_out": COUNT,
        "ms": MS,
    },
}
"""What a frame of each kind has to have; more is taken as it is."""


def _described(kind: str) -> dict[str, Any]:
    fields = {name: check.schema for name, check in FRAME_FIELDS[kind].items()}
    properties = {"kind": {"const": kind}, "at_ms": {"type": ["integer", "null"], "minimum": 0}, **fields}
    return {"required": ["kind", *fields], "properties": properties}


Frame = Annotated[
    dict[str, Any],
    msgspec.Meta(
        extra_json_schema={
            "required": ["kind"],
            "properties": {"kind": {"type": "string", "enum": sorted(RUN_KINDS)}},
            "anyOf": [_described(kind) for kind in sorted(RUN_KINDS)],
        }
    ),
]


class Frames(Body):
    frames: Annotated[tuple[Frame, ...], msgspec.Meta(max_length=MAX_FRAMES)]
    """Each with its kind and its own fields; ``at_ms`` may say when it was."""
    fencing_token: Token = None


class FramesAnswer(Shape):
    accepted: int


@operation(
    "POST",
    "/v1/runners/me/leases/{lease_id}/activity",
    tag=TAG,
    auth=Auth.RUNNER,
    hot=True,
    status=202,
    codes=FENCED,
    max_body=MAX_BODY_BYTES,
)
async def show_activity(call: Call[Frames, NoQuery]) -> FramesAnswer | Refusal:
    """Append frames to the agent's stream."""
    frames = tuple(_frame(place, frame) for place, frame in enumerate(call.body.frames))
    message = Activity(call.host.runner.id, frames, call.body.fencing_token)
    match await call.ctx.system.ask("lease", call.id("lease_id"), message, timeout=HOT_S):
        case Refusal() as refusal:
            return refusal
        case FramesTaken(count=count):
            return FramesAnswer(count)


def _frame(place: int, frame: dict[str, Any]) -> FrameIn:
    own = {name: value for name, value in frame.items() if name not in STREAM_FIELDS}
    kind, at_ms = own.pop("kind", None), own.pop("at_ms", None)
    if not isinstance(kind, str) or not kind:
        raise Problem("UZ-REQ-001", f"/frames/{place}/kind: must be a non-empty string")
    if at_ms is not None and not _is_count(at_ms):
        raise Problem("UZ-REQ-001", f"/frames/{place}/at_ms: Unix milliseconds")
    for name, field in FRAME_FIELDS.get(kind, {}).items():
        if not field.fits(own.get(name)):
            pointer = f"/frames/{place}/{name}"
            raise Problem("UZ-REQ-001", f"{pointer}: {field.what}", facts={"pointer": pointer})
    return FrameIn(kind, None if at_ms is None else int(at_ms), own)
