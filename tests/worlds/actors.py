"""A node of actors on storage in memory and trio's clock, with the senders, runners and people around it."""

import hashlib
import hmac
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Generic, TypeVar
from uuid import UUID

import orjson
import trio

from sexton_actors.catalogue import Catalogue, Model
from sexton_actors.protocol import lease, runner, zombie
from sexton_actors.protocol.gate import Resolve, Resolved
from sexton_actors.protocol.hub import FramesWritten
from sexton_actors.protocol.queue import Grant
from sexton_actors.refusal import Refusal
from sexton_actors.secrets import Secrets
from sexton_actors.signals import hear
from sexton_actors.tree import tree
from sexton_actors.world import World
from sexton_engine import ActorSystem, SupervisorSpec, open_system
from sexton_storage.memory import Faults, MemoryStorage, open_memory_storage
from sexton_storage.memory.journal import MemoryJournal
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.frames import Frame
from sexton_storage.records.gates import Gate
from sexton_storage.records.metering import MeteringPeriod
from sexton_storage.records.runners import AdminState, Runner
from sexton_storage.records.tenants import PlanTier, Tenant
from sexton_storage.records.users import Role, User
from sexton_storage.records.workspaces import Workspace
from sexton_storage.writes import Write
from tests.worlds import samples
from tests.worlds.samples import SECRET, Ids, PlainSealer, skill_md, trigger_md

T = TypeVar("T")

STARTER_NANOS = 5_000_000_000
MODEL = Model("small-model", "acme", 100_000, 3_000_000_000, 300_000_000, 15_000_000_000)


def clock() -> int:
    """Unix ms; runs as fast as trio's clock."""
    return samples.START_MS + round(trio.current_time() * 1000)


def sign(body: bytes, secret: str = SECRET) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


