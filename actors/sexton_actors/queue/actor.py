"""Holds one agent's queue: says when it has work, and gives the oldest out under a lease."""

from typing import Any, assert_never
from uuid import UUID

from sexton_engine import Actor, Context, MailboxSpec
from sexton_storage.records import Zombie
from sexton_storage.stores import StorageUnavailable
from sexton_storage.writes import ClaimEvent, Claimed, Exhausted, NothingToClaim

from sexton_actors.dispatcher.messages import AgentNotReady, AgentReady, ClaimSettled
from sexton_actors.lease.messages import Granted
from sexton_actors.manifest.model import Manifest, from_json
from sexton_actors.queue import messages as m
from sexton_actors.runner.messages import LeaseTaken
from sexton_actors.terms import EVENT_CEILING_MS, LEASE_TERM_MS
from sexton_actors.world import World

Message = m.EventQueued | m.AgentChanged | m.Claim | m.LeaseEnded


class QueueActor(Actor):
    """One agent's queue. The only writer of its events while nobody holds them.

    What it remembers (``announced``, ``leased``) only saves questions: the claim itself is conditional in the
    database, and the dispatcher looks there each second, so a wrong memory costs a moment and never an event.
    """

    kind = "queue"
    mailbox = MailboxSpec(capacity=1024)
    transparent = (StorageUnavailable,)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context)
        self._world = world
        self._announced = False
        self._leased = False
        self._zombie: Zombie | None = None
        self._manifest: Manifest | None = None

    @property
    def _id(self) -> UUID:
        key = self.context.key
        assert isinstance(key, UUID)  # noqa: S101 - the family is keyed by zombie id
        return key

    async def on_receive(self, message: Message) -> Any:
        """Dispatch."""
        match message:
            case m.EventQueued():
                if not (self._announced or self._leased):
                    await self._announce()
            case m.AgentChanged():
                self._zombie = None
                await self._announce()
            case m.Claim():
                await self._claim(message)
            case m.LeaseEnded():
                self._leased = False
                if message.more:
                    await self._announce()
            case _:
                assert_never(message)

    async def _announce(self) -> None:
        agent = await self._world.storage.events.ready_agent(self._id)
        self._announced = agent is not None
        self.context.tell("dispatcher", "", AgentNotReady(self._id) if agent is None else AgentReady(agent))

    async def _claim(self, message: m.Claim) -> None:
        self._announced = False
        outcome: m.Grant | NothingToClaim | Exhausted = NothingToClaim("unavailable")
        try:
            outcome = await self._take(message.runner_id)
        finally:
            # Told even when storage failed: an offer must never wait for an answer that will not come.
            self.context.tell("dispatcher", "", ClaimSettled(message.offer_id, self._id, outcome))

    async def _take(self, runner_id: UUID) -> m.Grant | NothingToClaim | Exhausted:
        manifest = await self._configuration()
        if manifest is None:
            return NothingToClaim("gone")
        rates = self._world.catalogue.rates(manifest.model, own_key=False)
        write = ClaimEvent(
            zombie_id=self._id,
            lease_id=self._world.new_id(),
            runner_id=runner_id,
            now=self._world.now_ms(),
            term_ms=LEASE_TERM_MS,
            ceiling_ms=EVENT_CEILING_MS,
            rates=rates,
            budget_daily_nanos=manifest.budget_daily_nanos,
            budget_monthly_nanos=manifest.budget_monthly_nanos,
        )
        taken = await self._world.storage.journal.write(write)
        if not isinstance(taken, Claimed):
            return taken
        self._leased = True
        self.context.tell("lease", taken.lease.id, Granted(taken.lease))
        self.context.tell("runner", runner_id, LeaseTaken(taken.lease.id))
        return m.Grant(taken.event, taken.lease, taken.more, manifest)

    async def _configuration(self) -> Manifest | None:
        if self._zombie is None or self._manifest is None:
            self._zombie = await self._world.storage.zombies.load(self._id)
            self._manifest = None if self._zombie is None else from_json(self._zombie.compiled)
        return self._manifest
