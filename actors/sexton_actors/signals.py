"""Lets the actors of this node know at once what other nodes have committed.

What they are told is where to look: each of them asks the database before it acts.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, assert_never
from uuid import UUID

from sexton_actors.protocol.dispatcher import ReadyElsewhere, TenantCredited, WorkspaceChanged
from sexton_actors.protocol.gate import Refresh
from sexton_actors.protocol.queue import FreedElsewhere
from sexton_actors.protocol.runner import LeaseCancelling, StandingChanged
from sexton_actors.world import World
from sexton_engine import Message
from sexton_storage.signals import Signal, Topic

Tell = Callable[[str, Hashable, Message[Any]], None]


def hear(world: World, tell: Tell, signals: Sequence[Signal]) -> None:
    """Pass on what other nodes tell; frames go their own way."""
    ready = tuple(signal.id for signal in signals if signal.topic is Topic.READY)
    if ready:
        tell("dispatcher", "", ReadyElsewhere(ready))
    for signal in signals:
        _hear_one(world, tell, signal)


def _hear_one(world: World, tell: Tell, signal: Signal) -> None:
    match signal.topic:
        case Topic.READY | Topic.FRAMES | Topic.ACCESS:
            return  # Of the last, whoever knows tokens hears itself.
        case Topic.ASKED | Topic.ANSWERED:
            return  # Whoever asks other nodes hears them itself.
        case Topic.FREE:
            tell("queue", signal.id, FreedElsewhere())
        case Topic.CANCEL:
            if signal.about is not None:
                tell("runner", signal.id, LeaseCancelling(signal.about))
        case Topic.GATE:
            tell("gate", signal.id, Refresh())
        case Topic.AGENT:
            world.changed_records.note(signal.id)
        case Topic.RUNNER:
            world.changed_records.note(signal.id)
            tell("runner", signal.id, StandingChanged())
        case Topic.WORKSPACE:
            world.changed_records.note(signal.id)
            tell("dispatcher", "", WorkspaceChanged(signal.id))
        case Topic.TENANT:
            world.entitlements.forget(signal.id)
            tell("dispatcher", "", TenantCredited(signal.id))
        case _:
            assert_never(signal.topic)


def workspace_changed(world: World, tell: Tell, workspace_id: UUID) -> None:
    """It was paused on this node, or goes on: from the next delivery on, and on the other nodes soon."""
    world.changed_records.note(workspace_id)
    tell("dispatcher", "", WorkspaceChanged(workspace_id))
    world.storage.signals.send(Signal(Topic.WORKSPACE, workspace_id))
