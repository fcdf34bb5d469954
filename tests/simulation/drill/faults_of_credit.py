"""Faults in what becomes of a tenant that has nothing left."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from tests.simulation.drill.planting import Fault

TENANCY: Final = "sexton_storage.memory.tenancy"


def _as_if_unlimited(claim: Any) -> Any:
    def changed(rows: Any, write: Any) -> Any:
        tenant = None if rows.tenant is None else replace(rows.tenant, unlimited=True)
        return claim(replace(rows, tenant=tenant), write)

    return changed


def _nothing(_: Any) -> Any:
    return lambda *_, **__: None


def _without_key(credit: Any) -> Any:
    # As if the id of a credit were another one with each try.
    return lambda self, tenant_id, nanos, reason, actor, **_: credit(self, tenant_id, nanos, reason, actor)


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
        "what was set aside for want of credit stays so when there is some",
        TENANCY,
        "_free",
        _nothing,
    ),
    Fault(
        "credited-again",
        "a credit that is asked for again under its key is added again",
        TENANCY,
        "MemoryTenants.credit",
        _without_key,
    ),
)
