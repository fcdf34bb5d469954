"""Wakes an agent: past its gates into the journal, and on to its queue."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, assert_never
from uuid import UUID

import msgspec

from sexton_actors.backlog import may_wait
from sexton_actors.canaries.record import canary_on_trial
from sexton_actors.canaries.sides import side_of
from sexton_actors.entitlements import Entitled
from sexton_actors.gate_requests.creation import BY_ANOMALY, by_rule, gate_before_lease, in_shadow, killed
from sexton_actors.gate_requests.evidence import evidence_of
from sexton_actors.gate_rules.anomaly import Observation
from sexton_actors.gate_rules.rules import match_rules
from sexton_actors.loans import waiting_frame, withheld
from sexton_actors.manifest.model import Manifest
from sexton_actors.protocol import zombie as m
from sexton_actors.protocol.gate import Opened
from sexton_actors.protocol.queue import EventQueued
from sexton_actors.refusal import Refusal
from sexton_actors.zombie import transitions
from sexton_actors.zombie.action_history import Actions
from sexton_actors.zombie.budgets import over_budget
from sexton_actors.zombie.record import HeldZombie
from sexton_actors.zombie.rejections import NOT_ACTIVE, RATE_LIMITED, Rejections
from sexton_actors.zombie.transitions import WakeUp
from sexton_engine import DEFERRED, ReplyPort
from sexton_storage.errors import StorageError
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.records.zombies import Zombie, ZombieStatus
from sexton_storage.refusals import SOURCE_CHANGED, Lost
from sexton_storage.vault import VaultError
from sexton_storage.writes import Appended, AppendEvent, Duplicate, OverBudget

Kept = Appended | Duplicate | OverBudget | Lost | Exception
Reply = m.Accepted | m.AlreadyAccepted | Refusal
Then = Callable[[Sequence[Reply]], Any]


class Waker:
    """Keeps events for one agent; what is due is not waited for, so a delivery a millisecond is no queue."""

    def __init__(self, held: HeldZombie, rejections: Rejections) -> None:
        self._held = held
        self._rejections = rejections
        self._actions = Actions(held)
        self._in_flight: Counter[bytes] = Counter()
        """Dedup keys of what is being kept: a repeat meanwhile is no further occurrence."""

    def __repr__(self) -> str:
        return f"<Waker of {self._held!r}>"

    async def wake(self, zombie: Zombie, manifest: Manifest, waking: WakeUp, *, webhook: bool) -> Any:
        """Answered when the event is kept; the mailbox goes on meanwhile.

        Events of one agent are kept in the order of their arrival all the same: the journal keeps it.
        """
        entitled = await self._held.world.entitlements.of(zombie.tenant_id)
        if isinstance(entitled, Refusal):
            return entitled
        write = await self._write(zombie, manifest, waking, entitled, webhook=webhook)
        if not isinstance(write, AppendEvent):
            return write
        port = self._held.context.defer()
        self._begin(write)

        def kept(outcome: Kept) -> None:
            reply = self._kept(write, self._landed(write, outcome), webhook=webhook)
            if isinstance(reply, Exception):
                port.set_exception(reply)
            else:
                port.set(reply)

        self._held.world.storage.journal.submit(write, kept)
        return DEFERRED

    async def wake_many(
        self, zombie: Zombie, manifest: Manifest, wakings: Sequence[WakeUp], then: Then
    ) -> Any:
        """As ``wake``, for several events: they are written together; ``then`` makes the reply of theirs.

        Of those that are kept when storage fails, whoever asks again is told: they have their ids.
        """
        entitled = await self._held.world.entitlements.of(zombie.tenant_id)
        if isinstance(entitled, Refusal):
            return then((entitled,) * len(wakings))
        batch = Replies(len(wakings), then)
        writes: list[tuple[AppendEvent, Callable[[Kept], None]]] = []
        try:
            for place, waking in enumerate(wakings):
                if (refusal := self._paused_since(zombie)) is not None:
                    batch.put(place, refusal)
                    continue
                write = await self._write(zombie, manifest, waking, entitled, webhook=False)
                if isinstance(write, AppendEvent):
                    self._begin(write)
                    writes.append((write, partial(self._one_kept, batch, place, write)))
                else:
                    batch.put(place, write)
        except StorageError as fault:
            batch.fail(fault, len(wakings) - len(writes))
        if not writes:
            return batch.whole()
        batch.port = self._held.context.defer()
        self._held.world.storage.journal.submit_all(writes)
        return DEFERRED

    def _paused_since(self, zombie: Zombie) -> Refusal | None:
        # One of the events before may have been one too many for an anomaly rule.
        known = self._held.record or zombie
        if known.status is ZombieStatus.ACTIVE:
            return None
        return Refusal("UZ-ZMB-012", f"The agent is {known.status}.", {"current_state": str(known.status)})

    def _one_kept(self, batch: "Replies", place: int, write: AppendEvent, outcome: Kept) -> None:
        reply = self._kept(write, self._landed(write, outcome), webhook=False, alone=False)
        if isinstance(reply, m.Accepted) and may_be_leased(write) and batch.queued_at is None:
            batch.queued_at = write.event.created_at
        batch.put(place, reply)
        if batch.is_whole and batch.queued_at is not None:
            self._held.context.tell("queue", self._held.id, EventQueued(batch.queued_at))

    async def _write(
        self, zombie: Zombie, manifest: Manifest, waking: WakeUp, entitled: Entitled, *, webhook: bool
    ) -> AppendEvent | m.AlreadyAccepted | Refusal:
        """What is to be kept, past repeats, bounds and gates."""
        world, now = self._held.world, self._held.world.now_ms()
        if (first := await self._repeated(manifest, waking)) is not None:
            return m.AlreadyAccepted(first)
        if full := self._full(zombie, waking, now):
            first_kept = await self.kept_before(waking.dedup_key, waking.body_key)
            return first_kept or self._refuse_full(full, waking, webhook=webhook)
        budgets = (manifest.budget_daily_nanos, manifest.budget_monthly_nanos)
        event_id = waking.event_id or world.new_id()
        waking = _sided(zombie, waking, event_id)
        write = transitions.append(zombie, waking, event_id, budgets, now)
        write = msgspec.structs.replace(write, events_limit=entitled.limits.events_per_day)
        if waking.asked_version is not None:
            version = await self._held.version(waking.asked_version)
            if isinstance(version, Refusal):
                return version
            # What is asked of people is what the files say that it is going to be run under.
            manifest = version.manifest
        if missing := withheld(zombie.lending, manifest):
            frame = waiting_frame(zombie.id, write.event.id, missing, now)
            write = msgspec.structs.replace(write, frames=(*write.frames, frame))
        gate = await self._gate(zombie, manifest, waking, write, now)
        if gate is not None:
            write = transitions.held_at(write, gate)
            if waking.shadow_job is not None:
                return write
            if gate.status is GateStatus.AUTO_KILLED and (refusal := await self._pause(gate)):
                return refusal
        return write

    def _begin(self, write: AppendEvent) -> None:
        if write.dedup_key is not None:
            self._in_flight[write.dedup_key] += 1
        if may_be_leased(write):
            self._held.world.backlog.add(write.event.zombie_id, write.event.workspace_id)

    def _landed(self, write: AppendEvent, outcome: Kept) -> Kept:
        if write.dedup_key is not None:
            self._in_flight[write.dedup_key] -= 1
            if not self._in_flight[write.dedup_key]:
                del self._in_flight[write.dedup_key]
        if not isinstance(outcome, Appended):
            event = write.event
            self._actions.withdraw((event.event_type, event.actor), event.created_at)
            if may_be_leased(write):
                self._held.world.backlog.add(event.zombie_id, event.workspace_id, -1)
        return outcome

    async def seen(self, dedup_key: bytes, body_key: bytes | None) -> UUID | None:
        """The event that this would be a repeat of. Raises StorageUnavailable."""
        now = self._held.world.now_ms()
        return await self._held.world.storage.events.seen(self._held.id, dedup_key, body_key, now=now)

    def _full(self, zombie: Zombie, waking: WakeUp, now: int) -> Refusal | None:
        """What a schedule or a follow-up brings is not refused: it has nobody to come again."""
        if waking.firing is not None or waking.follow_up_id is not None:
            return None
        backlog = self._held.world.backlog
        return may_wait(backlog.bounds, backlog.waiting(zombie.id, zombie.workspace_id, now=now))

    def _refuse_full(self, full: Refusal, waking: WakeUp, *, webhook: bool) -> Refusal:
        self._held.world.meters.queue_full[str(full.facts["bound"])] += 1
        if not webhook:
            return full
        source = waking.actor.removeprefix("webhook:")
        return self._rejections.refuse(msgspec.structs.replace(full, status=503), RATE_LIMITED, source)

    async def kept_before(self, key: bytes | None, body_key: bytes | None = None) -> m.AlreadyAccepted | None:
        """The event that was kept with this key by a request whose server died before it could say so.

        That the agent would take no message now does not undo it.
        """
        first = None if key is None else await self.seen(key, body_key)
        return None if first is None else m.AlreadyAccepted(first)

    async def _repeated(self, manifest: Manifest, waking: WakeUp) -> UUID | None:
        # A repeat passes no gate, and is no further occurrence of anything. Without gates the journal finds
        # it by itself.
        if waking.dedup_key is None or not (manifest.gates.rules or manifest.gates.anomaly_rules):
            return None
        return await self.seen(waking.dedup_key, waking.body_key)

    async def _gate(
        self, zombie: Zombie, manifest: Manifest, waking: WakeUp, write: AppendEvent, now: int
    ) -> Gate | None:
        gates, action = manifest.gates, (waking.event_type, waking.actor)
        behaviour = match_rules(gates, *action, waking.request)
        is_repeat = waking.dedup_key is not None and waking.dedup_key in self._in_flight
        if is_repeat or waking.shadow_job is not None:
            seen = Observation((), None)
        else:
            seen = await self._actions.observe(gates, action, now)
        if behaviour is None and seen.rule is None:
            return None
        gate = gate_before_lease(
            zombie,
            manifest,
            write.event,
            evidence=await self._evidence(zombie, manifest, waking),
            gate_id=self._held.world.new_id(),
            now=now,
        )
        if seen.rule is not None:
            return killed(gate, BY_ANOMALY, now)
        ruled = by_rule(gate, behaviour, now)
        return ruled if waking.shadow_job is None else in_shadow(ruled, now)

    async def _evidence(self, zombie: Zombie, manifest: Manifest, waking: WakeUp) -> dict[str, Any]:
        # Whoever decides need not see what the agent is lent, should a sender repeat it.
        names = (*manifest.credentials, *manifest.integrations)
        request, vault = waking.request, self._held.world.secrets
        try:
            secrets = [
                value
                for name in names
                for value in (await vault.open(zombie.workspace_id, name) or {}).values()
                if isinstance(value, str)
            ]
        except VaultError:
            # What cannot be opened cannot be masked either, so nothing of the payload is shown.
            secrets, request = [], {"left_out": "a credential of the agent could not be opened to be masked"}
        return evidence_of(waking.actor, waking.event_type, request, secrets)

    async def _pause(self, gate: Gate) -> Refusal | None:
        # Before the event is kept: a crash in between leaves an agent paused for nothing, never one that runs
        # on.
        reason = (gate.resolved_by or "").removeprefix("system:")
        paused = await self._held.change(lambda zombie, now: transitions.pause(zombie, reason, now))
        return paused if isinstance(paused, Refusal) else None

    def _kept(
        self, write: AppendEvent, outcome: Kept, *, webhook: bool, alone: bool = True
    ) -> Reply | Exception:
        """What is answered, once it is told to whom it concerns; the queue is told once of several."""
        match outcome:
            case Appended(event_id=event_id):
                self._appended(write, alone=alone)
                return m.Accepted(event_id)
            case Duplicate(event_id=event_id):
                return m.AlreadyAccepted(event_id)
            case OverBudget():
                now = self._held.world.now_ms()
                if (firing := write.firing) is not None:
                    missed = m.FiringMissed(firing.schedule, firing.timezone, firing.due_at, "over_budget")
                    self._held.context.tell("zombie", self._held.id, missed)
                refusal = over_budget(now, outcome.period, status=503 if webhook else None)
                if webhook:
                    reason = RATE_LIMITED if outcome.period == "plan" else "budget_exceeded"
                    refusal = self._rejections.refuse(refusal, reason, _source(write))
                return refusal
            case Lost(reason=reason) if reason == SOURCE_CHANGED:
                return Refusal("UZ-API-003", "What the event is made from was changed meanwhile; try again.")
            case Lost():
                self._held.doubt()
                return self._closed(write) if webhook else self._held.unknown()
            case Exception():
                return outcome
            case _:
                assert_never(outcome)

    def _closed(self, write: AppendEvent) -> Refusal:
        gone = Refusal("UZ-WH-004", "The agent was killed.", {"current_state": "killed"})
        return self._rejections.refuse(gone, NOT_ACTIVE, _source(write))

    def _appended(self, write: AppendEvent, *, alone: bool) -> None:
        gate, context = write.gate, self._held.context
        if may_be_leased(write):
            if alone:
                context.tell("queue", self._held.id, EventQueued(write.event.created_at))
        elif gate is not None and gate.status is GateStatus.PENDING:
            context.tell("gate", gate.id, Opened(gate))


class Replies:
    """Collects the replies to a message about several events; the asker is answered with the last of them."""

    def __init__(self, count: int, then: Then) -> None:
        self.port: ReplyPort | None = None
        self.queued_at: int | None = None
        """When the first came that waits to be leased."""
        self._then = then
        self._replies: list[Reply | None] = [None] * count
        self._missing = count
        self._fault: Exception | None = None

    def __repr__(self) -> str:
        return f"<Replies, {self._missing} of {len(self._replies)} missing>"

    @property
    def is_whole(self) -> bool:
        return self._missing == 0

    def put(self, place: int, reply: Reply | Exception) -> None:
        """Note one; a fault of one is the fault of all."""
        if isinstance(reply, Exception):
            self._fault = self._fault or reply
        else:
            self._replies[place] = reply
        self._missing -= 1
        if self._missing == 0 and self.port is not None:
            if self._fault is None:
                self.port.set(self.whole())
            else:
                self.port.set_exception(self._fault)

    def fail(self, fault: Exception, missing: int) -> None:
        """No more than the others will come."""
        already = sum(reply is not None for reply in self._replies)
        self._fault = fault
        self._missing -= missing - already

    def whole(self) -> Any:
        """Give them all, once the last has come. Raises what went wrong."""
        if self._fault is not None:
            raise self._fault
        return self._then([reply for reply in self._replies if reply is not None])


def _sided(zombie: Zombie, waking: WakeUp, event_id: UUID) -> WakeUp:
    """On its side of the trial that goes on; who asks for a version is on neither."""
    canary = canary_on_trial(zombie.canary)
    if canary is None or waking.asked_version is not None:
        return waking
    key = waking.repeats.id.bytes if waking.repeats else waking.dedup_key or event_id.bytes
    side = side_of(canary, key, waking.repeats)
    return msgspec.structs.replace(waking, trial_id=side.trial_id, asked_version=side.asked_version)


def may_be_leased(write: AppendEvent) -> bool:
    """Whether no gate holds the event back."""
    return write.gate is None or write.gate.status is GateStatus.APPROVED


def _source(write: AppendEvent) -> str:
    return write.event.actor.removeprefix("webhook:")
