"""Runs one route, wherever it is mounted: admission, caller, rate, parameters, body, handler, answer."""

from collections.abc import Hashable, Mapping
from typing import Any, Final

import msgspec
import structlog
import trio

from sexton_actors.protocol.zombie import TurnedAway
from sexton_actors.refusal import Refusal
from sexton_actors.zombie.rejections import ENCODED, reason_code
from sexton_http.answers import JSON_TYPE, Answer, Problem, RequestHead, StreamAnswer
from sexton_http.bodies.decoding import BodyDecoder, QueryDecoder, is_json
from sexton_http.bodies.ids import parse_id
from sexton_http.bodies.lenient import decoder_of
from sexton_http.bodies.shapes import Nothing
from sexton_http.gateway.admission import Overloaded
from sexton_http.gateway.byte_budget import ROOM_S, SMALL_BYTES, Room, no_room
from sexton_http.gateway.call import Call
from sexton_http.gateway.callers import Callers
from sexton_http.gateway.faults import BUSY_WAIT_S, as_problem, blamed, is_stalled
from sexton_http.gateway.idempotency import once
from sexton_http.gateway.limits import Ceiling, Verdict
from sexton_http.gateway.metrics import RouteMeter
from sexton_http.gateway.operations import Auth, NoQuery, Operation, Wait
from sexton_http.gateway.request_log import RequestContext, begin_request, log_answer
from sexton_http.gateway.services import Services
from sexton_http.gateway.tracing import AnyAnswer, limits_of, request_id_of, traced, traceparent_of
from sexton_http.identity.principals import (
    Delegate,
    Member,
    Presser,
    check_unlimited,
    owner_of,
)
from sexton_storage.errors import StorageUnavailable

NO_CONTENT: Final = 204
CODING_CHARS: Final = 64
"""How much of an unknown coding's name is repeated to its sender."""

log = structlog.get_logger()


