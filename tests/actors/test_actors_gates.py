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
from tests.actors.plant import Later, Plant, clock

SHORT = "gates: {timeout_ms: 5000}"
ASK_FIRST = "gates: {timeout_ms: 5000, rules: [{tool: 'workflow_run.*', action: '*', behavior: approve}]}"
NEVER = "gates: {rules: [{tool: http, action: POST, behavior: auto_kill}]}"
NEVER_WAKE = "gates: {rules: [{tool: 'workflow_run.*', action: '*', behavior: auto_kill}]}"
REFUSE = NEVER.replace("auto_kill", "deny")
REFUSE_WAKE = NEVER_WAKE.replace("auto_kill", "deny")
THRICE = "gates: {anomaly_rules: [{pattern: same_action, threshold_count: 3, threshold_window_s: 3600}]}"


async def test_those_who_wait_for_a_gate_hear_its_answer_at_once(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await plant.install(), await plant.enrol()
    await plant.deliver(zombie_id)
    gate = await plant.ask_approval(await plant.grant(runner_id))
    async with trio.open_nursery() as nursery:
        first = Later(nursery, lambda: plant.system.ask("gate", gate.id, Await(30_000), timeout=35))
        second = Later(nursery, lambda: plant.system.ask("gate", gate.id, Await(3_000)))
        await trio.sleep(10)
        unanswered = await second.value()
        assert isinstance(unanswered, Gate)
        assert unanswered.status is GateStatus.PENDING
        resolved = await plant.resolve(gate.id)
        answered_at = trio.current_time()
        assert isinstance(resolved, Resolved)
        assert await first.value() == resolved.gate
        assert first.at == answered_at
    assert await plant.system.ask("gate", gate.id, Await(30_000)) == resolved.gate


async def test_those_who_wait_for_a_gate_hear_of_a_kill_within_a_second(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await plant.install(), await plant.enrol()
    await plant.deliver(zombie_id)
    gate = await plant.ask_approval(await plant.grant(runner_id))
    async with trio.open_nursery() as nursery:
        waiting = Later(nursery, lambda: plant.system.ask("gate", gate.id, Await(30_000), timeout=35))
        await trio.sleep(5.3)
        await plant.change_status(zombie_id, "killed")
        killed_at = trio.current_time()
        answer = await waiting.value()
        assert isinstance(answer, Gate)
        assert answer.status is GateStatus.AUTO_KILLED
        assert waiting.at is not None
        assert waiting.at - killed_at <= 1


async def test_the_first_answer_stands(plant: Plant, autojump_clock: MockClock) -> None:
    zombie_id, runner_id = await plant.install(), await plant.enrol()
    await plant.deliver(zombie_id)
    gate = await plant.ask_approval(await plant.grant(runner_id))
    denied = await plant.resolve(gate.id, approve=False)
    assert isinstance(denied, Resolved)
    assert denied.gate.status is GateStatus.DENIED
    again = await plant.resolve(gate.id)
    assert isinstance(again, Refusal)
    assert again.code == "UZ-APPROVAL-002"
    assert again.facts == {"outcome": "denied", "resolved_at": clock(), "resolved_by": "user:1"}


async def test_a_gate_that_does_not_exist_is_refused(plant: Plant, autojump_clock: MockClock) -> None:
    refused = await plant.resolve(plant.world.new_id())
    assert isinstance(refused, Refusal)
    assert refused.code == "UZ-APPROVAL-002"


async def test_a_gate_times_out_within_a_second_of_its_time(plant: Plant, autojump_clock: MockClock) -> None:
    zombie_id, runner_id = await plant.install(config=SHORT), await plant.enrol()
    await plant.deliver(zombie_id)
    gate = await plant.ask_approval(await plant.grant(runner_id))
    closed = await plant.system.ask("gate", gate.id, Await(30_000), timeout=35)
    assert isinstance(closed, Gate)
    assert (closed.status, closed.resolved_by) == (GateStatus.TIMED_OUT, "system:timeout")
    assert gate.timeout_at <= clock() <= gate.timeout_at + 1000


async def test_an_answer_after_the_time_is_a_time_out(plant: Plant, autojump_clock: MockClock) -> None:
    zombie_id, runner_id = await plant.install(config=SHORT), await plant.enrol()
    await plant.deliver(zombie_id)
    gate = await plant.ask_approval(await plant.grant(runner_id))
    await trio.sleep(5.001)
    late = await plant.resolve(gate.id)
    assert isinstance(late, Refusal)
    assert late.facts["outcome"] == "timed_out"


async def test_the_sweeper_times_out_a_gate_that_no_actor_watches(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await plant.install(config=SHORT), await plant.enrol()
    await plant.deliver(zombie_id)
    gate = await plant.ask_approval(await plant.grant(runner_id))
    await plant.system.stop("gate", gate.id)
    await trio.sleep(6)
    assert plant.storage.tables.gates[gate.id].status is GateStatus.TIMED_OUT


async def test_time_at_a_pending_gate_is_not_billed(plant: Plant, autojump_clock: MockClock) -> None:
    zombie_id, runner_id = await plant.install(), await plant.enrol()
    event_id = await plant.deliver(zombie_id)
    grant = await plant.grant(runner_id)
    await trio.sleep(4)
    first = await plant.ask_approval(grant, "one")
    await trio.sleep(5)
    second = await plant.ask_approval(grant, "two")
    await trio.sleep(5)
    await plant.renewed(grant)
    await plant.resolve(first.id)
    await trio.sleep(5)
    await plant.renewed(grant)
    await plant.resolve(second.id)
    await trio.sleep(3)
    await plant.report(grant)
    assert [row.run_ms for row in plant.rows(event_id)] == [4000, 0, 3000]


async def test_a_parked_run_goes_on_from_its_checkpoint_when_its_gate_is_answered(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id = await plant.install()
    first, second = await plant.enrol("r1"), await plant.enrol("r2")
    event_id = await plant.deliver(zombie_id)
    grant = await plant.grant(first)
    gate = await plant.ask_approval(grant)
    await trio.sleep(20)
    assert await plant.park(grant, gate.id) == Parked()
    assert plant.event(event_id).status is EventStatus.WAITING_APPROVAL
    assert plant.storage.tables.leases[grant.lease.id].status is LeaseStatus.PARKED
    async with trio.open_nursery() as nursery:
        poll = Later(nursery, lambda: plant.grant(second, 30))
        await trio.sleep(25)
        await plant.resolve(gate.id)
        resolved_at = trio.current_time()
        again = await poll.value()
        assert poll.at == resolved_at
    assert again.event.checkpoint == {"step": 2}
    assert (again.event.attempts, again.lease.attempt, again.lease.fencing_token) == (1, 2, 2)
    assert again.lease.ceiling_at == grant.lease.ceiling_at + 25_000
    same = await plant.ask_approval(again)
    assert (same.id, same.status) == (gate.id, GateStatus.APPROVED)
    assert plant.event(event_id).wall_ms == 20_000
    await plant.report(again, tokens=(5, 0, 0))
    assert sum(row.run_ms for row in plant.rows(event_id)) == 0
    # The run before it was parked, without the wait, and what the second run reports of itself.
    assert plant.event(event_id).wall_ms == 20_000 + 1_000
    plant.everything_adds_up()


async def test_what_a_run_used_before_it_was_parked_counts_with_what_it_uses_after(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await plant.install(), await plant.enrol()
    event_id = await plant.deliver(zombie_id)
    grant = await plant.grant(runner_id)
    await trio.sleep(2)
    await plant.renewed(grant, (100, 10, 1))
    gate = await plant.ask_approval(grant)
    assert await plant.park(grant, gate.id) == Parked()
    await plant.resolve(gate.id)
    await plant.report(await plant.grant(runner_id), tokens=(7, 5, 3))
    event = plant.event(event_id)
    assert (event.input_tokens, event.cached_input_tokens, event.output_tokens) == (107, 15, 4)
    assert event.wall_ms == 3_000
    plant.everything_adds_up()


async def test_an_agents_other_events_run_while_one_is_parked(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await plant.install(), await plant.enrol()
    waiting, following = await plant.deliver(zombie_id), await plant.deliver(zombie_id)
    grant = await plant.grant(runner_id)
    gate = await plant.ask_approval(grant)
    await plant.park(grant, gate.id)
    other = await plant.grant(runner_id)
    assert other.event.id == following
    await plant.resolve(gate.id)
    await plant.report(other)
    assert (await plant.grant(runner_id)).event.id == waiting


async def test_a_gate_that_is_answered_while_the_run_parks_does_not_keep_it(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await plant.install(), await plant.enrol()
    event_id = await plant.deliver(zombie_id)
    grant = await plant.grant(runner_id)
    gate = await plant.ask_approval(grant)
    plant.faults.latency_s = 0.1
    async with trio.open_nursery() as nursery:
        parked = Later(nursery, lambda: plant.park(grant, gate.id))
        Later(nursery, lambda: plant.resolve(gate.id))
        assert await parked.value() == Parked()
    plant.faults.latency_s = 0
    assert plant.event(event_id).status is EventStatus.RECEIVED
    assert (await plant.grant(runner_id)).event.id == event_id


async def test_the_same_question_under_a_new_lease_is_the_same_gate_and_still_not_billed(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await plant.install(), await plant.enrol()
    event_id = await plant.deliver(zombie_id)
    gate = await plant.ask_approval(await plant.grant(runner_id))
    again = await plant.grant(runner_id, 35)  # The first runner has died.
    await trio.sleep(2)
    same = await plant.ask_approval(again)
    assert (same.id, same.status, same.lease_id) == (gate.id, GateStatus.PENDING, again.lease.id)
    await plant.system.stop("lease", again.lease.id)
    await trio.sleep(6)
    await plant.renewed(again)
    await trio.sleep(5)
    await plant.resolve(gate.id)
    await trio.sleep(1)
    await plant.report(again)
    # From its grant on: that the gate had been pending before counts only for the lease that waits now.
    assert sum(row.run_ms for row in plant.rows(event_id)) == 1000


async def test_a_run_that_ends_takes_its_open_questions_with_it(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await plant.install(), await plant.enrol()
    await plant.deliver(zombie_id)
    grant = await plant.grant(runner_id)
    gate = await plant.ask_approval(grant)
    await plant.report(grant)
    await trio.sleep(0.1)
    closed = plant.storage.tables.gates[gate.id]
    assert (closed.status, closed.resolved_by) == (GateStatus.DENIED, "system:run_ended")
    plant.everything_adds_up()


async def test_an_event_that_a_rule_holds_waits_for_leave_and_then_runs(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await plant.install(config=ASK_FIRST), await plant.enrol()
    event_id = await plant.deliver(zombie_id)
    assert plant.event(event_id).status is EventStatus.WAITING_APPROVAL
    await plant.nothing(runner_id, 2)
    (gate,) = plant.storage.tables.gates.values()
    assert isinstance(await plant.resolve(gate.id), Resolved)
    assert (await plant.grant(runner_id)).event.id == event_id


async def test_an_event_that_gets_no_leave_ends(plant: Plant, autojump_clock: MockClock) -> None:
    zombie_id = await plant.install(config=ASK_FIRST)
    denied, forgotten = await plant.deliver(zombie_id), await plant.deliver(zombie_id)
    gate = next(g for g in plant.storage.tables.gates.values() if g.event_id == denied)
    await plant.resolve(gate.id, approve=False)
    await trio.sleep(6)
    for event_id, label in ((denied, "approval_denied"), (forgotten, "approval_expired")):
        event = plant.event(event_id)
        assert (event.status, event.failure_label) == (EventStatus.GATE_BLOCKED, label)
        assert event.completed_at is not None
    plant.everything_adds_up()


async def test_a_forbidden_tool_call_is_denied_and_pauses_the_agent(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await plant.install(config=NEVER), await plant.enrol()
    await plant.deliver(zombie_id)
    grant = await plant.grant(runner_id)
    gate = await plant.ask_approval(grant)
    assert (gate.status, gate.resolved_by) == (GateStatus.AUTO_KILLED, "system:auto_kill")
    assert plant.storage.tables.zombies[zombie_id].status is ZombieStatus.PAUSED
    await trio.sleep(5)
    await plant.renewed(grant)
    await plant.report(grant, "agent_error")
    plant.everything_adds_up()


async def test_a_forbidden_event_ends_at_once_and_pauses_the_agent(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await plant.install(config=NEVER_WAKE), await plant.enrol()
    event_id = await plant.deliver(zombie_id)
    event = plant.event(event_id)
    assert (event.status, event.failure_label) == (EventStatus.GATE_BLOCKED, "policy_deny")
    assert plant.storage.tables.zombies[zombie_id].status is ZombieStatus.PAUSED
    await plant.nothing(runner_id, 2)
    plant.everything_adds_up()


async def test_a_refused_question_is_denied_and_the_run_goes_on(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await plant.install(config=REFUSE), await plant.enrol()
    event_id = await plant.deliver(zombie_id)
    grant = await plant.grant(runner_id)
    gate = await plant.ask_approval(grant)
    assert (gate.status, gate.resolved_by) == (GateStatus.DENIED, "system:deny")
    assert "Nobody was asked" in gate.detail
    assert await plant.ask_approval(grant) == gate
    await plant.report(grant)
    assert plant.event(event_id).status is EventStatus.PROCESSED
    assert plant.storage.tables.zombies[zombie_id].status is ZombieStatus.ACTIVE
    plant.everything_adds_up()


async def test_a_refused_event_ends_at_once_and_the_agent_stays_active(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await plant.install(config=REFUSE_WAKE), await plant.enrol()
    event_id = await plant.deliver(zombie_id)
    event = plant.event(event_id)
    assert (event.status, event.failure_label) == (EventStatus.GATE_BLOCKED, "approval_denied")
    (gate,) = plant.storage.tables.gates.values()
    assert (gate.status, gate.resolved_by) == (GateStatus.DENIED, "system:deny")
    assert plant.storage.tables.zombies[zombie_id].status is ZombieStatus.ACTIVE
    assert "gate_resolved" in [frame.kind for frame in plant.storage.tables.frames[zombie_id]]
    await plant.nothing(runner_id, 2)
    plant.everything_adds_up()


async def test_an_anomaly_is_noticed_across_sleep_and_restart(
    plant: Plant, autojump_clock: MockClock
) -> None:
    zombie_id = await plant.install(config=THRICE)
    await plant.deliver(zombie_id)
    await trio.sleep(200)  # Long enough to be put to sleep.
    assert {node.kind: node.live for node in plant.system.statistics().kinds}["zombie"] == 0
    await plant.deliver(zombie_id)
    await plant.system.stop("zombie", zombie_id)
    event_id = await plant.deliver(zombie_id)
    assert plant.event(event_id).status is EventStatus.GATE_BLOCKED
    assert plant.storage.tables.zombies[zombie_id].status is ZombieStatus.PAUSED
    (gate,) = plant.storage.tables.gates.values()
    assert gate.resolved_by == "system:anomaly"
