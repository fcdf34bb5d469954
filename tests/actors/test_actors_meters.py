"""What a node counts for its operators, and what it shows of it."""

from typing import Any

import pytest
import trio
from prometheus_client import CollectorRegistry
from trio.testing import MockClock

from sexton_actors.exposition import STALE_MS, OperatorsCollector
from sexton_actors.periodic.census import CENSUS_INTERVAL_S
from sexton_actors.protocol.lease import Renew, Renewal
from sexton_actors.protocol.runner import SetAdminState
from sexton_actors.refusal import Refusal
from tests.worlds.actors import ActorsWorld


def shown(world: ActorsWorld) -> dict[tuple[str, str], float]:
    """Values by name and labels, as one text."""
    registry = CollectorRegistry()
    registry.register(OperatorsCollector(world.actors_world, "0"))
    return {
        (sample.name.removeprefix("sexton_"), ",".join(sample.labels.values())): sample.value
        for metric in registry.collect()
        for sample in metric.samples
    }


async def test_a_renewal_is_counted_with_the_time_it_had_left(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    await world.deliver(await world.install())
    grant = await world.grant(await world.enrol())
    for wait_s in (10, 10, 26):
        await trio.sleep(wait_s)
        await world.renewed(grant)
    await world.report(grant)
    told = shown(world)

    assert told["lease_renewals_total", "renewed"] == 3
    assert told["lease_slack_seconds_count", ""] == 3
    assert told["lease_slack_seconds_sum", ""] == pytest.approx(20 + 20 + 4)
    assert told["lease_slack_seconds_bucket", "5.0"] == 1
    assert told["leases_ended_total", "reported"] == 1
    assert told["charged_nanos_total", ""] == sum(row.charged_nanos for row in world.rows(grant.event.id)) > 0


async def test_renewals_of_one_request_are_counted_as_they_would_be_one_by_one(
    world: ActorsWorld, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The round that tells the database of whom was heard would take them away before they are looked at.
    monkeypatch.setattr(type(world.actors_world.meters), "take_heard", lambda _: ())
    runner_id = await world.enrol()
    grants = []
    for name in ("one", "two", "three"):
        await world.deliver(await world.install(name))
        grants.append(await world.grant(runner_id))
    before: dict[tuple[str, str], float] = {}
    counted = []
    for at_once in (False, True):
        await trio.sleep(10)
        world.actors_world.meters.heard.clear()
        asks = [(grant.lease.id, Renew(runner_id, 0, 0, 0)) for grant in grants]
        asks[1] = (grants[1].lease.id, Renew(runner_id, 0, 0, 0, fencing_token=99))
        if at_once:
            replies = await world.system.ask_all("lease", asks)
        else:
            replies = [await world.system.ask("lease", *ask) for ask in asks]
        told = shown(world)
        counted.append({name: value - before.get(name, 0) for name, value in told.items()})
        before = told

        assert [type(reply) for reply in replies] == [Renewal, Refusal, Renewal]
        assert world.actors_world.meters.heard == {runner_id: world.actors_world.now_ms()}
    names = [name for name in before if name[0].startswith(("lease_", "charged", "late_writes"))]

    assert counted[1]["lease_renewals_total", "renewed"] == 2
    assert counted[1]["lease_renewals_total", "UZ-RUN-011"] == 1
    assert {name: counted[0].get(name) for name in names} == {name: counted[1].get(name) for name in names}


async def test_the_last_renewals_that_a_tenant_can_pay_for_are_counted_in_a_unit_too(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    runner_id = await world.enrol()
    grants = []
    for name in ("one", "two"):
        await world.deliver(await world.install(name))
        grants.append(await world.grant(runner_id))
    world.set_balance(1)
    await trio.sleep(10)
    asks = [(grant.lease.id, Renew(runner_id, 0, 0, 0)) for grant in grants]
    first, second = await world.system.ask_all("lease", asks)
    told = shown(world)

    assert isinstance(first, Renewal)
    assert isinstance(second, Refusal)
    assert (first.charged_nanos, second.code) == (1, "UZ-RUN-012")
    assert (told["lease_renewals_total", "renewed"], told["lease_renewals_total", "UZ-RUN-012"]) == (1, 1)
    assert told["lease_slack_seconds_count", ""] == 2


async def test_a_late_runner_is_counted_by_what_it_would_have_written(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    await world.deliver(await world.install())
    late = await world.enrol("r1")
    lost = await world.grant(late)
    await world.grant(await world.enrol("r2"), 35)
    await world.renew(lost)
    await world.report(lost)
    await world.activity(lost, "chunk")
    told = shown(world)
    assert told["leases_reclaimed_total", "expired"] == told["leases_ended_total", "reclaimed"] == 1
    assert told["lease_renewals_total", "UZ-RUN-011"] == 1

    late_writes = {what: told["late_writes_refused_total", what] for what in ("renew", "report", "activity")}
    assert late_writes == {"renew": 1, "report": 1, "activity": 1}
    assert told["late_writes_refused_total", "park"] == 0


async def test_a_lease_of_a_revoked_runner_is_counted_as_such(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    await world.deliver(await world.install())
    runner_id = await world.enrol()
    await world.grant(runner_id)
    await world.system.ask("runner", runner_id, SetAdminState("revoked"))
    await trio.sleep(1)

    assert shown(world)["leases_reclaimed_total", "revoked"] == 1


async def test_only_the_first_lease_of_an_event_tells_how_long_it_waited(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    await world.deliver(await world.install())
    await trio.sleep(3)
    runner_id = await world.enrol()
    await world.release(await world.grant(runner_id))
    await trio.sleep(60)
    await world.grant(runner_id)
    told = shown(world)

    assert told["ingress_to_lease_seconds_count", ""] == 1
    assert told["ingress_to_lease_seconds_sum", ""] == pytest.approx(3, abs=0.1)


# --- the census ---------------------------------------------------------------------------------------------


async def test_what_waits_and_what_is_held_is_shown_within_seconds(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    zombie_id = await world.install()
    await world.deliver(zombie_id)
    await world.deliver(zombie_id)
    grant = await world.grant(await world.enrol())
    await world.ask_approval(grant)
    await trio.sleep(2 * CENSUS_INTERVAL_S)
    told = shown(world)

    assert (told["events_queued", ""], told["leases_active", ""], told["gates_pending", ""]) == (1, 1, 1)
    assert told["oldest_event_age_seconds", ""] == pytest.approx(2 * CENSUS_INTERVAL_S, abs=0.5)
    assert told["oldest_gate_age_seconds", ""] == pytest.approx(2 * CENSUS_INTERVAL_S, abs=0.5)
    assert told["runners", "busy,active"] == 1
    assert (told["label_events_queued", "(any)"], told["label_slots_wanted", "(any)"]) == (1, 1)
    assert told["runner_slots", "busy,active"] == 64


async def test_a_census_that_is_old_is_not_shown_and_the_next_one_is(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    await trio.sleep(CENSUS_INTERVAL_S)
    assert ("events_queued", "") in shown(world)

    world.faults.away = True
    await trio.sleep(STALE_MS / 1000 + CENSUS_INTERVAL_S)
    told = shown(world)
    assert ("events_queued", "") not in told
    assert told["build_info", "0," + _python(told)] == 1

    world.faults.away = False
    await trio.sleep(60)
    assert ("events_queued", "") in shown(world)


def _python(told: dict[tuple[str, str], Any]) -> str:
    return next(labels.partition(",")[2] for name, labels in told if name == "build_info")


async def test_a_runner_that_only_renews_and_reports_is_seen(
    world: ActorsWorld, autojump_clock: MockClock
) -> None:
    await world.deliver(await world.install())
    runner_id = await world.enrol()
    grant = await world.grant(runner_id)

    def seen() -> int:
        at = world.storage.tables.runners[runner_id].last_seen_at
        assert at is not None
        return at

    for _ in range(12):
        await trio.sleep(10)
        await world.renewed(grant)
    renewed_at = world.actors_world.now_ms()
    await trio.sleep(CENSUS_INTERVAL_S)
    assert seen() == renewed_at

    await trio.sleep(3)
    reported_at = world.actors_world.now_ms()
    await world.report(grant)
    await trio.sleep(CENSUS_INTERVAL_S)
    assert seen() == reported_at

    await trio.sleep(60)
    assert seen() == reported_at
