"""What holders of leases may count on: while they hold one they are served, and they keep what they renew."""

from collections.abc import Iterator
from typing import Final

from tests.simulation.product.record import Record
from tests.simulation.product.refusals import LOST_CODES

SERVER_FAULT: Final = 500


def holders_are_served(record: Record) -> Iterator[str]:
    """What is asked under a live lease is not refused as if it were lost, nor put off in peace."""
    tables, settled_at = record.tables, record.settled_at
    for refused in record.runs.refused:
        lease = tables.leases.get(refused.lease_id)
        # It may have ended since: then nobody can say any more which was first.
        if lease is None or lease.ended_at is not None or lease.expires_at <= tables.now():
            continue
        is_put_off = refused.status >= SERVER_FAULT or refused.status == 429
        in_peace = settled_at is not None and refused.asked_ms >= settled_at
        if refused.code in LOST_CODES or (is_put_off and in_peace):
            yield f"{refused.what} of live lease {lease.id} was answered {refused.status} {refused.code}"
    record.runs.refused.clear()


def kept_while_renewed(record: Record) -> Iterator[str]:
    """Once faults have healed, no lease that was granted since then is taken back."""
    settled_at = record.settled_at
    if settled_at is None:
        return
    for lease in reversed(record.tables.leases.values()):
        if lease.granted_at < settled_at:
            break
        if lease.status == "reclaimed":
            yield f"lease {lease.id} was granted at {lease.granted_at} and taken back at {lease.ended_at}"
