"""How a lease ends and what its event becomes."""

import pytest
import trio
from msgspec.structs import replace

from sexton_storage.records.events import Event, EventStatus
from sexton_storage.records.gates import GateStatus
from sexton_storage.records.leases import LeaseStatus
from sexton_storage.refusals import Lost
from sexton_storage.writes import (
    AppendFrames,
    CancelEvent,
    Ended,
    EndLease,
    EventEnd,
    GateOpened,
    GateResolved,
    OpenGate,
    ResolveGate,
)
from tests.worlds.storage import RICH, StorageWorld, new_id


async def test_a_report_settles_and_finishes_the_event(world: StorageWorld) -> None:
    lease = await world.lease()
    lease, _ = await world.renew(lease, 100)
    end = EventEnd(
        EventStatus.PROCESSED,
        response_text="done \u00e9\x00",
        evidence={"pr": [1, {"a": None}]},
        checkpoint={"step": 3},
        wall_ms=9_000,
    )
    write = world.end_of(lease, end, nanos=40, report_digest=b"d" * 32, require_unexpired=True)
    ended = await world.storage.journal.write(write)
    assert isinstance(ended, Ended)
    assert (ended.charged_nanos, ended.balance_nanos, ended.more) == (40, RICH - 140, False)

    event = ended.event
    assert (event.status, event.completed_at, event.updated_at) == (
        EventStatus.PROCESSED,
        write.now,
        write.now,
    )
    assert (event.response_text, event.evidence, event.checkpoint) == (
        "done \u00e9\ufffd",
        {"pr": [1, {"a": None}]},
        {"step": 3},
    )
    assert (event.input_tokens, event.cached_input_tokens, event.output_tokens) == (20, 4, 10)
    assert (event.wall_ms, event.charged_nanos) == (9_000, 140)
    assert await world.storage.events.load(event.id) == event

    kept = await world.storage.leases.load(lease.id)
    assert kept is not None
    assert (kept.status, kept.version, kept.ended_at) == (LeaseStatus.REPORTED, lease.version + 1, write.now)
    assert (kept.report_digest, kept.metered_at, kept.slice_seq) == (b"d" * 32, write.now, 2)
    assert (kept.input_tokens, kept.cached_input_tokens, kept.output_tokens) == (20, 4, 10)
    assert await world.storage.leases.live_of_zombie(lease.zombie_id) is None


async def test_an_end_without_a_slice_charges_nothing(world: StorageWorld) -> None:
    lease = await world.lease()
    ended = await world.end(
        lease, EventEnd(EventStatus.AGENT_ERROR, failure_label="oom_kill", error_code="UZ-EXEC-013")
    )
    assert (ended.charged_nanos, ended.balance_nanos) == (0, RICH)
    assert (ended.event.failure_label, ended.event.error_code) == ("oom_kill", "UZ-EXEC-013")
    assert await world.storage.metering.list(world.tenant_id, lease.event_id) in ([], ())

    kept = await world.storage.leases.load(lease.id)
    assert kept is not None
    assert (kept.metered_at, kept.slice_seq) == (lease.metered_at, 0)


async def test_a_final_slice_is_clamped_at_the_balance(world: StorageWorld) -> None:
    poor = await world.beside(balance=30)
    ended = await poor.end(await poor.lease(), EventEnd(EventStatus.PROCESSED), nanos=50)

    assert (ended.charged_nanos, ended.balance_nanos, ended.event.charged_nanos) == (30, 0, 30)


@pytest.mark.parametrize(
    "status", [EventStatus.CANCELLED, EventStatus.DEAD_LETTERED, EventStatus.AGENT_ERROR]
)
async def test_every_way_to_finish_closes_the_event(world: StorageWorld, status: EventStatus) -> None:
    ended = await world.end(await world.lease(), EventEnd(status))

    assert ended.event.status is status
    assert ended.event.completed_at is not None


