"""A lease in the middle of its term, and what tests of its rules name."""

from uuid import UUID

from msgspec.structs import replace

from sexton_actors.lease.transitions.state import LeaseState
from sexton_storage.records.gates import Gate, GateStatus
from sexton_storage.records.leases import Lease, LeaseStatus, Rates

IT, AGENT, EVENT, RUNNER, OTHER, GATE_ID = (UUID(int=n) for n in range(1, 7))
NOW = 1_000_000
LEASE = Lease(
    id=IT,
    event_id=EVENT,
    zombie_id=AGENT,
    workspace_id=IT,
    tenant_id=IT,
    runner_id=RUNNER,
    fencing_token=5,
    attempt=2,
    status=LeaseStatus.ACTIVE,
    version=4,
    granted_at=NOW - 40_000,
    expires_at=NOW + 1,
    ceiling_at=NOW + 20_000,
    metered_at=NOW - 10,
    rates=Rates(1_000),
    slice_seq=3,
    input_tokens=10,
    cached_input_tokens=20,
    output_tokens=30,
    cache_write_tokens=40,
)
STATE = LeaseState(LEASE)
CANCELLING = LeaseState(replace(LEASE, status=LeaseStatus.CANCELLING))
OVER = LeaseState(replace(LEASE, status=LeaseStatus.REPORTED))
GATE = Gate(GATE_ID, AGENT, IT, IT, EVENT, IT, "deploy", GateStatus.PENDING, 1, 2)
