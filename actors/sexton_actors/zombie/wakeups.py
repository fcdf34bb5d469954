"""Wakes an agent: past its gates into the journal, and on to its queue."""

from collections import Counter
from typing import Any, assert_never
from uuid import UUID

import msgspec

from sexton_actors.backlog import may_wait
from sexton_actors.gate_requests.creation import BY_ANOMALY, by_rule, gate_before_lease, killed
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
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.records.zombies import Zombie
from sexton_storage.refusals import Lost
from sexton_storage.vault import VaultError
from sexton_storage.writes import Appended, AppendEvent, Duplicate, OverBudget

Kept = Appended | Duplicate | OverBudget | Lost | Exception


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
        world, now = self._held.world, self._held.world.now_ms()
        entitled = await world.entitlements.of(zombie.tenant_id)
        if isinstance(entitled, Refusal):
            return entitled
        if (first := await self._repeated(manifest, waking)) is not None:
            return m.AlreadyAccepted(first)
        if full := self._full(zombie, waking, now):
            first_kept = await self.kept_before(waking.dedup_key, waking.body_key)
            return first_kept or self._refuse_full(full, waking, webhook=webhook)
        budgets = (manifest.budget_daily_nanos, manifest.budget_monthly_nanos)
        write = transitions.append(zombie, waking, waking.event_id or world.new_id(), budgets, now)
        write = msgspec.structs.replace(write, events_limit=entitled.limits.events_per_day)
        if missing := withheld(zombie.lending, manifest):
            frame = waiting_frame(zombie.id, write.event.id, missing, now)
            write = msgspec.structs.replace(write, frames=(*write.frames, frame))
        gate = await self._gate(zombie, manifest, waking, write, now)
        if gate is not None:
            write = transitions.held_at(write, gate)
            if gate.status is GateStatus.AUTO_KILLED and (refusal := await self._pause(gate)):
                return refusal
        port = self._held.context.defer()
        key = write.dedup_key
        if key is not None:
            self._in_flight[key] += 1

        if gate is None:
            world.backlog.add(zombie.id, zombie.workspace_id)

        def kept(outcome: Kept) -> None:
            if key is not None:
                self._landed(key)
            if not isinstance(outcome, Appended):
                self._actions.withdraw((waking.event_type, waking.actor), now)
                if gate is None:
                    world.backlog.add(zombie.id, zombie.workspace_id, -1)
            self._kept(write, outcome, port, webhook=webhook)

        world.storage.journal.submit(write, kept)
        return DEFERRED

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

    def _landed(self, key: bytes) -> None:
        self._in_flight[key] -= 1
        if not self._in_flight[key]:
            del self._in_flight[key]

    async def _gate(
        self, zombie: Zombie, manifest: Manifest, waking: WakeUp, write: AppendEvent, now: int
    ) -> Gate | None:
        gates, action = manifest.gates, (waking.event_type, waking.actor)
        behaviour = match_rules(gates, *action, waking.request)
        if waking.dedup_key is not None and waking.dedup_key in self._in_flight:
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
        return by_rule(gate, behaviour, now)

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

    def _kept(self, write: AppendEvent, outcome: Kept, port: ReplyPort, *, webhook: bool) -> None:
        match outcome:
            case Appended(event_id=event_id):
                port.set(m.Accepted(event_id))
                self._appended(write)
            case Duplicate(event_id=event_id):
                port.set(m.AlreadyAccepted(event_id))
            case OverBudget():
                now = self._held.world.now_ms()
                refusal = over_budget(now, outcome.period, status=503 if webhook else None)
                if webhook:
                    reason = RATE_LIMITED if outcome.period == "plan" else "budget_exceeded"
                    refusal = self._rejections.refuse(refusal, reason, _source(write))
                port.set(refusal)
            case Lost():
                self._held.doubt()
                port.set(self._closed(write) if webhook else self._held.unknown())
            case Exception():
                port.set_exception(outcome)
            case _:
                assert_never(outcome)

    def _closed(self, write: AppendEvent) -> Refusal:
        gone = Refusal("UZ-WH-004", "The agent was killed.", {"current_state": "killed"})
        return self._rejections.refuse(gone, NOT_ACTIVE, _source(write))

    def _appended(self, write: AppendEvent) -> None:
        gate, context = write.gate, self._held.context
        if gate is None:
            context.tell("queue", self._held.id, EventQueued(write.event.created_at))
        elif gate.status is GateStatus.PENDING:
            context.tell("gate", gate.id, Opened(gate))


def _source(write: AppendEvent) -> str:
    return write.event.actor.removeprefix("webhook:")
