"""Generates tenants, agents, events, leases and gates in any state that the rows may be in."""

from random import Random
from typing import TypeVar
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.decisions.rows import DedupKey, EventRow, Head
from sexton_storage.memory.tables import Tables
from sexton_storage.periods import day_of
from sexton_storage.records.configs import ConfigStatus, ConfigVersion
from sexton_storage.records.crons import CronEntry
from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.follow_ups import FollowUp, FollowUpStatus
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.records.improvement import Proposal, ProposalStatus
from sexton_storage.records.leases import Lease, LeaseStatus, Rates
from sexton_storage.records.memories import Memory
from sexton_storage.records.metering import MeteringPeriod
from sexton_storage.records.runners import AdminState, Runner
from sexton_storage.records.tenants import PlanTier, Tenant
from sexton_storage.records.workspaces import Workspace
from sexton_storage.records.zombies import Zombie, ZombieStatus
from sexton_storage.rules import BALANCE_EXHAUSTED, BALANCE_EXHAUSTED_CODE, FINISHED_EVENT
from sexton_storage.terms import DEDUP_WINDOW_MS
from tests.storage.row_records import put_beside_event, put_beside_tenant
from tests.storage.row_texts import document_of, request_of, text_of

T = TypeVar("T")
CLOCK = 1_732_060_800_000 + 5 * 3_600_000
"""What the database's clock stands at when a world begins; Unix ms, five in the morning (UTC)."""
SCHEDULE = "0 5 * * *"
KEYS = (b"a", b"b", b"c")
TRIAL = UUID(int=77)
"""Delivery keys: few, so that they meet."""
TERM_MS = 30_000


