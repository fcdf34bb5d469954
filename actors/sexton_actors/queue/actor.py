"""Holds one agent's queue: says when it has work, and gives the oldest out under a lease."""

from typing import Any, assert_never
from uuid import UUID

from sexton_actors.addresses import uuid_key
from sexton_actors.manifest.model import Manifest, Runtime, from_json
from sexton_actors.protocol import queue as m
from sexton_actors.protocol.dispatcher import AgentNotReady, AgentReady, ClaimSettled, StillReady
from sexton_actors.protocol.gate import Refresh
from sexton_actors.protocol.lease import Abort, CancelRun, Granted, Undelivered
from sexton_actors.protocol.runner import LeaseTaken
from sexton_actors.providers import NONE_CONFIGURED, ProviderChoice
from sexton_actors.queue import cancellation
from sexton_actors.refusal import Refusal
from sexton_actors.terms import EVENT_CEILING_MS, LEASE_TERM_MS
from sexton_actors.world import World
from sexton_engine import Actor, Context, MailboxSpec
from sexton_storage.errors import StorageUnavailable
from sexton_storage.periods import DAY_MS, day_of
from sexton_storage.records.events import ReadyAgent
from sexton_storage.records.zombies import Zombie, ZombieStatus
from sexton_storage.refusals import NOT_FOR_RUNNER, OVER_BUDGET
from sexton_storage.rules import LIVE_LEASE
from sexton_storage.signals import Signal, Topic
from sexton_storage.writes import Cancelled, Claimed, ClaimEvent, Exhausted, NothingToClaim

SETTLE_AFTER_S = 1.0
"""How often a claim of unknown outcome is asked about until the database answers."""

BUDGET_LOOK_MS = 60_000
"""How soon an agent over its budget is looked at again: another node may have raised it."""

