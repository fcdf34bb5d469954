"""The supervision tree, spelled out.

Singletons first, then the families that tell them things: a family's restart never takes the dispatcher with it,
and at shutdown the tree stops in reverse, so that leases are quiet before the dispatcher goes.
"""

from collections.abc import Callable
from functools import partial

from sexton_engine import (
    Actor,
    ActorSpec,
    Backoff,
    Context,
    FamilySpec,
    Intensity,
    Strategy,
    SupervisorSpec,
)

from sexton_actors.dispatcher.actor import Dispatcher
from sexton_actors.gate.actor import GateActor
from sexton_actors.hub.actor import Hub
from sexton_actors.lease.actor import LeaseActor
from sexton_actors.ledger.actor import LedgerActor
from sexton_actors.queue.actor import QueueActor
from sexton_actors.reclaimer import Reclaimer
from sexton_actors.runner.actor import RunnerActor
from sexton_actors.sweeper import Sweeper
from sexton_actors.world import World
from sexton_actors.zombie.actor import ZombieActor

CALM = Intensity(max_restarts=10, period_s=60.0)
"""More crashes of one actor within a minute than this, and its supervisor is asked."""
BACKOFF = Backoff(first_s=0.05, factor=2.0, max_s=5.0, jitter=0.2)

IDLE_S = 60.0
LEASE_IDLE_S = 5.0
"""An ended lease is asked about for a moment only: the runner's report again, a late renewal."""


def tree(world: World) -> SupervisorSpec:
    """The whole engine room of one node."""

    def with_world(actor: Callable[[Context, World], Actor]) -> Callable[[Context], Actor]:
        return partial(_start, actor, world)

    return SupervisorSpec(
        name="sexton",
        strategy=Strategy.ONE_FOR_ONE,
        intensity=Intensity(max_restarts=5, period_s=60.0),
        backoff=BACKOFF,
        children=(
            SupervisorSpec(
                name="floor",
                strategy=Strategy.ONE_FOR_ONE,
                intensity=CALM,
                backoff=BACKOFF,
                children=(
                    ActorSpec(kind="hub", start=with_world(Hub)),
                    ActorSpec(kind="dispatcher", start=with_world(Dispatcher)),
                ),
            ),
            SupervisorSpec(
                name="records",
                strategy=Strategy.ONE_FOR_ONE,
                intensity=CALM,
                backoff=BACKOFF,
                children=(
                    FamilySpec(kind="ledger", start=with_world(LedgerActor), idle_s=IDLE_S, intensity=CALM),
                    FamilySpec(kind="zombie", start=with_world(ZombieActor), idle_s=IDLE_S, intensity=CALM),
                    FamilySpec(kind="queue", start=with_world(QueueActor), idle_s=IDLE_S, intensity=CALM),
                    FamilySpec(kind="gate", start=with_world(GateActor), idle_s=IDLE_S, intensity=CALM),
                    FamilySpec(kind="runner", start=with_world(RunnerActor), idle_s=IDLE_S, intensity=CALM),
                    FamilySpec(kind="lease", start=with_world(LeaseActor), idle_s=LEASE_IDLE_S, intensity=CALM),
                ),
            ),
            SupervisorSpec(
                name="rounds",
                strategy=Strategy.ONE_FOR_ONE,
                intensity=CALM,
                backoff=BACKOFF,
                children=(
                    ActorSpec(kind="reclaimer", start=with_world(Reclaimer)),
                    ActorSpec(kind="sweeper", start=with_world(Sweeper)),
                ),
            ),
        ),
    )


def _start(actor: Callable[[Context, World], Actor], world: World, context: Context) -> Actor:
    return actor(context, world)
