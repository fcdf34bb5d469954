"""Questions put to people, from inside a run and before one."""

import trio
from trio.testing import MockClock

from sexton_actors.protocol.gate import Await, Resolved
from sexton_actors.protocol.lease import Parked
from sexton_actors.refusal import Refusal
from sexton_storage.records.events import EventStatus
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.records.leases import LeaseStatus
from sexton_storage.records.zombies import ZombieStatus
from tests.worlds.actors import ActorsWorld, Later, clock

SHORT = "gates: {timeout_ms: 5000}"
ASK_FIRST = "gates: {timeout_ms: 5000, rules: [{tool: 'workflow_run.*', action: '*', behavior: approve}]}"
NEVER = "gates: {rules: [{tool: http, action: POST, behavior: auto_kill}]}"
NEVER_WAKE = "gates: {rules: [{tool: 'workflow_run.*', action: '*', behavior: auto_kill}]}"
REFUSE = NEVER.replace("auto_kill", "deny")
REFUSE_WAKE = NEVER_WAKE.replace("auto_kill", "deny")
THRICE = "gates: {anomaly_rules: [{pattern: same_action, threshold_count: 3, threshold_window_s: 3600}]}"


async def test_those_who_wait_for_a_gate_hear_its_answer_at_once(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    await world.deliver(zombie_id)
    gate = await world.ask_approval(await world.grant(runner_id))
    async with trio.open_nursery() as nursery:
        first = Later(nursery, lambda: world.system.ask("gate", gate.id, Await(30_000), timeout=35))
        second = Later(nursery, lambda: world.system.ask("gate", gate.id, Await(3_000)))
        await trio.sleep(10)
        unanswered = await second.value()
        assert isinstance(unanswered, Gate)
        assert unanswered.status is GateStatus.PENDING

        resolved = await world.resolve(gate.id)
        answered_at = trio.current_time()
        assert isinstance(resolved, Resolved)
        assert await first.value() == resolved.gate
        assert first.at == answered_at

    assert await world.system.ask("gate", gate.id, Await(30_000)) == resolved.gate


async def test_those_who_wait_for_a_gate_hear_of_a_kill_within_a_second(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    await world.deliver(zombie_id)
    gate = await world.ask_approval(await world.grant(runner_id))
    async with trio.open_nursery() as nursery:
        waiting = Later(nursery, lambda: world.system.ask("gate", gate.id, Await(30_000), timeout=35))
        await trio.sleep(5.3)
        await world.change_status(zombie_id, "killed")
        killed_at = trio.current_time()
        answer = await waiting.value()

        assert isinstance(answer, Gate)
        assert answer.status is GateStatus.AUTO_KILLED
        assert waiting.at is not None
        assert waiting.at - killed_at <= 1


async def test_the_first_answer_stands(world: ActorsWorld, autojump_clock: MockClock) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    await world.deliver(zombie_id)
    gate = await world.ask_approval(await world.grant(runner_id))
    denied = await world.resolve(gate.id, approve=False)
    assert isinstance(denied, Resolved)
    assert denied.gate.status is GateStatus.DENIED

    again = await world.resolve(gate.id)
    assert isinstance(again, Refusal)
    assert again.code == "UZ-APPROVAL-002"
    assert again.facts == {"outcome": "denied", "resolved_at": clock(), "resolved_by": "user:1"}


async def test_a_gate_that_does_not_exist_is_refused(world: ActorsWorld, autojump_clock: MockClock) -> None:
    refused = await world.resolve(world.actors_world.new_id())

    assert isinstance(refused, Refusal)
    assert refused.code == "UZ-APPROVAL-002"


async def test_a_gate_times_out_within_a_second_of_its_time(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(config=SHORT), await world.enrol()
    await world.deliver(zombie_id)
    gate = await world.ask_approval(await world.grant(runner_id))
    closed = await world.system.ask("gate", gate.id, Await(30_000), timeout=35)

    assert isinstance(closed, Gate)
    assert (closed.status, closed.resolved_by) == (GateStatus.TIMED_OUT, "system:timeout")
    assert gate.timeout_at <= clock() <= gate.timeout_at + 1000


async def test_an_answer_after_the_time_is_a_time_out(world: ActorsWorld, autojump_clock: MockClock) -> None:
    zombie_id, runner_id = await world.install(config=SHORT), await world.enrol()
    await world.deliver(zombie_id)
    gate = await world.ask_approval(await world.grant(runner_id))
    await trio.sleep(5.001)
    late = await world.resolve(gate.id)

    assert isinstance(late, Refusal)
    assert late.facts["outcome"] == "timed_out"


async def test_the_sweeper_times_out_a_gate_that_no_actor_watches(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(config=SHORT), await world.enrol()
    await world.deliver(zombie_id)
    gate = await world.ask_approval(await world.grant(runner_id))
    await world.system.stop("gate", gate.id)
    await trio.sleep(6)

    assert world.storage.tables.gates[gate.id].status is GateStatus.TIMED_OUT


async def test_time_at_a_pending_gate_is_not_billed(world: ActorsWorld, autojump_clock: MockClock) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    event_id = await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    await trio.sleep(4)
    first = await world.ask_approval(grant, "one")
    await trio.sleep(5)
    second = await world.ask_approval(grant, "two")
    await trio.sleep(5)
    await world.renewed(grant)
    await world.resolve(first.id)
    await trio.sleep(5)
    await world.renewed(grant)
    await world.resolve(second.id)
    await trio.sleep(3)
    await world.report(grant)

    assert [row.run_ms for row in world.rows(event_id)] == [4000, 0, 3000]


async def test_a_parked_run_goes_on_from_its_checkpoint_when_its_gate_is_answered(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id = await world.install()
    first, second = await world.enrol("r1"), await world.enrol("r2")
    event_id = await world.deliver(zombie_id)
    grant = await world.grant(first)
    gate = await world.ask_approval(grant)
    await trio.sleep(20)
    assert await world.park(grant, gate.id) == Parked()
    assert world.event(event_id).status is EventStatus.WAITING_APPROVAL
    assert world.storage.tables.leases[grant.lease.id].status is LeaseStatus.PARKED

    async with trio.open_nursery() as nursery:
        poll = Later(nursery, lambda: world.grant(second, 30))
        await trio.sleep(25)
        await world.resolve(gate.id)
        resolved_at = trio.current_time()
        again = await poll.value()

        assert poll.at == resolved_at
    assert again.event.checkpoint == {"step": 2}
    assert (again.event.attempts, again.lease.attempt, again.lease.fencing_token) == (1, 2, 2)
    assert again.lease.ceiling_at == grant.lease.ceiling_at + 25_000

    same = await world.ask_approval(again)
    assert (same.id, same.status) == (gate.id, GateStatus.APPROVED)
    assert world.event(event_id).wall_ms == 20_000

    await world.report(again, tokens=(5, 0, 0))
    assert sum(row.run_ms for row in world.rows(event_id)) == 0
    # The run before it was parked, without the wait, and what the second run reports of itself.
    assert world.event(event_id).wall_ms == 20_000 + 1_000

    world.everything_adds_up()


async def test_what_a_run_used_before_it_was_parked_counts_with_what_it_uses_after(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    event_id = await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    await trio.sleep(2)
    await world.renewed(grant, (100, 10, 1))
    gate = await world.ask_approval(grant)
    assert await world.park(grant, gate.id) == Parked()

    await world.resolve(gate.id)
    await world.report(await world.grant(runner_id), tokens=(7, 5, 3))
    event = world.event(event_id)
    assert (event.input_tokens, event.cached_input_tokens, event.output_tokens) == (107, 15, 4)
    assert event.wall_ms == 3_000

    world.everything_adds_up()


async def test_an_agents_other_events_run_while_one_is_parked(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    waiting, following = await world.deliver(zombie_id), await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    gate = await world.ask_approval(grant)
    await world.park(grant, gate.id)
    other = await world.grant(runner_id)
    assert other.event.id == following

    await world.resolve(gate.id)
    await world.report(other)
    assert (await world.grant(runner_id)).event.id == waiting


async def test_a_gate_that_is_answered_while_the_run_parks_does_not_keep_it(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    event_id = await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    gate = await world.ask_approval(grant)
    world.faults.latency_s = 0.1
    async with trio.open_nursery() as nursery:
        parked = Later(nursery, lambda: world.park(grant, gate.id))
        Later(nursery, lambda: world.resolve(gate.id))

        assert await parked.value() == Parked()
    world.faults.latency_s = 0

    assert world.event(event_id).status is EventStatus.RECEIVED
    assert (await world.grant(runner_id)).event.id == event_id


async def test_the_same_question_under_a_new_lease_is_the_same_gate_and_still_not_billed(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    event_id = await world.deliver(zombie_id)
    gate = await world.ask_approval(await world.grant(runner_id))
    again = await world.grant(runner_id, 35)  # The first runner has died.
    await trio.sleep(2)
    same = await world.ask_approval(again)
    assert (same.id, same.status, same.lease_id) == (gate.id, GateStatus.PENDING, again.lease.id)

    await world.system.stop("lease", again.lease.id)
    await trio.sleep(6)
    await world.renewed(again)
    await trio.sleep(5)
    await world.resolve(gate.id)
    await trio.sleep(1)
    await world.report(again)
    # From its grant on: that the gate had been pending before counts only for the lease that waits now.
    assert sum(row.run_ms for row in world.rows(event_id)) == 1000


async def test_a_run_that_ends_takes_its_open_questions_with_it(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    gate = await world.ask_approval(grant)
    await world.report(grant)
    await trio.sleep(0.1)
    closed = world.storage.tables.gates[gate.id]
    assert (closed.status, closed.resolved_by) == (GateStatus.DENIED, "system:run_ended")

    world.everything_adds_up()


async def test_an_event_that_a_rule_holds_waits_for_leave_and_then_runs(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(config=ASK_FIRST), await world.enrol()
    event_id = await world.deliver(zombie_id)
    assert world.event(event_id).status is EventStatus.WAITING_APPROVAL

    await world.nothing(runner_id, 2)
    (gate,) = world.storage.tables.gates.values()
    assert isinstance(await world.resolve(gate.id), Resolved)
    assert (await world.grant(runner_id)).event.id == event_id


async def test_an_event_that_gets_no_leave_ends(world: ActorsWorld, autojump_clock: MockClock) -> None:
    zombie_id = await world.install(config=ASK_FIRST)
    denied, forgotten = await world.deliver(zombie_id), await world.deliver(zombie_id)
    gate = next(g for g in world.storage.tables.gates.values() if g.event_id == denied)
    await world.resolve(gate.id, approve=False)
    await trio.sleep(6)
    for event_id, label in ((denied, "approval_denied"), (forgotten, "approval_expired")):
        event = world.event(event_id)
        assert (event.status, event.failure_label) == (EventStatus.GATE_BLOCKED, label)
        assert event.completed_at is not None
    world.everything_adds_up()


async def test_a_forbidden_tool_call_is_denied_and_pauses_the_agent(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(config=NEVER), await world.enrol()
    await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    gate = await world.ask_approval(grant)
    assert (gate.status, gate.resolved_by) == (GateStatus.AUTO_KILLED, "system:auto_kill")
    assert world.storage.tables.zombies[zombie_id].status is ZombieStatus.PAUSED

    await trio.sleep(5)
    await world.renewed(grant)
    await world.report(grant, "agent_error")
    world.everything_adds_up()


async def test_a_forbidden_event_ends_at_once_and_pauses_the_agent(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(config=NEVER_WAKE), await world.enrol()
    event_id = await world.deliver(zombie_id)
    event = world.event(event_id)
    assert (event.status, event.failure_label) == (EventStatus.GATE_BLOCKED, "policy_deny")
    assert world.storage.tables.zombies[zombie_id].status is ZombieStatus.PAUSED

    await world.nothing(runner_id, 2)
    world.everything_adds_up()


async def test_a_refused_question_is_denied_and_the_run_goes_on(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(config=REFUSE), await world.enrol()
    event_id = await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    gate = await world.ask_approval(grant)
    assert (gate.status, gate.resolved_by) == (GateStatus.DENIED, "system:deny")
    assert "Nobody was asked" in gate.detail
    assert await world.ask_approval(grant) == gate

    await world.report(grant)
    assert world.event(event_id).status is EventStatus.PROCESSED
    assert world.storage.tables.zombies[zombie_id].status is ZombieStatus.ACTIVE

    world.everything_adds_up()


async def test_a_refused_event_ends_at_once_and_the_agent_stays_active(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(config=REFUSE_WAKE), await world.enrol()
    event_id = await world.deliver(zombie_id)
    event = world.event(event_id)
    assert (event.status, event.failure_label) == (EventStatus.GATE_BLOCKED, "approval_denied")

    (gate,) = world.storage.tables.gates.values()
    assert (gate.status, gate.resolved_by) == (GateStatus.DENIED, "system:deny")
    assert world.storage.tables.zombies[zombie_id].status is ZombieStatus.ACTIVE
    assert "gate_resolved" in [frame.kind for frame in world.storage.tables.frames[zombie_id]]

    await world.nothing(runner_id, 2)
    world.everything_adds_up()


async def test_an_anomaly_is_noticed_across_sleep_and_restart(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id = await world.install(config=THRICE)
    await world.deliver(zombie_id)
    await trio.sleep(200)  # Long enough to be put to sleep.
    assert {node.kind: node.live for node in world.system.statistics().kinds}["zombie"] == 0

    await world.deliver(zombie_id)
    await world.system.stop("zombie", zombie_id)
    event_id = await world.deliver(zombie_id)
    assert world.event(event_id).status is EventStatus.GATE_BLOCKED
    assert world.storage.tables.zombies[zombie_id].status is ZombieStatus.PAUSED

    (gate,) = world.storage.tables.gates.values()
    assert gate.resolved_by == "system:anomaly"