class Dice:
    """What a world is made by; the same seed throws the same."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._ids = 0

    def id(self) -> UUID:
        """A new id; they are not in the order in which they are made."""
        return UUID(int=self._random.getrandbits(128))

    def one(self, *options: T) -> T:
        return self._random.choice(options)

    def often(self, percent: int) -> bool:
        return self._random.randrange(100) < percent

    def upto(self, most: int) -> int:
        return self._random.randint(0, most)

    def some(self, things: list[T], percent: int = 80) -> list[T]:
        """Some of the things, in any order."""
        chosen = [thing for thing in things if self.often(percent)]
        self._random.shuffle(chosen)
        return chosen


class World:
    """One storage full of rows. What is made keeps what the tables promise one another."""

    def __init__(self, dice: Dice, agents: int, *, busy_percent: int, is_lucky: bool = False) -> None:
        self.dice = dice
        self.is_lucky = is_lucky
        """Whether there is mostly money and room, and requests mostly hold."""
        self._busy_percent = busy_percent
        self.now = CLOCK
        """What the database's clock stands at."""
        self.tables = Tables(now=lambda: self.now)
        self.gone: dict[UUID, tuple[UUID, UUID]] = {}
        """Agent and workspace of events that may have been deleted since."""
        self.limits: dict[UUID, int | None] = {}
        """What the plan of each tenant allows in a day."""
        for _ in range(1 + dice.upto(1)):
            self._tenant()
        for _ in range(1 + dice.upto(2)):
            self._runner()
        for _ in range(agents):
            self._agent()

    # --- tenants and runners --------------------------------------------------------------------------------

    def _tenant(self) -> None:
        dice, tables = self.dice, self.tables
        balance = dice.one(0, 1, 40, 1_000_000, 1_000_000, -7, *[1_000_000] * (24 if self.is_lucky else 0))
        unlimited = dice.often(15)
        exhausted_at = CLOCK - 99 if balance < 0 or dice.often(3 if self.is_lucky else 15) else None
        tenant = Tenant(
            dice.id(), "t", PlanTier.FREE, balance, exhausted_at, CLOCK - 9_000, CLOCK - 900, unlimited
        )
        tables.tenants[tenant.id] = tenant
        put_beside_tenant(tables, tenant.id, CLOCK - 900)
        self.limits[tenant.id] = dice.one(None, None, 1, 3, *[None, 200] * (5 if self.is_lucky else 0))
        if dice.often(60):
            tables.event_counts[tenant.id, day_of(CLOCK)] = dice.upto(3)
        for number in range(1 + dice.upto(1)):
            workspace = Workspace(
                dice.id(), tenant.id, f"w{number}", dice.often(3 if self.is_lucky else 12), CLOCK - 9_000
            )
            tables.workspaces[workspace.id] = workspace

    def _runner(self) -> None:
        dice = self.dice
        workspace = dice.one(*self.tables.workspaces.values())
        tenant_id, workspace_id = dice.one(
            (None, None), (None, None), (workspace.tenant_id, None), (workspace.tenant_id, workspace.id)
        )
        runner = Runner(
            id=dice.id(),
            host_id="h",
            sandbox_tier="bubblewrap",
            labels=("gpu",),
            slots=1 + dice.upto(15 if self.is_lucky else 2),
            token_hash=dice.id().bytes,
            admin_state=AdminState.ACTIVE,
            version=1,
            created_at=CLOCK - 9_000,
            tenant_id=tenant_id,
            workspace_id=workspace_id,
        )
        self.tables.runners[runner.id] = runner

    # --- agents ---------------------------------------------------------------------------------------------

    def _agent(self) -> None:
        dice, tables = self.dice, self.tables
        workspace = dice.one(*tables.workspaces.values())
        status = dice.one(*[ZombieStatus.ACTIVE] * (30 if self.is_lucky else 6), *ZombieStatus)
        has_cron = status is ZombieStatus.ACTIVE and dice.often(50)
        zombie_id, config_id = dice.id(), dice.id()
        triggers = [{"type": "cron", "schedule": SCHEDULE}] if has_cron else []
        config = ConfigVersion(
            config_id, zombie_id, 1, ConfigStatus.ACTIVE, "s", "t", {"triggers": triggers}, CLOCK - 8_000
        )
        agent = Zombie(
            id=zombie_id,
            workspace_id=workspace.id,
            tenant_id=workspace.tenant_id,
            name=f"agent-{zombie_id}",
            status=status,
            version=1 + dice.upto(3),
            config_version_id=config_id,
            config_revision=1,
            compiled=config.compiled,
            required_tags=("gpu",),
            approval_token_hash=b"h",
            url_secret_hashes={},
            created_at=CLOCK - 8_000,
            updated_at=CLOCK - 800,
        )
        tables.configs[config.id], tables.zombies[agent.id] = config, agent
        tables.heads[agent.id] = Head(
            agent.id,
            fence=dice.upto(4),
            last_runner_id=dice.one(None, *tables.runners),
            frame_seq=dice.upto(9),
            streak=dice.upto(3),
        )
        if has_cron:
            next_at = dice.one(None, CLOCK, CLOCK + 60_000)
            entry = CronEntry(agent.id, SCHEDULE, "UTC", CLOCK - 8_000, next_at)
            tables.crons[agent.id, SCHEDULE, "UTC"] = entry
        for day in (day_of(CLOCK), day_of(CLOCK) - 1, day_of(CLOCK) - 40):
            if dice.often(40):
                tables.spend[agent.id, day] = dice.one(0, 5, 60)
        if dice.often(30):
            said = text_of(zombie_id, "c")
            tables.memories[agent.id] = {"k": Memory(agent.id, "k", said, "core", CLOCK - 700)}
        busy = dice.often(self._busy_percent)
        for number in range(busy + dice.upto(4)):
            self._event(agent, CLOCK - 7_000 + 400 * number, busy=busy)
        self._follow_ups(agent)
        self._keys(agent)

    def _follow_ups(self, agent: Zombie) -> None:
        dice = self.dice
        for number in range(dice.upto(3)):
            status = dice.one(FollowUpStatus.PENDING, *FollowUpStatus)
            closed_at = None if status is FollowUpStatus.PENDING else CLOCK - 50
            follow_up_id = dice.id()
            follow_up = FollowUp(
                id=follow_up_id,
                zombie_id=agent.id,
                event_id=self._maker_of(agent, dice.id()),
                call_id=f"c{number}",
                message=text_of(follow_up_id, "later"),
                at=CLOCK,
                created_at=CLOCK - 500,
                status=status,
                closed_at=closed_at,
            )
            self.tables.follow_ups[follow_up.id] = follow_up

    def _maker_of(self, agent: Zombie, drawn: UUID) -> UUID:
        """An event of the agent for every other follow-up, one that is not there for the rest."""
        own = [event.id for event in self.tables.events.values() if event.zombie_id == agent.id]
        return own[drawn.int % len(own)] if own and drawn.int % 2 else drawn

    def _keys(self, agent: Zombie) -> None:
        dice = self.dice
        for key in KEYS:
            if dice.often(35):
                seen_at = dice.one(CLOCK - 100, CLOCK - DEDUP_WINDOW_MS - 1, CLOCK - DEDUP_WINDOW_MS)
                row = DedupKey(agent.id, key, dice.id(), seen_at, dice.often(40))
                self.tables.dedup[agent.id, key] = row

    # --- events and what belongs to them --------------------------------------------------------------------

    def _event(self, agent: Zombie, at: int, *, busy: bool) -> None:
        dice, tables = self.dice, self.tables
        free = busy and tables.heads[agent.id].live_lease_id is None
        status = dice.one(*[EventStatus.RECEIVED] * 5, *[EventStatus.RUNNING] * 4, *EventStatus)
        if free and dice.often(40):
            status = EventStatus.RUNNING
        if status is EventStatus.RUNNING and not free:
            status = EventStatus.RECEIVED
        attempts = dice.upto(5)
        event_id = dice.id()
        event = Event(
            id=event_id,
            zombie_id=agent.id,
            workspace_id=agent.workspace_id,
            tenant_id=agent.tenant_id,
            actor="webhook:github",
            event_type="push",
            status=status,
            request_json=request_of(event_id),
            created_at=at,
            updated_at=at,
            attempts=attempts,
            first_leased_at=at + 5 if attempts else None,
            parked_ms=dice.one(0, 0, 700),
            parked_at=dice.one(None, None, CLOCK - 60, CLOCK + 60),
            checkpoint=dice.one(None, document_of(event_id, {"step": 1})),
            response_text=dice.one(None, text_of(event_id, "so far")),
            input_tokens=dice.upto(9),
            output_tokens=dice.upto(9),
            wall_ms=dice.upto(9),
            charged_nanos=dice.upto(9),
            asked_version=dice.one(None, None, None, None, 3),
            ran_version=dice.one(None, 3),
            trial_id=dice.one(None, None, TRIAL),
        )
        if status in FINISHED_EVENT:
            event = replace(event, completed_at=at + 50, failure_label=dice.one(None, "odd"))
        elif status is EventStatus.GATE_BLOCKED and dice.often(60):
            label, code = BALANCE_EXHAUSTED, BALANCE_EXHAUSTED_CODE
            event = replace(event, failure_label=label, error_code=code)
        elif status is EventStatus.GATE_BLOCKED:
            event = replace(event, failure_label="approval_denied", completed_at=at + 50)
        # A live lease is the newest one of its event.
        past = attempts + dice.upto(1)
        self._past_leases(event, min(2, past))
        gates = self._gates(event)
        pending = [gate.id for gate in gates if gate.status is GateStatus.PENDING]
        waits = status is EventStatus.WAITING_APPROVAL and pending
        if status is EventStatus.WAITING_APPROVAL and not pending:
            event = replace(event, status=EventStatus.RECEIVED)
        running = status is EventStatus.RUNNING
        tables.put_event_row(EventRow(event, pending[0] if waits else None, past + running))
        put_beside_event(tables, event)
        if running:
            self._live_lease(event, past + 1)
        tables.zombies[agent.id] = replace(
            tables.zombies[agent.id], last_event_at=dice.one(at, at, at, CLOCK + 30)
        )

    def _gates(self, event: Event) -> list[Gate]:
        dice = self.dice
        gates = []
        for number in range(dice.upto(2) if event.status is not EventStatus.WAITING_APPROVAL else 2):
            status = dice.one(GateStatus.PENDING, GateStatus.PENDING, *GateStatus)
            gate = Gate(
                id=dice.id(),
                zombie_id=event.zombie_id,
                workspace_id=event.workspace_id,
                tenant_id=event.tenant_id,
                event_id=event.id,
                lease_id=dice.one(None, dice.id()),
                action_id=f"a{number}",
                status=status,
                requested_at=CLOCK - dice.one(100, 200),
                timeout_at=CLOCK + 60_000,
                detail=text_of(event.id, "asked"),
                evidence=document_of(event.id, {"n": number}),
            )
            gates.append(gate)
            self.tables.gates[gate.id] = gate
        return gates

    def _past_leases(self, event: Event, count: int) -> None:
        dice = self.dice
        for attempt in range(1, count + 1):
            if dice.often(50):
                self._metering(event, attempt, 1 + dice.upto(1))
        if count and dice.often(50):
            self._ended_lease(event, count)

    def _live_lease(self, event: Event, attempt: int) -> None:
        dice, tables = self.dice, self.tables
        head = tables.heads[event.zombie_id]
        slices = dice.upto(2)
        lease = self._lease(event, attempt, head.fence + 1, slices)
        tables.leases[lease.id] = lease
        tables.heads[event.zombie_id] = replace(
            head, fence=lease.fencing_token, live_lease_id=lease.id, last_runner_id=lease.runner_id
        )
        self._metering(event, attempt, slices)
        for number in range(dice.upto(2)):
            self._proposal(event, lease, number)

    def _ended_lease(self, event: Event, attempt: int) -> None:
        """The agent's last one, which may have ended after the next claim was made."""
        dice, tables = self.dice, self.tables
        token = tables.heads[event.zombie_id].fence
        taken = {(lease.zombie_id, lease.fencing_token) for lease in tables.leases.values()}
        if token and (event.zombie_id, token) not in taken:
            ended_at = CLOCK + dice.one(-4_000, -20, 20, 60)
            lease = replace(
                self._lease(event, attempt, token, 0), status=LeaseStatus.REPORTED, ended_at=ended_at
            )
            tables.leases[lease.id] = lease

    def _lease(self, event: Event, attempt: int, token: int, slices: int) -> Lease:
        dice, tables = self.dice, self.tables
        return Lease(
            id=dice.id(),
            event_id=event.id,
            zombie_id=event.zombie_id,
            workspace_id=event.workspace_id,
            tenant_id=event.tenant_id,
            runner_id=dice.one(*tables.runners),
            fencing_token=token,
            attempt=attempt,
            status=dice.one(LeaseStatus.ACTIVE, LeaseStatus.ACTIVE, LeaseStatus.CANCELLING),
            version=1 + dice.upto(3),
            granted_at=CLOCK - 5_000,
            expires_at=CLOCK + dice.one(-1, 0, 1, *[TERM_MS] * 5),
            ceiling_at=CLOCK + 3_600_000,
            metered_at=CLOCK - 1_000,
            rates=Rates(100, 3, 2, 1),
            slice_seq=slices,
            input_tokens=dice.upto(9),
            output_tokens=dice.upto(9),
            budget_daily_nanos=dice.one(None, 100),
            model=dice.one(None, "m"),
            own_key=dice.often(30),
        )

    def _metering(self, event: Event, attempt: int, slices: int) -> None:
        for seq in range(1, slices + 1):
            charged = self.dice.upto(9)
            period = MeteringPeriod(event.id, attempt, seq, 4, 1, 2, 700, charged, 0, charged, CLOCK - 2_000)
            self.tables.metering.setdefault(event.id, {})[attempt, seq] = period
            self.tables.metered_tenants[event.id] = event.tenant_id

    def _proposal(self, event: Event, lease: Lease, number: int) -> None:
        dice = self.dice
        rejected = dice.often(70)
        proposal_id = dice.id()
        proposal = Proposal(
            id=proposal_id,
            zombie_id=event.zombie_id,
            workspace_id=event.workspace_id,
            tenant_id=event.tenant_id,
            status=ProposalStatus.REJECTED if rejected else ProposalStatus.PENDING,
            title=f"p{number}",
            rationale=text_of(proposal_id, "r"),
            event_id=event.id if proposal_id.int % 2 else None,
            diff="d",
            base_config_version_id=dice.id(),
            created_by="run",
            created_at=CLOCK - 3_000,
            rejection_reason="no" if rejected else None,
            decided_at=CLOCK - 2_000 if rejected else None,
            decided_by="user:1" if rejected else None,
            handed_lease_id=dice.one(lease.id, lease.id, dice.id()) if rejected else None,
            heard_at=dice.one(None, None, CLOCK - 1_000) if rejected else None,
        )
        self.tables.proposals[proposal.id] = proposal