class Mounted:
    """One operation with all that can be prepared before its first request."""

    def __init__(self, operation: Operation, services: Services) -> None:
        self.operation = operation
        self._services = services
        self._route = f"{operation.method} {operation.path}"
        self._meter = RouteMeter(services.metrics, operation.method, operation.path)
        self._declared = frozenset(operation.all_codes())
        self._body: BodyDecoder[Any] | None = None
        if operation.has_body or operation.takes_nothing:
            self._body = decoder_of(Nothing if operation.takes_nothing else operation.body)
        self._query: QueryDecoder[Any] | None = (
            None if operation.query is NoQuery else QueryDecoder(operation.query)
        )
        self._ids = operation.ids
        self._callers = Callers(operation, services)
        self._door = services.admission.door(operation.ingress)
        self._too_busy = operation.status_of("UZ-API-001")
        self._is_runner_call = operation.auth is Auth.RUNNER and operation.wait is Wait.ORDINARY
        self.reads_body = operation.has_body or operation.method != "GET"  # What a GET sends is ignored.
        self._encode = msgspec.json.Encoder().encode
        self._ceiling: Ceiling | None
        match operation.wait:
            case _ if operation.never_shed:
                self._ceiling = None
            case Wait.ORDINARY:
                self._ceiling = services.in_flight
            case Wait.LONG_POLL:
                self._ceiling = services.long_polls
            case Wait.STREAM:
                self._ceiling = services.streams

    async def __call__(
        self, head: RequestHead, params: Mapping[str, str], body: bytes | None, room: Room | None = None
    ) -> Answer | StreamAnswer:
        """Answer; ``body`` None is one that was too large to be read.

        ``room`` is what the answer takes of the bytes under way; None: it is too small to be counted.
        """
        services = self._services
        context = begin_request(head, request_id_of(head, services), self._route, params)
        began = services.ctx.monotonic()
        verdicts: list[Verdict] = []
        answer: Answer | StreamAnswer
        problem: Problem | None = None
        try:
            answer = await self._admitted(context, body, verdicts, room)
        except Exception as fault:  # noqa: BLE001 - the border: every fault becomes a problem document
            problem = as_problem(await blamed(fault, services.ctx.world.storage))
            answer = problem.answer(services.ctx.settings.base_url, context.request_id)
        return self._done(context, answer, began, verdicts, problem)

    async def early(self, head: RequestHead, params: Mapping[str, str]) -> Answer | None:
        """Before the body is asked for: what nobody would be told who had sent it; None when it may come."""
        services, verdicts = self._services, list[Verdict]()
        context = begin_request(head, request_id_of(head, services), self._route, params)
        began = services.ctx.monotonic()
        try:
            principal = await self._callers.authenticate(head, params, verdicts)
            if self.operation.tenant_wide:
                check_unlimited(principal)
        except Exception as fault:  # noqa: BLE001 - the border, as in a whole call
            problem = as_problem(fault)
            answer = problem.answer(services.ctx.settings.base_url, context.request_id)
            return self._done(context, answer, began, verdicts, problem)
        return None

    def _done(
        self,
        context: RequestContext,
        answer: AnyAnswer,
        began: float,
        verdicts: list[Verdict],
        problem: Problem | None,
    ) -> AnyAnswer:
        ctx = self._services.ctx
        if problem is not None:
            self._note(problem)
        seconds = ctx.monotonic() - began
        self._meter.done(answer.status, seconds)
        if self._is_runner_call:
            self._services.admission.note_runner_call(seconds)
        if not isinstance(problem, Overloaded) or ctx.settings.access_log:
            log_answer(context, answer, seconds, problem, access=ctx.settings.access_log)
        return traced(
            answer,
            context.request_id,
            traceparent_of(context.head),
            limits_of(verdicts),
            https=self._services.https,
        )

    def _note(self, problem: Problem) -> None:
        self._services.metrics.problems.labels(self.operation.method, self.operation.path, problem.code).inc()
        if problem.code not in self._declared:
            self._services.metrics.undeclared.labels(self.operation.path, problem.code).inc()
            log.warning("undeclared_code", route=self.operation.path, code=problem.code)

    async def _admitted(
        self, context: RequestContext, body: bytes | None, verdicts: list[Verdict], room: Room | None
    ) -> Answer | StreamAnswer:
        door = self._door
        if door is None:
            return await self._under_ceiling(context, body, verdicts, room)
        await door.enter(whose(context), self._too_busy)
        try:
            return await self._under_ceiling(context, body, verdicts, room)
        finally:
            door.leave()

    async def _under_ceiling(
        self, context: RequestContext, body: bytes | None, verdicts: list[Verdict], room: Room | None
    ) -> Answer | StreamAnswer:
        ceiling, streams = self._ceiling, False
        if ceiling is not None and not ceiling.enter():
            raise self._shed()
        try:
            call = await self._check(context, body, verdicts, room)
            result = await once(self.operation, call, self._answer)
            streams = isinstance(result, StreamAnswer)
        finally:
            if ceiling is not None:
                if streams and room is not None:
                    room.at_end = ceiling.leave  # It holds its place for as long as it streams.
                else:
                    ceiling.leave()
        if room is not None and not isinstance(result, StreamAnswer):
            await self._fit(len(result.body), room)
        return result

    async def _fit(self, size: int, room: Room) -> None:
        """Let a large answer wait for its room; what was done must be told, so only a GET is turned away."""
        if size <= SMALL_BYTES:
            room.shrink(0)
            return
        if self.operation.method != "GET" or self.operation.no_io:
            room.count(size)
        elif not await room.grow(size, ROOM_S):
            raise no_room()
        room.shrink(size)

    def _shed(self) -> Problem:
        streams = self.operation.wait is Wait.STREAM
        code, what = (
            ("UZ-API-002", "streams are open") if streams else ("UZ-API-001", "requests are in flight")
        )
        self._services.metrics.shed.labels(code).inc()
        detail = f"too many {what}; try again after Retry-After"
        return Problem(code, detail, wait_s=BUSY_WAIT_S, status=self.operation.status_of(code))

    async def _check(
        self, context: RequestContext, body: bytes | None, verdicts: list[Verdict], room: Room | None
    ) -> Call[Any, Any]:
        services, operation = self._services, self.operation
        head, params = context.head, context.params
        if body is None and operation.oversize is None:
            raise Problem("UZ-REQ-002", f"the body is over {operation.max_body} bytes")
        principal = context.principal = await self._callers.authenticate(head, params, verdicts)
        if room is not None:
            room.owner = owner_of(principal, head)
        if operation.tenant_wide:
            check_unlimited(principal)
        checked: Mapping[str, Any] = params
        if self._ids:
            checked = {**params, **{name: parse_id(params[name], name) for name in self._ids}}
        if isinstance(principal, Delegate):
            self._callers.confine(principal, checked)
        if operation.in_workspace and isinstance(principal, Member):
            workspace = await services.scopes.workspace(principal, checked["workspace_id"])
            if workspace.paused and operation.starts_work:
                raise Problem("UZ-WORKSPACE-002", "the workspace is paused")
        await self._callers.limit(head, principal, checked, verdicts)
        if body is None and operation.oversize is not None:
            raise await operation.oversize(services, checked)
        if body and operation.reads_body:
            await self._check_coding(head, checked)
        return Call(
            services=services,
            head=head,
            params=checked,
            principal=principal,
            body=None
            if self._body is None or isinstance(principal, Presser)
            else self._decode(self._body, head, body or b""),
            query=None if self._query is None else self._query.decode(head.query),
            raw=body or b"",
            request_id=context.request_id,
            traceparent=traceparent_of(head),
            room=room,
        )

    async def _check_coding(self, head: RequestHead, params: Mapping[str, Any]) -> None:
        """Raises Problem UZ-REQ-005: a body comes as it is, so that what is read is what was signed."""
        coding = (head.header(b"content-encoding") or "").strip()
        if coding.lower() in {"", "identity"}:
            return
        detail = f"the body has the Content-Encoding {coding[:CODING_CHARS]!r}; send it as it is, without one"
        problem = Problem("UZ-REQ-005", detail, headers=((b"accept-encoding", b"identity"),))
        if self.operation.auth is Auth.WEBHOOK:
            services, zombie_id = self._services, params["zombie_id"]
            problem.facts["reason"] = reason_code(ENCODED)
            services.metrics.webhooks.labels(problem.code).inc()
            if await services.scopes.zombie(zombie_id) is not None:
                services.ctx.system.tell("zombie", zombie_id, TurnedAway(params.get("segment"), ENCODED))
        raise problem

    def _decode(self, decoder: BodyDecoder[Any], head: RequestHead, body: bytes) -> Any:
        if not body and (self.operation.body_optional or self.operation.takes_nothing):
            return self.operation.body()
        content_type = head.headers.get(b"content-type")
        if content_type != b"application/json" and not is_json(head.header(b"content-type")):
            raise Problem("UZ-REQ-005", "the body must be application/json")
        return decoder.decode(body)

    async def _answer(self, call: Call[Any, Any]) -> Answer | StreamAnswer:
        result = await self._handle(call)
        if isinstance(result, Answer | StreamAnswer):
            return result
        return self._spell(result, call.request_id)

    async def _handle(self, call: Call[Any, Any]) -> Any:
        operation = self.operation
        if operation.hot or operation.wait is not Wait.ORDINARY:
            result = await operation.handler(call)  # Its asks have deadlines of their own.
        else:
            try:
                with trio.fail_after(self._services.ctx.settings.request_s):
                    result = await operation.handler(call)
            except trio.TooSlowError:
                if await is_stalled(self._services.ctx.world.storage):
                    raise StorageUnavailable("the request's time is over") from None
                raise Problem(
                    "UZ-API-003", "the request took longer than it may", wait_s=BUSY_WAIT_S
                ) from None
        if isinstance(result, Refusal):
            raise Problem(
                result.code,
                result.detail,
                facts=result.facts,
                wait_s=result.retry_after_s,
                status=result.status,
            )
        return result

    def _spell(self, result: Any, request_id: str) -> Answer:
        if result is None:
            return Answer(NO_CONTENT, (), b"")
        body = self._encode(result)
        glue = b"" if body == b"{}" else b","
        traced = b'%b%b"request_id":"%b"}' % (body[:-1], glue, request_id.encode())
        return Answer(self.operation.status, (JSON_TYPE,), traced)


def whose(context: RequestContext) -> Hashable:
    """Who shares a line with others: the agent of a webhook, else the token or the address."""
    zombie_id = context.params.get("zombie_id")
    token = context.head.headers.get(b"authorization")
    return zombie_id if token is None and zombie_id is not None else token or context.head.client
