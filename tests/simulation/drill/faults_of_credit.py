"""Faults in what becomes of a tenant that has nothing left."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from tests.simulation.drill.planting import Fault


def _as_if_unlimited(claim: Any) -> Any:
    def changed(rows: Any, write: Any) -> Any:
        tenant = None if rows.tenant is None else replace(rows.tenant, unlimited=True)
        return claim(replace(rows, tenant=tenant), write)

    return changed


def _nothing(_: Any) -> Any:
    return lambda *_, **__: None


FAULTS: Final = (
    Fault(
        "leased-on-credit",
        "a tenant with nothing left is given leases",
        "sexton_storage.decisions.claim",
        "claim",
        _as_if_unlimited,
    ),
    Fault(
        "credit-frees-nothing",
        "what waits for credit goes on waiting when there is some",
        "sexton_storage.memory.tenancy",
        "_free",
        _nothing,
    ),
)
