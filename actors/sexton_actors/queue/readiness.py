"""Says whether an agent is ready: to this node's dispatcher, and to other nodes once it is free again."""

from typing import assert_never

from sexton_actors.protocol import queue as m
from sexton_actors.protocol.dispatcher import AgentNotReady, AgentReady, StillReady
from sexton_actors.queue.state import QueueState
from sexton_storage.records.events import ReadyAgent
from sexton_storage.records.zombies import ZombieStatus
from sexton_storage.signals import Signal, Topic

News = m.EventQueued | m.AgentChanged | m.ComingUp | m.NotKnownReady | m.LeaseEnded | m.FreedElsewhere


async def hear(queue: QueueState, message: News) -> None:
    """Look again whether the agent is ready, if the news can have changed that."""
    match message:
        case m.EventQueued(at=at):
            if queue.announced:
                # Another node may have leased it since; then the dispatcher has dropped it.
                queue.context.tell("dispatcher", "", StillReady(queue.id))
            elif not queue.leased:
                await announce(queue, at if queue.looked else None)
        case m.AgentChanged():
            queue.doubt()
            queue.over_until = 0
            await announce(queue)
        case m.ComingUp():
            await queue.at_hand()
        case m.NotKnownReady():
            await announce(queue)
        case m.LeaseEnded():
            await _lease_ended(queue, message)
        case m.FreedElsewhere():
            queue.leased = False
        case _:
            assert_never(message)


async def _lease_ended(queue: QueueState, message: m.LeaseEnded) -> None:
    if not queue.leased:
        # It was granted on another node, which takes the agent for leased until it is told.
        queue.world.storage.signals.send(Signal(Topic.FREE, queue.id))
    queue.leased = False
    queue.confirm(message.agent_version, message.at)
    if message.next_event_at is not None:
        await announce(queue, message.next_event_at)


async def announce(queue: QueueState, oldest_event_at: int | None = None) -> None:
    """Say whether the agent is ready; the database is asked unless its oldest event is known."""
    queue.announced = False
    agent = await (_look(queue) if oldest_event_at is None else _known(queue, oldest_event_at))
    queue.announced = agent is not None
    queue.context.tell("dispatcher", "", AgentNotReady(queue.id) if agent is None else AgentReady(agent))


async def _look(queue: QueueState) -> ReadyAgent | None:
    agent = await queue.world.storage.events.ready_agent(queue.id)
    queue.looked = True
    return agent


def is_withheld(queue: QueueState) -> bool:
    """Whether the agent needs a credential that it may not be lent: its events wait for a person."""
    zombie, manifest = queue.record, queue.manifest
    return zombie is not None and manifest is not None and bool(queue.lending_of(zombie, manifest).withheld)


async def _known(queue: QueueState, oldest_event_at: int) -> ReadyAgent | None:
    # As fresh as the record: should the agent have been stopped this moment, its claim comes back empty.
    zombie = await queue.refresh()
    if zombie is None or zombie.status is not ZombieStatus.ACTIVE:
        return None
    if queue.world.now_ms() < queue.over_until or is_withheld(queue):
        return None
    return ReadyAgent(
        zombie.id,
        zombie.workspace_id,
        zombie.tenant_id,
        zombie.required_tags,
        zombie.allows_unsandboxed,
        oldest_event_at,
        queue.last_runner_id,
    )
