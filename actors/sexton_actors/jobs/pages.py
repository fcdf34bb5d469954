"""Does a page of a bulk job: asks the agents that the events belong to, many events in one message."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple
from uuid import UUID

import trio

from sexton_actors.backlog import FULL
from sexton_actors.jobs.replay_ids import replay_id
from sexton_actors.jobs.transitions import DONE, SKIPPED, Later, Outcome, Refused
from sexton_actors.protocol.queue import Cancelling, CancelMany
from sexton_actors.protocol.zombie import Accepted, AlreadyAccepted, ReplayMany
from sexton_actors.refusal import Refusal
from sexton_actors.world import World
from sexton_engine import Context
from sexton_engine.errors import EngineError
from sexton_storage.errors import StorageError
from sexton_storage.records.events import Event
from sexton_storage.records.jobs import Job, JobKind, JobStatus
from sexton_storage.records.zombies import SeenAgent
from sexton_storage.stores import Storage

CHUNK: Final = 64
"""Events of one message: an agent that is asked for much hears others in between."""
AT_ONCE: Final = 64
"""Agents that are asked at the same time, so that what they write comes to few batches."""
QUEUE_FULL: Final = "queue_full"
WORKSPACE_PAUSED: Final = "workspace_paused"
STORAGE: Final = "storage"
BUSY: Final = "busy"
RUNS: Final = "runs"
_LATER: Final[Mapping[str, str]] = {
    FULL: QUEUE_FULL,
    "UZ-WORKSPACE-002": WORKSPACE_PAUSED,
    "UZ-API-003": BUSY,
    "UZ-ENTL-001": STORAGE,
}
"""What passes by itself, by code."""
Reply = Accepted | AlreadyAccepted | Cancelling | Refusal


async def do_page(context: Context, world: World, job: Job) -> Sequence[Outcome]:
    """What became of each event in hand, in their order.

    Raises StorageUnavailable, before anything is done.
    """
    outcomes: dict[UUID, Outcome] = {}
    page = _Page({}, {}, {}, 0) if job.kind is JobKind.CANCEL else await _read(world, job, outcomes)
    if job.kind is JobKind.SHADOW:
        await _watch(context, world.storage, job, page, outcomes)
    agents: defaultdict[UUID, list[UUID]] = defaultdict(list)
    for event_id, agent_id in zip(job.page, job.page_agents, strict=True):
        if event_id not in outcomes:
            agents[agent_id].append(event_id)
    places = trio.CapacityLimiter(AT_ONCE)

    async def do_agent(agent_id: UUID, event_ids: Sequence[UUID]) -> None:
        async with places:
            for first in range(0, len(event_ids), CHUNK):
                chunk = event_ids[first : first + CHUNK]
                replied = await _ask(context, job, agent_id, chunk, page)
                outcomes.update(zip(chunk, replied, strict=True))

    async with trio.open_nursery() as nursery:
        for agent_id, event_ids in agents.items():
            nursery.start_soon(do_agent, agent_id, event_ids)
    return [outcomes[event_id] for event_id in job.page]


class _Page(NamedTuple):
    """The events in hand of a replay, read at once for all agents."""

    events: Mapping[UUID, Event]
    new_ids: Mapping[UUID, UUID]
    seen: Mapping[UUID, SeenAgent]
    """The agents, looked at together: what each knows of itself then need not be read again."""
    seen_at: int


async def _read(world: World, job: Job, outcomes: dict[UUID, Outcome]) -> _Page:
    """Give what is to be replayed; what was done before this, or is gone, has its outcome already."""
    storage, seen_at = world.storage, world.now_ms()
    new_ids = {event_id: replay_id(job.id, event_id, job.created_at) for event_id in job.page}
    seen = await storage.zombies.look(set(job.page_agents))
    made = await storage.jobs.known(tuple(new_ids.values()))
    outcomes.update({event_id: DONE for event_id, new_id in new_ids.items() if new_id in made})
    found = await storage.events.load_requests([one for one in job.page if one not in outcomes])
    agents = dict(zip(job.page, job.page_agents, strict=True))
    events = {event.id: event for event in found if event.zombie_id == agents[event.id]}
    outcomes.update({one: SKIPPED for one in job.page if one not in outcomes and one not in events})
    return _Page(events, new_ids, seen, seen_at)


async def _watch(
    context: Context, storage: Storage, job: Job, page: _Page, outcomes: dict[UUID, Outcome]
) -> None:
    """An event of a shadow is done when its run has ended; of a shadow that is to stop it is cancelled."""
    for event_id, agent_id in zip(job.page, job.page_agents, strict=True):
        if job.status is JobStatus.STOPPING and event_id not in outcomes:
            outcomes[event_id] = SKIPPED
        if outcomes.get(event_id) != DONE:
            continue
        made = await storage.events.load(page.new_ids[event_id])
        if made is None or made.completed_at is not None:
            continue
        outcomes[event_id] = Later(RUNS)
        if job.status is JobStatus.STOPPING:
            with suppress(EngineError):
                await context.ask("queue", agent_id, CancelMany((made.id,), job.created_by))


async def _ask(
    context: Context, job: Job, agent_id: UUID, event_ids: Sequence[UUID], page: _Page
) -> Sequence[Outcome]:
    try:
        if job.kind is JobKind.CANCEL:
            cancelled = await context.ask("queue", agent_id, CancelMany(tuple(event_ids), job.created_by))
            return [outcome_of(reply) for reply in cancelled]
        message = ReplayMany(
            tuple(page.events[event_id] for event_id in event_ids),
            tuple(page.new_ids[event_id] for event_id in event_ids),
            job.created_by_name,
            job.request_json,
            job.merges,
            job.asked_version,
            job.id if job.kind is JobKind.SHADOW else None,
            page.seen.get(agent_id),
            page.seen_at,
        )
        outcomes = [outcome_of(reply) for reply in await context.ask("zombie", agent_id, message)]
        # The run of a shadow is waited for.
        waits = job.kind is JobKind.SHADOW
        return [Later(RUNS) if waits and outcome == DONE else outcome for outcome in outcomes]
    except StorageError:
        return [Later(STORAGE)] * len(event_ids)
    except EngineError:
        # No answer in time is no answer: what was done all the same is found done when it is asked again.
        return [Later(BUSY)] * len(event_ids)


def outcome_of(reply: Reply) -> Outcome:
    """What a reply means for the job.

    >>> outcome_of(AlreadyAccepted(UUID(int=1))), outcome_of(Refusal("UZ-EVENT-002", "full"))
    ('done', Later(why='queue_full'))
    >>> (
    ...     outcome_of(Refusal("UZ-REQ-009", "over", {"current_state": "processed"})),
    ...     outcome_of(Refusal("UZ-ZMB-012", "x")),
    ... )
    ('skipped', Refused(code='UZ-ZMB-012'))
    """
    if not isinstance(reply, Refusal):
        return DONE
    if reply.code in _LATER:
        return Later(_LATER[reply.code])
    if reply.code == "UZ-EVENT-001":
        return SKIPPED
    if reply.code == "UZ-REQ-009":
        # Cancelled is as it was to be, whoever did it: this job before it was cut off, perhaps.
        return DONE if reply.facts.get("current_state") == "cancelled" else SKIPPED
    return Refused(reply.code)
