"""Holds one agent: verifies what would wake it, keeps it, and says so to the queue."""

from collections.abc import Callable, Sequence
from typing import Any, assert_never
from uuid import UUID

from sexton_engine import DEFERRED, Actor, Context, MailboxSpec, ReplyPort
from sexton_storage.records import GateStatus, Zombie, ZombieStatus
from sexton_storage.stores import Conflict, NameTaken, StorageUnavailable
from sexton_storage.writes import AppendEvent, AppendFrames, Appended, Duplicate, Lost, NewFrame, OverBudget

from sexton_actors.gate.messages import Opened
from sexton_actors.gate.opening import BY_ANOMALY, BY_RULE, gate_before_lease, killed
from sexton_actors.gates.anomaly import anomaly
from sexton_actors.gates.model import Behaviour
from sexton_actors.gates.rules import match_rules
from sexton_actors.lease.messages import CancelRun
from sexton_actors.manifest.model import Manifest, WebhookTrigger, from_json
from sexton_actors.queue.messages import AgentChanged, EventQueued
from sexton_actors.refusal import Refusal
from sexton_actors.webhooks.authenticate import Rejected, authenticate
from sexton_actors.webhooks.read import Challenge as ChallengeIn
from sexton_actors.webhooks.read import Delivery, Malformed, Ping, listed, read
from sexton_actors.webhooks.secrets import resolve_segment, secrets_of
from sexton_actors.world import World
from sexton_actors.zombie import messages as m
from sexton_actors.zombie import transitions
from sexton_actors.zombie.install import install
from sexton_actors.zombie.rejections import RejectionMeter
from sexton_actors.zombie.transitions import Waking

RELOAD_EVERY_MS = 1_000
"""How old its record may be, when another node may have changed it."""
MAX_RACES = 4
ACTIONS_WATCHED = 256
"""How many different (tool, action) pairs anomaly rules remember of one agent."""

Message = m.Install | m.Deliver | m.TooLarge | m.Steer | m.ChangeStatus | m.Pause