async def test_an_event_that_goes_back_is_there_for_the_next_claim(world: StorageWorld) -> None:
    agent = await world.agent()
    event = await world.append(agent)
    await world.append(agent)
    first = await world.claim(agent)
    ended = await world.end(
        first.lease,
        EventEnd(EventStatus.RECEIVED, checkpoint={"at": 1}),
        status=LeaseStatus.RECLAIMED,
        nanos=5,
    )
    assert (ended.event.status, ended.event.attempts, ended.event.completed_at) == (
        EventStatus.RECEIVED,
        1,
        None,
    )
    assert ended.more

    second = await world.claim(agent)
    assert (second.event.id, second.event.attempts, second.event.checkpoint) == (event.id, 2, {"at": 1})
    assert second.lease.slice_seq == 0


async def test_fields_that_are_not_given_stay_and_times_add_up_over_leases(world: StorageWorld) -> None:
    agent = await world.agent()
    await world.append(agent)
    first = await world.claim(agent)
    back = EventEnd(EventStatus.RECEIVED, failure_label="runner_lost", checkpoint={"a": 1}, wall_ms=10)
    await world.end(first.lease, back, nanos=7)
    second = await world.claim(agent)
    ended = await world.end(second.lease, EventEnd(EventStatus.PROCESSED, wall_ms=5), nanos=8)
    event = ended.event
    assert (event.failure_label, event.checkpoint) == ("runner_lost", {"a": 1})
    assert (event.wall_ms, event.charged_nanos) == (15, 15)

    rows = await world.storage.metering.list(world.tenant_id, event.id)
    assert [(r.attempt, r.slice_seq, r.charged_nanos) for r in rows] == [(1, 1, 7), (2, 1, 8)]


@pytest.mark.parametrize("status", [LeaseStatus.RECLAIMED, LeaseStatus.RELEASED, LeaseStatus.PARKED])
async def test_an_event_has_the_tokens_that_all_its_leases_were_billed_for(
    world: StorageWorld, status: LeaseStatus
) -> None:
    agent = await world.agent()
    event = await world.append(agent)
    first, _ = await world.renew((await world.claim(agent)).lease, 7)
    first, _ = await world.renew(first, 7)
    lost = await world.end(first, EventEnd(EventStatus.RECEIVED), status=status)
    assert tokens_of(lost.event) == (20, 4, 0, 10)

    second, _ = await world.renew((await world.claim(agent)).lease, 7)
    [listed] = await world.storage.events.list(world.workspace_id, limit=9)
    for running in (await world.storage.events.load(event.id), listed):
        assert running is not None
        assert (tokens_of(running), running.charged_nanos) == ((30, 6, 0, 15), 21)

    write = world.end_of(second, EventEnd(EventStatus.PROCESSED), nanos=7)
    part = replace(world.slice_of(second, 7), d_cache_write_tokens=3)
    ended = await world.storage.journal.write(replace(write, slice=part))
    assert isinstance(ended, Ended)
    assert (tokens_of(ended.event), ended.event.charged_nanos) == ((40, 8, 3, 20), 28)
    assert await world.storage.events.load(event.id) == ended.event

    charges = await world.storage.charges.list(world.tenant_id, limit=9)
    assert sum(charge.token_count_input for charge in charges) == 40 + 8 + 3
    assert sum(charge.token_count_output for charge in charges) == 20


def tokens_of(event: Event) -> tuple[int, int, int, int]:
    return event.input_tokens, event.cached_input_tokens, event.cache_write_tokens, event.output_tokens


async def test_more_events_waiting_are_told(world: StorageWorld) -> None:
    agent = await world.agent()
    await world.append(agent)
    await world.append(agent)
    claimed = await world.claim(agent)

    assert (await world.end(claimed.lease, EventEnd(EventStatus.PROCESSED))).more


