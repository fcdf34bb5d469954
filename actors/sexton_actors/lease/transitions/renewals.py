"""One term more for a lease, and the bill for the slice that has passed."""

from sexton_actors.lease.metering import advance, next_slice, out_of_range
from sexton_actors.lease.transitions.state import CEILING, LOST, LeaseState, fenced
from sexton_actors.protocol.lease import Renew, Renewal
from sexton_actors.refusal import Refusal
from sexton_actors.terms import LEASE_TERM_MS
from sexton_storage.records.leases import Lease, LeaseStatus
from sexton_storage.rules import LIVE_LEASE
from sexton_storage.writes import Renewed, RenewLease


def renew(state: LeaseState, message: Renew, now: int) -> RenewLease | Refusal:
    """Extend and bill; the deadline never moves back and never past the ceiling."""
    lease = state.lease
    if lease.ceiling_at <= now and lease.runner_id == message.runner_id and lease.status in LIVE_LEASE:
        return Refusal(CEILING, f"The event has had its 12 hours, at {lease.ceiling_at}.")
    if refusal := fenced(lease, message.runner_id, message.fencing_token, now, LOST):
        return refusal
    if refusal := out_of_range(message):
        return refusal
    billed = next_slice(lease, message, state.waits, now)
    wanted = min(lease.ceiling_at, now + LEASE_TERM_MS)
    until = max(lease.expires_at, wanted)
    renewed = advance(lease, billed, now, version=lease.version + 1, expires_at=until)
    return RenewLease(renewed, billed, now)


def answer(lease: Lease, saved: Renewed) -> Renewal | Refusal:
    """What the runner is told once the renewal is kept: it may have been the last it could pay for.

    The renewal that takes the last of the balance is still answered as one; the next finds nothing left to
    charge.
    """
    if saved.balance_nanos <= 0 and saved.charged_nanos == 0 and not saved.unlimited:
        detail = "The tenant's balance is used up; stop the run and report."
        return Refusal("UZ-RUN-012", detail, {"balance_nanos": 0})
    has_budget = lease.budget_daily_nanos is not None or lease.budget_monthly_nanos is not None
    if has_budget and over_budget(lease, saved.spent_day_nanos, saved.spent_month_nanos):
        facts = {"spent_today_nanos": saved.spent_day_nanos, "balance_nanos": saved.balance_nanos}
        return Refusal("UZ-ZMB-001", "The agent's budget is spent; stop the run and report.", facts)
    return Renewal(
        lease.expires_at,
        lease.slice_seq,
        saved.charged_nanos,
        saved.balance_nanos,
        lease.ceiling_at,
        "cancelling" if lease.status is LeaseStatus.CANCELLING else "active",
    )


def over_budget(lease: Lease, day_nanos: int, month_nanos: int) -> bool:
    """Whether the agent's spend has reached one of its budgets."""
    daily, monthly = lease.budget_daily_nanos, lease.budget_monthly_nanos
    return (daily is not None and day_nanos >= daily) or (monthly is not None and month_nanos >= monthly)
