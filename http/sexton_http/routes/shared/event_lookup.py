"""Finds the event that a path names, within its workspace and under its agent."""

from typing import Any
from uuid import UUID

from sexton_http.answers import Problem
from sexton_http.gateway.call import Call
from sexton_storage.records.events import Event


async def find_event(call: Call[Any, Any], zombie_id: UUID | None = None) -> Event:
    """Give the event of the path; ``zombie_id`` None: of whichever agent. Raises Problem UZ-EVENT-001."""
    event = await call.ctx.world.storage.events.load(call.id("event_id"))
    if event is None:
        raise unknown_event(call)
    check_place(call, event, zombie_id)
    return event


def check_place(call: Call[Any, Any], event: Event, zombie_id: UUID | None) -> None:
    """Raises Problem UZ-EVENT-001 for an event of another workspace, or of another agent than this one."""
    if event.workspace_id != call.id("workspace_id"):
        raise unknown_event(call)
    if zombie_id not in {None, event.zombie_id}:
        raise Problem("UZ-EVENT-001", f"the agent has no event {event.id}")


def unknown_event(call: Call[Any, Any]) -> Problem:
    return Problem("UZ-EVENT-001", f"the workspace has no event {call.id('event_id')}")
