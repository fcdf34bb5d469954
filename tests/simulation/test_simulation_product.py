"""Nodes, runners and people in a world that a seed decides, and judges that notice each broken promise."""

import copy
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest
from msgspec.structs import replace

from sexton_storage.memory.tables import Tables
from sexton_storage.records.gates import GateStatus
from tests.simulation.drill import FAULTS, found
from tests.simulation.product import judges
from tests.simulation.product.judges import HEALED, JUDGES, Broken, Judge, Record, hold
from tests.simulation.product.life import Outcome, lasting, live
from tests.simulation.world.run import Life
from tests.thorough import amount

ROOT = Path(__file__).parents[2]
MINUTES = 2
SMALL = lasting(MINUTES)
SEED = 3
MORE_SEEDS = amount(1, 50, variable="SEXTON_SEEDS")


@pytest.fixture(scope="module")
def life() -> Life[Outcome]:
    return live(SEED, SMALL)


def test_a_life_is_the_same_in_another_process_with_other_hashes(life: Life[Outcome]) -> None:
    words = [sys.executable, "-m", "tests.simulation", f"--seed={SEED}", f"--minutes={MINUTES}"]
    environment = {"PATH": os.environ["PATH"], "PYTHONHASHSEED": "7"}

    told = subprocess.run(words, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout

    assert told.splitlines()[0].rsplit(", ", 1)[1] == life.sha256


def test_people_are_served_although_much_goes_wrong(life: Life[Outcome]) -> None:
    record = life.value.record

    assert sum(life.value.faults.values()) >= 5
    assert len(record.promises.accepted) >= 10
    assert record.promises.failures
    assert any(event.completed_at for event in record.tables.events.values())


@pytest.mark.parametrize("seed", range(100, 100 + MORE_SEEDS))
def test_no_seed_breaks_a_promise(seed: int) -> None:
    assert len(live(seed, SMALL).value.record.promises.accepted) >= 10


def test_a_fault_that_is_planted_in_the_product_is_noticed() -> None:
    [fault] = [one for one in FAULTS if one.name == "new_lease"]

    assert found(fault, SMALL, seeds=1) == (0, "fencing_grows")


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


def _a_lost_cent(record: Record) -> None:
    [tenant] = record.tables.tenants.values()
    record.tables.tenants[tenant.id] = replace(tenant, balance_nanos=tenant.balance_nanos - 1)


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


PLANTED: dict[Judge, Callable[[Record], None]] = {
    judges.one_live_lease: _two_live_leases,
    judges.fencing_grows: _a_token_twice,
    judges.no_old_token: _two_reports,
    judges.accepted_once: _a_lost_event,
    judges.order_of_agent: _another_order,
    judges.every_cent_once: _a_lost_cent,
    judges.gate_once: _another_decision,
    judges.stream_without_gap: _a_lost_frame,
    judges.nothing_overdue: _a_dead_lease,
    judges.nothing_forgotten: _nobody_comes,
}


def _copy_of(record: Record) -> Record:
    tables: Tables = copy.copy(record.tables)
    for name in ("leases", "events", "arrivals", "tenants", "gates", "frames", "waiting"):
        setattr(tables, name, dict(getattr(tables, name)))
    return Record(tables, record.promises, dict(record.resolved), dict(record.ended), dict(record.idle_since))


def test_each_judge_notices_what_it_is_there_for(life: Life[Outcome]) -> None:
    assert set(PLANTED) == {*JUDGES, *HEALED}
    for judge, plant in PLANTED.items():
        record = _copy_of(life.value.record)

        hold(record, judge)
        plant(record)

        with pytest.raises(Broken, match=f"^{judge.__name__}: "):
            hold(record, judge)
