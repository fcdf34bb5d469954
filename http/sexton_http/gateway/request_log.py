"""Writes a line for each request that is refused or fails, and says in every line which request it is of."""

from collections.abc import Mapping, MutableMapping
from contextvars import ContextVar
from typing import Any, Final

import structlog

from sexton_http.answers import Answer, Problem, RequestHead, StreamAnswer
from sexton_http.identity.principals import Delegate, Member, Principal, RunnerHost, SignedIn
from sexton_http.wire.masking import masked

REFUSED: Final = 400
FAILED: Final = 500
NAMED_BY_PATH: Final = {
    "workspace_id": "workspace_id",
    "zombie_id": "agent_id",
    "agent_id": "agent_id",
    "lease_id": "lease_id",
    "event_id": "event_id",
    "runner_id": "runner_id",
}
"""Which parameters of a path stand in its lines, and under which name."""

log = structlog.get_logger()


class RequestContext:
    """The request that a task is working on. It costs a request this object and nothing else."""

    __slots__ = ("head", "params", "principal", "request_id", "route")

    def __init__(
        self, head: RequestHead, request_id: str, route: str = "", params: Mapping[str, Any] | None = None
    ) -> None:
        self.head = head
        self.request_id = request_id
        self.route = route
        self.params = {} if params is None else params
        self.principal: Principal | None = None

    def __repr__(self) -> str:
        return f"<RequestContext {self.request_id}>"

    def fields(self) -> dict[str, str]:
        """What a line says of it."""
        found = {"request_id": self.request_id}
        if self.route:
            found["route"] = self.route
        for param, name in NAMED_BY_PATH.items():
            if param in self.params:
                found[name] = masked(f"/{self.params[param]}")[1:]
        match self.principal:
            case Member(tenant_id=tenant_id):
                found["tenant_id"] = str(tenant_id)
            case SignedIn(tenant=tenant):
                found["tenant_id"] = str(tenant.id)
            case Delegate(tenant_id=tenant_id, zombie_id=zombie_id):
                found |= {"tenant_id": str(tenant_id), "agent_id": str(zombie_id)}
            case RunnerHost(runner=runner):
                found["runner_id"] = str(runner.id)
            case _:
                pass
        return found


_CURRENT: ContextVar[RequestContext | None] = ContextVar("sexton_request", default=None)


def begin_request(
    head: RequestHead, request_id: str, route: str = "", params: Mapping[str, Any] | None = None
) -> RequestContext:
    """Note in this task, and those that it starts, which request is worked on; until the next one begins."""
    context = RequestContext(head, request_id, route, params)
    _CURRENT.set(context)
    return context


def add_request(_logger: object, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A processor of structlog: whatever is told while a request is worked on is told of that request."""
    context = _CURRENT.get()
    if context is not None:
        for name, value in context.fields().items():
            line.setdefault(name, value)
    return line


def log_answer(
    context: RequestContext,
    answer: Answer | StreamAnswer,
    seconds: float,
    problem: Problem | None = None,
    *,
    access: bool = False,
) -> None:
    """One line for an answer that says no; for any, where each request is to be told.

    Neither query nor headers nor bodies are told: secrets stand there.
    """
    if answer.status < REFUSED and not access:
        return
    fields: dict[str, Any] = {
        "method": context.head.method,
        "path": masked(context.head.path),
        "status": answer.status,
        "duration_ms": round(seconds * 1000, 1),
        "client": context.head.client,
    }
    if problem is not None:
        fields |= {"code": problem.code, "detail": problem.detail}
    first = next((value.decode() for name, value in answer.headers if name == b"x-request-id"), None)
    if first not in {None, context.request_id}:
        fields["replay_of"] = first
    if answer.status >= FAILED:
        log.error("request_failed", **fields)
    elif answer.status >= REFUSED:
        log.info("request_refused", **fields)
    else:
        log.info("request_answered", **fields)
