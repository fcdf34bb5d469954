"""Whether a renewal holds, and what it costs."""

import msgspec
from msgspec.structs import replace

from sexton_storage.decisions.charge import charge
from sexton_storage.decisions.fence import is_live
from sexton_storage.decisions.rows import Decided, Spent
from sexton_storage.records.leases import Lease
from sexton_storage.records.tenants import Tenant
from sexton_storage.refusals import FENCED, STALE, Lost
from sexton_storage.writes import Renewed, RenewLease


class RenewRows(msgspec.Struct, frozen=True, gc=False):
    """What a renewal depends on, as it stands when it is decided."""

    lease: Lease | None
    tenant: Tenant | None
    """The lease's."""
    spent: Spent
    clock: int
    """The database's, in ms: a deadline is judged by it alone."""


def renew(rows: RenewRows, write: RenewLease) -> Decided[Renewed | Lost]:
    """Save the renewal and charge its slice, if the lease is as it was seen and its term has not passed."""
    lease, tenant, asked = rows.lease, rows.tenant, write.lease
    if lease is None or tenant is None or lease.version != asked.version - 1:
        return Decided(Lost(STALE))
    if not is_live(lease, rows.clock):
        return Decided(Lost(FENCED))
    renewed = replace(
        lease,
        version=asked.version,
        expires_at=asked.expires_at,
        metered_at=asked.metered_at,
        slice_seq=asked.slice_seq,
        input_tokens=asked.input_tokens,
        cached_input_tokens=asked.cached_input_tokens,
        output_tokens=asked.output_tokens,
        run_ms=asked.run_ms,
        cache_write_tokens=asked.cache_write_tokens,
        shares=lease.shares if write.slice.shares is None else write.slice.shares,
    )
    paid = charge(lease, write.slice, tenant, rows.spent, write.now)
    answer = Renewed(
        paid.nanos,
        paid.tenant.balance_nanos,
        rows.spent.day + paid.nanos,
        rows.spent.month + paid.nanos,
        tenant.unlimited,
    )
    return Decided(answer, (renewed, paid.period, paid.tenant, paid.spend))
