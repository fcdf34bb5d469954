"""The pages of the interface: all operations, one of them whole, and a form that tries it as the reader."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, NamedTuple
from urllib.parse import unquote, urlencode

import msgspec

from sexton_http.answers import Answer, Problem
from sexton_http.bodies.decoding import query_decoder_of
from sexton_http.bodies.ids import parse_id
from sexton_http.bodies.lenient import decoder_of
from sexton_http.bodies.shapes import Body, Nothing
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery, Operation
from sexton_http.pages.console import Notice, console_form, console_operation, frame_of
from sexton_http.pages.form_actions import MAX_FORM_BYTES, FormDecoder, may
from sexton_http.pages.forms import CLIENT_FAULT
from sexton_http.pages.templates.frame import Frame, show
from sexton_http.routes.console.operation_views import can_be_tried, describe_operation, groups_of
from sexton_http.routes.shared.told_acts import act_told

HERE: Final = "api"
NO_CONTENT: Final = 204
ADDRESS_CHARS: Final = 2048
DONE: Final = 200


class Trial(Body):
    """What the form of an operation sends: where to, with what, and whether a change is meant."""

    address: Annotated[str, msgspec.Meta(max_length=ADDRESS_CHARS)]
    body: str = ""
    sure: str = ""


class Outcome(NamedTuple):
    """What came of a trial."""

    status: int
    text: str
    code: str = ""


_TRIAL: Final = FormDecoder(Trial)


@console_operation(HERE, HERE, "API")
async def show_api(call: Call[NoBody, NoQuery], frame: Frame) -> Answer:
    """Show every operation of the interface, by what it is about."""
    return show(frame, "api", sections=groups_of(call.services.documents.document))


@console_operation(HERE + "/{operation}", HERE, "API")
async def show_operation(call: Call[NoBody, NoQuery], frame: Frame) -> Answer:
    """Show one operation: what it takes and gives, with examples and its codes, and a form to try it."""
    return _page(call, frame, _found(call))


async def _again(call: Call[Any, Any], frame: Frame, notice: Notice) -> Answer:
    return _page(call, frame, _found(call), notice=notice)


@console_form(HERE + "/{operation}", HERE, "API", _again, form=Trial, shows=(DONE,))
async def submit_trial(call: Call[NoBody, NoQuery]) -> Answer:
    """Try an operation as the person who is signed in. One that changes something asks first."""
    from_form, operation = _TRIAL.decode(call), _found(call)
    frame = await frame_of(call, call.signed_in, HERE, "API")
    if not can_be_tried(operation):
        raise Problem("UZ-REQ-001", "this operation is not tried from a page", facts={"pointer": ""})
    if operation.method != "GET" and from_form.sure != "yes":
        return _page(call, frame, operation, trial=from_form, asks=True)
    try:
        outcome = await _tried(call, operation, from_form)
    except Problem as problem:
        if problem.status not in CLIENT_FAULT:
            raise
        document = problem.answer(call.ctx.settings.base_url, call.request_id).body
        outcome = Outcome(problem.status, _json(document), problem.code)
    return _page(call, frame, operation, trial=from_form, outcome=outcome)


async def _tried(call: Call[Any, Any], operation: Operation, trial: Trial) -> Outcome:
    path, _, query = trial.address.partition("?")
    params = params_of(operation, path)
    body = None
    if operation.has_body:
        body = decoder_of(operation.body).decode(trial.body.encode())
    elif trial.body.strip():
        decoder_of(Nothing).decode(trial.body.encode())
    fields = None
    if operation.query is not NoQuery:
        fields = query_decoder_of(operation.query).decode(query.encode("ascii", "replace"))
    answer = await act_told(call, call.signed_in, operation, body=body, query=fields, **params)
    if answer is None:
        return Outcome(NO_CONTENT, "")
    if isinstance(answer, Answer):
        return Outcome(answer.status, _json(answer.body))
    return Outcome(operation.status, _json(msgspec.json.encode(answer)))


def params_of(operation: Operation, path: str) -> Mapping[str, Any]:
    """The parameters of a path that somebody wrote. Raises Problem UZ-REQ-001 or UZ-UUIDV7-009."""
    pattern = "([^/]+)".join(re.escape(part) for part in re.split(r"\{\w+\}", operation.path))
    fits = re.fullmatch(pattern, path)
    if fits is None:
        detail = f"address: it does not begin as {operation.path} does"
        raise Problem("UZ-REQ-001", detail, facts={"parameter": "address"})
    named = dict(zip(operation.params, (unquote(part) for part in fits.groups()), strict=True))
    return {name: parse_id(text, name) if name in operation.ids else text for name, text in named.items()}


def _page(
    call: Call[Any, Any],
    frame: Frame,
    operation: Operation,
    *,
    trial: Trial | None = None,
    asks: bool = False,
    outcome: Outcome | None = None,
    notice: Notice | None = None,
) -> Answer:
    described = describe_operation(call.services.documents.document, operation)
    filled = operation.path.replace("{workspace_id}", str(call.id("workspace_id")))
    return show(
        frame._replace(title=f"{operation.method} {operation.path}"),
        "api_operation",
        status=DONE if notice is None else notice.status,
        one=described,
        trial=trial or Trial(_with_required(operation, filled), described.sent),
        allowed=may(frame.signed_in, operation),
        needed=f"This needs the role {operation.role}" if operation.role else "This needs a platform admin",
        asks=asks,
        outcome=outcome,
        notice=notice,
        body_bytes=MAX_FORM_BYTES // 2,
    )


def _with_required(operation: Operation, path: str) -> str:
    """The path with the fields of the query that cannot be left out."""
    if operation.query is NoQuery:
        return path
    needed = [field.encode_name for field in msgspec.structs.fields(operation.query) if field.required]
    return f"{path}?{urlencode(dict.fromkeys(needed, ''))}" if needed else path


def _found(call: Call[Any, Any]) -> Operation:
    name = call.text("operation")
    operation: Operation | None = call.services.documents.operations.get(name)
    if operation is None:
        raise Problem("UZ-REQ-003", f"the interface has no operation {name[:64]!r}")
    return operation


def _json(text: bytes) -> str:
    return msgspec.json.format(text or b"null", indent=2).decode()
