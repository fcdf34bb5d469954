"""What waits for a runner in the whole fleet, by label, now and in the last hour; for platform admins."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from sexton_actors.dispatcher.index import Tags, admits
from sexton_actors.label_history import MOST_LABELS
from sexton_actors.protocol.dispatcher import ViewQueue
from sexton_http.bodies.shapes import Shape
from sexton_http.gateway.call import Call
from sexton_http.gateway.operations import Auth, NoBody, NoQuery, operation
from sexton_http.routes.fleet import TAG
from sexton_http.routes.queue import LeaseSlack, slack_of
from sexton_http.routes.shared.runner_needs import RUNNERS_A_LOOK, UNSANDBOXED
from sexton_storage.records.fleet import Waiting
from sexton_storage.records.runners import AdminState, Runner
from sexton_storage.scopes import is_within, scope_of


class TagDepth(Shape):
    required_tags: tuple[str, ...]
    agents: int
    """That are ready on this node."""
    events: int
    oldest_age_ms: int | None
    """The age of the oldest of them whose agent may run."""


class Unsatisfiable(Shape):
    required_tags: tuple[str, ...]
    events: int
    """That no active runner of the fleet may have, by its labels or its sandbox."""
    ready_agents: int
    """With these tags, on this node."""


class LabelHour(Shape):
    """How long events that need these labels of a runner have waited in the last hour."""

    required_tags: tuple[str, ...] | None
    """Null: all sets with a label that no enrolled runner has, and those beyond the 20 that want most."""
    ages_ms: list[int | None]
    """The age of the oldest whose agent may run, in each of 60 minutes, that of the last count last.

    0: none waited. Null: not counted, as before this node's start.
    """


class QueueState(Shape):
    depth: int
    """Events that wait for a runner, those behind a live lease and of stopped agents included."""
    oldest_age_ms: int | None
    """The age of the oldest of them whose agent may run."""
    ready_agents: int
    """Agents that could be leased from this node now."""
    by_tags: list[TagDepth]
    last_hour: list[LabelHour]
    """The sets of which some event has waited, those that have waited longest first; 20 at most."""
    leases_active: int
    unsatisfiable: list[Unsatisfiable]
    waiting_offers: int
    events_blocked: int
    """That wait for their tenant's credit, beside the depth."""
    tenants_exhausted: int
    """The number of tenants whose balance is used up."""
    least_slack_ms: int | None
    """What the live lease has left that has the least; below 0 it is about to be taken back."""
    slack: list[LeaseSlack]
    """Live leases by time left, the least first; any 10,000 of more than that."""


@operation("GET", "/v1/fleet/queue", tag=TAG, auth=Auth.PLATFORM)
async def view_queue(call: Call[NoBody, NoQuery]) -> QueueState:
    """Show what waits for a runner; of more than 100,000 events the oldest count."""
    world = call.ctx.world
    view = await call.ctx.system.ask("dispatcher", "", ViewQueue())
    runners, _ = await world.storage.runners.list(page=1, page_size=RUNNERS_A_LOOK, sort="-created_at")
    usable = [runner for runner in runners if runner.admin_state is AdminState.ACTIVE]
    live = await world.storage.leases.count_live_by_runner([runner.id for runner in runners])
    fleet, now = world.storage.fleet, world.now_ms()
    waiting, census = await fleet.waiting(), await fleet.census()
    _, least_slack_ms, slack = slack_of(await fleet.slack())
    by_tags, stuck, ages, ready = Counter[Tags](), Counter[Tags](), dict[Tags, int](), view.by_tags
    for found in waiting:
        # As the dispatcher has them, whatever order an agent's file names them in.
        group = msgspec.structs.replace(found, required_tags=tuple(sorted(found.required_tags)))
        by_tags[group.required_tags] += group.events
        if group.oldest_event_at is not None:
            ages[group.required_tags] = max(now - group.oldest_event_at, ages.get(group.required_tags, 0))
        if not any(_serves(runner, group) for runner in usable):
            stuck[group.required_tags] += group.events
    hour = world.meters.label_history.ages()
    return QueueState(
        depth=by_tags.total(),
        oldest_age_ms=max(ages.values(), default=None),
        ready_agents=view.ready_agents,
        by_tags=[
            TagDepth(tags, ready.get(tags, 0), by_tags[tags], ages.get(tags)) for tags in {**ready, **by_tags}
        ],
        last_hour=longest([LabelHour(tags, minutes) for tags, minutes in hour.items()]),
        leases_active=sum(live.values()),
        unsatisfiable=[Unsatisfiable(tags, number, ready.get(tags, 0)) for tags, number in stuck.items()],
        waiting_offers=view.waiting_offers,
        events_blocked=census.blocked,
        tenants_exhausted=census.exhausted,
        least_slack_ms=least_slack_ms,
        slack=slack,
    )


def longest(hours: Sequence[LabelHour]) -> list[LabelHour]:
    """Those that have waited longest, in that order.

    >>> hours = [LabelHour(("eu",), [None, 5]), LabelHour((), [7, 0]), LabelHour(None, [None, 0])]
    >>> [hour.required_tags for hour in longest(hours)]
    [(), ('eu',), None]
    """
    ordered = sorted(hours, key=lambda hour: -max((age for age in hour.ages_ms if age), default=0))
    return ordered[:MOST_LABELS]


def _serves(runner: Runner, group: Waiting) -> bool:
    need = group.required_tags, group.allows_unsandboxed
    if not is_within(scope_of(runner), group.tenant_id, group.workspace_id):
        return False
    return admits(runner.abilities, need, unsandboxed=runner.sandbox_tier == UNSANDBOXED)
