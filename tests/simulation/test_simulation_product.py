"""Nodes, runners and people in a world that a seed decides, and judges that notice each broken promise."""

import copy
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace as replace_fields
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from uuid import UUID

import pytest
from msgspec.structs import replace

from sexton_engine import ActorSystem
from sexton_storage.memory.tables import Tables
from sexton_storage.records.erasures import ErasureStatus
from sexton_storage.records.follow_ups import FollowUpStatus
from sexton_storage.records.gates import GateStatus
from sexton_storage.records.improvement import ProposalStatus
from sexton_storage.records.jobs import JobKind, JobStatus
from tests.simulation import (
    plants_of_arrivals,
    plants_of_books,
    plants_of_bulk,
    plants_of_credit,
    plants_of_follow_ups,
    plants_of_leases,
    plants_of_proposals,
    plants_of_reports,
    plants_of_runs,
)
from tests.simulation.drill.faults import fault_named
from tests.simulation.drill.planting import found, planted
from tests.simulation.product import (
    judges,
    judges_of_erasures,
    judges_of_leases,
    judges_of_programs,
)
from tests.simulation.product.judges import HEALED, JUDGES
from tests.simulation.product.judges_of_programs import OF_NODES
from tests.simulation.product.life import Outcome, lasting, live
from tests.simulation.product.record import Broken, DeliveriesSeen, Judge, Record, RunTimes, Streaks, hold
from tests.simulation.product.runs import Handed, Runs
from tests.simulation.shrink import failure_of
from tests.simulation.world.processes import State
from tests.simulation.world.run import Life
from tests.thorough import amount

ROOT = Path(__file__).parents[2]
MINUTES = 2
SMALL = lasting(MINUTES)
SEED = 36
EVENTFUL = 6
"""A seed in which, within five minutes, all comes that the judges are about."""
SHORT_OF_CREDIT = 4
"""A seed in which a balance runs out soon."""
OTHER_PYTHONS = [one for one in os.environ.get("SEXTON_OTHER_PYTHONS", "").split(os.pathsep) if one]
"""Paths of further interpreters that have our packages, separated as in PATH."""
MORE_SEEDS = amount(1, 50, variable="SEXTON_SEEDS")


@pytest.fixture(scope="module")
def life() -> Life[Outcome]:
    return live(SEED, SMALL)


@pytest.fixture(scope="module")
def eventful() -> Life[Outcome]:
    return live(EVENTFUL, lasting(5))


