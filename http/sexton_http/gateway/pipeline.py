"""Runs one route, wherever it is mounted: admission, caller, rate, parameters, body, handler, answer."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Final

import msgspec
import structlog
import trio

from sexton_actors.protocol.zombie import TurnedAway
from sexton_actors.refusal import Refusal
from sexton_actors.zombie.rejections import ENCODED, RATE_LIMITED, reason_code
from sexton_engine import ActorStopped, AskTimeout, EngineError, MailboxFull
from sexton_http.answers import JSON_TYPE, Answer, Problem, RequestHead, StreamAnswer
from sexton_http.bodies.decoding import BodyDecoder, QueryDecoder, is_json
from sexton_http.bodies.ids import parse_id
from sexton_http.bodies.lenient import decoder_of
from sexton_http.bodies.shapes import Nothing
from sexton_http.gateway.actor_asks import blamed, is_stalled
from sexton_http.gateway.idempotency import once
from sexton_http.gateway.limits import Ceiling, Quota, Verdict
from sexton_http.gateway.metrics import RouteMeter
from sexton_http.gateway.operations import Auth, Call, NoQuery, Operation, Wait
from sexton_http.gateway.request_log import RequestContext, begin_request, log_answer
from sexton_http.gateway.services import Services
from sexton_http.gateway.tracing import AnyAnswer, limits_of, request_id_of, traced, traceparent_of
from sexton_http.identity.principals import (
    NOBODY,
    Delegate,
    Member,
    Presser,
    Principal,
    check_role,
    check_unlimited,
)
from sexton_storage.errors import StorageError, StorageUnavailable

UNAUTHORIZED: Final = 401
NO_CONTENT: Final = 204
BUSY_WAIT_S: Final = 1
CODING_CHARS: Final = 64
"""How much of an unknown coding's name is repeated to its sender."""
STORAGE_WAIT_S: Final = 2
SHOWN: Final = Quota(count=10, window_s=60)
FORM_TYPE: Final = b"application/x-www-form-urlencoded"

log = structlog.get_logger()


