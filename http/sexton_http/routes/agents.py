"""An agent's standing: its profile, and how its runs were scored."""

from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec

from sexton_actors.proposal.trust import TrustLevel, trust_report
from sexton_http.answers import Problem
from sexton_http.bodies.cursors import Place, decode, encode, fingerprint
from sexton_http.bodies.shapes import Body, Cursor, Query, Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery, operation
from sexton_storage.records.events import EventStatus
from sexton_storage.records.improvement import Score
from sexton_storage.records.users import Role
from sexton_storage.terms import DEFAULT_CONTEXT_TOKENS, MAX_CONTEXT_TOKENS, MIN_CONTEXT_TOKENS

TAG = "Agent profiles"
AGENT = "/v1/agents/{agent_id}"
SCORING = "/v1/workspaces/{workspace_id}/scoring"
UNKNOWN_AGENT = ("UZ-AGENT-001",)


class AgentProfile(Shape):
    agent_id: UUID
    name: str
    status: str
    """The agent's, in capitals."""
    workspace_id: UUID
    trust_level: TrustLevel
    trust_streak_runs: int
    """Processed in a row."""
    improvement_stalled_warning: bool
    created_at: datetime
    updated_at: datetime


class ScoreItem(Shape):
    event_id: UUID
    score: float
    """0 to 1."""
    outcome: EventStatus
    attempts: int
    denied_gates: int
    failed_checks: int
    charged_nanos: int
    budget_nanos: int | None
    """The agent's budget for a day."""
    created_at: int


class ScorePage(Shape):
    items: list[ScoreItem]
    next_cursor: str | None


class ScoreQuery(Query):
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 50
    cursor: Cursor | None = None


class ScoringPut(Body):
    context_tokens: Annotated[
        Any,
        msgspec.Meta(
            extra_json_schema={
                "type": "integer",
                "minimum": MIN_CONTEXT_TOKENS,
                "maximum": MAX_CONTEXT_TOKENS,
            }
        ),
    ]
    """How much of its score history an agent is shown."""


class ScoringView(Shape):
    context_tokens: int


@operation("GET", AGENT, tag=TAG, codes=UNKNOWN_AGENT)
async def get_agent_profile(call: Call[NoBody, NoQuery]) -> AgentProfile:
    """Show an agent's standing."""
    agent_id = await require_agent(call)
    storage = call.ctx.world.storage
    zombie = await storage.zombies.load(agent_id)
    if zombie is None:
        raise unknown_agent(agent_id)
    report = trust_report(await storage.improvement.trust(agent_id))
    return AgentProfile(
        agent_id=zombie.id,
        name=zombie.name,
        status=zombie.status.upper(),
        workspace_id=zombie.workspace_id,
        trust_level=report.trust_level,
        trust_streak_runs=report.trust_streak_runs,
        improvement_stalled_warning=report.improvement_stalled_warning,
        created_at=_time(zombie.created_at),
        updated_at=_time(zombie.updated_at),
    )


@operation("GET", AGENT + "/scores", tag=TAG, codes=UNKNOWN_AGENT)
async def list_agent_scores(call: Call[NoBody, ScoreQuery]) -> ScorePage:
    """List how an agent's finished runs were scored, newest first."""
    query, agent_id = call.query, await require_agent(call)
    filters = fingerprint("scores", agent_id)
    place = None if query.cursor is None else decode(query.cursor, filters)
    rows = await call.ctx.world.storage.improvement.scores(
        agent_id, limit=query.limit + 1, before=None if place is None else place.page
    )
    shown = rows[: query.limit]
    more = len(rows) > query.limit
    following = encode(Place(shown[-1].created_at, shown[-1].event_id, filters)) if more else None
    return ScorePage([_item(score) for score in shown], following)


@operation("GET", SCORING, tag=TAG)
async def get_scoring(call: Call[NoBody, NoQuery]) -> ScoringView:
    """Show how much of their score history the workspace's agents are shown."""
    tokens = await call.ctx.world.storage.improvement.context_tokens(call.id("workspace_id"))
    return ScoringView(DEFAULT_CONTEXT_TOKENS if tokens is None else tokens)


@operation("PUT", SCORING, tag=TAG, role=Role.OPERATOR, codes=("UZ-SCORING-001",))
async def put_scoring(call: Call[ScoringPut, NoQuery]) -> ScoringView:
    """Set how much of their score history the workspace's agents are shown."""
    tokens = _tokens(call.body.context_tokens)
    world = call.ctx.world
    await world.storage.improvement.put_context_tokens(call.id("workspace_id"), tokens, world.now_ms())
    return ScoringView(tokens)


def _tokens(given: Any) -> int:
    is_whole = isinstance(given, int | float) and not isinstance(given, bool) and given == given // 1
    if not is_whole or not MIN_CONTEXT_TOKENS <= given <= MAX_CONTEXT_TOKENS:
        detail = f"/context_tokens: a whole number from {MIN_CONTEXT_TOKENS} to {MAX_CONTEXT_TOKENS}"
        raise Problem("UZ-SCORING-001", detail, facts={"pointer": "/context_tokens"})
    return int(given)


async def require_agent(call: Call[Any, Any]) -> UUID:
    """The agent of the path, which is the caller's. Raises Problem UZ-AGENT-001."""
    agent_id, member = call.id("agent_id"), call.member
    scope = await call.services.scopes.zombie(agent_id)
    if scope is None or scope.tenant_id != member.tenant_id:
        raise unknown_agent(agent_id)
    if member.workspace_id not in {None, scope.workspace_id}:
        raise unknown_agent(agent_id)
    return agent_id


def unknown_agent(agent_id: UUID) -> Problem:
    return Problem("UZ-AGENT-001", f"there is no agent {agent_id}")


def _time(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)


def _item(score: Score) -> ScoreItem:
    return ScoreItem(
        event_id=score.event_id,
        score=score.score,
        outcome=score.outcome,
        attempts=score.attempts,
        denied_gates=score.denied_gates,
        failed_checks=score.failed_checks,
        charged_nanos=score.charged_nanos,
        budget_nanos=score.budget_nanos,
        created_at=score.created_at,
    )
