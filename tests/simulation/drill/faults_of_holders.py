"""Faults in what is done for those who hold a lease: their renewals, and the gates that they ask for."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from sexton_storage.decisions.rows import Decided
from sexton_storage.records.gates import GateStatus
from sexton_storage.refusals import STALE, Lost
from sexton_storage.writes import GateOpened
from tests.simulation.drill.planting import Fault

DECISIONS: Final = "sexton_storage.decisions"


def _only_once(renew: Any) -> Any:
    def changed(rows: Any, write: Any) -> Any:
        return renew(rows, write) if rows.lease.version < 2 else Decided(Lost(STALE))

    return changed


def _left_behind(open_gate: Any) -> Any:
    def changed(write: Any, known: Any, *, held: bool) -> Any:
        if held and known is not None and known.status is GateStatus.PENDING:
            return Decided(GateOpened(known, existed=True))
        return open_gate(write, known, held=held)

    return changed


def _whoever_asks(open_gate: Any) -> Any:
    def changed(write: Any, known: Any, *, held: bool) -> Any:
        if held and known is not None and known.lease_id != write.gate.lease_id:
            known = replace(known, lease_id=write.gate.lease_id)
            return Decided(GateOpened(known, existed=True), (known,))
        return open_gate(write, known, held=held)

    return changed


FAULTS: Final = (
    Fault(
        "renewed-once",
        "a lease is renewed once, and never again",
        f"{DECISIONS}.renew",
        "renew",
        _only_once,
    ),
    Fault(
        "gate-left-behind",
        "a pending gate that is asked for again stays with the lease that asked first",
        f"{DECISIONS}.gates",
        "open_gate",
        _left_behind,
    ),
    Fault(
        "gate-changes-hands",
        "whoever asks for a gate that is resolved becomes its lease",
        f"{DECISIONS}.gates",
        "open_gate",
        _whoever_asks,
    ),
)
