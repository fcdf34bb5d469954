"""The same steps, in any order, end in the same history in memory and in PostgreSQL.

Each seed is a random walk of appends, repeats, claims, ends, cancels, gates, kills, replays and firings on
three agents; ``SEXTON_WALKS`` sets how many are made.
"""

import os
import time
from collections.abc import Callable, Sequence
from random import Random
from typing import Any
from uuid import UUID

import trio
from msgspec.structs import replace

from sexton_storage.errors import Conflict
from sexton_storage.memory import open_memory_storage
from sexton_storage.postgres import open_postgres_storage
from sexton_storage.records.crons import CronEntry, Firing
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.frames import NewFrame
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.records.leases import Lease, LeaseStatus
from sexton_storage.records.zombies import Zombie, ZombieStatus
from sexton_storage.refusals import Lost
from sexton_storage.stores import Storage
from sexton_storage.writes import AppendEvent, CancelEvent, Claimed, EventEnd, ResolveGate
from tests.worlds.storage import StorageWorld

WALKS = int(os.environ.get("SEXTON_WALKS", "12"))
STEPS = 70
AGENTS = 3
KEYS = (b"a", b"b", b"c")
CRON = {"type": "cron", "schedule": "* * * * *", "timezone": "UTC"}
WISHES = {ZombieStatus.ACTIVE: 4, ZombieStatus.STOPPED: 2, ZombieStatus.KILLED: 1}
Told = tuple[Any, ...]


