"""The supervision tree, spelled out.

Started from the top, stopped from the bottom: the rounds first, then the records, so that leases are quiet
before the matching goes. Runners stand behind the dispatcher and go down with it: a poll that waits in a
dispatcher which has crashed is told so, and comes again.
"""

from collections.abc import Callable
from functools import partial

from sexton_actors.auth_session.actor import AuthSessionActor
from sexton_actors.chat.actor import ChatActor
from sexton_actors.dispatcher.actor import Dispatcher
from sexton_actors.gate.actor import GateActor
from sexton_actors.grants.actor import GrantsActor
from sexton_actors.hub.actor import Hub
from sexton_actors.jobs.actor import JobActor
from sexton_actors.lease.actor import LeaseActor
from sexton_actors.ledger.actor import LedgerActor
from sexton_actors.periodic.archive_rounds import ArchiveRounds
from sexton_actors.periodic.canary_rounds import CanaryRounds
from sexton_actors.periodic.census import CensusTaker
from sexton_actors.periodic.chat_rounds import ChatRounds
from sexton_actors.periodic.delivery_rounds import DeliveryRounds
from sexton_actors.periodic.erasure_rounds import ErasureRounds
from sexton_actors.periodic.failure_rounds import FailureRounds
from sexton_actors.periodic.file_mover import FileMover
from sexton_actors.periodic.job_rounds import JobRounds
from sexton_actors.periodic.memory_keeper import MemoryKeeper
from sexton_actors.periodic.reclaimer import Reclaimer
from sexton_actors.periodic.retention_rounds import RetentionRounds
from sexton_actors.periodic.sweeper import Sweeper
from sexton_actors.periodic.word_indexer import WordIndexer
from sexton_actors.queue.actor import QueueActor
from sexton_actors.runner.actor import RunnerActor
from sexton_actors.scheduler.actor import Scheduler
from sexton_actors.vault.actor import VaultKeeper
from sexton_actors.world import World
from sexton_actors.zombie.actor import ZombieActor
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

CALM = Intensity(max_restarts=10, period_s=60.0)
"""More crashes of one actor within a minute than this, and its supervisor is asked."""
LAST_RESORT = Intensity(max_restarts=3, period_s=120.0)
"""More restarts of whole branches than this, and the server ends, to be started again.

One actor that can never live comes to it in a minute and a half, back-off included.
"""
BACKOFF = Backoff(first_s=0.05, factor=2.0, max_s=5.0, jitter=0.2)

IDLE_S = 60.0
LEASE_IDLE_S = 5.0
"""An ended lease is asked about for a moment only: the runner's report again, a late renewal."""


def tree(world: World) -> SupervisorSpec:
    """The whole engine room of one node."""

    def one(actor: type[Actor], start: Callable[[Context, World], Actor]) -> ActorSpec:
        return ActorSpec(kind=actor.kind, start=partial(_start, start, world))

    def family(
        actor: type[Actor], start: Callable[[Context, World], Actor], idle_s: float = IDLE_S
    ) -> FamilySpec:
        return FamilySpec(kind=actor.kind, start=partial(_start, start, world), idle_s=idle_s, intensity=CALM)

    def branch(
        name: str, *children: ActorSpec | FamilySpec, strategy: Strategy = Strategy.ONE_FOR_ONE
    ) -> SupervisorSpec:
        return SupervisorSpec(
            name=name, strategy=strategy, intensity=CALM, backoff=BACKOFF, children=children
        )

    return SupervisorSpec(
        name="sexton",
        strategy=Strategy.ONE_FOR_ONE,
        intensity=LAST_RESORT,
        backoff=BACKOFF,
        children=(
            branch("streams", one(Hub, Hub)),
            branch(
                "matching",
                one(Dispatcher, Dispatcher),
                family(RunnerActor, RunnerActor),
                strategy=Strategy.REST_FOR_ONE,
            ),
            branch(
                "records",
                family(LedgerActor, LedgerActor),
                family(ZombieActor, ZombieActor),
                family(QueueActor, QueueActor),
                family(ChatActor, ChatActor),
                family(GateActor, GateActor),
                family(GrantsActor, GrantsActor),
                family(LeaseActor, LeaseActor, LEASE_IDLE_S),
                family(AuthSessionActor, AuthSessionActor),
            ),
            branch("jobs", family(JobActor, JobActor)),
            branch(
                "rounds",
                one(Reclaimer, Reclaimer),
                one(Scheduler, Scheduler),
                one(Sweeper, Sweeper),
                one(RetentionRounds, RetentionRounds),
                one(CensusTaker, CensusTaker),
                one(FileMover, FileMover),
                one(ArchiveRounds, ArchiveRounds),
                one(ChatRounds, ChatRounds),
                one(JobRounds, JobRounds),
                one(ErasureRounds, ErasureRounds),
                one(FailureRounds, FailureRounds),
                one(CanaryRounds, CanaryRounds),
                one(WordIndexer, WordIndexer),
                one(DeliveryRounds, DeliveryRounds),
                one(MemoryKeeper, MemoryKeeper),
                one(VaultKeeper, VaultKeeper),
            ),
        ),
    )


def _start(actor: Callable[[Context, World], Actor], world: World, context: Context) -> Actor:
    return actor(context, world)
