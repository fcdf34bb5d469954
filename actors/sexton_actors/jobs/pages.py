"""Does a page of a bulk job: asks the agents that the events belong to, many events in one message."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

import trio

from sexton_actors.backlog import FULL
from sexton_actors.jobs.transitions import DONE, SKIPPED, Later, Outcome, Refused
from sexton_actors.protocol.queue import Cancelling, CancelMany
from sexton_actors.protocol.zombie import Accepted, AlreadyAccepted, ReplayMany
from sexton_actors.refusal import Refusal
from sexton_engine import Context
from sexton_engine.errors import EngineError
from sexton_storage.errors import StorageError
from sexton_storage.records.jobs import Job, JobKind

CHUNK: Final = 64
"""Events of one message: an agent that is asked for much hears others in between."""
AT_ONCE: Final = 16
"""Agents that are asked at the same time."""
QUEUE_FULL: Final = "queue_full"
WORKSPACE_PAUSED: Final = "workspace_paused"
STORAGE: Final = "storage"
BUSY: Final = "busy"
_LATER: Final[Mapping[str, str]] = {
    FULL: QUEUE_FULL,
    "UZ-WORKSPACE-002": WORKSPACE_PAUSED,
    "UZ-API-003": BUSY,
    "UZ-ENTL-001": STORAGE,
}
"""What passes by itself, by code."""
Reply = Accepted | AlreadyAccepted | Cancelling | Refusal


async def do_page(context: Context, job: Job) -> Sequence[Outcome]:
    """What became of each event in hand, in their order."""
    agents: defaultdict[UUID, list[UUID]] = defaultdict(list)
    for event_id, agent_id in zip(job.page, job.page_agents, strict=True):
        agents[agent_id].append(event_id)
    outcomes: dict[UUID, Outcome] = {}
    places = trio.CapacityLimiter(AT_ONCE)

    async def do_agent(agent_id: UUID, event_ids: Sequence[UUID]) -> None:
        async with places:
            for first in range(0, len(event_ids), CHUNK):
                chunk = event_ids[first : first + CHUNK]
                outcomes.update(zip(chunk, await _ask(context, job, agent_id, chunk), strict=True))

    async with trio.open_nursery() as nursery:
        for agent_id, event_ids in agents.items():
            nursery.start_soon(do_agent, agent_id, event_ids)
    return [outcomes[event_id] for event_id in job.page]


async def _ask(context: Context, job: Job, agent_id: UUID, event_ids: Sequence[UUID]) -> Sequence[Outcome]:
    try:
        if job.kind is JobKind.CANCEL:
            cancelled = await context.ask("queue", agent_id, CancelMany(tuple(event_ids), job.created_by))
            return [outcome_of(reply) for reply in cancelled]
        message = ReplayMany(
            tuple(event_ids), job.id, job.created_at, job.created_by_name, job.request_json, job.merges
        )
        return [outcome_of(reply) for reply in await context.ask("zombie", agent_id, message)]
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
