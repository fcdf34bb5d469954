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


def _without_its_id(credit: Any) -> Any:
    async def changed(*args: Any, **kwargs: Any) -> Any:
        return await credit(*args, **{**kwargs, "credit_id": None})

    return changed


FAULTS: Final = (
    Fault(
        "credit-again",
        "a credit that is asked for again, since its server died before it answered, is added again",
        "sexton_storage.memory.tenancy",
        "MemoryTenants.credit",
        _without_its_id,
    ),
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
