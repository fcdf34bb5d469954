"""Metering of whole leases against a plain model: every row, the balance, the charges, the budgets."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import trio
from hypothesis import HealthCheck, given, settings, strategies as st
from msgspec.structs import replace

from sexton_actors.lease.metering import Wait
from sexton_actors.lease.transitions import releases, renewals, reports
from sexton_actors.lease.transitions.state import LeaseState
from sexton_actors.protocol.lease import Release, Renew, Renewal, Report
from sexton_actors.refusal import Refusal
from sexton_storage.memory import open_memory_storage
from sexton_storage.postgres import open_postgres_storage
from sexton_storage.records.leases import Lease, LeaseStatus, Rates
from sexton_storage.records.zombies import Zombie
from sexton_storage.refusals import OVER_BUDGET, Lost
from sexton_storage.stores import Storage
from sexton_storage.writes import (
    AppendEvent,
    Claimed,
    Ended,
    EndLease,
    NothingToClaim,
    OverBudget,
    Renewed,
    RenewLease,
)
from tests.thorough import examples
from tests.worlds.storage import HOUR_MS, StorageWorld, new_id

LEASES = 3
RATES = Rates(100_003, 3_333_337, 777_771, 15_454_549)
"""Odd enough that a floor in the wrong place shows."""
DAY_TERM_MS = 24 * HOUR_MS
"""So long that nothing expires: the time of these tests is their own, and starts in the past."""

which = st.integers(0, LEASES - 1)
tokens = st.tuples(st.integers(0, 3_000), st.integers(0, 3_000), st.integers(0, 3_000))
Step = tuple[Any, ...]
steps = st.lists(
    st.one_of(
        st.tuples(st.just("pass"), st.integers(0, 3_000)),
        st.tuples(st.just("back"), st.integers(0, 900)),
        st.tuples(st.just("renew"), which, tokens),
        st.tuples(st.just("renew"), which, tokens),
        st.tuples(st.just("again"), which),
        st.tuples(st.just("all at once"), tokens),
        st.tuples(st.just("gate"), which),
        st.tuples(st.just("answer"), which),
        st.tuples(st.just("report"), which, tokens),
        st.tuples(st.just("report again"), which),
        st.tuples(st.just("release"), which),
        st.tuples(st.just("credit"), st.integers(1, 3_000_000)),
    ),
    max_size=25,
)
starts = st.sampled_from([1, 1_000, 1_000_000, 10**12])


@dataclass
class Run:
    """One lease as the plain model has it: what was said, what was billed."""

    lease: Lease
    waits: list[Wait] = field(default_factory=list)
    metered_at: int = 0
    seen: list[int] = field(default_factory=lambda: [0, 0, 0])
    said: tuple[int, int, int] = (0, 0, 0)
    rows: list[tuple[int, ...]] = field(default_factory=list)
    live: bool = True
    last: Report | None = None

    def bill(self, counts: Sequence[int], now: int, balance: int) -> int:
        """Add the row that is due and give what it takes; as plainly as it can be said."""
        end = max(now, self.metered_at)
        ms = sum(not any(_holds(wait, at) for wait in self.waits) for at in range(self.metered_at, end))
        deltas = [max(0, count - seen) for count, seen in zip(counts, self.seen, strict=True)]
        prices = (
            RATES.input_nanos_per_mtok,
            RATES.cached_input_nanos_per_mtok,
            RATES.output_nanos_per_mtok,
        )
        fee = ms * RATES.run_nanos_per_sec // 1000
        cost = sum(delta * price // 1_000_000 for delta, price in zip(deltas, prices, strict=True))
        charged = min(fee + cost, balance)
        self.rows.append((*deltas, ms, fee, cost, charged))
        self.seen = [seen + delta for seen, delta in zip(self.seen, deltas, strict=True)]
        self.metered_at = end
        return charged


def _holds(wait: Wait, at: int) -> bool:
    return wait.since <= at and (wait.until is None or at < wait.until)


class Desk:
    """Drives real transitions and a real storage, and the model beside them."""

    def __init__(self, world: StorageWorld, runs: list[Run], balance: int, now: int) -> None:
        self.world = world
        self.runs = runs
        self.balance = self.start = balance
        self.now = now

    async def take(self, step: Step) -> None:
        match step:
            case ("pass", int(ms)):
                self.now += ms
            case ("back", int(ms)):
                self.now -= ms
            case ("renew", int(place), tuple(said)):
                await self.renew([place], said)
            case ("again", int(place)):
                await self.renew([place], self.runs[place].said)
            case ("all at once", tuple(said)):
                await self.renew(list(range(LEASES)), said)
            case ("gate" | "answer" as what, int(place)):
                self.gate(self.runs[place], opens=what == "gate")
            case ("report", int(place), tuple(said)):
                await self.report(self.runs[place], said)
            case ("report again", int(place)):
                await self.report_again(self.runs[place])
            case ("release", int(place)):
                await self.release(self.runs[place])
            case ("credit", int(nanos)):
                await self.world.storage.tenants.credit(self.world.tenant_id, nanos, "more", "test")
                self.balance, self.start = self.balance + nanos, self.start + nanos
            case _:
                raise AssertionError(step)

    def state(self, run: Run) -> LeaseState:
        return LeaseState(run.lease, tuple(run.waits))

    def gate(self, run: Run, *, opens: bool) -> None:
        pending = [number for number, wait in enumerate(run.waits) if wait.until is None]
        if opens and not pending:
            run.waits.append(Wait(new_id(), self.now, None))
        elif not opens and pending:
            wait = run.waits[pending[0]]
            run.waits[pending[0]] = replace(wait, until=max(self.now, wait.since))

    async def renew(self, places: Sequence[int], said: tuple[int, int, int]) -> None:
        """All in one batch, in this order: who comes first is paid first."""
        answers: dict[int, Renewed | Lost | Exception] = {}
        writes: dict[int, RenewLease] = {}
        for place in places:
            run = self.runs[place]
            lease = run.lease
            message = Renew(lease.runner_id, *said, fencing_token=lease.fencing_token)
            decided = renewals.renew(self.state(run), message, self.now)
            assert isinstance(decided, Refusal) == (not run.live)
            if isinstance(decided, RenewLease):
                writes[place] = decided
        for place, write in writes.items():

            def hear(answer: Any, place: int = place) -> None:
                answers[place] = answer

            self.world.storage.journal.submit(write, hear)
        while len(answers) < len(writes):
            await trio.sleep(0.0005)
        for place, write in writes.items():
            run, answer = self.runs[place], answers[place]
            assert isinstance(answer, Renewed), answer
            charged = run.bill(said, self.now, self.balance)
            self.balance -= charged
            assert (answer.charged_nanos, answer.balance_nanos) == (charged, self.balance)
            told = renewals.answer(write.lease, answer)
            stops = self.balance == 0 and charged == 0
            assert isinstance(told, Refusal) == stops
            if isinstance(told, Renewal):
                assert (told.slice_seq, told.charged_nanos) == (len(run.rows), charged)
            run.lease, run.said = write.lease, said

    async def end(self, run: Run, write: EndLease, counts: Sequence[int]) -> None:
        ended = await self.world.storage.journal.write(write)
        assert isinstance(ended, Ended), ended
        charged = run.bill(counts, self.now, self.balance)
        self.balance -= charged
        assert (ended.charged_nanos, ended.balance_nanos) == (charged, self.balance)
        run.lease = replace(run.lease, status=write.status, version=write.version + 1)
        run.live = False

    async def report(self, run: Run, said: tuple[int, int, int]) -> None:
        lease = run.lease
        message = Report(
            runner_id=lease.runner_id,
            event_id=lease.event_id,
            fencing_token=lease.fencing_token,
            outcome="processed",
            failure_reason=None,
            response_text=None,
            evidence=None,
            time_to_first_token_ms=None,
            wall_ms=0,
            checkpoint=None,
            digest=b"d" * 32,
            input_tokens=said[0],
            cached_input_tokens=said[1],
            output_tokens=said[2],
        )
        decided = reports.report(self.state(run), message, self.now)
        assert isinstance(decided, Refusal) == (not run.live)
        if isinstance(decided, EndLease):
            run.last = message
            await self.end(run, decided, said)

    async def report_again(self, run: Run) -> None:
        """A report whose answer was lost finds its lease ended, and bills nothing."""
        if run.last is not None:
            assert isinstance(reports.report(self.state(run), run.last, self.now), Refusal)

    async def release(self, run: Run) -> None:
        decided = releases.release(self.state(run), Release(run.lease.runner_id, "drained"), self.now)
        assert isinstance(decided, Refusal) == (not run.live)
        if isinstance(decided, EndLease):
            await self.end(run, decided, run.seen)

    async def check(self) -> None:
        world, gone = self.world, 0
        for run in self.runs:
            rows = await world.storage.metering.list(world.tenant_id, run.lease.event_id)
            assert [row.slice_seq for row in rows] == list(range(1, len(run.rows) + 1))
            found = [
                (
                    row.d_input_tokens,
                    row.d_cached_tokens,
                    row.d_output_tokens,
                    row.run_ms,
                    row.run_fee_nanos,
                    row.token_cost_nanos,
                    row.charged_nanos,
                )
                for row in rows
            ]
            assert found == run.rows
            gone += sum(row.charged_nanos for row in rows)
        assert await world.balance() == self.balance == self.start - gone
        charges = {c.id: c for c in await world.storage.charges.list(world.tenant_id, limit=LEASES + 1)}
        assert set(charges) == {run.lease.id for run in self.runs if not run.live}
        for run in self.runs:
            if not run.live:
                charge = charges[run.lease.id]
                assert charge.credit_deducted_nanos == sum(row[-1] for row in run.rows)
                assert charge.token_count_input == run.seen[0] + run.seen[1]
                assert charge.token_count_output == run.seen[2]
                assert charge.wall_ms == sum(row[3] for row in run.rows)


async def drive(storage: Storage, start: int, todo: Sequence[Step]) -> None:
    world = await StorageWorld(storage).found(start)
    # Hours ago, so that this time may pass as the steps say while the database's own stands nearly still.
    now = world.now - 6 * HOUR_MS
    changes = {"now": now, "rates": RATES, "term_ms": DAY_TERM_MS, "ceiling_ms": DAY_TERM_MS}
    runs = [Run(await world.lease(**changes), metered_at=now) for _ in range(LEASES)]
    desk = Desk(world, runs, start, now)
    for step in todo:
        await desk.take(step)
    await desk.check()


@settings(max_examples=examples(100), deadline=None)
@given(starts, steps)
def test_leases_are_billed_as_the_plain_model_says_in_memory(start: int, todo: list[Step]) -> None:
    async def run() -> None:
        async with open_memory_storage(clock=lambda: int(time.time() * 1000)) as storage:
            await drive(storage, start, todo)

    trio.run(run)


@settings(
    max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(starts, steps)
def test_leases_are_billed_as_the_plain_model_says_in_postgresql(
    postgres_dsn: str, start: int, todo: list[Step]
) -> None:
    async def run() -> None:
        async with open_postgres_storage(postgres_dsn) as storage:
            await drive(storage, start, todo)

    trio.run(run)


# --- budgets ------------------------------------------------------------------------------------------------

budgets = st.tuples(st.none() | st.integers(1, 5_000_000), st.none() | st.integers(1, 5_000_000))
runs_of = st.lists(
    st.lists(st.tuples(st.integers(0, 15_000), st.integers(0, 2_000_000)), max_size=6), max_size=5
)


async def spend(
    storage: Storage, daily: int | None, monthly: int | None, plan: list[list[tuple[int, int]]]
) -> None:
    """Events of a queue, one after another, each run by a runner that stops when it is told to."""
    world = await StorageWorld(storage).found(10**15)
    agent = await world.agent()
    for _ in plan:
        await world.append(agent)
    # All within one day, whatever the hour is now.
    now, largest = world.now // 86_400_000 * 86_400_000 - 12 * HOUR_MS, 0
    for slices in plan:
        claim = world.claim_of(
            agent,
            now=now,
            rates=RATES,
            term_ms=3 * DAY_TERM_MS,
            ceiling_ms=3 * DAY_TERM_MS,
            budget_daily_nanos=daily,
            budget_monthly_nanos=monthly,
        )
        claimed = await storage.journal.write(claim)
        day, month = await storage.zombies.spend(agent.id, now)
        spent_up = (daily is not None and day >= daily) or (monthly is not None and month >= monthly)
        if spent_up:
            assert claimed == NothingToClaim(OVER_BUDGET)
            break
        assert isinstance(claimed, Claimed)
        lease, said = claimed.lease, 0
        for ms, more in slices:
            now, said = now + ms, said + more
            message = Renew(lease.runner_id, said, 0, 0, fencing_token=lease.fencing_token)
            write = renewals.renew(LeaseState(lease), message, now)
            assert isinstance(write, RenewLease)
            saved = await storage.journal.write(write)
            assert isinstance(saved, Renewed)
            largest, lease = max(largest, saved.charged_nanos), write.lease
            told = renewals.answer(lease, saved)
            if isinstance(told, Refusal):
                assert told.code == "UZ-ZMB-001"
                break
        report = releases.release(LeaseState(lease), Release(lease.runner_id, "done"), now)
        assert isinstance(report, EndLease)
        ended = await storage.journal.write(replace(report, status=LeaseStatus.REPORTED))
        assert isinstance(ended, Ended)
        assert ended.charged_nanos == 0, "nothing ran since the last renewal"
    await judge(world, agent, (daily, monthly), now, largest)


async def judge(
    world: StorageWorld, agent: Zombie, limits: tuple[int | None, int | None], now: int, largest: int
) -> None:
    spent = await world.storage.zombies.spend(agent.id, now)
    for limit, gone in zip(limits, spent, strict=True):
        assert limit is None or gone < limit + largest or gone == 0
    event = world.event_of(agent, created_at=now)
    answer = await world.storage.journal.write(AppendEvent(event, None, *limits, ()))
    over = [limit is not None and gone >= limit for limit, gone in zip(limits, spent, strict=True)]
    assert isinstance(answer, OverBudget) == any(over)


@settings(max_examples=examples(100), deadline=None)
@given(budgets, runs_of)
def test_no_budget_is_overshot_by_more_than_one_slice_in_memory(
    limits: tuple[int | None, int | None], plan: list[list[tuple[int, int]]]
) -> None:
    async def run() -> None:
        async with open_memory_storage(clock=lambda: int(time.time() * 1000)) as storage:
            await spend(storage, *limits, plan)

    trio.run(run)


@settings(
    max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(budgets, runs_of)
def test_no_budget_is_overshot_by_more_than_one_slice_in_postgresql(
    postgres_dsn: str, limits: tuple[int | None, int | None], plan: list[list[tuple[int, int]]]
) -> None:
    async def run() -> None:
        async with open_postgres_storage(postgres_dsn) as storage:
            await spend(storage, *limits, plan)

    trio.run(run)
