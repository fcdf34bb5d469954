"""Appends and cancels events: looks the rows up, decides, and puts them down."""

from typing import assert_never
from uuid import UUID

from sexton_storage.decisions import append, cancel
from sexton_storage.decisions.rows import DedupKey
from sexton_storage.decisions.sources import source_delivery, source_event, source_follow_up
from sexton_storage.errors import RowRefused
from sexton_storage.memory.tables import Tables
from sexton_storage.periods import day_of
from sexton_storage.records.sources import Source, SourceKind
from sexton_storage.refusals import Lost
from sexton_storage.writes import Appended, AppendEvent, CancelEvent, Cancelled, Duplicate, OverBudget


def append_event(tables: Tables, write: AppendEvent) -> Appended | Duplicate | OverBudget | Lost:
    event, firing, follow_up_id = write.event, write.firing, write.follow_up_id
    by_key, by_body = dedup_rows(tables, event.zombie_id, write.dedup_key, write.body_key)
    cron = None if firing is None else (event.zombie_id, firing.schedule, firing.timezone)
    rows = append.AppendRows(
        agent=tables.zombies.get(event.zombie_id),
        by_key=by_key,
        by_body=by_body,
        cron=None if cron is None else tables.crons.get(cron),
        follow_up=None if follow_up_id is None else tables.follow_ups.get(follow_up_id),
        source=_as_it_is(tables, write.source),
        spent=tables.spent(event.zombie_id, event.created_at),
        counted=tables.event_counts.get((event.tenant_id, day_of(event.created_at)), 0),
    )
    decided = append.append(rows, write)
    if isinstance(decided.answer, Appended) and event.id in tables.events:
        raise RowRefused(f"event {event.id} is there already")
    return tables.put(decided)


def _as_it_is(tables: Tables, source: Source | None) -> Source | None:
    if source is None:
        return None
    match source.kind:
        case SourceKind.EVENT:
            event = tables.events.get(source.id)
            return None if event is None else source_event(event)
        case SourceKind.FOLLOW_UP:
            follow_up = tables.follow_ups.get(source.id)
            return None if follow_up is None else source_follow_up(follow_up)
        case SourceKind.DELIVERY:
            body = tables.delivery_bodies.get(source.id)
            return None if body is None else source_delivery(source.id, body)
        case _:
            assert_never(source.kind)


def dedup_rows(
    tables: Tables, zombie_id: UUID, dedup_key: bytes | None, body_key: bytes | None
) -> tuple[DedupKey | None, DedupKey | None]:
    """The rows of a delivery's key and of its body; a body is looked for only beside a key."""
    if dedup_key is None:
        return None, None
    by_body = None if body_key is None else tables.dedup.get((zombie_id, body_key))
    return tables.dedup.get((zombie_id, dedup_key)), by_body


def cancel_event(tables: Tables, write: CancelEvent) -> Cancelled | Lost:
    row = tables.event_row(write.event_id)
    rows = cancel.CancelRows(
        event=None if row is None or row.event.zombie_id != write.zombie_id else row,
        gates=[gate for gate in tables.gates.values() if gate.event_id == write.event_id],
        lease=tables.live_lease(write.zombie_id),
    )
    return tables.put(cancel.cancel(rows, write))
