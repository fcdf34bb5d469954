"""Leases that end without their runner's word, and what a runner may still do then."""

from uuid import UUID

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from sexton_actors.protocol.lease import Abort, CancelRun, Expire, Granted, Released, Reported
from sexton_actors.refusal import Refusal
from sexton_actors.terms import EVENT_CEILING_MS
from sexton_engine.activation.context_cell import ContextCell
from sexton_storage.records.events import EventStatus
from sexton_storage.records.leases import LeaseStatus
from tests.worlds.actors import ActorsWorld, Later, clock


async def _none_found(_self: object, **_: int) -> list[UUID]:
    return []


def live(world: ActorsWorld, kind: str) -> int:
    return next(node.live for node in world.system.statistics().kinds if node.kind == kind)


async def test_an_expired_lease_is_with_the_next_runner_within_a_second(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id = await world.install()
    dead, next_one = await world.enrol("r1"), await world.enrol("r2")
    event_id = await world.deliver(zombie_id)
    lost = await world.grant(dead)
    async with trio.open_nursery() as nursery:
        await trio.sleep(20)
        poll = Later(nursery, lambda: world.grant(next_one, 30))
        taken = await poll.value()
    assert lost.lease.expires_at <= clock() <= lost.lease.expires_at + 1000
    assert taken.event.id == event_id
    assert taken.lease.fencing_token > lost.lease.fencing_token
    assert (taken.event.attempts, taken.lease.attempt) == (2, 2)
    assert world.kinds(zombie_id) == ["event_received", "event_leased", "lease_reclaimed", "event_leased"]

    world.everything_adds_up()


async def test_a_renewed_lease_is_not_reclaimed(world: ActorsWorld, autojump_clock: MockClock) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    for _ in range(12):
        await trio.sleep(10)
        assert (await world.renewed(grant)).lease_expires_at == clock() + 30_000

    assert isinstance(await world.report(grant), Reported)


async def test_a_renewal_sets_no_timer_and_the_deadline_that_it_moved_is_kept(
    world: ActorsWorld, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    await world.renewed(grant)
    was_set: list[str] = []
    monkeypatch.setattr(ContextCell, "set_timer", lambda _, name, *_rest, **_named: was_set.append(name))
    await trio.sleep(10)
    await world.renewed(grant)
    await trio.sleep(10)
    renewed = await world.renewed(grant)
    assert "deadline" not in was_set

    monkeypatch.undo()
    # Nobody else finds it.
    monkeypatch.setattr(type(world.storage.leases), "expired", _none_found)
    await trio.sleep(29)
    assert world.kinds(zombie_id)[-1] != "lease_reclaimed"

    await trio.sleep(2)
    assert clock() > renewed.lease_expires_at
    assert world.kinds(zombie_id)[-1] == "lease_reclaimed"


async def test_a_late_runner_is_refused_in_all_it_does(world: ActorsWorld, autojump_clock: MockClock) -> None:
    zombie_id = await world.install()
    late, next_one = await world.enrol("r1"), await world.enrol("r2")
    await world.deliver(zombie_id)
    lost = await world.grant(late)
    taken = await world.grant(next_one, 35)
    balance = world.balance()
    renewal, report, release = await world.renew(lost), await world.report(lost), await world.release(lost)
    assert isinstance(renewal, Refusal)
    assert renewal.code == "UZ-RUN-011"
    assert isinstance(report, Refusal)
    assert report.code == "UZ-RUN-005"
    assert isinstance(release, Refusal)
    assert release.code == "UZ-RUN-005"
    assert world.balance() == balance
    assert isinstance(await world.report(taken), Reported)

    world.everything_adds_up()


async def test_another_runners_lease_reads_as_none(world: ActorsWorld, autojump_clock: MockClock) -> None:
    zombie_id = await world.install()
    mine, other = await world.enrol("r1"), await world.enrol("r2")
    await world.deliver(zombie_id)
    grant = await world.grant(mine)
    stolen = replace(grant, lease=replace(grant.lease, runner_id=other))
    for answer in (await world.renew(stolen), await world.report(stolen), await world.release(stolen)):
        assert isinstance(answer, Refusal)
        assert answer.code == "UZ-RUN-006"


async def test_the_same_report_again_is_told_to_be_a_duplicate(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    assert isinstance(await world.report(grant), Reported)

    balance = world.balance()
    assert await world.report(grant) == Reported(duplicate=True, status="processed", charged_nanos=0)

    await trio.sleep(60)  # Its actor sleeps by now.
    assert await world.report(grant) == Reported(duplicate=True, status="processed", charged_nanos=0)
    assert world.balance() == balance

    other = await world.report(grant, "agent_error")
    assert isinstance(other, Refusal)
    assert other.code == "UZ-RUN-005"


async def test_a_released_event_goes_to_the_next_runner_at_once_without_an_attempt_lost(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id = await world.install()
    leaving, next_one = await world.enrol("r1"), await world.enrol("r2")
    event_id = await world.deliver(zombie_id)
    grant = await world.grant(leaving)
    async with trio.open_nursery() as nursery:
        poll = Later(nursery, lambda: world.grant(next_one, 30))
        await trio.sleep(4)
        assert await world.release(grant) == Released()

        released_at = trio.current_time()
        taken = await poll.value()
        assert poll.at == released_at
    assert taken.event.id == event_id
    assert (taken.event.attempts, taken.lease.attempt, taken.lease.fencing_token) == (1, 2, 2)
    assert [row.run_ms for row in world.rows(event_id)] == [4000], "the time that was worked is billed"

    world.everything_adds_up()


async def test_what_lost_leases_were_billed_for_counts_among_the_tokens_of_their_event(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    event_id = await world.deliver(zombie_id)
    await world.renewed(await world.grant(runner_id), (1000, 200, 30))
    given_back = await world.grant(runner_id, 35)
    assert world.event(event_id).input_tokens == 1000

    await world.renewed(given_back, (100, 20, 3))
    assert await world.release(given_back) == Released()

    await world.report(await world.grant(runner_id), tokens=(50, 5, 1))
    event = world.event(event_id)
    assert (event.input_tokens, event.cached_input_tokens, event.output_tokens) == (1150, 225, 34)

    world.everything_adds_up()


async def test_the_fifth_dead_runner_is_the_events_last(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    event_id = await world.deliver(zombie_id)
    for attempt in range(1, 6):
        assert (await world.grant(runner_id, 35)).event.attempts == attempt
    await world.nothing(runner_id, 35)
    event = world.event(event_id)
    assert (event.status, event.failure_label) == (EventStatus.DEAD_LETTERED, "runner_lost")
    assert event.error_code == "UZ-RUN-016"
    assert world.rows(event_id) == []
    assert world.kinds(zombie_id)[-1] == "event_complete"

    world.everything_adds_up()


async def test_a_lease_is_known_by_its_id_after_a_restart(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    await world.system.stop("lease", grant.lease.id)
    await trio.sleep(10)
    assert (await world.renewed(grant)).slice_seq == 1

    await world.system.stop("lease", grant.lease.id)
    # Nobody speaks to it any more: the reclaimer finds it all the same.
    await trio.sleep(31)
    assert world.storage.tables.leases[grant.lease.id].status is LeaseStatus.RECLAIMED


async def test_a_run_ends_at_the_ceiling_whatever_it_renews(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    event_id = await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    tables = world.storage.tables
    # Twelve hours are made of many renewals: begin just before their end.
    near = replace(tables.leases[grant.lease.id], ceiling_at=clock() + 40_000)
    tables.leases[grant.lease.id] = near
    await world.system.stop("lease", grant.lease.id)
    await trio.sleep(20)
    assert (await world.renewed(grant)).lease_expires_at == near.ceiling_at

    await trio.sleep(20)
    refused = await world.renew(grant)
    assert isinstance(refused, Refusal)
    assert refused.code == "UZ-RUN-010"

    await trio.sleep(1)
    event = world.event(event_id)
    assert (event.status, event.failure_label, event.error_code) == (
        EventStatus.AGENT_ERROR,
        "ceiling",
        "UZ-RUN-010",
    )
    assert grant.lease.ceiling_at == grant.lease.granted_at + EVENT_CEILING_MS

    world.everything_adds_up()


async def test_a_lease_that_expires_while_it_is_being_cancelled_ends_its_event_as_cancelled(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    event_id = await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    await trio.sleep((grant.lease.expires_at - clock()) / 1000 - 0.001)
    await world.change_status(zombie_id, "killed")
    await trio.sleep(1)
    assert world.event(event_id).status is EventStatus.CANCELLED
    assert world.storage.tables.leases[grant.lease.id].status is LeaseStatus.RECLAIMED

    world.everything_adds_up()


async def test_a_lease_that_does_not_exist_is_refused_and_forgotten(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    nobody = world.actors_world.new_id()
    for message in (Expire(), CancelRun(), Abort("agent_run", "")):
        world.system.tell("lease", nobody, message)
    zombie_id, runner_id = await world.install(), await world.enrol()
    await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    answer = await world.renew(replace(grant, lease=replace(grant.lease, id=nobody)))
    assert isinstance(answer, Refusal)
    assert answer.code == "UZ-RUN-006"

    await trio.sleep(10)
    assert live(world, "lease") == 1


async def test_a_purged_agent_takes_its_lease_with_it(world: ActorsWorld, autojump_clock: MockClock) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    await world.change_status(zombie_id, "killed")
    await world.storage.zombies.delete(zombie_id)
    answer = await world.renew(grant)
    assert isinstance(answer, Refusal)
    assert answer.code == "UZ-RUN-006"

    await trio.sleep(45)
    assert live(world, "lease") == 0


async def test_news_of_a_grant_that_comes_late_does_not_undo_what_is_known(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id, runner_id = await world.install(), await world.enrol()
    await world.deliver(zombie_id)
    grant = await world.grant(runner_id)
    await trio.sleep(10)
    await world.renewed(grant)
    world.system.tell("lease", grant.lease.id, Granted(grant.lease))
    await trio.sleep(10)
    assert (await world.renewed(grant)).slice_seq == 2

    await world.report(grant)
    world.system.tell("lease", grant.lease.id, Granted(grant.lease))
    await trio.sleep(12)
    assert live(world, "lease") == 0, "an ended lease goes to sleep"
