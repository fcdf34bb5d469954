"""The faults of the drill: found in earlier versions, known of other systems, and simple slips."""

from __future__ import annotations

from typing import Final

from tests.simulation.drill import (
    faults_of_actors,
    faults_of_bulk,
    faults_of_credit,
    faults_of_follow_ups,
    faults_of_holders,
    faults_of_proposals,
    faults_of_rows,
    faults_of_runners,
    faults_of_servers,
    faults_of_time,
)
from tests.simulation.drill.planting import Fault

FAULTS: Final[tuple[Fault, ...]] = (
    *faults_of_rows.FAULTS,
    *faults_of_actors.FAULTS,
    *faults_of_runners.FAULTS,
    *faults_of_servers.FAULTS,
    *faults_of_bulk.FAULTS,
    *faults_of_credit.FAULTS,
    *faults_of_holders.FAULTS,
    *faults_of_follow_ups.FAULTS,
    *faults_of_proposals.FAULTS,
)


def fault_named(name: str) -> Fault:
    """Raises LookupError."""
    for fault in (*FAULTS, *faults_of_time.FAULTS):
        if fault.name == name:
            return fault
    raise LookupError(f"no fault is named {name}")