@dataclass
class ActorsWorld:
    """One node. Ids are made as they are needed; nothing here is hidden from a test."""

    system: ActorSystem
    storage: MemoryStorage
    actors_world: World
    tenant_id: UUID
    workspace_id: UUID
    deliveries: int = 0
    runners: dict[str, UUID] = field(default_factory=dict)

    @property
    def faults(self) -> Faults:
        return self.storage.faults

    # --- agents ---------------------------------------------------------------------------------------------

    async def install(
        self, name: str = "doctor", config: str = "", tags: str = "", workspace_id: UUID | None = None
    ) -> UUID:
        zombie_id = self.actors_world.new_id()
        installed = await self.system.ask(
            "zombie",
            zombie_id,
            zombie.Install(
                workspace_id or self.workspace_id,
                self.tenant_id,
                skill_md(name, tags=tags, model=MODEL.id),
                trigger_md(name, config),
                by="user:1",
                may_grant=True,
            ),
        )
        assert isinstance(installed, zombie.Installed), installed
        return zombie_id

    def webhook(self, payload: dict[str, Any] | None = None, delivery: str | None = None) -> zombie.Deliver:
        """A signed delivery of a failed workflow run."""
        self.deliveries += 1
        body = orjson.dumps(payload or {"action": "completed", "workflow_run": {"conclusion": "failure"}})
        headers = {
            "x-github-event": "workflow_run",
            "x-github-delivery": delivery or f"delivery-{self.deliveries}",
            "x-hub-signature-256": sign(body),
        }
        return zombie.Deliver("github", headers, body)

    async def deliver(self, zombie_id: UUID, message: zombie.Deliver | None = None) -> UUID:
        """A webhook that is accepted; the event's id."""
        accepted = await self.system.ask("zombie", zombie_id, message or self.webhook())
        assert isinstance(accepted, zombie.Accepted), accepted
        return accepted.event_id

    async def change_status(self, zombie_id: UUID, status: str) -> zombie.StatusChanged | Refusal:
        return await self.system.ask("zombie", zombie_id, zombie.ChangeStatus(status, "user:1"))

    # --- runners --------------------------------------------------------------------------------------------

    async def enrol(self, name: str = "r1", labels: tuple[str, ...] = (), tier: str = "bubblewrap") -> UUID:
        runner_id = self.runners[name] = self.actors_world.new_id()
        record = Runner(
            id=runner_id,
            host_id=name,
            sandbox_tier=tier,
            labels=labels,
            slots=64,
            token_hash=name.encode(),
            admin_state=AdminState.ACTIVE,
            version=1,
            created_at=clock(),
        )
        assert await self.storage.runners.enrol(record, enrolment_hash=None)
        return runner_id

    async def poll(self, runner_id: UUID, wait_s: float = 0, most: int = 1) -> runner.Leases | Refusal:
        message = runner.Poll(max_leases=most, wait_ms=round(wait_s * 1000))
        return await self.system.ask("runner", runner_id, message, timeout=wait_s + 5)

    async def grant(self, runner_id: UUID, wait_s: float = 30) -> Grant:
        """The one lease that a poll must bring."""
        leases = await self.poll(runner_id, wait_s)
        assert isinstance(leases, runner.Leases), leases
        assert len(leases.grants) == 1, leases
        return leases.grants[0]

    async def nothing(self, runner_id: UUID, wait_s: float = 0) -> None:
        leases = await self.poll(runner_id, wait_s)
        assert isinstance(leases, runner.Leases), leases
        assert leases.grants == (), leases

    async def renew(self, grant: Grant, tokens: tuple[int, int, int] = (0, 0, 0)) -> lease.Renewal | Refusal:
        message = lease.Renew(grant.lease.runner_id, *tokens)
        return await self.system.ask("lease", grant.lease.id, message)

    async def renewed(self, grant: Grant, tokens: tuple[int, int, int] = (0, 0, 0)) -> lease.Renewal:
        renewal = await self.renew(grant, tokens)
        assert isinstance(renewal, lease.Renewal), renewal
        return renewal

    def report_of(
        self, grant: Grant, outcome: str = "processed", tokens: tuple[int, int, int] = (0, 0, 0)
    ) -> lease.Report:
        return lease.Report(
            runner_id=grant.lease.runner_id,
            event_id=grant.event.id,
            fencing_token=grant.lease.fencing_token,
            outcome=outcome,
            failure_reason="agent_run" if outcome == "agent_error" else None,
            response_text="done",
            evidence={"found": "it"},
            input_tokens=tokens[0],
            cached_input_tokens=tokens[1],
            output_tokens=tokens[2],
            time_to_first_token_ms=None,
            wall_ms=1000,
            checkpoint=None,
            digest=hashlib.sha256(f"{grant.lease.id} {outcome} {tokens}".encode()).digest(),
        )

    async def report(
        self, grant: Grant, outcome: str = "processed", tokens: tuple[int, int, int] = (0, 0, 0)
    ) -> lease.Reported | Refusal:
        return await self.system.ask("lease", grant.lease.id, self.report_of(grant, outcome, tokens))

    async def release(self, grant: Grant) -> lease.Released | Refusal:
        message = lease.Release(grant.lease.runner_id, "shutting down")
        return await self.system.ask("lease", grant.lease.id, message)

    async def ask_approval(self, grant: Grant, action_id: str = "deploy-1") -> Gate:
        message = lease.AskApproval(
            runner_id=grant.lease.runner_id,
            action_id=action_id,
            tool_name="http",
            action_name="POST",
            gate_kind="deploy",
            proposed_action="Deploy again.",
            evidence={},
            blast_radius="production",
        )
        gate = await self.system.ask("lease", grant.lease.id, message)
        assert isinstance(gate, Gate), gate
        return gate

    async def activity(self, grant: Grant, *kinds: str) -> lease.FramesTaken | Refusal:
        frames = tuple(lease.FrameIn(kind, None, {"text": "…"}) for kind in kinds)
        return await self.system.ask("lease", grant.lease.id, lease.Activity(grant.lease.runner_id, frames))

    async def resolve(self, gate_id: UUID, *, approve: bool = True) -> Resolved | Refusal:
        return await self.system.ask("gate", gate_id, Resolve(approve, "user:1"))

    async def park(self, grant: Grant, gate_id: UUID) -> lease.Parked | Refusal:
        message = lease.Park(grant.lease.runner_id, gate_id, {"step": 2})
        return await self.system.ask("lease", grant.lease.id, message)

    # --- what is kept ---------------------------------------------------------------------------------------

    def event(self, event_id: UUID) -> Event:
        return self.storage.tables.events[event_id]

    def balance(self) -> int:
        return self.storage.tables.tenants[self.tenant_id].balance_nanos

    def set_balance(self, nanos: int) -> None:
        tenants = self.storage.tables.tenants
        old = tenants[self.tenant_id]
        tenants[self.tenant_id] = Tenant(
            old.id, old.name, old.plan_tier, nanos, None, old.created_at, old.updated_at
        )

    def frames(self, zombie_id: UUID) -> list[Frame]:
        return self.storage.tables.frames.get(zombie_id, [])

    def kinds(self, zombie_id: UUID) -> list[str]:
        return [frame.kind for frame in self.frames(zombie_id)]

    def rows(self, event_id: UUID) -> list[MeteringPeriod]:
        return [row for _, row in sorted(self.storage.tables.metering.get(event_id, {}).items())]

    def everything_adds_up(self) -> None:
        """What must hold at every moment, whatever went wrong."""
        tables = self.storage.tables
        live = Counter(row.zombie_id for row in tables.leases.values() if row.ended_at is None)
        assert all(count == 1 for count in live.values()), "at most one live lease an agent"
        for zombie_id in tables.zombies:
            granted = sorted(
                (row for row in tables.leases.values() if row.zombie_id == zombie_id),
                key=lambda row: row.fencing_token,
            )
            tokens = [row.fencing_token for row in granted]
            assert tokens == list(range(1, len(tokens) + 1)), (
                "fencing tokens grow by one, and none is used twice"
            )
            assert [row.granted_at for row in granted] == sorted(row.granted_at for row in granted)
            seqs = [frame.seq for frame in self.frames(zombie_id)]
            assert seqs == list(range(1, len(seqs) + 1)), "frames are numbered without a gap"
        ends = Counter(
            frame.event_id
            for frames in tables.frames.values()
            for frame in frames
            if frame.kind == "event_complete"
        )
        for event in tables.events.values():
            ended = event.completed_at is not None
            assert ends[event.id] == ended, f"an event ends once, and the stream says so: {event}"
            charged = event.charged_nanos if ended else sum(row.charged_nanos for row in self.rows(event.id))
            assert charged == sum(row.charged_nanos for row in self.rows(event.id)), event
            self._tokens_add_up(event)
        charged = sum(row.charged_nanos for rows in tables.metering.values() for row in rows.values())
        credited = sum(amount for _, amount, _, _ in tables.credits)
        assert charged == STARTER_NANOS + credited - self.balance(), "the sum of the rows is the money gone"

    def _tokens_add_up(self, event: Event) -> None:
        """An event that nobody runs has the tokens of all its leases, as they were billed."""
        if event.status is EventStatus.RUNNING:
            return
        told = (event.input_tokens, event.cached_input_tokens, event.cache_write_tokens, event.output_tokens)
        rows = self.rows(event.id)
        assert told == (
            sum(row.d_input_tokens for row in rows),
            sum(row.d_cached_tokens for row in rows),
            sum(row.d_cache_write_tokens for row in rows),
            sum(row.d_output_tokens for row in rows),
        ), event


