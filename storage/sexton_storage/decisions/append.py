"""Whether an event is kept, and what is kept with it."""

from uuid import UUID

import msgspec
from msgspec.structs import replace

from sexton_storage.decisions.claim import over_period
from sexton_storage.decisions.follow_ups import closed
from sexton_storage.decisions.rows import DayCount, Decided, DedupKey, EventRow, Row, Spent
from sexton_storage.decisions.sources import stands
from sexton_storage.documents import storable
from sexton_storage.periods import day_of
from sexton_storage.records.crons import CronEntry
from sexton_storage.records.events import EventStatus
from sexton_storage.records.follow_ups import FollowUp, FollowUpStatus
from sexton_storage.records.gates import GateStatus
from sexton_storage.records.sources import Source
from sexton_storage.records.zombies import Zombie, ZombieStatus
from sexton_storage.refusals import GONE, SOURCE_CHANGED, STALE, Lost
from sexton_storage.rules import storable_gate
from sexton_storage.terms import DEDUP_WINDOW_MS
from sexton_storage.writes import Appended, AppendEvent, Duplicate, OverBudget


class AppendRows(msgspec.Struct, frozen=True, gc=False):
    """What an append depends on, as it stands when it is decided."""

    agent: Zombie | None
    by_key: DedupKey | None
    """The row of the write's ``dedup_key``."""
    by_body: DedupKey | None
    """The row of its ``body_key``."""
    cron: CronEntry | None
    """The entry that its firing is of."""
    follow_up: FollowUp | None
    """The one that it was asked for as."""
    source: Source | None
    """The write's ``source``, as it is now; None: it is gone."""
    spent: Spent
    counted: int
    """The tenant's events of the UTC day, where its plan has a limit."""


Outcome = Appended | Duplicate | OverBudget | Lost


def append(rows: AppendRows, write: AppendEvent) -> Decided[Outcome]:
    """Keep one event, unless the agent is gone, it was seen, its time is over, or the budget is spent.

    Nor where what it was made from has changed since.
    """
    agent = rows.agent
    if agent is None or agent.status is ZombieStatus.KILLED:
        return Decided(Lost(GONE))
    first = seen(rows.by_key, rows.by_body, write.event.created_at)
    if first is None and not is_due(rows, write):
        return Decided(Lost(STALE))
    if first is not None:
        return Decided(Duplicate(first), _over_with(rows, write, FollowUpStatus.FIRED))
    if not stands(write.source, rows.source):
        return Decided(Lost(SOURCE_CHANGED))
    if period := _budget(rows, write):
        return Decided(OverBudget(period), _over_with(rows, write, FollowUpStatus.DROPPED))
    return _kept(rows, write, agent)


def seen(by_key: DedupKey | None, by_body: DedupKey | None, now: int) -> UUID | None:
    """Name the first event of this key, or of this body where that one had no id.

    >>> agent, event = UUID(int=1), UUID(int=2)
    >>> bare, named = (DedupKey(agent, b"", event, 1000, by_body) for by_body in (False, True))
    >>> seen(bare, None, 1000) == seen(named, None, 1000) == seen(None, bare, 1000) == event
    True
    >>> seen(None, named, 1000), seen(bare, None, 1000 + DEDUP_WINDOW_MS)
    (None, None)
    """
    if by_key is not None and by_key.seen_at > now - DEDUP_WINDOW_MS:
        return by_key.event_id
    if by_body is not None and not by_body.by_body and by_body.seen_at > now - DEDUP_WINDOW_MS:
        return by_body.event_id
    return None


def is_due(rows: AppendRows, write: AppendEvent) -> bool:
    """Say whether what the event was asked for as is still to come: its firing, and its follow-up."""
    firing = write.firing
    if firing is not None and (rows.cron is None or rows.cron.next_at != firing.due_at):
        return False
    return write.follow_up_id is None or (
        rows.follow_up is not None and rows.follow_up.status is FollowUpStatus.PENDING
    )


def _budget(rows: AppendRows, write: AppendEvent) -> str | None:
    if period := over_period(rows.spent, write.budget_daily_nanos, write.budget_monthly_nanos):
        return period
    return "plan" if write.events_limit is not None and rows.counted >= write.events_limit else None


def _over_with(rows: AppendRows, write: AppendEvent, status: FollowUpStatus) -> tuple[Row, ...]:
    """Let the firing and the follow-up be over with this write, where they are still to come."""
    over: list[Row] = []
    firing, cron = write.firing, rows.cron
    if firing is not None and cron is not None and cron.next_at == firing.due_at:
        over.append(replace(cron, next_at=firing.next_at))
    if rows.follow_up is not None and rows.follow_up.status is FollowUpStatus.PENDING:
        over.append(closed(rows.follow_up, status, write.event.created_at))
    return tuple(over)


def _kept(rows: AppendRows, write: AppendEvent, agent: Zombie) -> Decided[Outcome]:
    event, gate = write.event, write.gate
    # Nodes' clocks differ: a history must not show a later event as the earlier one.
    kept_at = max(event.created_at, agent.last_event_at or event.created_at)
    waits = gate is not None and gate.status is GateStatus.PENDING
    kept = replace(
        event,
        status=EventStatus.WAITING_APPROVAL if waits else event.status,
        request_json=storable(event.request_json),
        created_at=kept_at,
        updated_at=max(event.updated_at, kept_at),
    )
    changed: list[Row] = [
        EventRow(kept, waits_at=gate.id if gate is not None and waits else None),
        replace(agent, last_event_at=kept_at),
        *_keys(write),
        *_over_with(rows, write, FollowUpStatus.FIRED),
    ]
    if gate is not None:
        changed.append(storable_gate(gate))
    if write.events_limit is not None:
        changed.append(DayCount(event.tenant_id, day_of(event.created_at), rows.counted + 1))
    return Decided(Appended(event.id), tuple(changed), write.frames)


def _keys(write: AppendEvent) -> tuple[DedupKey, ...]:
    """Remember the event by its key, and by its body: it may come again without an id."""
    event, key, body = write.event, write.dedup_key, write.body_key
    if key is None:
        return ()
    keys = (DedupKey(event.zombie_id, key, event.id, event.created_at, by_body=False),)
    if body is None or body == key:
        return keys
    return (*keys, DedupKey(event.zombie_id, body, event.id, event.created_at, by_body=True))