def test_a_life_is_the_same_in_another_process_with_other_hashes(life: Life[Outcome]) -> None:
    words = [sys.executable, "-m", "tests.simulation", f"--seed={SEED}", f"--minutes={MINUTES}"]
    environment = {"PATH": os.environ["PATH"], "PYTHONHASHSEED": "7"}

    told = subprocess.run(words, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout

    assert told.splitlines()[0].rsplit(", ", 1)[1] == life.sha256


@pytest.mark.skipif(
    not OTHER_PYTHONS, reason="SEXTON_OTHER_PYTHONS names no other interpreter with our packages"
)
def test_a_life_is_the_same_on_every_python(life: Life[Outcome]) -> None:
    words = ["-m", "tests.simulation", f"--seed={SEED}", f"--minutes={MINUTES}"]

    told = [
        subprocess.run([python, *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for python in OTHER_PYTHONS
    ]

    assert {one.splitlines()[0].rsplit(", ", 1)[1] for one in told} == {life.sha256}


def test_people_are_served_although_much_goes_wrong(eventful: Life[Outcome]) -> None:
    record = eventful.value.record

    assert sum(eventful.value.faults.values()) >= 5
    assert len(record.promises.accepted) >= 10
    assert record.promises.failures
    assert any(event.completed_at for event in record.tables.events.values())


def test_follow_ups_come_and_are_taken_back_although_much_goes_wrong(eventful: Life[Outcome]) -> None:
    record = eventful.value.record
    ended = {one.status for one in record.tables.follow_ups.values()}

    assert {FollowUpStatus.FIRED, FollowUpStatus.CANCELLED} <= ended
    assert record.promises.taken_back


def test_proposals_are_decided_and_rejections_heard_of_although_much_goes_wrong(
    eventful: Life[Outcome],
) -> None:
    rows = eventful.value.record.tables.proposals.values()

    assert any(one.status is ProposalStatus.REJECTED for one in rows)
    assert any(one.heard_at for one in rows)


def test_events_are_replayed_in_bulk_and_values_erased_although_much_goes_wrong(
    eventful: Life[Outcome],
) -> None:
    tables = eventful.value.record.tables

    assert any(job.kind is JobKind.REPLAY and job.status is JobStatus.DONE for job in tables.jobs.values())
    assert any(one.status is ErasureStatus.DONE for one in tables.erasures.values())


def test_work_waits_while_a_balance_has_run_out_and_goes_on_with_credit() -> None:
    record = live(SHORT_OF_CREDIT, SMALL).value.record

    events = record.tables.events

    assert record.promises.credited
    assert any(event.failure_label == "balance_exhausted" for event in events.values())
    assert any(events[event_id].first_leased_at for event_id in record.set_aside)


@pytest.mark.parametrize("seed", range(100, 100 + MORE_SEEDS))
def test_no_seed_breaks_a_promise(seed: int) -> None:
    assert len(live(seed, SMALL).value.record.promises.accepted) >= 10


def test_a_fault_that_is_planted_in_the_product_is_noticed() -> None:
    assert found(fault_named("token-stays"), SMALL, seeds=1) == (0, "fencing_grows")


@pytest.mark.parametrize(
    ("fault", "seed", "judge"),
    [
        ("job-takes-all", 0, "jobs_keep_to_their_filter"),
        ("erasure-waits-for-nothing", 0, "erased_is_gone"),
        ("other-ids", 23, "each_replayed_once"),
    ],
)
def test_a_fault_in_bulk_work_is_noticed(fault: str, seed: int, judge: str) -> None:
    with planted(fault_named(fault)):
        failure = failure_of(seed, lasting(5))

    assert failure is not None
    assert failure.judge == judge


def test_answers_meet_runs_that_park() -> None:
    noticed = found(fault_named("wake-lost-parking"), lasting(5), seeds=4)

    assert noticed is not None
    assert noticed[1] == "nothing_forgotten"


# --- judges -------------------------------------------------------------------------------------------------


def _two_live_leases(record: Record) -> None:
    agent = next(agent for agent, leases in record.leases_by_agent().items() if len(leases) > 1)
    for lease in record.leases_by_agent()[agent][:2]:
        record.tables.leases[lease.id] = replace(lease, ended_at=None)


def _a_token_twice(record: Record) -> None:
    leases = next(leases for leases in record.leases_by_agent().values() if len(leases) > 1)
    record.tables.leases[leases[1].id] = replace(leases[1], fencing_token=leases[0].fencing_token)


def _two_reports(record: Record) -> None:
    leases = [lease for lease in record.tables.leases.values() if lease.status == "reported"]
    record.tables.leases[leases[0].id] = replace(leases[0], event_id=leases[1].event_id)


def _a_lost_event(record: Record) -> None:
    del record.tables.events[next(iter(record.promises.accepted))]


def _another_order(record: Record) -> None:
    leases = next(leases for leases in record.leases_by_agent().values() if len(leases) > 1)
    first, last = leases[0].event_id, leases[-1].event_id
    arrivals = record.tables.arrivals
    arrivals[first], arrivals[last] = arrivals[last], arrivals[first]


def _another_decision(record: Record) -> None:
    gate = next(gate for gate in record.tables.gates.values() if gate.status is not GateStatus.PENDING)
    record.resolved[gate.id] = GateStatus.PENDING


def _a_lost_frame(record: Record) -> None:
    agent, frames = next(iter(record.tables.frames.items()))
    record.tables.frames[agent] = frames[1:]


def _a_dead_lease(record: Record) -> None:
    lease = next(iter(record.tables.leases.values()))
    record.tables.leases[lease.id] = replace(lease, ended_at=None)


def _nobody_comes(record: Record) -> None:
    agent = UUID(int=1)
    record.tables.waiting[agent] = {UUID(int=2)}
    record.idle_since[agent] = 0


def _a_gate_twice(record: Record) -> None:
    gate = next(iter(record.tables.gates.values()))
    record.tables.gates[UUID(int=3)] = replace(gate, id=UUID(int=3))


def _a_lease_of_hours(record: Record) -> None:
    lease = next(iter(record.tables.leases.values()))
    later = record.tables.now() + 3_600_000
    record.tables.leases[lease.id] = replace(lease, ended_at=None, expires_at=later)


def _a_stranger_sees(record: Record) -> None:
    record.promises.strangers_saw.append("GET /v1/workspaces: 200")


def _a_frame_skipped(record: Record) -> None:
    record.promises.followed[-1] += 1


def _two_runs(record: Record) -> None:
    process = next(iter(record.systems))
    process.state, process.has_ended = State.RUNNING, False
    agent = UUID(int=1)
    record.runs.at_work = {1: (agent, process), 2: (agent, process)}
    record.doubled = {agent: 60}


def _a_false_death(record: Record) -> None:
    _a_lease_of_hours(record)
    record.runs.told_lost.append((next(iter(record.tables.leases)), "UZ-RUN-011", 0))


def _others_instructions(record: Record) -> None:
    lease = next(iter(record.tables.leases.values()))
    host = record.tables.runners[lease.runner_id].host_id
    record.runs.handed.append(Handed(lease.id, host, "You are somebody else."))


def _anothers_lease(record: Record) -> None:
    lease = next(iter(record.tables.leases.values()))
    name = record.tables.zombies[lease.zombie_id].name
    record.runs.handed.append(Handed(lease.id, "runner-9", f"You are {name}."))


def _a_lost_firing(record: Record) -> None:
    record.tables.events = {
        event_id: event
        for event_id, event in record.tables.events.items()
        if event.event_type != "cron" or event.created_at < record.tables.now() - 90_000
    }


class _Server:
    """Statistics of a server that is in trouble."""

    def __init__(self, **wrong: int) -> None:
        self._wrong = {
            "kind": "lease",
            "crashes": 0,
            "escalations": 0,
            "mailbox_depth": 0,
            "live": 1,
            **wrong,
        }

    def statistics(self) -> SimpleNamespace:
        return SimpleNamespace(kinds=[SimpleNamespace(**self._wrong)], deadlines=1)


def _a_server(record: Record, server: _Server) -> None:
    process = next(iter(record.systems))
    process.state, process.has_ended = State.RUNNING, False
    record.systems = {process: cast("ActorSystem", server)}


def _a_crash(record: Record) -> None:
    _a_server(record, _Server(crashes=1))


def _a_full_mailbox(record: Record) -> None:
    _a_server(record, _Server(mailbox_depth=100_000))


PLANTED: dict[Judge, Callable[[Record], None]] = {
    judges.one_live_lease: _two_live_leases,
    judges.fencing_grows: _a_token_twice,
    judges.no_old_token: _two_reports,
    judges.accepted_once: _a_lost_event,
    judges.order_of_agent: _another_order,
    judges.one_gate_an_action: _a_gate_twice,
    judges.a_term_is_short: _a_lease_of_hours,
    judges.tenants_apart: _a_stranger_sees,
    judges.followed_without_gap: _a_frame_skipped,
    judges_of_programs.one_run_at_a_time: _two_runs,
    judges_of_programs.no_false_death: _a_false_death,
    judges_of_programs.handed_its_own: _others_instructions,
    judges_of_programs.no_actor_crashes: _a_crash,
    judges_of_programs.nothing_piles_up: _a_full_mailbox,
    judges.gate_once: _another_decision,
    judges.stream_without_gap: _a_lost_frame,
    judges.nothing_overdue: _a_dead_lease,
    judges.nothing_forgotten: _nobody_comes,
    judges.fires_in_time: _a_lost_firing,
    **plants_of_arrivals.PLANTED,
    **plants_of_books.PLANTED,
    **plants_of_bulk.PLANTED,
    **plants_of_runs.PLANTED,
    **plants_of_reports.PLANTED,
    **plants_of_credit.PLANTED,
    **plants_of_leases.PLANTED,
    **plants_of_follow_ups.PLANTED,
    **plants_of_proposals.PLANTED,
}


MORE_PLANTED: tuple[tuple[Judge, Callable[[Record], None]], ...] = (
    (judges_of_programs.handed_its_own, _anothers_lease),
    (judges_of_leases.holders_are_served, plants_of_leases.put_off_in_peace),
    *plants_of_arrivals.MORE,
    *plants_of_books.MORE,
    *plants_of_reports.MORE,
    *plants_of_credit.MORE,
    *plants_of_follow_ups.MORE_PLANTED,
    *plants_of_proposals.MORE_PLANTED,
)
"""More planted rows, for judges that notice more than one thing."""


def _copy_of(record: Record) -> Record:
    tables: Tables = copy.copy(record.tables)
    copied = ("leases", "events", "arrivals", "tenants", "gates", "frames", "waiting", "charges", "metering")
    for name in (*copied, "jobs", "erasures", "heads", "follow_ups", "proposals", "configs"):
        setattr(tables, name, dict(getattr(tables, name)))
    promises = replace_fields(record.promises, followed=list(record.promises.followed), strangers_saw=[])
    promises.taken_back = set(record.promises.taken_back)
    promises.proposals = []
    return replace_fields(
        record,
        tables=tables,
        promises=promises,
        resolved=dict(record.resolved),
        gates=dict(record.gates),
        follow_ups=copy.deepcopy(record.follow_ups),
        proposals=copy.deepcopy(record.proposals),
        ended=dict(record.ended),
        idle_since=dict(record.idle_since),
        requests=dict(record.requests),
        before=dict(record.before),
        passes=dict(record.passes),
        runs=Runs(reported=dict(record.runs.reported)),
        doubled={},
        as_reported={},
        deliveries=DeliveriesSeen(),
        priced={},
        answered=set(),
        streaks=Streaks(),
        run_times=RunTimes(),
        set_aside=set(record.set_aside),
    )


@pytest.mark.parametrize(
    "plant",
    [plants_of_bulk.a_replay_left, plants_of_bulk.a_transcript_left, plants_of_bulk.a_value_in_a_transcript],
)
def test_a_value_that_is_left_is_noticed_wherever_it_is(
    eventful: Life[Outcome], plant: Callable[[Record], UUID]
) -> None:
    record = _copy_of(eventful.value.record)

    event_id = plant(record)

    with pytest.raises(Broken, match=f"^erased_is_gone: .* event {event_id}"):
        hold(record, judges_of_erasures.erased_is_gone)


def test_a_proposal_that_keeps_what_was_erased_is_noticed(eventful: Life[Outcome]) -> None:
    record = _copy_of(eventful.value.record)

    proposal_id = plants_of_proposals.an_address_left(record)

    with pytest.raises(Broken, match=f"^erased_is_gone: .*proposal {proposal_id}"):
        hold(record, judges_of_erasures.erased_is_gone)


def test_each_judge_notices_what_it_is_there_for(eventful: Life[Outcome]) -> None:
    assert set(PLANTED) == {*JUDGES, *HEALED, *OF_NODES}
    for judge, plant in (*PLANTED.items(), *MORE_PLANTED):
        record = _copy_of(eventful.value.record)

        hold(record, judge)
        plant(record)

        with pytest.raises(Broken, match=f"^{judge.__name__}: "):
            hold(record, judge)