def as_problem(fault: Exception) -> Problem:
    """The code that a fault of a wing below is answered with."""
    match fault:
        case Problem():
            return fault
        case StorageUnavailable():
            return Problem("UZ-INTERNAL-001", "the database cannot be reached now", wait_s=STORAGE_WAIT_S)
        case StorageError():
            log.error("storage_fault", fault=repr(fault))
            return Problem("UZ-INTERNAL-002", "the database refused the operation")
        case MailboxFull() | AskTimeout() | ActorStopped():
            return Problem("UZ-API-003", "the actor in charge is busy", wait_s=BUSY_WAIT_S)
        case EngineError():
            log.error("engine_fault", fault=repr(fault))
            return Problem(
                "UZ-INTERNAL-003", "an actor failed while handling this; look for the request id in the log"
            )
        case _:
            log.error("handler_crashed", exc_info=fault)
            return Problem("UZ-INTERNAL-003", "the server failed; look for the request id in its log")


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
                self._ceiling = services.in_flight  # Until it streams; then it has a place among the streams.

    async def __call__(
        self, head: RequestHead, params: Mapping[str, str], body: bytes | None
    ) -> Answer | StreamAnswer:
        """Answer; ``body`` None is one that was too large to be read."""
        services = self._services
        context = begin_request(head, request_id_of(head, services), self._route, params)
        began = services.ctx.monotonic()
        verdicts: list[Verdict] = []
        answer: Answer | StreamAnswer
        problem: Problem | None = None
        try:
            answer = await self._admitted(context, body, verdicts)
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
            principal = await self._authenticate(head, params, verdicts)
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
        log_answer(context, answer, seconds, problem, access=ctx.settings.access_log)
        return traced(answer, context.request_id, traceparent_of(context.head), limits_of(verdicts))

    def _note(self, problem: Problem) -> None:
        self._services.metrics.problems.labels(self.operation.method, self.operation.path, problem.code).inc()
        if problem.code not in self._declared:
            self._services.metrics.undeclared.labels(self.operation.path, problem.code).inc()
            log.warning("undeclared_code", route=self.operation.path, code=problem.code)

    async def _admitted(
        self, context: RequestContext, body: bytes | None, verdicts: list[Verdict]
    ) -> Answer | StreamAnswer:
        ceiling, streams = self._ceiling, self._services.streams
        if self.operation.wait is Wait.STREAM and streams.now >= streams.limit:
            raise self._shed("UZ-API-002")
        if ceiling is not None and not ceiling.enter():
            raise self._shed("UZ-API-001")
        try:
            call = await self._check(context, body, verdicts)
            result = await once(self.operation, call, self._answer)
        finally:
            if ceiling is not None:
                ceiling.leave()
        if isinstance(result, StreamAnswer):
            return StreamAnswer(
                result.headers, _counted(result.chunks, self._services.streams), result.status
            )
        return result

    def _shed(self, code: str) -> Problem:
        self._services.metrics.shed.labels(code).inc()
        return Problem(
            code, "too many requests are in flight; try again after Retry-After", wait_s=BUSY_WAIT_S
        )

    async def _check(
        self, context: RequestContext, body: bytes | None, verdicts: list[Verdict]
    ) -> Call[Any, Any]:
        services, operation = self._services, self.operation
        head, params = context.head, context.params
        if body is None and operation.oversize is None:
            raise Problem("UZ-REQ-002", f"the body is over {operation.max_body} bytes")
        principal = context.principal = await self._authenticate(head, params, verdicts)
        if operation.tenant_wide:
            check_unlimited(principal)
        checked: Mapping[str, Any] = params
        if self._ids:
            checked = {**params, **{name: parse_id(params[name], name) for name in self._ids}}
        if isinstance(principal, Delegate):
            self._confine(principal, checked)
        if operation.in_workspace and isinstance(principal, Member):
            workspace = await services.scopes.workspace(principal, checked["workspace_id"])
            if workspace.paused and operation.starts_work:
                raise Problem("UZ-WORKSPACE-002", "the workspace is paused")
        await self._limit(head, principal, checked, verdicts)
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

    async def _authenticate(
        self, head: RequestHead, params: Mapping[str, str], verdicts: list[Verdict]
    ) -> Principal:
        authenticator = self._services.authenticator
        try:
            match self.operation.auth:
                case Auth.PUBLIC | Auth.WEBHOOK:
                    return NOBODY
                case Auth.MEMBER:
                    delegate = await authenticator.delegate(head) if self.operation.agents else None
                    return delegate or check_role(await self._member(head), self.operation.role)
                case Auth.BROWSER:
                    return await self._services.browsers.require(head)
                case Auth.PLATFORM:
                    return _platform_admin(await authenticator.member(head))
                case Auth.RUNNER:
                    return await authenticator.runner(head)
                case Auth.ENROLMENT:
                    return await authenticator.enroller(head)
                case Auth.APPROVAL if self.operation.press and is_press(head):
                    return Presser()
                case Auth.APPROVAL:
                    return await authenticator.approver(head, parse_id(params["zombie_id"], "zombie_id"))
        except Problem as problem:
            # Whoever guesses at tokens is slowed down by his address, before he learns whether he was right.
            if problem.status == UNAUTHORIZED and self.operation.auth is not Auth.RUNNER:
                self._admit(("address", head.client), self._services.ctx.settings.address_rate, verdicts)
            raise

    def _confine(self, delegate: Delegate, params: Mapping[str, Any]) -> None:
        if params["zombie_id"] != delegate.zombie_id:
            raise Problem(self.operation.agents, "the key belongs to another agent")
        if params["workspace_id"] != delegate.workspace_id:
            raise Problem("UZ-AUTH-001", "the key's agent is in another workspace")

    async def _member(self, head: RequestHead) -> Member:
        if self.operation.cookie and b"authorization" not in head.headers:
            who = await self._services.browsers.find(head)
            if who is not None:
                return who.member
        return await self._services.authenticator.member(head)

    async def _limit(
        self, head: RequestHead, principal: Principal, params: Mapping[str, Any], verdicts: list[Verdict]
    ) -> None:
        operation, settings = self.operation, self._services.ctx.settings
        if operation.deprecated:
            # An old client that goes on asking for what is gone takes nothing from others at its address.
            self._admit(("gone", head.client), settings.address_rate, verdicts)
            return
        if operation.never_shed or operation.auth is Auth.RUNNER:
            return
        if operation.quota is not None:
            key = (operation.name, "address", head.client)
            self._judge(self._services.limiter.spend(key, operation.quota), verdicts)
        if isinstance(principal, Member):
            where = params["workspace_id"] if operation.in_workspace else principal.tenant_id
            self._admit(where, settings.plan_rates[principal.plan], verdicts)
            return
        if isinstance(principal, Delegate):
            self._admit(principal.workspace_id, settings.plan_rates[principal.plan], verdicts)
            return
        if operation.auth in {Auth.WEBHOOK, Auth.APPROVAL}:
            scope = await self._services.scopes.zombie(params["zombie_id"])
            if scope is not None:
                # Nor does a sender who knocks at an agent that was killed take anything from its workspace.
                counted = ("gone", params["zombie_id"]) if scope.killed else scope.workspace_id
                try:
                    self._admit(counted, settings.plan_rates[scope.plan], verdicts)
                except Problem as problem:
                    self._show_limited(problem, params)
                    raise
                return
        self._admit(("address", head.client), settings.address_rate, verdicts)

    def _show_limited(self, problem: Problem, params: Mapping[str, Any]) -> None:
        """In the agent's stream, for a webhook; so seldom that a flood does not fill its mailbox either."""
        services, zombie_id = self._services, params["zombie_id"]
        if self.operation.auth is not Auth.WEBHOOK:
            return
        problem.facts["reason"] = reason_code(RATE_LIMITED)
        if services.limiter.spend(("shown", zombie_id), SHOWN).allowed:
            told = TurnedAway(params.get("segment"), RATE_LIMITED)
            services.ctx.system.tell("zombie", zombie_id, told)

    def _admit(self, key: object, rate: int | None, verdicts: list[Verdict]) -> None:
        if rate is None:
            return
        self._judge(self._services.limiter.admit(key, rate), verdicts)

    def _judge(self, verdict: Verdict, verdicts: list[Verdict]) -> None:
        verdicts.append(verdict)
        if not verdict.allowed:
            self._services.metrics.shed.labels("UZ-REQ-006").inc()
            raise Problem(
                "UZ-REQ-006", "the rate limit is reached; try again after Retry-After", wait_s=verdict.wait_s
            )

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


def is_press(head: RequestHead) -> bool:
    """A form without a token: whether it is signed, its route finds out."""
    sent = head.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    return sent == FORM_TYPE and b"authorization" not in head.headers


def _platform_admin(member: Member) -> Member:
    if not member.platform_admin:
        raise Problem("UZ-AUTH-021", "only a platform admin may do this")
    return member


async def _counted(chunks: AsyncGenerator[bytes, None], ceiling: Ceiling) -> AsyncGenerator[bytes, None]:
    """Counts from its first chunk to its end: a stream that is never begun holds no place."""
    ceiling.now += 1
    try:
        async with aclosing(chunks) as open_chunks:
            async for chunk in open_chunks:
                yield chunk
    finally:
        ceiling.leave()
