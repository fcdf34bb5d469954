"""A version of an agent that is tried out on a share of its events."""

from typing import Annotated, Any
from uuid import UUID

import msgspec

from sexton_actors.canaries.guard import mean_score
from sexton_actors.canaries.record import Canary, CanaryStatus, Guard, canary_of
from sexton_actors.canaries.transitions import Wish
from sexton_actors.protocol.canary import PromoteCanary, StartCanary, WithdrawCanary
from sexton_actors.protocol.zombie import Configured
from sexton_actors.refusal import Refusal
from sexton_http.answers import Problem
from sexton_http.bodies.shapes import Body, Shape
from sexton_http.gateway.audit_entries import ask
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import NoBody, NoQuery, operation
from sexton_http.routes.shared.agent_files import NewUrls, new_urls
from sexton_http.routes.shared.plan_limits import FULL
from sexton_storage.records.canaries import Tallies, Tally
from sexton_storage.records.users import Role
from sexton_storage.records.zombies import Zombie

TAG = "Harness"
CANARY = "/v1/workspaces/{workspace_id}/zombies/{zombie_id}/canary"
VERSION_MAX = 2**31 - 1
MONEY_MAX = 10**15
Percent = Annotated[int, msgspec.Meta(ge=0, le=100)]
Margin = Annotated[int, msgspec.Meta(ge=0, le=10_000)]
Score = Annotated[float, msgspec.Meta(ge=0, le=1)]
Runs = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]


class CanaryGuard(Body):
    """When the candidate goes back by itself; what is left out is not looked at."""

    min_runs: Runs = 10
    """Nothing is judged before the candidate has had as many, nor against a stable side with fewer."""
    max_failure_percent: Percent | None = None
    """How many of the candidate's runs may fail."""
    failure_margin_percent: Percent | None = None
    """How many percentage points more of its runs may fail than of the stable version's."""
    max_cost_nanos: Annotated[int, msgspec.Meta(ge=0, le=MONEY_MAX)] | None = None
    """What a run may cost on average."""
    cost_margin_percent: Margin | None = None
    """How much more a run may cost, on average, than one of the stable version's."""
    min_score: Score | None = None
    """What the runs' scores must come to on average."""
    score_margin: Score | None = None
    """How much lower its average may be than that of the stable version."""


class NewCanary(Body):
    """Which version is tried out, on how much, and when that ends by itself."""

    agent_version: Annotated[int, msgspec.Meta(ge=1, le=VERSION_MAX)]
    share: Annotated[int, msgspec.Meta(ge=1, le=99)]
    """Percent of the agent's events, chosen by a hash of each."""
    guard: CanaryGuard = msgspec.field(default_factory=CanaryGuard)
    promote_after: Runs | None = None
    """Processed runs of the candidate after which it is promoted; left out: a person does that."""


class CanaryEnding(Body):
    reason: Annotated[str, msgspec.Meta(max_length=512)] = ""


class CanaryCounts(Shape):
    """What came of one side's runs that ended as processed, agent_error or dead_lettered."""

    agent_version: int
    runs: int
    failed: int
    charged_nanos: int
    mean_cost_nanos: int
    mean_score: float | None
    """The average of the runs that have a score."""


class CanaryView(Shape):
    canary_id: UUID
    zombie_id: UUID
    status: CanaryStatus
    config_version_id: UUID
    """The candidate."""
    share: int
    guard: Any
    """As it was asked for."""
    promote_after: int | None
    candidate: CanaryCounts
    stable: CanaryCounts
    """Both count to this moment, or to the end of the trial."""
    started_at: int
    started_by: str
    ended_at: int | None
    ended_by: str | None
    """A person or key; `system:guard` when it ended by itself."""
    why: str | None
    """`failures`, `cost`, `score`, `runs`, `person`, or `other_version`."""
    detail: str


class CanaryState(Shape):
    canary: CanaryView | None
    """The newest trial; null: there never was one."""


class CanaryPromoted(CanaryView, kw_only=True):
    webhook_urls: NewUrls = msgspec.UNSET
    """When the version has triggers with new secrets: they are shown in this answer only."""