async def test_frames_of_an_end_commit_with_it(world: StorageWorld) -> None:
    agent = await world.agent()
    await world.append(agent)
    lease = (await world.claim(agent)).lease
    frames = [world.frame(agent, "event_complete", {"status": "processed"})]
    await world.end(lease, EventEnd(EventStatus.PROCESSED), frames=frames)
    kept = await world.storage.frames.read(agent.id, after=1, limit=9)
    assert [(f.seq, f.kind) for f in kept] == [(2, "event_complete")]

    lost = world.end_of(lease, EventEnd(EventStatus.PROCESSED), frames=frames)
    assert isinstance(await world.storage.journal.write(lost), Lost)
    assert await world.storage.frames.bounds(agent.id) == (1, 2)


async def test_a_report_and_a_reclaim_never_both_succeed(world: StorageWorld) -> None:
    for term_ms in (0, 30_000):
        lease = await world.lease(term_ms=term_ms)
        report = world.end_of(lease, EventEnd(EventStatus.PROCESSED), require_unexpired=True)
        reclaim = world.end_of(
            lease, EventEnd(EventStatus.RECEIVED), status=LeaseStatus.RECLAIMED, require_expired=True
        )
        answers: list[Ended | Lost] = []

        async def end(write: EndLease, answers: list[Ended | Lost] = answers) -> None:
            answers.append(await world.storage.journal.write(write))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(end, report)
            nursery.start_soon(end, reclaim)
        (ended,) = [a for a in answers if isinstance(a, Ended)]
        assert ended.event.status is (EventStatus.RECEIVED if term_ms == 0 else EventStatus.PROCESSED)


async def test_a_reclaim_for_revocation_needs_no_expiry(world: StorageWorld) -> None:
    ended = await world.end(await world.lease(), EventEnd(EventStatus.RECEIVED), status=LeaseStatus.RECLAIMED)
    assert ended.event.status is EventStatus.RECEIVED


async def test_an_end_at_another_version_is_lost(world: StorageWorld) -> None:
    lease = await world.lease()
    renewed, _ = await world.renew(lease)
    assert isinstance(
        await world.storage.journal.write(world.end_of(lease, EventEnd(EventStatus.PROCESSED))), Lost
    )

    await world.end(renewed, EventEnd(EventStatus.PROCESSED))
    again = world.end_of(renewed, EventEnd(EventStatus.PROCESSED))
    assert isinstance(await world.storage.journal.write(again), Lost)


async def test_an_end_of_an_unknown_lease_is_lost(world: StorageWorld) -> None:
    lease = await world.lease()
    await world.storage.zombies.delete(lease.zombie_id)

    assert isinstance(
        await world.storage.journal.write(world.end_of(lease, EventEnd(EventStatus.PROCESSED))), Lost
    )


async def test_of_two_ends_at_one_version_one_wins(world: StorageWorld) -> None:
    lease = await world.lease()
    answers: list[Ended | Lost] = []

    async def end() -> None:
        answers.append(
            await world.storage.journal.write(world.end_of(lease, EventEnd(EventStatus.PROCESSED), nanos=9))
        )

    async with trio.open_nursery() as nursery:
        nursery.start_soon(end)
        nursery.start_soon(end)

    assert sorted(type(a).__name__ for a in answers) == ["Ended", "Lost"]
    assert await world.balance() == RICH - 9


async def _parked(world: StorageWorld, *, resolve_first: bool = False) -> tuple[Ended, ResolveGate]:
    """Open a gate in a run and park the run at it."""
    agent = await world.agent()
    await world.append(agent)
    claimed = await world.claim(agent)
    gate = world.gate_of(claimed.event, claimed.lease)
    opened = await world.storage.journal.write(OpenGate(gate, claimed.lease.fencing_token, ()))
    assert opened == GateOpened(gate, existed=False)
    resolve = ResolveGate(
        gate.id,
        GateStatus.APPROVED,
        world.now,
        "user:1",
        "go",
        EventStatus.RECEIVED,
        failure_label=None,
        frames=(),
    )
    if resolve_first:
        resolved = await world.storage.journal.write(resolve)
        assert isinstance(resolved, GateResolved)
        assert not resolved.event_freed
    park = EventEnd(
        EventStatus.WAITING_APPROVAL,
        give_attempt_back=True,
        checkpoint={"turn": 4},
        wall_ms=2_000,
    )
    ended = await world.end(claimed.lease, park, status=LeaseStatus.PARKED, parked_gate_id=gate.id)
    return ended, resolve


