"""Faults in what the database is told to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from sexton_storage.records.events import EventStatus
from sexton_storage.records.gates import GateStatus
from sexton_storage.refusals import LEASED, Lost
from sexton_storage.rules import LIVE_LEASE
from sexton_storage.writes import Appended, AppendEvent
from tests.simulation.drill.planting import Fault

DECISIONS: Final = "sexton_storage.decisions"
MEMORY: Final = "sexton_storage.memory"


def _nothing(_: Any) -> Any:
    return lambda *_, **__: None


def _leased_again(held_back: Any) -> Any:
    def changed(*asked: Any) -> Any:
        reason = held_back(*asked)
        return None if reason == LEASED else reason

    return changed


def _later_is_now(claim: Any) -> Any:
    def changed(rows: Any, write: Any) -> Any:
        found = rows.next
        if found is None:
            return claim(rows, write)
        event = replace(found.event, retry_at=None)
        return claim(replace(rows, next=replace(found, event=event)), write)

    return changed


def _same_token(new_lease: Any) -> Any:
    return lambda write, row, *, token: new_lease(write, row, token=max(1, token - 1))


def _no_fence(_: Any) -> Any:
    def changed(lease: Any, write: Any, clock: int) -> Lost | None:
        del write, clock
        return Lost("gone") if lease is None else None

    return changed


def _status_unchecked(may_end: Callable[[Any, Any, int], Lost | None]) -> Any:
    def changed(lease: Any, write: Any, clock: int) -> Lost | None:
        # Completion without fencing: whoever was granted the event once may complete it.
        if lease is not None and lease.status not in LIVE_LEASE and write.require_unexpired:
            return None
        return may_end(lease, write, clock)

    return changed


def _twice(charge: Any) -> Any:
    def changed(lease: Any, part: Any, tenant: Any, spent: Any, now: int) -> Any:
        return charge(lease, part, charge(lease, part, tenant, spent, now).tenant, spent, now)

    return changed


def _spend_forgotten(charge: Any) -> Any:
    def changed(lease: Any, part: Any, tenant: Any, spent: Any, now: int) -> Any:
        paid = charge(lease, part, tenant, spent, now)
        return replace(paid, spend=replace(paid.spend, nanos=spent.day))

    return changed


def _balance_kept(charge: Any) -> Any:
    def changed(lease: Any, part: Any, tenant: Any, spent: Any, now: int) -> Any:
        return replace(charge(lease, part, tenant, spent, now), tenant=tenant)

    return changed


def _billed_for_all(bill: Any) -> Any:
    return lambda lease, periods, now: bill(
        lease, [replace(period, attempt=lease.attempt) for period in periods], now
    )


def _again(resolve: Any) -> Any:
    def changed(rows: Any, write: Any) -> Any:
        gate = rows.gate
        pending = None if gate is None else replace(gate, status=GateStatus.PENDING)
        return resolve(replace(rows, gate=pending), write)

    return changed


def _always_approved(resolve: Any) -> Any:
    return lambda rows, write: resolve(rows, replace(write, status=GateStatus.APPROVED))


def _unknown_action(open_gate: Any) -> Any:
    return lambda write, known, *, held: open_gate(write, None, held=held)


def _waits_for_ever(_: Any) -> Any:
    def changed(event_id: Any, gate: Any) -> Any:
        del event_id
        if gate is None:
            return EventStatus.RECEIVED, None
        return EventStatus.WAITING_APPROVAL, gate.id

    return changed


def _head_kept(_: Any) -> Any:
    return lambda head, lease, status: head


def _reported_again(after: Any) -> Any:
    def changed(row: Any, write: Any, gate: Any, periods: Any) -> Any:
        moved = after(row, write, gate, periods)
        if moved.event.status is not EventStatus.PROCESSED:
            return moved
        event = replace(moved.event, status=EventStatus.RECEIVED, completed_at=None)
        return replace(moved, event=event)

    return changed


def _granted_for_hours(new_lease: Any) -> Any:
    def changed(write: Any, row: Any, *, token: int) -> Any:
        lease = new_lease(write, row, token=token)
        return replace(lease, expires_at=lease.ceiling_at)

    return changed


def _no_rows(_: Any) -> Any:
    async def changed(self: Any, **__: Any) -> list[Any]:
        await self._round_trip()
        return []

    return changed


def _newest_first(received: Any) -> Any:
    return lambda tables, agent: received(tables, agent)[::-1]


def _by_id(received: Any) -> Any:
    return lambda tables, agent: sorted(received(tables, agent), key=lambda event: event.id)


def _none_held(_: Any) -> Any:
    return lambda *_: 0


def _promised_and_lost(answer: Any) -> Any:
    calls: Counter[str] = Counter()

    def changed(self: Any, position: int, write: Any) -> Any:
        if isinstance(write, AppendEvent):
            calls["append"] += 1
            if calls["append"] % 10 == 0:
                return Appended(write.event.id)
        return answer(self, position, write)

    return changed


def _number_skipped(append: Any) -> Any:
    def changed(self: Any, frames: Any) -> Any:
        frames = tuple(frames)
        append(self, frames)
        for frame in frames[-1:]:
            head = self.heads.get(frame.zombie_id)
            if head is not None and head.frame_seq % 20 == 0:
                self.heads[frame.zombie_id] = replace(head, frame_seq=head.frame_seq + 1)

    return changed


FAULTS: Final = (
    Fault(
        "delivery-again",
        "a delivery that comes again is another event",
        f"{DECISIONS}.append",
        "seen",
        _nothing,
    ),
    Fault(
        "leased-twice",
        "an agent is leased although it is leased",
        f"{DECISIONS}.claim",
        "held_back",
        _leased_again,
    ),
    Fault(
        "later-is-now",
        "an event that was given back for later is leased at once",
        f"{DECISIONS}.claim",
        "claim",
        _later_is_now,
    ),
    Fault("token-stays", "the fencing token does not grow", f"{DECISIONS}.claim", "new_lease", _same_token),
    Fault("end-unchecked", "what has ended can be ended again", f"{DECISIONS}.end", "may_end", _no_fence),
    Fault(
        "report-unfenced",
        "a late report completes its event",
        f"{DECISIONS}.end",
        "may_end",
        _status_unchecked,
        (("sexton_actors.lease.transitions.state", "fenced", _nothing),),
    ),
    Fault("renewal-twice", "a renewal debits twice", f"{DECISIONS}.charge", "charge", _twice),
    Fault(
        "spend-forgotten",
        "a charge is not counted in the agent's day",
        f"{DECISIONS}.charge",
        "charge",
        _spend_forgotten,
    ),
    Fault(
        "debit-forgotten",
        "a charge is not taken from the balance",
        f"{DECISIONS}.charge",
        "charge",
        _balance_kept,
    ),
    Fault(
        "bill-of-event",
        "each lease is billed what its whole event cost",
        f"{DECISIONS}.charge",
        "bill",
        _billed_for_all,
    ),
    Fault("bill-missing", "a lease that ends is not billed", f"{DECISIONS}.charge", "bill", _nothing),
    Fault("gate-decided-twice", "a gate is decided again", f"{DECISIONS}.gates", "resolve_gate", _again),
    Fault(
        "gate-always-approved",
        "a denial is kept as an approval",
        f"{DECISIONS}.gates",
        "resolve_gate",
        _always_approved,
    ),
    Fault(
        "gate-asked-twice",
        "asking again opens another gate",
        f"{DECISIONS}.gates",
        "open_gate",
        _unknown_action,
    ),
    Fault(
        "wake-lost-parking",
        "a run parks at a gate that was answered meanwhile",
        f"{DECISIONS}.park",
        "park",
        _waits_for_ever,
    ),
    Fault(
        "wake-lost-answer",
        "an answer does not free the event that waits",
        f"{DECISIONS}.gates",
        "_waits_here",
        _none_held,
    ),
    Fault(
        "agent-kept", "the end of a lease does not free its agent", f"{DECISIONS}.end", "_freed", _head_kept
    ),
    Fault(
        "reported-again",
        "an event that was processed is queued again",
        f"{DECISIONS}.end",
        "after",
        _reported_again,
    ),
    Fault(
        "term-of-hours", "a lease is granted for hours", f"{DECISIONS}.claim", "new_lease", _granted_for_hours
    ),
    Fault(
        "reclaimer-blind",
        "nobody looks for dead runners",
        f"{MEMORY}.reads",
        "MemoryLeases.expired",
        _no_rows,
    ),
    Fault(
        "scan-blind",
        "nobody looks for agents that were not announced",
        f"{MEMORY}.reads",
        "MemoryEvents.ready",
        _no_rows,
    ),
    Fault(
        "newest-first", "the newest event goes first", f"{MEMORY}.tables", "Tables.received", _newest_first
    ),
    Fault(
        "order-by-node-clock",
        "events go in the order of ids that nodes' clocks made",
        f"{MEMORY}.tables",
        "Tables.received",
        _by_id,
    ),
    Fault(
        "slots-ignored",
        "a runner is given more than it has slots for",
        f"{MEMORY}.apply_leases",
        "_held_by",
        _none_held,
    ),
    Fault(
        "promised-and-lost",
        "one event in ten is acknowledged and not kept",
        f"{MEMORY}.journal",
        "MemoryJournal._answer",
        _promised_and_lost,
    ),
    Fault(
        "frame-number-skipped",
        "a number of the stream is skipped",
        f"{MEMORY}.tables",
        "Tables.append_frames",
        _number_skipped,
    ),
)
