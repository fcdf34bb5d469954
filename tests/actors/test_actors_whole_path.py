"""From a signed webhook to evidence and a bill, through every actor."""

import trio
from trio.testing import MockClock

from sexton_actors.protocol.gate import Resolved
from sexton_actors.protocol.lease import Reported
from sexton_storage.records.events import EventStatus
from sexton_storage.records.gates import GateStatus
from tests.worlds.actors import STARTER_NANOS, ActorsWorld

ROUNDS = (
    *(
        "hub",
        "dispatcher",
        "reclaimer",
        "scheduler",
        "sweeper",
        "retention_rounds",
        "census",
        "chat_rounds",
        "file_mover",
        "archive_rounds",
        "vault_keeper",
    ),
    *(
        "memory",
        "job_rounds",
        "failure_rounds",
        "erasure_rounds",
        "canary_rounds",
        "word_indexer",
        "delivery_rounds",
    ),
)
"""What looks by itself at the database, or at the process, one of each for a node."""


async def test_a_webhook_becomes_evidence_and_a_bill(world: ActorsWorld, autojump_clock: MockClock) -> None:
    zombie_id = await world.install()
    runner_id = await world.enrol()
    event_id = await world.deliver(zombie_id)

    grant = await world.grant(runner_id)
    assert (grant.event.id, grant.lease.fencing_token, grant.lease.attempt) == (event_id, 1, 1)

    await trio.sleep(10)
    first = await world.renewed(grant, (1_000, 0, 100))
    assert first.charged_nanos == 1_000_000 + 3_000_000 + 1_500_000

    gate = await world.ask_approval(grant)
    await trio.sleep(20)
    assert isinstance(await world.resolve(gate.id), Resolved)

    await trio.sleep(5)
    reported = await world.report(grant, tokens=(2_000, 0, 100))

    assert reported == Reported(duplicate=False, status="processed", charged_nanos=500_000 + 3_000_000)

    event = world.event(event_id)
    assert event.status is EventStatus.PROCESSED
    assert event.evidence == {"found": "it"}
    assert [(row.slice_seq, row.run_ms, row.charged_nanos) for row in world.rows(event_id)] == [
        (1, 10_000, 5_500_000),
        (2, 5_000, 3_500_000),
    ]
    assert event.charged_nanos == STARTER_NANOS - world.balance() == 9_000_000
    assert world.storage.tables.gates[gate.id].status is GateStatus.APPROVED
    assert world.kinds(zombie_id) == [
        "event_received",
        "event_leased",
        "gate_pending",
        "gate_resolved",
        "event_complete",
    ]

    world.everything_adds_up()
    for kind in world.system.statistics().kinds:
        assert (kind.crashes, dict(kind.dead_letters)) == (0, {}), kind.kind


async def test_a_node_that_has_nothing_to_do_keeps_nobody_awake(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    await world.deliver(zombie_id)
    await world.report(await world.grant(runner_id))
    await trio.sleep(200)
    awake = {kind.kind: kind.live for kind in world.system.statistics().kinds if kind.live}

    assert awake == dict.fromkeys(ROUNDS, 1)
