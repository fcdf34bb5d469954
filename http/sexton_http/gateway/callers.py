"""Who calls a route: found out, confined to what he may reach, and counted against his rate."""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from sexton_actors.zombie.rejections import RATE_LIMITED, reason_code
from sexton_http.answers import Problem, RequestHead
from sexton_http.bodies.ids import parse_id
from sexton_http.ceilings import Claim, Standing, claim_of, network_of
from sexton_http.gateway.delivery_notes import turn_away
from sexton_http.gateway.limits import Quota, Verdict
from sexton_http.gateway.operations import Auth, Operation, Wait
from sexton_http.gateway.services import Services
from sexton_http.gateway.ticket import Ticket
from sexton_http.identity.authenticator import bearer
from sexton_http.identity.context import HttpSettings
from sexton_http.identity.principals import (
    NOBODY,
    Delegate,
    Enroller,
    Member,
    Presser,
    Principal,
    RunnerHost,
    SignedIn,
    check_platform,
    check_role,
)
from sexton_http.identity.tokens import digest, same
from sexton_storage.records.users import Role

UNAUTHORIZED: Final = 401
SHOWN: Final = Quota(count=10, window_s=60)
FORM_TYPE: Final = b"application/x-www-form-urlencoded"


class Callers:
    """The callers of one route. Each method raises Problem, with the code to answer with."""

    __slots__ = ("_ids", "_is_for_runners", "_is_of_agent", "_operation", "_services")

    def __init__(self, operation: Operation, services: Services) -> None:
        self._operation = operation
        self._services = services
        self._ids = operation.ids
        self._is_of_agent = operation.auth is Auth.WEBHOOK or operation.auth is Auth.APPROVAL
        self._is_for_runners = operation.auth is Auth.RUNNER and not operation.deprecated

    async def authenticate(
        self, head: RequestHead, params: Mapping[str, str], verdicts: list[Verdict]
    ) -> Principal:
        authenticator = self._services.authenticator
        try:
            match self._operation.auth:
                case Auth.PUBLIC | Auth.WEBHOOK:
                    return NOBODY
                case Auth.SCRAPER:
                    _check_scraper(head, self._services.ctx.settings)
                    return NOBODY
                case Auth.MEMBER:
                    delegate = await authenticator.delegate(head) if self._operation.agents else None
                    return delegate or check_role(await self._member(head), self._operation.role)
                case Auth.BROWSER:
                    return await self._services.browsers.require(head)
                case Auth.PLATFORM:
                    return check_platform(await authenticator.member(head))
                case Auth.RUNNER:
                    return await authenticator.runner(head)
                case Auth.ENROLMENT:
                    return await authenticator.enroller(head)
                case Auth.APPROVAL if self._operation.press and is_press(head):
                    return Presser()
                case Auth.APPROVAL:
                    return await authenticator.approver(head, parse_id(params["zombie_id"], "zombie_id"))
        except Problem as problem:
            # Whoever guesses at tokens is slowed down by his address, before he learns whether he was right.
            if problem.status == UNAUTHORIZED:
                # Guesses at runners' tokens are counted by themselves: whoever makes them takes nothing from
                # others at his address, and runners there whose tokens are right are never counted.
                kind = "runner" if self._operation.auth is Auth.RUNNER else "address"
                self._admit((kind, head.client), self._services.ctx.settings.address_rate, verdicts)
            raise

    def let_in_known(self, ticket: Ticket) -> bool:
        """Let a runner in whose token was right a moment ago; False, and nothing is done, for anybody else.

        What is asked of others beside this is not for runners. Raises Full and Problem.
        """
        head = ticket.context.head
        if not self._is_for_runners or b"content-encoding" in head.headers:
            return False
        principal = self._services.authenticator.recall_runner(head)
        if principal is None:
            return False
        runner_id = principal.runner.id
        ticket.claim = claim_of(head.client, None, runner_id, Standing.ADMIN)
        ticket.take_place()
        ticket.principal = ticket.context.principal = principal
        if ticket.room is not None:
            ticket.room.owner = ticket.claim
        if self._ids:
            params = ticket.params
            ticket.params = {**params, **{name: parse_id(params[name], name) for name in self._ids}}
        return True

    def confine(self, delegate: Delegate, params: Mapping[str, Any]) -> None:
        if params["zombie_id"] != delegate.zombie_id:
            raise Problem(self._operation.agents, "the key belongs to another agent")
        if params["workspace_id"] != delegate.workspace_id:
            raise Problem("UZ-AUTH-001", "the key's agent is in another workspace")

    async def _member(self, head: RequestHead) -> Member:
        if self._operation.cookie and b"authorization" not in head.headers:
            # A stream is opened by a page, and again and again by one that nobody looks at.
            is_use = self._operation.wait is not Wait.STREAM
            who = await self._services.browsers.find(head, is_use=is_use)
            if who is not None:
                return who.member
        return await self._services.authenticator.member(head)

    async def claim(self, head: RequestHead, principal: Principal, params: Mapping[str, Any]) -> Claim:
        """As whom the caller holds a place. Raises Problem UZ-WH-001 for a webhook that names no agent."""
        address = head.client
        match principal:
            case RunnerHost(runner=runner):
                return claim_of(address, None, runner.id, Standing.ADMIN)
            case Member(role=Role.ADMIN, tenant_id=tenant_id):
                return claim_of(address, tenant_id, None, Standing.ADMIN)
            case Member(role=role, tenant_id=tenant_id, by=by):
                standing = Standing.OPERATOR if role is Role.OPERATOR else Standing.USER
                return claim_of(address, tenant_id, by, standing)
            case SignedIn(member=member):
                return await self.claim(head, member, params)
            case Delegate(tenant_id=tenant_id, by=by):
                return claim_of(address, tenant_id, by)
            case _ if self._is_of_agent:
                zombie_id = params["zombie_id"]
                scope = await self._services.scopes.zombie(zombie_id)
                if scope is None and self._operation.auth is Auth.WEBHOOK:
                    self._services.metrics.webhooks.labels("UZ-WH-001").inc()
                    raise Problem("UZ-WH-001", f"There is no agent {zombie_id}.")
                return claim_of(address, None if scope is None else scope.tenant_id, zombie_id)
            case _:
                return claim_of(address, None, ("stranger", network_of(address)))

    async def limit(
        self, head: RequestHead, principal: Principal, params: Mapping[str, Any], verdicts: list[Verdict]
    ) -> None:
        operation, settings = self._operation, self._services.ctx.settings
        if operation.deprecated:
            # An old client that goes on asking for what is gone takes nothing from others at its address.
            self._admit(("gone", head.client), settings.address_rate, verdicts)
            return
        if operation.never_shed or operation.auth is Auth.RUNNER:
            return
        if operation.quota is not None:
            key = (operation.name, "address", network_of(head.client))
            self._judge(self._services.limiter.spend(key, operation.quota), verdicts)
        if isinstance(principal, Member):
            where = params["workspace_id"] if operation.in_workspace else principal.tenant_id
            self._admit(where, settings.plan_rates[principal.plan], verdicts)
            return
        if isinstance(principal, Enroller) and principal.admin is not None:
            # A hundred runners behind one address are one platform admin's, and counted as that.
            admin = principal.admin
            self._admit(("enrols", admin.tenant_id, admin.by), settings.plan_rates[admin.plan], verdicts)
            return
        if isinstance(principal, Delegate):
            self._admit(principal.workspace_id, settings.plan_rates[principal.plan], verdicts)
            return
        if self._is_of_agent:
            scope = await self._services.scopes.zombie(params["zombie_id"])
            if scope is not None:
                # Nor does a sender who knocks at an agent that was killed take anything from its workspace.
                counted = ("gone", params["zombie_id"]) if scope.killed else scope.workspace_id
                try:
                    self._admit(counted, settings.plan_rates[scope.plan], verdicts)
                except Problem as problem:
                    self._show_limited(problem, head, params, scope.workspace_id)
                    raise
                return
        self._admit(("address", head.client), settings.address_rate, verdicts)

    def _show_limited(
        self, problem: Problem, head: RequestHead, params: Mapping[str, Any], workspace_id: UUID
    ) -> None:
        """In the agent's stream, for a webhook; so seldom that a flood does not fill its mailbox either."""
        services, zombie_id = self._services, params["zombie_id"]
        if self._operation.auth is not Auth.WEBHOOK:
            return
        problem.facts["reason"] = reason_code(RATE_LIMITED)
        if services.limiter.spend(("shown", zombie_id), SHOWN).allowed:
            told = {"code": problem.code, "reason": RATE_LIMITED, "detail": problem.detail}
            turn_away(services, workspace_id, params, head, **told)

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


def is_press(head: RequestHead) -> bool:
    """A form without a token: whether it is signed, its route finds out."""
    sent = head.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    return sent == FORM_TYPE and b"authorization" not in head.headers


def _check_scraper(head: RequestHead, settings: HttpSettings) -> None:
    if settings.open_metrics:
        return
    if settings.metrics_token is None:
        raise Problem("UZ-AUTH-002", "start the server with SEXTON_METRICS_TOKEN, and send that as bearer")
    token = bearer(head)
    if token is None or not same(digest(token), digest(settings.metrics_token)):
        raise Problem("UZ-AUTH-002", "this needs the server's metrics token as bearer")
