"""Keeps what leases were billed."""

from sexton_storage.memory.tables import Tables
from sexton_storage.records.charges import STAGE_CHARGE, Charge
from sexton_storage.records.leases import Lease


def record_charge(tables: Tables, lease: Lease, now: int) -> None:
    """Keep what a lease that ended was billed; one that never was leaves none."""
    rows = [
        row
        for (attempt, _), row in tables.metering.get(lease.event_id, {}).items()
        if attempt == lease.attempt
    ]
    if rows:
        tables.charges[lease.id] = Charge(
            id=lease.id,
            event_id=lease.event_id,
            zombie_id=lease.zombie_id,
            workspace_id=lease.workspace_id,
            tenant_id=lease.tenant_id,
            charge_type=STAGE_CHARGE,
            posture="self_managed" if lease.own_key else "platform",
            model=lease.model,
            credit_deducted_nanos=sum(row.charged_nanos for row in rows),
            token_count_input=sum(row.d_input_tokens + row.d_cached_tokens for row in rows),
            token_count_output=sum(row.d_output_tokens for row in rows),
            wall_ms=sum(row.run_ms for row in rows),
            recorded_at=now,
        )