class Later(Generic[T]):
    """The answer to a question that is asked beside the test; ``value`` once it is there."""

    def __init__(self, nursery: trio.Nursery, ask: Callable[[], Awaitable[T]]) -> None:
        self._there = trio.Event()
        self._values: list[T] = []
        self.at: float | None = None
        self.scope = trio.CancelScope()
        nursery.start_soon(self._run, ask)

    async def _run(self, ask: Callable[[], Awaitable[T]]) -> None:
        with self.scope:
            self._values.append(await ask())
            self.at = trio.current_time()
            self._there.set()

    @property
    def is_there(self) -> bool:
        return self._there.is_set()

    async def value(self) -> T:
        await self._there.wait()
        return self._values[0]


class Crash(Exception):
    """A fault that no actor bears."""


def crash_once(
    target: object, name: str, *, after: bool = False, when: Callable[..., bool] | None = None
) -> list[int]:
    """Have the next call of an async method raise ``Crash``, before its work or after it.

    The list is filled when that has happened.
    """
    original = getattr(target, name)
    done: list[int] = []

    async def sabotaged(*args: Any, **kwargs: Any) -> Any:
        if done or (when is not None and not when(*args)):
            return await original(*args, **kwargs)
        if after:
            await original(*args, **kwargs)
        done.append(1)
        setattr(target, name, original)
        raise Crash(name)

    setattr(target, name, sabotaged)
    return done


def crash_commit_once(
    journal: MemoryJournal, *, after: bool = False, when: Callable[[Write[Any]], bool]
) -> list[int]:
    """Have whoever commits the next such write meet ``Crash``, before it is kept or after it.

    It reaches the actor as the answer does, whether that waits for it in ``write`` or is called back.
    """
    original = journal.submit
    done: list[int] = []

    def sabotaged(write: Write[Any], answer: Callable[[Any], None]) -> None:
        if done or not when(write):
            original(write, answer)
            return
        done.append(1)
        journal.__dict__.pop("submit", None)
        if after:
            original(write, lambda _: answer(Crash("after the commit")))
        else:
            answer(Crash("before the commit"))

    journal.__dict__["submit"] = sabotaged
    return done


async def found_tenant(storage: MemoryStorage, new_id: Ids) -> tuple[UUID, UUID]:
    tenant_id, workspace_id = new_id(), new_id()
    now = clock()
    await storage.instance.first_start(
        Tenant(tenant_id, "Acme", PlanTier.ENTERPRISE, STARTER_NANOS, None, now, now),
        Workspace(workspace_id, tenant_id, "main", paused=False, created_at=now),
        User(new_id(), tenant_id, "local:admin", Role.ADMIN, platform_admin=True, created_at=now),
        {},
    )
    return tenant_id, workspace_id


@asynccontextmanager
async def open_actors_world(
    *, seed: int = 0, shape: SupervisorSpec | None = None, models: Sequence[Model] = (MODEL,)
) -> AsyncIterator[ActorsWorld]:
    """A node with one tenant, one workspace, and the secret of its webhooks in the vault."""
    new_id = Ids(clock)
    async with open_memory_storage(clock=clock) as storage:
        tenant_id, workspace_id = await found_tenant(storage, new_id)
        secrets = Secrets(storage.credentials, PlainSealer(), storage.clock)
        rng = Random(seed)
        world = World(
            storage=storage,
            secrets=secrets,
            catalogue=Catalogue("2026-01-01", models),
            new_id=new_id,
            new_token=lambda size: rng.randbytes(size).hex(),
        )
        await secrets.put(workspace_id, "github-hook", {"webhook_secret": SECRET})
        async with open_system(shape or tree(world), rng=rng) as system:
            storage.signals.listen(partial(hear, world, system.tell))
            storage.on_frames(lambda heads: system.tell("hub", "", FramesWritten(tuple(heads))))
            yield ActorsWorld(system, storage, world, tenant_id, workspace_id)