Known = m.EventQueued | m.AgentChanged | m.NotKnownReady | m.LeaseEnded | m.FreedElsewhere
Message = Known | m.Claim | m.SettleClaim | m.Cancel


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
        self._looked = False
        """Whether the database was asked since this actor woke: before, older events may wait unknown."""
        self._last_runner_id: UUID | None = None
        self._zombie: Zombie | None = None
        self._manifest: Manifest | None = None
        self._loaded_at = 0
        self._mark = 0
        self._over_until = 0
        """Until then its budget is taken for spent: nothing is claimed in vain each second."""

    @property
    def _id(self) -> UUID:
        return uuid_key(self.context)

    async def on_receive(self, message: Message) -> Any:
        """Dispatch."""
        match message:
            case m.Claim():
                await self._claim(message)
            case m.SettleClaim():
                await self._settle(message)
            case m.Cancel():
                return await self._cancel(message)
            case _:
                await self._know(message)
        return None

    async def _know(self, message: Known) -> None:
        match message:
            case m.EventQueued(at=at):
                if self._announced:
                    # Another node may have leased it since; then the dispatcher has dropped it.
                    self.context.tell("dispatcher", "", StillReady(self._id))
                elif not self._leased:
                    await self._announce(at if self._looked else None)
            case m.AgentChanged():
                self._zombie, self._over_until = None, 0
                await self._announce()
            case m.NotKnownReady():
                await self._announce()
            case m.LeaseEnded():
                await self._lease_ended(message.next_event_at)
            case m.FreedElsewhere():
                self._leased = False
            case _:
                assert_never(message)

    async def _lease_ended(self, next_event_at: int | None) -> None:
        if not self._leased:
            # It was granted on another node, which takes the agent for leased until it is told.
            self._world.storage.signals.send(Signal(Topic.FREE, self._id))
        self._leased = False
        if next_event_at is not None:
            await self._announce(next_event_at)

    async def _announce(self, oldest_event_at: int | None = None) -> None:
        """Say whether the agent is ready; the database is asked unless its oldest event is known."""
        self._announced = False
        agent = await (self._look() if oldest_event_at is None else self._known(oldest_event_at))
        self._announced = agent is not None
        self.context.tell("dispatcher", "", AgentNotReady(self._id) if agent is None else AgentReady(agent))

    async def _look(self) -> ReadyAgent | None:
        agent = await self._world.storage.events.ready_agent(self._id)
        self._looked = True
        return agent

    async def _known(self, oldest_event_at: int) -> ReadyAgent | None:
        # As fresh as the record: should the agent have been stopped this moment, its claim comes back empty.
        await self._refresh()
        zombie = self._zombie
        if zombie is None or zombie.status is not ZombieStatus.ACTIVE:
            return None
        if self._world.now_ms() < self._over_until:
            return None
        return ReadyAgent(
            zombie.id,
            zombie.workspace_id,
            zombie.tenant_id,
            zombie.required_tags,
            zombie.allows_unsandboxed,
            oldest_event_at,
            self._last_runner_id,
        )

    # --- claims ---------------------------------------------------------------------------------------------

    async def _claim(self, message: m.Claim) -> None:
        self._announced = False
        outcome: m.ClaimOutcome = NothingToClaim("unavailable")
        try:
            outcome = await self._take(message.runner_id)
        finally:
            # Told even when storage failed: an offer must never wait for an answer that will not come.
            self.context.tell("dispatcher", "", ClaimSettled(message.offer_id, self._id, outcome))
        if isinstance(outcome, NothingToClaim) and outcome.reason in NOT_FOR_RUNNER:
            # Nothing is wrong with the agent: another runner may have it.
            await self._announce()
        if isinstance(outcome, Exhausted):
            # That event is set aside; those behind it are set aside in their turn, or a credit frees them
            # all.
            await self._announce()

    async def _take(self, runner_id: UUID) -> m.ClaimOutcome:
        await self._refresh()
        zombie, manifest = self._zombie, self._manifest
        if zombie is None or manifest is None:
            return NothingToClaim("gone")
        now = self._world.now_ms()
        if now < self._over_until:
            return NothingToClaim(OVER_BUDGET)
        missing = await self._world.secrets.missing(zombie.workspace_id, manifest.ungated_credentials)
        choice = await self._choice(zombie, manifest)
        taken = await self._write(runner_id, manifest, choice)
        if not isinstance(taken, Claimed):
            if isinstance(taken, NothingToClaim) and taken.reason == OVER_BUDGET:
                self._over_until = min(now + BUDGET_LOOK_MS, (day_of(now) + 1) * DAY_MS)
            return taken
        self._leased = self._looked = True
        self._last_runner_id = runner_id
        if taken.lease.attempt == 1:
            waited_ms = taken.lease.granted_at - taken.event.created_at
            self._world.meters.ingress_to_lease.note(waited_ms / 1000)
        self.context.tell("lease", taken.lease.id, Granted(taken.lease))
        if missing:
            # It is claimed all the same: only under a lease can an event end.
            detail = f"The vault has no credential named {', '.join(missing)}."
            self.context.tell("lease", taken.lease.id, Abort("secret_missing", detail))
            return NothingToClaim("secret_missing")
        if isinstance(choice, Refusal) and choice.code != NONE_CONFIGURED:
            self.context.tell("lease", taken.lease.id, Abort("secret_missing", choice.detail))
            return NothingToClaim("secret_missing")
        self.context.tell("runner", runner_id, LeaseTaken(taken.lease.id))
        provider = choice if isinstance(choice, ProviderChoice) else None
        return m.Grant(taken.event, taken.lease, manifest, provider, taken.endowed)

    async def _choice(self, zombie: Zombie, manifest: Manifest) -> ProviderChoice | Refusal | None:
        """Where nothing at all is set up, the run is given out all the same: its runner may have a model."""
        if manifest.runtime is not Runtime.AGENT:
            return None
        return await self._world.providers.resolve_provider(
            tenant_id=zombie.tenant_id,
            workspace_id=zombie.workspace_id,
            provider=manifest.provider,
            model=manifest.model,
        )

    async def _write(
        self, runner_id: UUID, manifest: Manifest, choice: ProviderChoice | Refusal | None
    ) -> Claimed | NothingToClaim | Exhausted:
        world, lease_id = self._world, self._world.new_id()
        chosen = choice if isinstance(choice, ProviderChoice) else None
        model = manifest.model if chosen is None else chosen.model
        own_key = chosen is not None and chosen.own_key
        write = ClaimEvent(
            zombie_id=self._id,
            lease_id=lease_id,
            runner_id=runner_id,
            now=world.now_ms(),
            term_ms=LEASE_TERM_MS,
            ceiling_ms=EVENT_CEILING_MS,
            rates=world.catalogue.rates(
                model, own_key=own_key, run_nanos_per_sec=world.terms.run_rate(world.now_ms())
            ),
            budget_daily_nanos=manifest.budget_daily_nanos,
            budget_monthly_nanos=manifest.budget_monthly_nanos,
            config_version_id=None if self._zombie is None else self._zombie.config_version_id,
            model=model,
            own_key=own_key,
        )
        try:
            return await self._world.storage.journal.write(write)
        except StorageUnavailable:
            self.context.set_timer(lease_id, SETTLE_AFTER_S, m.SettleClaim(lease_id))
            raise
        except BaseException:
            # Killed or crashed while it was being committed: if it was, nobody has it.
            self.context.tell("lease", lease_id, Undelivered())
            raise

    async def _settle(self, message: m.SettleClaim) -> None:
        self.context.set_timer(message.lease_id, SETTLE_AFTER_S, message)
        lease = await self._world.storage.leases.load(message.lease_id)
        self.context.cancel_timer(message.lease_id)
        if lease is not None and lease.status in LIVE_LEASE:
            self._leased = True
            self.context.tell("lease", lease.id, Undelivered())

    # --- cancellations --------------------------------------------------------------------------------------

    async def _cancel(self, message: m.Cancel) -> m.Cancelling | Refusal:
        write = cancellation.cancel(self._id, message.event_id, message.by, self._world.now_ms())
        outcome = await self._world.storage.journal.write(write)
        if isinstance(outcome, Cancelled):
            for gate_id in outcome.gate_ids:
                self.context.tell("gate", gate_id, Refresh())
            if outcome.lease_id is not None:
                self.context.tell("lease", outcome.lease_id, CancelRun())
            elif not self._leased:
                # It may have been what made the agent ready.
                await self._announce()
        return cancellation.answer(message.event_id, outcome)

    async def _refresh(self) -> None:
        now = self._world.now_ms()
        changed_records = self._world.changed_records
        fresh = self._zombie is not None and now - self._loaded_at < self._world.fresh_ms
        if fresh and not changed_records.since(self._mark, self._id):
            return
        self._mark = changed_records.mark
        zombie = await self._world.storage.zombies.load(self._id)
        before = self._zombie
        if zombie is None or before is None or before.config_version_id != zombie.config_version_id:
            self._manifest = None if zombie is None else from_json(zombie.compiled)
        self._zombie, self._loaded_at = zombie, now
