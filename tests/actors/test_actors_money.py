"""What work costs, and what happens when nobody can pay."""

import trio
from trio.testing import MockClock

from sexton_actors.lease.handover.deliver import deliver
from sexton_actors.protocol.ledger import Credit, ReadBalance
from sexton_actors.protocol.zombie import Steer
from sexton_actors.refusal import Refusal
from sexton_storage.records.events import EventStatus
from sexton_storage.records.tenants import Tenant
from tests.worlds.actors import ActorsWorld, Later, clock

TEN_CENTS = "budget: {daily_dollars: 0.1}"


async def test_a_run_that_uses_up_the_balance_stops_at_the_next_renewal(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    event_id = await world.deliver(zombie_id)
    world.set_balance(1_500_000)
    spent = 5_000_000_000 - 1_500_000
    grant = await world.grant(runner_id)
    await trio.sleep(10)
    assert (await world.renewed(grant)).balance_nanos == 500_000

    await trio.sleep(10)
    last = await world.renewed(grant)
    assert (last.charged_nanos, last.balance_nanos) == (500_000, 0)

    await trio.sleep(10)
    stopped = await world.renew(grant)
    assert isinstance(stopped, Refusal)
    assert stopped.code == "UZ-RUN-012"

    await world.report(grant, "agent_error")
    assert [row.charged_nanos for row in world.rows(event_id)] == [1_000_000, 500_000, 0, 0]
    assert world.event(event_id).charged_nanos == 1_500_000 == 5_000_000_000 - spent


async def test_without_money_new_work_waits_and_a_credit_frees_it(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    events = [await world.deliver(zombie_id) for _ in range(3)]
    world.set_balance(0)
    await world.nothing(runner_id, 0.5)
    for event_id in events:
        event = world.event(event_id)
        assert (event.status, event.failure_label) == (EventStatus.GATE_BLOCKED, "balance_exhausted")
        assert event.completed_at is None
    async with trio.open_nursery() as nursery:
        poll = Later(nursery, lambda: world.grant(runner_id, 30))
        await trio.sleep(2.3)
        tenant = await world.system.ask("ledger", world.tenant_id, Credit(10**9, "gift", "user:1"))
        credited_at = trio.current_time()

        assert isinstance(tenant, Tenant)
        assert tenant.balance_nanos == 10**9
        assert (await poll.value()).event.id == events[0]
        assert poll.at == credited_at


async def test_a_credit_of_nothing_or_too_much_is_refused(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    for amount in (0, -5, 10**18 + 1):
        refused = await world.system.ask("ledger", world.tenant_id, Credit(amount, "", "user:1"))
        assert isinstance(refused, Refusal)
        assert refused.code == "UZ-REQ-001"
    unknown = await world.system.ask("ledger", world.actors_world.new_id(), ReadBalance())

    assert isinstance(unknown, Refusal)
    assert unknown.code == "UZ-BILLING-002"


async def test_a_spent_budget_stops_the_run_at_that_renewal_and_turns_new_work_away(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    await world.system.ask("ledger", world.tenant_id, Credit(10**12, "plenty", "user:1"))
    zombie_id, runner_id = await world.install(config=TEN_CENTS), await world.enrol()
    await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    (packed,) = await deliver([grant], world.system, world.actors_world)
    assert packed["policy"]["budget_left_nanos"] == 100_000_000

    stopped = await world.renew(grant, (40_000_000, 0, 0))
    assert isinstance(stopped, Refusal)
    assert stopped.code == "UZ-ZMB-001"

    await world.report(grant, "agent_error", (40_000_000, 0, 0))
    midnight_s = 86_400 - clock() // 1000 % 86_400
    webhook = await world.system.ask("zombie", zombie_id, world.webhook())
    assert isinstance(webhook, Refusal)
    assert (webhook.code, webhook.status, webhook.retry_after_s) == ("UZ-ZMB-001", 503, midnight_s)

    message = await world.system.ask("zombie", zombie_id, Steer("go on", "ada"))
    assert isinstance(message, Refusal)
    assert (message.code, message.status) == ("UZ-ZMB-001", None)
    assert world.kinds(zombie_id)[-1] == "webhook_rejected"

    world.everything_adds_up()


async def test_counts_that_go_back_cost_nothing_and_cannot_be_claimed_twice(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    event_id = await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    for tokens in ((1000, 0, 0), (400, 0, 0), (1000, 0, 0), (1500, 0, 0)):
        await world.renewed(grant, tokens)

    assert [row.d_input_tokens for row in world.rows(event_id)] == [1000, 0, 0, 500]


async def test_counts_out_of_range_are_refused_and_keep_nothing(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    event_id = await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    for tokens in ((-1, 0, 0), (0, 10**12 + 1, 0), (0, 0, 2**63)):
        refused = await world.renew(grant, tokens)
        assert isinstance(refused, Refusal)
        assert refused.code == "UZ-REQ-001"
        reported = await world.report(grant, tokens=tokens)
        assert isinstance(reported, Refusal)
        assert reported.code == "UZ-REQ-001"

    assert world.rows(event_id) == []


async def test_renewals_whose_batch_commits_hold_no_worker_and_are_answered_in_order(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    event_id = await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    await world.renewed(grant)
    await trio.sleep(0.1)  # between two rounds of those who look at the tables
    world.faults.latency_s = 0.2
    async with trio.open_nursery() as nursery:
        first = Later(nursery, lambda: world.renewed(grant, (100, 0, 0)))
        await trio.sleep(0.02)
        second = Later(nursery, lambda: world.renewed(grant, (300, 0, 0)))
        await trio.sleep(0.02)
        reported = Later(nursery, lambda: world.report(grant, tokens=(600, 0, 0)))
        await trio.sleep(0.02)
        statistics = world.system.statistics()
        assert statistics.kind("lease").mailbox_depth == 2, "they wait for the first one to be kept"
        assert statistics.workers == statistics.workers_idle

        slices = (await first.value()).slice_seq, (await second.value()).slice_seq
        await reported.value()

    assert slices == (2, 3)
    assert [row.d_input_tokens for row in world.rows(event_id)] == [0, 100, 200, 300]