class Walk:
    """What one storage has been through. Ids are told by the order in which they were made."""

    def __init__(self, storage: Storage, seed: int) -> None:
        self.world = StorageWorld(storage)
        self.random = Random(seed)
        self.agents: list[Zombie] = []
        self.events: list[Event] = []
        self.gates: list[Gate] = []
        self.leases: dict[UUID, Lease] = {}
        self.due_at = 0

    async def begin(self) -> None:
        await self.world.found()
        for _ in range(AGENTS):
            self.agents.append(await self.world.agent(compiled={"triggers": [CRON]}))

    @property
    def storage(self) -> Storage:
        return self.world.storage

    def name(self, what: UUID | None) -> object:
        """Which event, gate or agent of this walk an id is."""
        made: tuple[Sequence[Event | Gate | Zombie], ...] = (self.events, self.gates, self.agents)
        for kind, known in zip(("event", "gate", "agent"), made, strict=True):
            for place, one in enumerate(known):
                if one.id == what:
                    return kind, place
        return None if what is None else "unknown"

    # --- steps ----------------------------------------------------------------------------------------------

    async def step(self) -> Told:
        """One random step; what came of it, in words that are the same for every storage."""
        steps: list[Callable[[], Any]] = [
            self.append,
            self.append,
            self.append_at_gate,
            self.replay,
            self.claim,
            self.claim,
            self.end,
            self.end,
            self.cancel,
            self.resolve,
            self.change_status,
            self.fire,
        ]
        step = self.random.choice(steps)
        return (step.__name__, *await step())

    def agent(self) -> Zombie:
        return self.random.choice(self.agents)

    def complete(self, event: Event) -> tuple[NewFrame, ...]:
        return (NewFrame(event.zombie_id, event.id, "event_complete", event.created_at, {}),)

    async def keep(self, event: Event, **more: Any) -> Told:
        self.events.append(event)
        frames = (NewFrame(event.zombie_id, event.id, "event_received", event.created_at, {}),)
        write = AppendEvent(event, more.pop("key", None), None, None, frames, **more)
        outcome = await self.storage.journal.write(write)
        told = getattr(outcome, "event_id", None)
        return type(outcome).__name__, self.name(told), outcome.reason if isinstance(outcome, Lost) else ""

    async def append(self) -> Told:
        key = self.random.choice([*KEYS, None])
        body = None if key is None else self.random.choice([key, b"x", b"y"])
        return await self.keep(self.world.event_of(self.agent()), key=key, body_key=body)

    async def append_at_gate(self) -> Told:
        event = self.world.event_of(self.agent())
        gate = self.world.gate_of(event)
        self.gates.append(gate)
        return await self.keep(event, gate=gate)

    async def replay(self) -> Told:
        old = self.random.choice(self.events) if self.events else None
        known = None if old is None else await self.storage.events.load(old.id)
        if known is None or known.completed_at is None:
            return ("nothing",)
        agent = next(a for a in self.agents if a.id == known.zombie_id)
        return await self.keep(self.world.event_of(agent, resumes_event_id=known.id))

    async def claim(self) -> Told:
        agent = self.agent()
        outcome = await self.storage.journal.write(self.world.claim_of(agent))
        if not isinstance(outcome, Claimed):
            return type(outcome).__name__, getattr(outcome, "reason", "")
        self.leases[agent.id] = outcome.lease
        return "claimed", self.name(outcome.event.id), outcome.lease.fencing_token, outcome.more

    async def end(self) -> Told:
        lease = self.leases.get(self.agent().id)
        if lease is None:
            return ("nothing",)
        known = await self.storage.leases.load(lease.id)
        if known is not None and self.random.random() < 0.9:
            lease = known
        status, end = self.random.choice(
            [
                (LeaseStatus.REPORTED, EventEnd(EventStatus.PROCESSED)),
                (LeaseStatus.REPORTED, EventEnd(EventStatus.AGENT_ERROR, failure_label="agent_run")),
                (LeaseStatus.RELEASED, EventEnd(EventStatus.RECEIVED, give_attempt_back=True)),
                (LeaseStatus.RECLAIMED, EventEnd(EventStatus.RECEIVED)),
                (LeaseStatus.RECLAIMED, EventEnd(EventStatus.DEAD_LETTERED, failure_label="runner_lost")),
            ]
        )
        write = self.world.end_of(lease, end, status=status, nanos=self.random.choice([None, 100]))
        outcome = await self.storage.journal.write(write)
        if isinstance(outcome, Lost):
            return ("lost",)
        return "ended", self.name(outcome.event.id), outcome.event.status, outcome.charged_nanos, outcome.more

    async def cancel(self) -> Told:
        if not self.events:
            return ("nothing",)
        event = self.random.choice(self.events)
        write = CancelEvent(event.zombie_id, event.id, self.world.now, self.complete(event))
        outcome = await self.storage.journal.write(write)
        if isinstance(outcome, Lost):
            return ("lost", outcome.reason)
        gates = [self.name(gate_id) for gate_id in outcome.gate_ids]
        return outcome.outcome, outcome.status, outcome.lease_id is None, gates

    async def resolve(self) -> Told:
        if not self.gates:
            return ("nothing",)
        gate = self.random.choice(self.gates)
        approved = self.random.random() < 0.5
        status = GateStatus.APPROVED if approved else GateStatus.DENIED
        after = EventStatus.RECEIVED if approved else EventStatus.GATE_BLOCKED
        label = None if approved else "approval_denied"
        write = ResolveGate(gate.id, status, self.world.now, "user:1", "", after, label, ())
        outcome = await self.storage.journal.write(write)
        return (type(outcome).__name__, getattr(outcome, "event_freed", None))

    async def change_status(self) -> Told:
        place = self.random.randrange(AGENTS)
        wanted = self.random.choice(
            [ZombieStatus.ACTIVE] * 4 + [ZombieStatus.STOPPED] * 2 + [ZombieStatus.KILLED]
        )
        agent = self.agents[place]
        changed = replace(agent, status=wanted, version=agent.version + 1)
        leases = 0
        try:
            if wanted is ZombieStatus.KILLED:
                leases = len(await self.storage.zombies.kill(changed, (), self.world.now))
            elif agent.status is not ZombieStatus.KILLED:
                await self.storage.zombies.save(changed, ())
            else:
                return ("stays killed",)
        except Conflict:
            return ("conflict",)
        self.agents[place] = changed
        return wanted, leases

    async def fire(self) -> Told:
        agent, self.due_at = self.agent(), self.due_at + 1
        entry = await self.storage.crons.load(agent.id, CRON["schedule"], CRON["timezone"])
        if entry is None:
            return ("no schedule",)
        due_at = entry.next_at or 0
        if entry.next_at is None or self.random.random() < 0.2:
            seen = CronEntry(agent.id, entry.schedule, entry.timezone, entry.since, entry.next_at)
            return "planned", await self.storage.crons.plan(seen, self.due_at)
        late = self.random.random() < 0.3
        firing = Firing(entry.schedule, entry.timezone, due_at - late, self.due_at)
        key = self.random.choice([None, b"minute %d" % (due_at // 3)])
        return await self.keep(self.world.event_of(agent, actor="cron:* * * * *"), key=key, firing=firing)

    # --- what is left ---------------------------------------------------------------------------------------

    async def history(self) -> list[Told]:
        told: list[Told] = []
        for event in self.events:
            kept = await self.storage.events.load(event.id)
            told.append(
                ("event", None)
                if kept is None
                else (
                    "event",
                    kept.status,
                    kept.attempts,
                    kept.failure_label,
                    kept.charged_nanos,
                    kept.completed_at is not None,
                    self.name(kept.resumes_event_id),
                )
            )
        for gate in self.gates:
            found = await self.storage.gates.load(gate.id)
            told.append(("gate", found and found.status, found and found.resolved_by))
        for agent in self.agents:
            frames = await self.storage.frames.read(agent.id, after=0, limit=1000)
            told += [("frame", frame.seq, frame.kind, self.name(frame.event_id)) for frame in frames]
            crons = await self.storage.crons.load(agent.id, CRON["schedule"], CRON["timezone"])
            told.append(("cron", crons and crons.next_at))
        listed = await self.storage.events.list(self.world.workspace_id, limit=1000)
        told.append(("kept", sorted(str(self.name(event.id)) for event in listed)))
        return told


async def test_the_same_steps_end_in_the_same_history(postgres_dsn: str) -> None:
    seen: set[str] = set()
    async with (
        open_memory_storage(clock=lambda: int(time.time() * 1000)) as memory,
        open_postgres_storage(postgres_dsn) as postgres,
    ):
        for seed in range(WALKS):
            walks = Walk(memory, seed), Walk(postgres, seed)
            for walk in walks:
                await walk.begin()
            for number in range(STEPS):
                in_memory, in_postgres = [await walk.step() for walk in walks]
                assert in_memory == in_postgres, f"seed {seed}, step {number}"
                seen.add(f"{in_memory[0]} {in_memory[1]}")
                # Ids are of a millisecond: the next one is of a later.
                await trio.sleep(0.001)
            assert await walks[0].history() == await walks[1].history(), f"seed {seed}"

    assert {"append Appended", "append Duplicate", "claim claimed", "end ended", "end lost"} <= seen
    assert {"cancel ended", "cancel cancelling", "cancel closed", "replay Appended", "fire Appended"} <= seen
