"""Senders, runners, people and faults around one node, all from one seed."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, TypeVar
from uuid import UUID

import trio

from sexton_actors.protocol.gate import Await
from sexton_actors.protocol.lease import Parked, Renewal, Reported
from sexton_actors.protocol.ledger import Credit
from sexton_actors.protocol.queue import Cancel, Cancelling, Grant
from sexton_actors.protocol.runner import SetAdminState
from sexton_actors.protocol.zombie import Accepted, AlreadyAccepted, ChangeStatus, Replay
from sexton_actors.refusal import Refusal
from sexton_engine import EngineError
from sexton_storage.errors import StorageUnavailable
from sexton_storage.records.events import EventStatus
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.writes import (
    AppendFrames,
    ClaimEvent,
    EndLease,
    OpenGate,
    RenewLease,
    ResolveGate,
)
from tests.worlds.actors import ActorsWorld, Crash, clock, crash_commit_once

T = TypeVar("T")

RACES = (ClaimEvent, RenewLease, EndLease, OpenGate, ResolveGate, AppendFrames)
RENEWING = ("journal", "submit")
CRASHING = (
    RENEWING,
    ("journal", "write"),
    ("leases", "load"),
    ("leases", "load_with_gates"),
    ("events", "ready"),
    ("events", "ready_agent"),
    ("gates", "of_lease"),
    ("runners", "load"),
    ("zombies", "load"),
    ("crons", "due"),
    ("crons", "load"),
    ("crons", "plan"),
)
KINDS = (
    "lease",
    "queue",
    "zombie",
    "gate",
    "runner",
    "dispatcher",
    "hub",
    "reclaimer",
    "sweeper",
    "scheduler",
)


@dataclass
class SimulationWorld:
    """What was promised to whom; the storage is held to it."""

    world: ActorsWorld
    rng: Random
    nursery: trio.Nursery
    agents: list[UUID] = field(default_factory=list)
    killed: set[UUID] = field(default_factory=set)
    accepted: set[UUID] = field(default_factory=set)
    reported: dict[UUID, UUID] = field(default_factory=dict)
    """Event to the lease whose report was taken."""
    tokens: dict[UUID, int] = field(default_factory=dict)
    """Agent to the highest fencing token that a runner has seen."""
    calm: bool = False
    faults: int = 0
    reclaims: int = 0
    cancels: int = 0

    async def patiently(self, step: Callable[[], Awaitable[T]]) -> T:
        """What every client does that hears 503: it comes again."""
        while True:
            try:
                return await step()
            except (StorageUnavailable, EngineError, Crash):
                await trio.sleep(self.rng.uniform(0.1, 1))

    # --- senders --------------------------------------------------------------------------------------------

    async def send(self, count: int) -> None:
        for _ in range(count):
            await trio.sleep(self.rng.expovariate(1))
            zombie_id, delivery = self.rng.choice(self.agents), self.world.webhook()
            kept = await self.patiently(partial(self.world.system.ask, "zombie", zombie_id, delivery))
            if isinstance(kept, Accepted | AlreadyAccepted):
                self.accepted.add(kept.event_id)
            else:
                assert isinstance(kept, Refusal), kept

    # --- runners --------------------------------------------------------------------------------------------

    async def run(self, runner_id: UUID) -> None:
        """One runner with two slots, which takes what it gets and sometimes goes mad with it."""
        slots = trio.CapacityLimiter(2)
        while True:
            async with slots:
                pass
            wait_s = self.rng.choice((0, 2, 10, 30))
            if self.rng.random() < 0.1:
                with trio.move_on_after(self.rng.uniform(0, 2)):  # Its connection breaks.
                    await self.patiently(partial(self.world.poll, runner_id, wait_s))
                continue
            leases = await self.patiently(partial(self.world.poll, runner_id, wait_s, 2))
            if isinstance(leases, Refusal):
                return
            for grant in leases.grants:
                self.see(grant)
                self.nursery.start_soon(self.work, slots, grant)
            await trio.sleep(max(leases.retry_after_ms / 1000, 0.05))

    def see(self, grant: Grant) -> None:
        agent, token = grant.lease.zombie_id, grant.lease.fencing_token
        assert token > self.tokens.get(agent, 0), "a runner sees a token that is higher than all before"
        self.tokens[agent] = token

    async def work(self, slots: trio.CapacityLimiter, grant: Grant) -> None:
        async with slots:
            tokens = 0
            for _ in range(self.rng.randrange(4)):
                if not self.calm and self.rng.random() < 0.12:
                    await self.die(grant)
                    return
                await trio.sleep(self.rng.uniform(1, 12))
                tokens += self.rng.randrange(2000)
                renewal = await self.patiently(partial(self.world.renew, grant, (tokens, 0, 0)))
                if not isinstance(renewal, Renewal):
                    break
                if self.rng.random() < 0.3 and not await self.ask_people(grant):
                    return
            await self.finish(grant, tokens)

    async def die(self, grant: Grant) -> None:
        """Silence for longer than a term, and then a word too late."""
        await trio.sleep(self.rng.uniform(31, 50))
        answer = await self.patiently(lambda: self.world.report(grant))
        assert isinstance(answer, Refusal), "a late report is refused"
        assert isinstance(await self.patiently(lambda: self.world.renew(grant)), Refusal)
        self.reclaims += 1

    async def ask_people(self, grant: Grant) -> bool:
        """False when the run was parked, or lost."""
        try:
            gate = await self.patiently(lambda: self.world.ask_approval(grant))
        except AssertionError:
            return False
        await self.patiently(lambda: self.world.system.ask("gate", gate.id, Await(3000)))
        if self.rng.random() < 0.5:
            return True
        parked = await self.patiently(lambda: self.world.park(grant, gate.id))
        return not isinstance(parked, Parked) and not isinstance(parked, Refusal)

    async def finish(self, grant: Grant, tokens: int) -> None:
        if self.rng.random() < 0.1:
            await self.patiently(lambda: self.world.release(grant))
            return
        outcome = self.rng.choice(("processed", "processed", "agent_error"))
        answer = await self.patiently(lambda: self.world.report(grant, outcome, (tokens, 0, 0)))
        if isinstance(answer, Reported):
            assert self.reported.setdefault(grant.event.id, grant.lease.id) == grant.lease.id
            assert self.world.event(grant.event.id).completed_at is not None

    # --- people ---------------------------------------------------------------------------------------------

    async def decide(self) -> None:
        while True:
            await trio.sleep(self.rng.uniform(0.5, 4))
            for gate in self.pending():
                if self.rng.random() < 0.6:
                    approve = self.rng.random() < 0.7
                    await self.patiently(partial(self.world.resolve, gate.id, approve=approve))

    def pending(self) -> list[Gate]:
        return [g for g in self.world.storage.tables.gates.values() if g.status is GateStatus.PENDING]

    async def manage(self) -> None:
        while not self.calm:
            await trio.sleep(self.rng.uniform(5, 20))
            agent = self.rng.choice(self.agents)
            status = self.rng.choice(("stopped", "active", "active", "killed"))
            if status == "killed" and len(self.killed) >= len(self.agents) - 2:
                continue
            asked = ChangeStatus(status, "user:1")
            changed = await self.patiently(partial(self.world.system.ask, "zombie", agent, asked))
            if status == "killed" and not isinstance(changed, Refusal):
                self.killed.add(agent)
            if self.rng.random() < 0.2:
                await self.patiently(
                    lambda: self.world.system.ask("ledger", self.world.tenant_id, Credit(10**6, "", "user:1"))
                )

    async def meddle(self) -> None:
        """Cancels whatever is open, and has what is over worked on once more."""
        while not self.calm:
            await trio.sleep(self.rng.uniform(1, 8))
            events = list(self.world.storage.tables.events.values())
            if not events:
                continue
            event = self.rng.choice(events)
            ask = self.world.system.ask
            if self.rng.random() < 0.6:
                cancel = Cancel(event.id, "user:1")
                answer = await self.patiently(partial(ask, "queue", event.zombie_id, cancel))
                assert isinstance(answer, Cancelling) or answer.code == "UZ-REQ-009", answer
                self.cancels += isinstance(answer, Cancelling)
            elif event.completed_at is not None:
                replay = Replay(event.id, "user:1")
                kept = await self.patiently(partial(ask, "zombie", event.zombie_id, replay))
                if isinstance(kept, Accepted):
                    self.accepted.add(kept.event_id)

    async def drain(self, runner_id: UUID) -> None:
        while not self.calm:
            for state in ("draining", "active", "cordoned", "active"):
                await trio.sleep(self.rng.uniform(5, 30))
                asked = SetAdminState(state)
                await self.patiently(partial(self.world.system.ask, "runner", runner_id, asked))

    # --- misfortunes ----------------------------------------------------------------------------------------

    async def plague(self) -> None:
        while not self.calm:
            await trio.sleep(self.rng.expovariate(1 / 3))
            self.faults += 1
            match self.rng.randrange(6):
                case 0:
                    self.world.faults.away = True
                    await trio.sleep(self.rng.uniform(0.1, 8))
                    self.world.faults.away = False
                case 1:
                    self.world.faults.lose(self.rng.choice(RACES), self.rng.randrange(1, 4))
                case 2:
                    self.world.faults.leave_unknown()
                case 3:
                    self.world.faults.latency_s = self.rng.choice((0, 0, 0.005, 0.2))
                case 4:
                    self.kill_one()
                case _:
                    self.crash_one()
        self.world.faults.latency_s = 0

    def kill_one(self) -> None:
        kind = self.rng.choice(KINDS)
        tables = self.world.storage.tables
        keys: dict[str, list[Any]] = {
            "lease": list(tables.leases),
            "gate": list(tables.gates),
            "queue": self.agents,
            "zombie": self.agents,
            "runner": list(tables.runners),
        }
        key = self.rng.choice(keys.get(kind) or [""])
        self.world.system.kill(kind, key)

    def crash_one(self) -> None:
        """The next call of some store crashes whichever actor makes it, before or after its work."""
        store, method = self.rng.choice(CRASHING)
        if (store, method) == RENEWING:
            crash_commit_once(
                self.world.storage.journal,
                after=self.rng.random() < 0.5,
                when=lambda write: isinstance(write, RenewLease),
            )
            return
        target = getattr(self.world.storage, store)
        original = getattr(type(target), method)
        after = self.rng.random() < 0.5

        async def sabotaged(*args: Any, **kwargs: Any) -> Any:
            target.__dict__.pop(method, None)
            if after:
                await original(target, *args, **kwargs)
            raise Crash(method)

        target.__dict__[method] = sabotaged

    # --- what must hold -------------------------------------------------------------------------------------

    def everything_adds_up(self) -> None:
        self.world.everything_adds_up()
        events = self.world.storage.tables.events
        assert self.accepted <= set(events), "what was accepted is there"
        delivered = [e for e in events.values() if e.source_event_id and e.resumes_event_id is None]
        assert len(delivered) == len({event.source_event_id for event in delivered}), "and there once"
        fired = [e for e in events.values() if e.event_type == "cron" and e.resumes_event_id is None]
        firings = {(event.zombie_id, event.request_json) for event in fired}
        assert len(fired) == len(firings), "a schedule fires once for each of its minutes"
        for event_id, lease_id in self.reported.items():
            assert self.world.storage.tables.leases[lease_id].status == "reported"
            assert events[event_id].status not in {EventStatus.RECEIVED, EventStatus.RUNNING}

    def still_open(self, before: int) -> list[UUID]:
        """Of those that came by then: schedules go on for ever."""
        events = self.world.storage.tables.events.values()
        return [e.id for e in events if e.completed_at is None and e.created_at < before]

    def overdue(self) -> list[UUID]:
        """Live leases that should have been reclaimed by now."""
        leases = self.world.storage.tables.leases.values()
        return [row.id for row in leases if row.ended_at is None and row.expires_at + 1100 < clock()]