class ZombieActor(Actor):
    """One agent. The only writer of its record; its events belong to its queue once they are kept."""

    kind = "zombie"
    mailbox = MailboxSpec(capacity=2048)
    transparent = (StorageUnavailable,)

    def __init__(self, context: Context, world: World) -> None:
        super().__init__(context)
        self._world = world
        self._zombie: Zombie | None = None
        self._manifest: Manifest | None = None
        self._loaded_at: int | None = None
        self._rejections = RejectionMeter()
        self._actions: dict[tuple[str, str], tuple[int, ...]] = {}

    @property
    def _id(self) -> UUID:
        key = self.context.key
        assert isinstance(key, UUID)  # noqa: S101 - the family is keyed by zombie id
        return key

    async def on_receive(self, message: Message) -> Any:
        """Dispatch; the record is looked at again when it may be stale."""
        if isinstance(message, m.Install):
            return await self._install(message)
        now = self._world.now_ms()
        if self._loaded_at is None or now - self._loaded_at >= RELOAD_EVERY_MS:
            await self._load(now)
        zombie, manifest = self._zombie, self._manifest
        match message:
            case m.Deliver():
                if zombie is None or manifest is None:
                    return Refusal("UZ-WH-001", f"There is no agent {self._id}.")
                return await self._deliver(zombie, manifest, message, now)
            case m.TooLarge():
                self._reject("too_large", message.segment or "", now)
            case m.Steer():
                if zombie is None or manifest is None:
                    return self._unknown()
                return self._steer(zombie, manifest, message, now)
            case m.ChangeStatus():
                return self._unknown() if zombie is None else await self._change_status(zombie, message)
            case m.Pause():
                if zombie is not None:
                    await self._save(lambda z, at: transitions.pause(z, message.reason, at))
            case _:
                assert_never(message)
        return None

    def _unknown(self) -> Refusal:
        return Refusal("UZ-ZMB-009", f"There is no agent {self._id}.")

    async def _load(self, now: int) -> None:
        zombie = await self._world.storage.zombies.load(self._id)
        if zombie is None or self._zombie is None or zombie.config_version_id != self._zombie.config_version_id:
            self._manifest = None if zombie is None else from_json(zombie.compiled)
        self._zombie = zombie
        self._loaded_at = now

    async def _install(self, message: m.Install) -> m.Installed | Refusal:
        world = self._world
        new = install(self._id, message, world.new_id, world.new_token, world.now_ms())
        if isinstance(new, Refusal):
            return new
        try:
            await world.storage.zombies.create(new.zombie, new.config)
        except NameTaken:
            return Refusal("UZ-ZMB-006", f"The workspace has an agent named {new.zombie.name!r} already.")
        await self._load(world.now_ms())
        return m.Installed(new.zombie, new.webhook_paths, new.approval_token)

    # --- what wakes it ------------------------------------------------------------------------------------------

    async def _deliver(self, zombie: Zombie, manifest: Manifest, message: m.Deliver, now: int) -> Any:
        if zombie.status is ZombieStatus.KILLED:
            return Refusal("UZ-WH-004", "The agent was killed.", {"current_state": "killed"})
        trigger = resolve_segment(manifest, zombie.url_secret_hashes, message.segment, multisig=message.multisig)
        if isinstance(trigger, Rejected):
            return self._refuse(trigger, message.segment or "", now)
        secrets = await self._secrets(zombie, trigger)
        verdict = authenticate(trigger, message.headers, message.body, secrets, now)
        if isinstance(verdict, Rejected):
            return self._refuse(verdict, trigger.source, now)
        if zombie.status is not ZombieStatus.ACTIVE:
            self._reject("not_active", trigger.source, now)
            detail = f"The agent is {zombie.status}."
            return Refusal("UZ-WH-003", detail, {"current_state": str(zombie.status)})
        return self._take(zombie, manifest, trigger, message, now)

    async def _secrets(self, zombie: Zombie, trigger: WebhookTrigger) -> Sequence[str]:
        if trigger.signature is None:
            return ()
        data = await self._world.secrets.open(zombie.workspace_id, trigger.signature.secret_ref)
        return () if data is None else secrets_of(data)

    def _take(self, zombie: Zombie, manifest: Manifest, trigger: WebhookTrigger, message: m.Deliver, now: int) -> Any:
        found = read(trigger, message.headers, message.body)
        match found:
            case Malformed():
                return self._refuse(Rejected("malformed_body", "UZ-WH-002", found.detail), trigger.source, now)
            case Ping():
                return m.Ignored("ping")
            case ChallengeIn():
                return m.Challenge(found.challenge)
            case Delivery():
                pass
            case _:
                assert_never(found)
        if not listed(trigger, found.event_type):
            return m.Ignored("event_not_listed")
        waking = Waking(
            actor=f"webhook:{trigger.source}",
            event_type=found.event_type,
            request=found.payload,
            dedup_key=found.dedup_key,
            source_event_id=found.source_event_id,
            traceparent=message.traceparent,
        )
        return self._wake(zombie, manifest, waking, now, webhook=True)

    def _steer(self, zombie: Zombie, manifest: Manifest, message: m.Steer, now: int) -> Any:
        if refusal := transitions.may_be_messaged(zombie):
            return refusal
        waking = Waking(
            actor=f"steer:{message.by}",
            event_type="message",
            request={"message": message.message},
            traceparent=message.traceparent,
        )
        return self._wake(zombie, manifest, waking, now, webhook=False)

    def _wake(self, zombie: Zombie, manifest: Manifest, waking: Waking, now: int, *, webhook: bool) -> Any:
        budgets = (manifest.budget_daily_nanos, manifest.budget_monthly_nanos)
        write = transitions.append(zombie, waking, self._world.new_id(), budgets, now)
        write = self._past_gates(zombie, manifest, waking, write, now)
        port = self.context.defer()
        # The mailbox goes on while this commits: events of one agent are kept in the order of their arrival all the
        # same, for the journal keeps it, and nothing here depends on the outcome.
        self._world.storage.journal.submit(write, lambda outcome: self._kept(write, outcome, port, webhook=webhook))
        return DEFERRED

    def _past_gates(
        self, zombie: Zombie, manifest: Manifest, waking: Waking, write: AppendEvent, now: int
    ) -> AppendEvent:
        gates = manifest.gates
        if not gates.rules and not gates.anomaly_rules:
            return write
        action = (waking.event_type, waking.actor)
        seen = anomaly(gates, self._actions.get(action, ()), now)
        if len(self._actions) >= ACTIONS_WATCHED and action not in self._actions:
            self._actions.clear()
        self._actions[action] = seen.record
        behaviour = match_rules(gates, *action, waking.request)
        if behaviour is None and seen.rule is None:
            return write
        gate = gate_before_lease(zombie, manifest, write.event, self._world.new_id(), now)
        if seen.rule is not None:
            gate = killed(gate, BY_ANOMALY, now)
        elif behaviour is Behaviour.AUTO_KILL:
            gate = killed(gate, BY_RULE, now)
        return transitions.held_at(write, gate)

    def _kept(
        self,
        write: AppendEvent,
        outcome: Appended | Duplicate | OverBudget | Lost | Exception,
        port: ReplyPort[Any],
        *,
        webhook: bool,
    ) -> None:
        match outcome:
            case Appended(event_id=event_id):
                port.set(m.Accepted(event_id))
                self._appended(write)
            case Duplicate(event_id=event_id):
                port.set(m.AlreadyAccepted(event_id))
            case OverBudget():
                now = self._world.now_ms()
                if webhook:
                    self._reject("budget_exceeded", write.event.actor.removeprefix("webhook:"), now)
                port.set(transitions.over_budget(now, status=503 if webhook else None))
            case Lost():
                self._loaded_at = None
                port.set(Refusal("UZ-WH-004", "The agent was killed.") if webhook else self._unknown())
            case Exception():
                port.set_exception(outcome)
            case _:
                assert_never(outcome)

    def _appended(self, write: AppendEvent) -> None:
        gate = write.gate
        if gate is None:
            self.context.tell("queue", self._id, EventQueued())
        elif gate.status is GateStatus.PENDING:
            self.context.tell("gate", gate.id, Opened(gate))
        else:
            self.context.tell("zombie", self._id, m.Pause(reason=(gate.resolved_by or "").removeprefix("system:")))

    # --- rejections ---------------------------------------------------------------------------------------------

    def _refuse(self, rejected: Rejected, source: str, now: int) -> Refusal:
        self._reject(rejected.reason, source, now)
        return Refusal(rejected.code, rejected.detail, {"reason": f"webhook_rejected: {rejected.reason}"})

    def _reject(self, reason: str, source: str, now: int) -> None:
        if self._zombie is None or not self._rejections.admits(reason, now):
            return
        data = {"reason": f"webhook_rejected: {reason}", "source": source[:64]}
        frame = NewFrame(self._id, None, "webhook_rejected", now, data)
        self._world.storage.journal.submit(AppendFrames(self._id, (frame,)), _ignore)

    # --- status -------------------------------------------------------------------------------------------------

    async def _change_status(self, zombie: Zombie, message: m.ChangeStatus) -> m.StatusChanged | Refusal:
        changed = await self._save(lambda z, at: transitions.change_status(z, message.status, message.by, at))
        if isinstance(changed, Refusal):
            return changed
        return m.StatusChanged(self._zombie or zombie)

    async def _save(
        self, decide: Callable[[Zombie, int], transitions.Change | transitions.Unchanged | Refusal]
    ) -> Refusal | None:
        for _ in range(MAX_RACES):
            now = self._world.now_ms()
            zombie = self._zombie
            if zombie is None:
                return self._unknown()
            decision = decide(zombie, now)
            if not isinstance(decision, transitions.Change):
                return decision if isinstance(decision, Refusal) else None
            try:
                await self._commit(decision, now)
            except Conflict:
                await self._load(now)
                continue
            self.context.tell("queue", self._id, AgentChanged())
            return None
        return Refusal("UZ-API-003", "The agent's record changes faster than it can be read.", retry_after_s=1)

    async def _commit(self, change: transitions.Change, now: int) -> None:
        zombies = self._world.storage.zombies
        if change.zombie.status is ZombieStatus.KILLED:
            for lease_id in await zombies.kill(change.zombie, change.frames, now):
                self.context.tell("lease", lease_id, CancelRun())
        else:
            await zombies.save(change.zombie, change.frames)
        self._zombie = change.zombie


def _ignore(_outcome: object) -> None:
    """A frame about a refused delivery is worth no retry: the refusal itself was answered."""