async def test_a_parked_run_waits_at_its_gate_and_goes_on_when_it_is_resolved(world: StorageWorld) -> None:
    ended, resolve = await _parked(world)
    assert (ended.event.status, ended.event.attempts, ended.more) == (EventStatus.WAITING_APPROVAL, 0, False)

    resolved = await world.storage.journal.write(resolve)
    assert isinstance(resolved, GateResolved)
    assert resolved.event_freed

    freed = await world.storage.events.load(ended.event.id)
    assert freed is not None
    assert (freed.status, freed.checkpoint) == (EventStatus.RECEIVED, {"turn": 4})
    assert freed.parked_at == ended.event.parked_at
    assert freed.wall_ms == 2_000

    agent = await world.storage.zombies.load(freed.zombie_id)
    assert agent is not None

    again = await world.claim(agent)
    done = await world.end(again.lease, EventEnd(EventStatus.PROCESSED, wall_ms=500))
    assert done.event.wall_ms == 2_500


async def test_a_run_whose_gate_was_resolved_meanwhile_goes_straight_back(world: StorageWorld) -> None:
    ended, _ = await _parked(world, resolve_first=True)

    assert (ended.event.status, ended.more) == (EventStatus.RECEIVED, True)
    assert ended.event.parked_at is not None


async def test_a_park_at_a_gate_that_does_not_exist_goes_straight_back(world: StorageWorld) -> None:
    lease = await world.lease()
    park = EventEnd(EventStatus.WAITING_APPROVAL, give_attempt_back=True)
    ended = await world.end(lease, park, status=LeaseStatus.PARKED, parked_gate_id=new_id())

    assert ended.event.status is EventStatus.RECEIVED


async def test_a_park_and_the_gates_resolution_at_once_never_leave_the_event_waiting(
    world: StorageWorld,
) -> None:
    agent = await world.agent()
    await world.append(agent)
    claimed = await world.claim(agent)
    gate = world.gate_of(claimed.event, claimed.lease)
    await world.storage.journal.write(OpenGate(gate, claimed.lease.fencing_token, ()))
    park = world.end_of(
        claimed.lease,
        EventEnd(EventStatus.WAITING_APPROVAL),
        status=LeaseStatus.PARKED,
        parked_gate_id=gate.id,
    )
    resolve = ResolveGate(gate.id, GateStatus.DENIED, world.now, "user:1", "", EventStatus.RECEIVED, None, ())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.storage.journal.write, resolve)
        nursery.start_soon(world.storage.journal.write, park)
    after = await world.storage.events.load(claimed.event.id)

    assert after is not None
    assert after.status is EventStatus.RECEIVED


async def test_a_run_that_is_to_be_cancelled_can_still_report(world: StorageWorld) -> None:
    lease = await world.lease()
    await world.storage.journal.write(CancelEvent(lease.zombie_id, lease.event_id, world.now, ()))
    marked = await world.storage.leases.load(lease.id)
    assert marked is not None

    ended = await world.end(
        marked, EventEnd(EventStatus.CANCELLED, failure_label="cancelled"), require_unexpired=True
    )
    assert ended.event.status is EventStatus.CANCELLED


async def test_activity_under_an_ended_lease_is_refused(world: StorageWorld) -> None:
    agent = await world.agent()
    await world.append(agent)
    lease = (await world.claim(agent)).lease
    await world.end(lease, EventEnd(EventStatus.PROCESSED))
    write = AppendFrames(agent.id, (world.frame(agent, "chunk"),), lease.id, lease.fencing_token)

    assert isinstance(await world.storage.journal.write(write), Lost)