@operation(
    "POST",
    CANARY,
    tag=TAG,
    role=Role.OPERATOR,
    status=201,
    codes=(
        "UZ-ZMB-009",
        "UZ-ZMB-010",
        "UZ-HARNESS-001",
        "UZ-HARNESS-002",
        "UZ-HARNESS-003",
        "UZ-HARNESS-004",
        "UZ-REQ-009",
    ),
)
async def start_canary(call: Call[NewCanary, NoQuery]) -> CanaryView | Refusal:
    """Try out one of an agent's versions on a share of its events; one at a time.

    The credentials that its files name are granted with this, as by activating it.
    """
    body = call.body
    guard = Guard(**msgspec.structs.asdict(body.guard))
    wish = Wish(body.share, guard, body.promote_after)
    message = StartCanary(body.agent_version, wish, call.member.by)
    return await _shown(call, await ask(call.ctx.system, "zombie", await _agent(call), message))


@operation("GET", CANARY, tag=TAG, codes=("UZ-ZMB-009",))
async def get_canary(call: Call[NoBody, NoQuery]) -> CanaryState:
    """Show the newest trial of one of the agent's versions, with what came of both sides' runs."""
    zombie = await call.ctx.world.storage.zombies.load(await _agent(call))
    canary = None if zombie is None else canary_of(zombie.canary)
    return CanaryState(None if zombie is None or canary is None else await _view(call, zombie, canary))


@operation(
    "POST",
    CANARY + "/promote",
    tag=TAG,
    role=Role.OPERATOR,
    codes=(
        "UZ-ZMB-009",
        "UZ-REQ-009",
        "UZ-HARNESS-002",
        "UZ-ZMB-006",
        "UZ-ZMB-010",
        *FULL,
        "UZ-ENTL-004",
    ),
)
async def promote_canary(call: Call[NoBody, NoQuery]) -> CanaryPromoted | Refusal:
    """Make the version that is on trial the active one, from the agent's next lease on."""
    reply = await ask(call.ctx.system, "zombie", await _agent(call), PromoteCanary(call.member.by))
    if isinstance(reply, Refusal):
        return reply
    configured: Configured = reply
    view = await _shown(call, configured.zombie)
    if isinstance(view, Refusal):
        return view
    return CanaryPromoted(**msgspec.structs.asdict(view), webhook_urls=new_urls(call.ctx, configured))


@operation("POST", CANARY + "/withdraw", tag=TAG, role=Role.OPERATOR, codes=("UZ-ZMB-009", "UZ-REQ-009"))
async def withdraw_canary(call: Call[CanaryEnding, NoQuery]) -> CanaryView | Refusal:
    """End the trial: all events go to the active version again, those that wait for the candidate too.

    A run of the candidate goes on; should it come back to the queue, the active version does it again.
    """
    message = WithdrawCanary(call.member.by, call.body.reason)
    return await _shown(call, await ask(call.ctx.system, "zombie", await _agent(call), message))


async def _agent(call: Call[Any, Any]) -> UUID:
    zombie_id = call.id("zombie_id")
    await call.services.scopes.require_zombie(call.id("workspace_id"), zombie_id)
    return zombie_id


async def _shown(call: Call[Any, Any], reply: Zombie | Refusal) -> CanaryView | Refusal:
    if isinstance(reply, Refusal):
        return reply
    canary = canary_of(reply.canary)
    if canary is None:
        raise Problem("UZ-ZMB-009", "the agent is gone")
    return await _view(call, reply, canary)


async def _view(call: Call[Any, Any], zombie: Zombie, canary: Canary) -> CanaryView:
    tallies = canary.tallies
    if tallies is None:
        tallies = await call.ctx.world.storage.zombies.tallies(zombie.id, canary.id)
    return view_canary(zombie.id, canary, tallies)


def view_canary(zombie_id: UUID, canary: Canary, tallies: Tallies) -> CanaryView:
    return CanaryView(
        canary_id=canary.id,
        zombie_id=zombie_id,
        status=canary.status,
        config_version_id=canary.config_version_id,
        share=canary.share,
        guard=msgspec.structs.asdict(canary.guard),
        promote_after=canary.promote_after,
        candidate=_side(canary.version, tallies.candidate),
        stable=_side(canary.base_version, tallies.stable),
        started_at=canary.started_at,
        started_by=canary.started_by,
        ended_at=canary.ended_at,
        ended_by=canary.ended_by,
        why=canary.why,
        detail=canary.detail,
    )


def _side(version: int, tally: Tally) -> CanaryCounts:
    return CanaryCounts(
        agent_version=version,
        runs=tally.runs,
        failed=tally.failed,
        charged_nanos=tally.charged_nanos,
        mean_cost_nanos=tally.charged_nanos // max(1, tally.runs),
        mean_score=mean_score(tally) if tally.scored else None,
    )
