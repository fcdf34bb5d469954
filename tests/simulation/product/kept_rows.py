"""Rows as they were when they were last seen: retention deletes them, and judges still ask for them."""

from __future__ import annotations

import copy
from dataclasses import fields
from typing import Final
from uuid import UUID

from sexton_storage.memory.tables import Tables

KEPT: Final = ("events", "leases", "gates", "arrivals", "charges")
"""What stays here when it is deleted there; frames too, and metering rows are as they are now."""
DAY_MS: Final = 24 * 3_600_000
EVENT_DAYS: Final = 1
"""What the workspace's retention says."""
LOOK_MS: Final = 3_600_000
"""Deletions are noticed within an hour, so a row may have gone by that much earlier than is seen here."""


class KeptRows:
    """``tables`` has all rows that there ever were, and is brought up to date by ``update``."""

    def __init__(self, real: Tables) -> None:
        self._real = real
        self.tables = copy.copy(real)
        for name in (*KEPT, "frames"):
            setattr(self.tables, name, {})
        self._there: set[UUID] = set()
        self._first_frame: dict[UUID, int] = {}
        self.gone = 0
        """Events that were deleted."""
        self.too_early: list[str] = []
        """What was deleted before its time."""

    def update(self) -> None:
        """Take over what is new or has changed, and note what has gone."""
        real, kept, now = self._real, self.tables, self._real.now()
        for one in fields(Tables):
            if one.name not in (*KEPT, "frames"):
                setattr(kept, one.name, getattr(real, one.name))
        for name in KEPT:
            getattr(kept, name).update(getattr(real, name))
        for agent, frames in real.frames.items():
            known = kept.frames.setdefault(agent, [])
            last = known[-1].seq if known else 0
            known.extend(frame for frame in frames if frame.seq > last)
            first = frames[0].seq if frames else last + 1
            for frame in known[self._first_frame.get(agent, 1) - 1 : first - 1]:
                if now - frame.at_ms < DAY_MS - LOOK_MS:
                    self.too_early.append(f"frame {frame.seq} of agent {agent} lived {now - frame.at_ms} ms")
            self._first_frame[agent] = first
        gone = self._there - real.events.keys()
        self.gone += len(gone)
        for event_id in sorted(gone):
            event = kept.events[event_id]
            if event.completed_at is None or now - event.completed_at < EVENT_DAYS * DAY_MS - LOOK_MS:
                self.too_early.append(f"event {event_id} ended at {event.completed_at}, and is gone at {now}")
        self._there = set(real.events)

    def too_late(self, late_ms: int) -> list[str]:
        """What should have gone ``late_ms`` ago, and is there."""
        real, now = self._real, self._real.now()
        old = now - EVENT_DAYS * DAY_MS - late_ms
        found = [
            f"event {event.id} ended at {event.completed_at}"
            for event in real.events.values()
            if event.completed_at is not None and max(event.created_at, event.completed_at) < old
        ]
        found += [
            f"frame {frames[0].seq} of agent {agent} is of {frames[0].at_ms}"
            for agent, frames in real.frames.items()
            if frames and frames[0].at_ms < now - DAY_MS - late_ms
        ]
        live = {lease.event_id for lease in real.leases.values() if lease.ended_at is None}
        for event_id, rows in real.metering.items():
            if event_id in live or len(rows) == len({attempt for attempt, _ in rows}):
                continue
            if max(row.created_at for row in rows.values()) < old:
                found.append(f"event {event_id} has {len(rows)} metering rows")
        return found
