"""Takes the reports of many runs at once."""

from collections.abc import Sequence
from typing import Annotated, Any
from uuid import UUID

import msgspec
import trio

from sexton_actors.protocol.lease import Reported
from sexton_actors.refusal import Refusal
from sexton_engine import AskTimeout, EngineError
from sexton_http.answers import Problem
from sexton_http.bodies.fencing_token import HOT_S, TAG
from sexton_http.bodies.shapes import Body, Shape
from sexton_http.bodies.weight import SMALL_BODY
from sexton_http.gateway.call import Call
from sexton_http.gateway.faults import as_problem, is_stalled, refused
from sexton_http.gateway.operations import MAX_BODY_BYTES, Auth, NoQuery, operation
from sexton_http.retry_after import jittered_s
from sexton_http.routes.reports import RefusedPart, ReportAnswer, ReportBody, answer_of, report_of
from sexton_storage.errors import StorageError, StorageUnavailable

MAX_REPORTS = 64
OK = 200

SaidId = Annotated[Any, msgspec.Meta(extra_json_schema={"type": ["string", "null"]})]


class Reports(Body):
    reports: Annotated[tuple[ReportBody, ...], msgspec.Meta(max_length=MAX_REPORTS)]
    """Each as it would be sent alone; one that is malformed fails by itself."""

    @classmethod
    def gather(cls, read: Sequence[tuple[bytes, Any]]) -> "Reports":
        """Keep those that cannot be read with their places."""
        spoilt = tuple(
            (place, _said_id(raw), one) for place, (raw, one) in enumerate(read) if isinstance(one, Problem)
        )
        return GatheredReports(tuple(one for _, one in read if isinstance(one, ReportBody)), spoilt)


class GatheredReports(Reports):
    spoilt: tuple[tuple[int, Any, Problem], ...]
    """The reports that cannot be read: their places, their leases as they were named, and what is wrong."""


class _Named(msgspec.Struct):
    lease_id: Any = None


_NAMED = msgspec.json.Decoder(_Named)


def _said_id(raw: bytes) -> str | None:
    try:
        said = _NAMED.decode(raw).lease_id
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return said if isinstance(said, str) else None


class ReportResult(Shape, omit_defaults=True):
    """What the report would have been answered, had it come alone."""

    lease_id: SaidId
    """As it was sent."""
    ok: bool
    status: int
    """The status of HTTP."""
    report: ReportAnswer | None = None
    """With ``ok``."""
    error_code: str | None = None
    problem: dict[str, Any] | None = None
    """The whole problem document."""
    retry_after_s: int | None = None
    """When the report may be sent again, where that can help."""


class ReportResults(Shape):
    results: list[ReportResult]


@operation(
    "POST", "/v1/runners/me/reports:batch", tag=TAG, auth=Auth.RUNNER, hot=True, max_body=MAX_BODY_BYTES
)
async def report_runs(call: Call[Reports, NoQuery]) -> ReportResults:
    """Say how up to 64 runs ended; each has its own result, in the order sent.

    Each is taken, refused or known again just as it would be alone.
    """
    given, runner_id = call.body.reports, call.host.runner.id
    told: list[ReportResult | None] = []
    """In the order of ``given``; None where the lease is asked."""
    taken: list[tuple[UUID, list[RefusedPart]]] = []
    asks = []
    is_large = len(call.raw) > SMALL_BODY
    for body in given:
        if is_large:
            await trio.lowlevel.checkpoint()  # Each is spelled and hashed once more.
        try:
            message, parts = report_of(body, runner_id)
        except Problem as fault:
            told.append(_refused(call, body.lease_id, fault))
            continue
        told.append(None)
        taken.append((body.lease_id, parts))
        asks.append((body.lease_id, message))
    replies = await call.ctx.system.ask_all("lease", asks, timeout=HOT_S)
    if any(isinstance(reply, AskTimeout) for reply in replies) and await is_stalled(call.ctx.world.storage):
        away = StorageUnavailable("the database does not answer")
        replies = [away if isinstance(reply, AskTimeout) else reply for reply in replies]
    answered = iter(
        [
            _result(call, lease_id, reply, parts)
            for (lease_id, parts), reply in zip(taken, replies, strict=True)
        ]
    )
    results = [next(answered) if result is None else result for result in told]
    if isinstance(call.body, GatheredReports):
        for place, said, problem in call.body.spoilt:
            results.insert(place, _refused(call, said, problem))
    return ReportResults(results)


def _result(
    call: Call[Any, Any], lease_id: UUID, reply: Reported | Refusal | Exception, parts: list[RefusedPart]
) -> ReportResult:
    match reply:
        case Reported():
            return ReportResult(lease_id, ok=True, status=OK, report=answer_of(reply, parts))
        case Refusal():
            return _refused(call, lease_id, refused(reply))
        case EngineError() | StorageError():
            return _refused(call, lease_id, as_problem(reply))
        case _:
            raise reply


def _refused(call: Call[Any, Any], lease_id: object, problem: Problem) -> ReportResult:
    document = problem.document(call.ctx.settings.base_url, call.request_id)
    return ReportResult(
        lease_id,
        ok=False,
        status=problem.status,
        error_code=problem.code,
        problem=document,
        retry_after_s=None if problem.wait_s is None else jittered_s(problem.wait_s),
    )
