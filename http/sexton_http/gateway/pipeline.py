"""Runs one route, wherever it is mounted: admission, caller, rate, parameters, body, handler, answer."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import structlog
import trio
from prometheus_client import Counter

from sexton_actors.refusal import Refusal
from sexton_http.answers import JSON_TYPE, Answer, Problem, RequestHead, StreamAnswer
from sexton_http.bodies.decoding import QueryDecoder, query_decoder_of
from sexton_http.bodies.ids import parse_id
from sexton_http.ceilings import Ceiling, Full, Standing, claim_of
from sexton_http.gateway.admission import Overloaded
from sexton_http.gateway.audit_entries import entry_of
from sexton_http.gateway.byte_budget import ROOM_S, SMALL_BYTES, Room, claim_of_stranger, no_room
from sexton_http.gateway.call import Call
from sexton_http.gateway.callers import Callers
from sexton_http.gateway.faults import BUSY_WAIT_S, as_problem, blamed, is_stalled, refused
from sexton_http.gateway.idempotency import once
from sexton_http.gateway.incoming_form import ClientGone
from sexton_http.gateway.metrics import RouteMeter
from sexton_http.gateway.operations import Auth, Creates, NoQuery, Operation, Wait
from sexton_http.gateway.request_log import begin_request, log_answer
from sexton_http.gateway.route_body import RouteBody, announces_body
from sexton_http.gateway.services import Services
from sexton_http.gateway.ticket import Ticket
from sexton_http.gateway.tracing import AnyAnswer, limits_of, request_id_of, traced, traceparent_of
from sexton_http.identity.principals import (
    Delegate,
    Member,
    Presser,
    check_unlimited,
)
from sexton_http.wire.asgi import Receive
from sexton_storage.attribution import attributed
from sexton_storage.errors import StorageUnavailable

NO_CONTENT: Final = 204

log = structlog.get_logger()


class Mounted:
    """One operation with all that can be prepared before its first request."""

    def __init__(self, operation: Operation, services: Services) -> None:
        self.operation = operation
        self._services = services
        self._route = f"{operation.method} {operation.path}"
        self._meter = RouteMeter(services.metrics, operation.method, operation.path)
        self._declared = frozenset(operation.all_codes())
        self.body = RouteBody(operation, services)
        self._query: QueryDecoder[Any] | None = (
            None if operation.query is NoQuery else query_decoder_of(operation.query)
        )
        # What the declaration would reckon again for each request.
        self._ids = operation.ids
        self._in_workspace = operation.in_workspace
        self._once = operation.creates is not Creates.NOTHING
        self._callers = Callers(operation, services)
        self.door = services.admission.door(operation.ingress)
        self.too_busy = operation.status_of("UZ-API-001")
        self._refusals: Counter | None = None
        """Looked up when the first one is sent away."""
        # How long a part of a file takes says nothing of how busy the server is.
        is_part = operation.takes_bytes
        self._is_runner_call = (
            operation.auth is Auth.RUNNER and operation.wait is Wait.ORDINARY and not is_part
        )
        self._encode = msgspec.json.Encoder().encode
        self._tells_always = operation.method != "GET" or operation.never_shed
        """What was done must be told, whatever room there is for its answer."""
        self._changes = (
            operation.method != "GET"
            and not operation.no_io
            and operation.auth not in {Auth.RUNNER, Auth.PUBLIC}
        )
        """It is not begun for somebody who has too much unread. Runners finish what was begun.

        What strangers may do, as signing in, has a small answer, and must not depend on what others read.
        """
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
        self, head: RequestHead, params: Mapping[str, str], body: bytes | None
    ) -> Answer | StreamAnswer:
        """Both steps at once; ``body`` None is one that was too large to be read."""
        ticket = await self.admit(head, params, oversize=body is None)
        if isinstance(ticket, Answer):
            return ticket
        try:
            return await self.answer(ticket, body)
        finally:
            ticket.leave()

    async def admit(
        self, head: RequestHead, params: Mapping[str, str], *, oversize: bool = False
    ) -> Ticket | Answer:
        """The first step, before a byte of the body is read: all that the head decides.

        Gives a ticket, or the answer to a caller who is turned away. Whoever is given one lets it ``leave``
        when the answer has been sent. ``oversize``: the head says that the body is too large.
        """
        services = self._services
        context = begin_request(head, request_id_of(head, services), self._route, params)
        # The answers of hot routes are small, but for those that hand out leases.
        small = self.operation.hot and self.operation.wait is not Wait.LONG_POLL
        room = None if small else Room(services.answer_bytes, claim_of_stranger(head.client))
        ticket = Ticket(
            context, self._ceiling, services.bodies, door=self.door, too_busy=self.too_busy, room=room
        )
        began = services.ctx.monotonic()
        try:
            # A runner that is known is let in without a wait; all others in the order of the checks.
            if oversize or not self._callers.let_in_known(ticket):
                await self._let_in(ticket, oversize=oversize)
        except BaseException as fault:
            ticket.leave()
            if not isinstance(fault, Exception):
                raise
            ticket.spent_s = services.ctx.monotonic() - began
            return await self._fail(ticket, fault)
        ticket.spent_s = services.ctx.monotonic() - began
        return ticket

    async def answer(self, ticket: Ticket, body: bytes | None) -> Answer | StreamAnswer:
        """The second step; ``body`` None is one that turned out to be too large."""
        services = self._services
        began = services.ctx.monotonic() - ticket.spent_s
        answer: Answer | StreamAnswer
        try:
            if self.door is None:
                ticket.take_place()
            else:
                await ticket.enter()
            if self._changes:
                await self._check_unread(ticket)
            call = await self._call(ticket, body)
            answer = await (once(self.operation, call, self._answer) if self._once else self._answer(call))
            if isinstance(answer, Answer):
                ticket.pause()
                if ticket.room is not None:
                    await self._fit(len(answer.body), ticket.room)
        except Exception as fault:  # noqa: BLE001 - the border: every fault becomes a problem document
            ticket.spent_s = services.ctx.monotonic() - began
            return await self._fail(ticket, fault)
        ticket.leave_door()
        ticket.spent_s = services.ctx.monotonic() - began
        return self._done(ticket, answer, None)

    def count_refused(self) -> None:
        """One was sent away before it became a request; the door's line in the log tells how many were."""
        self._meter.done(self.too_busy, 0.0)
        if self._refusals is None:
            labels = (self.operation.method, self.operation.path, "UZ-API-001")
            self._refusals = self._services.metrics.problems.labels(*labels)
        self._refusals.inc()

    async def take_form(self, ticket: Ticket, receive: Receive) -> bytes | Answer | None:
        """Read a form while it comes: the JSON it stands for, or a refusal; None: its sender has left."""
        try:
            return await self.body.read_form(ticket, receive)
        except ClientGone:
            return None
        except Full as full:
            return await self.refuse_body(ticket, full)
        except Exception as fault:  # noqa: BLE001 - the border: every fault becomes a problem document
            return await self._fail(ticket, fault)

    async def refuse_body(self, ticket: Ticket, full: Full) -> Answer:
        """While its body came: what all bodies together may take is taken."""
        return await self._fail(ticket, self._too_many_bytes(full))

    async def _fail(self, ticket: Ticket, fault: Exception) -> Answer:
        ctx = self._services.ctx
        ticket.pause()
        problem = as_problem(
            await blamed(self._shed(fault) if isinstance(fault, Full) else fault, ctx.world.storage)
        )
        answer = problem.answer(ctx.settings.base_url, ticket.context.request_id)
        return self._done(ticket, answer, problem)

    def _done(self, ticket: Ticket, answer: AnyAnswer, problem: Problem | None) -> AnyAnswer:
        ctx, context = self._services.ctx, ticket.context
        if problem is not None:
            self._note(problem)
        self._meter.done(answer.status, ticket.spent_s)
        if self._is_runner_call:
            self._services.admission.note_runner_call(ticket.spent_s)
        if not isinstance(problem, Overloaded) or ctx.settings.access_log:
            log_answer(context, answer, ticket.spent_s, problem, access=ctx.settings.access_log)
        return traced(
            answer,
            context.request_id,
            traceparent_of(context.head),
            limits_of(ticket.verdicts),
            https=self._services.https,
        )

    def _note(self, problem: Problem) -> None:
        self._services.metrics.problems.labels(self.operation.method, self.operation.path, problem.code).inc()
        if problem.code not in self._declared:
            self._services.metrics.undeclared.labels(self.operation.path, problem.code).inc()
            log.warning("undeclared_code", route=self.operation.path, code=problem.code)

    async def _check_unread(self, ticket: Ticket) -> None:
        """Raises Problem UZ-API-003: what cannot be taken back is not begun for whoever reads too slowly."""
        room = ticket.room
        if room is not None and not await room.may_begin(ROOM_S):
            raise no_room()

    async def _fit(self, size: int, room: Room) -> None:
        """Let a large answer wait for its room; what was done must be told, so only a GET is turned away."""
        if size <= SMALL_BYTES:
            room.shrink(0)
            return
        if self._tells_always:
            room.count(size)
        elif not await room.grow(size, ROOM_S):
            raise no_room()
        room.shrink(size)

    def _shed(self, full: Full) -> Problem:
        streams = self.operation.wait is Wait.STREAM
        return self._refuse_for_room(
            full, "UZ-API-002" if streams else "UZ-API-001", self.operation.wait.counted
        )

    def _too_many_bytes(self, full: Full) -> Problem:
        return self._refuse_for_room(full, "UZ-API-004", "bytes of bodies")

    def _refuse_for_room(self, full: Full, code: str, what: str) -> Problem:
        metrics = self._services.metrics
        metrics.shed.labels(code).inc()
        metrics.full.labels(what, full.bound.name.lower()).inc()
        detail = f"{full.bound} has as many {what} under way as it may; try again after Retry-After"
        return Problem(code, detail, wait_s=BUSY_WAIT_S, status=self.operation.status_of(code))

    async def _let_in(self, ticket: Ticket, *, oversize: bool) -> None:
        services, operation = self._services, self.operation
        context, verdicts = ticket.context, ticket.verdicts
        head, params = context.head, context.params
        # Until it is known who calls, he is given the benefit of the doubt: he may be an admin.
        ticket.claim = claim_of(head.client, standing=Standing.ADMIN)
        await ticket.enter()
        if oversize and operation.oversize is None:
            raise Problem("UZ-REQ-002", f"the body is over {self.body.most_of(head)} bytes")
        principal = context.principal = await self._callers.authenticate(head, params, verdicts)
        if operation.tenant_wide:
            check_unlimited(principal)
        if self._ids:
            ticket.params = {**params, **{name: parse_id(params[name], name) for name in self._ids}}
        checked = ticket.params
        if isinstance(principal, Delegate):
            self._callers.confine(principal, checked)
        if self._in_workspace and isinstance(principal, Member):
            workspace = await services.scopes.workspace(principal, checked["workspace_id"])
            if workspace.paused and operation.starts_work:
                raise Problem("UZ-WORKSPACE-002", "the workspace is paused")
        await self._callers.limit(head, principal, checked, verdicts)
        if oversize and operation.oversize is not None:
            raise await operation.oversize(services, checked)
        if b"content-encoding" in head.headers and self.body.is_read and announces_body(head):
            await self.body.check_coding(head, checked)
        ticket.principal = principal
        ticket.name(await self._callers.claim(head, principal, checked))
        if ticket.room is not None and operation.auth is not Auth.PUBLIC:
            ticket.room.owner = ticket.claim

    async def _call(self, ticket: Ticket, body: bytes | None) -> Call[Any, Any]:
        services, operation, head = self._services, self.operation, ticket.head
        if body is None:
            if operation.oversize is not None:
                raise await operation.oversize(services, ticket.params)
            raise Problem("UZ-REQ-002", f"the body is over {operation.max_body} bytes")
        if body and self.body.is_read and b"content-encoding" in head.headers:
            await self.body.check_coding(head, ticket.params)
        decodes = self.body.is_decoded and not isinstance(ticket.principal, Presser)
        return Call(
            services=services,
            head=head,
            params=ticket.params,
            principal=ticket.principal,
            body=await self.body.decode(head, body) if decodes else None,
            query=None if self._query is None else self._query.decode(head.query),
            raw=body,
            request_id=ticket.context.request_id,
            traceparent=traceparent_of(head),
            room=ticket.room,
            claim=ticket.claim,
            leave_door=ticket.leave_door,
            audit=operation.audit,
        )

    async def _answer(self, call: Call[Any, Any]) -> Answer | StreamAnswer:
        result = await (self._handle(call) if call.audit is None else self._handle_attributed(call))
        if isinstance(result, Answer | StreamAnswer):
            return result
        return self._spell(result, call.request_id)

    async def _handle_attributed(self, call: Call[Any, Any]) -> Any:
        with attributed(entry_of(call)):
            return await self._handle(call)

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
            raise refused(result)
        return result

    def _spell(self, result: Any, request_id: str) -> Answer:
        if result is None:
            return Answer(NO_CONTENT, (), b"")
        body = self._encode(result)
        glue = b"" if body == b"{}" else b","
        traced = b'%b%b"request_id":"%b"}' % (body[:-1], glue, request_id.encode())
        return Answer(self.operation.status, (JSON_TYPE,), traced)
