"""What an erasure looks through in memory, and what it does to each row."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from msgspec.structs import replace

from sexton_storage.decisions import erasure as take
from sexton_storage.decisions.rows import EventRow
from sexton_storage.documents import from_json, to_json
from sexton_storage.memory import event_files
from sexton_storage.memory.artefacts import let_go
from sexton_storage.memory.tables import Tables
from sexton_storage.records.erasures import Erasure, Needle
from sexton_storage.records.events import Event
from sexton_storage.records.follow_ups import FollowUp, FollowUpStatus
from sexton_storage.records.frames import Frame
from sexton_storage.records.gates import GateStatus

Act = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Hit:
    """A row that has the value, or belongs to an event of the person."""

    act: Act
    """Take it out."""
    event_id: UUID | None = None
    whole: bool = False
    is_open: bool = False
    stays: bool = False
    """It is only counted."""


def nothing() -> None:
    """Leave the row as it is."""


def hits(tables: Tables, erasure: Erasure, name: str, marks: Mapping[UUID, bool]) -> Iterator[Hit]:
    """Look through one surface; ``marks`` has the events that were come to: True, the person's."""
    return _SURFACES[name](_Look(tables, erasure, erasure.needle, marks))


@dataclass(frozen=True, slots=True)
class _Look:
    tables: Tables
    erasure: Erasure
    needle: Needle
    marks: Mapping[UUID, bool]

    def rest(self, row: Any, texts: tuple[str, ...], documents: tuple[str, ...] = ()) -> dict[str, Any]:
        """The fields that have the value, as they are without it."""
        left: dict[str, Any] = {}
        for field in texts:
            text = getattr(row, field)
            is_json = field == "request_json"
            taken = take.without_json if is_json else take.without_text
            if text is not None and (rest := taken(self.needle, text)) != text:
                left[field] = rest
        for field in documents:
            document = getattr(row, field)
            text = None if document is None else to_json(document)
            if text is not None and (rest := take.without_json(self.needle, text)) != text:
                left[field] = from_json(rest)
        return left

    def is_open(self, event_id: UUID | None) -> bool:
        event = None if event_id is None else self.tables.events.get(event_id)
        return event is not None and event.completed_at is None

    def agents(self) -> frozenset[UUID]:
        rows = self.tables.zombies.values()
        return frozenset(one.id for one in rows if one.workspace_id == self.erasure.workspace_id)

    def mine(self, rows: Any) -> list[Any]:
        return [one for one in list(rows.values()) if one.workspace_id == self.erasure.workspace_id]


def _events(look: _Look) -> Iterator[Hit]:
    tables = look.tables
    for event in look.mine(tables.events):
        whole = look.marks.get(event.id, False) or take.is_at_path(look.needle, event.request_json)
        fields = ("request_json", "response_text", "source_event_id")
        left = look.rest(event, fields, ("evidence", "checkpoint"))
        if whole:
            left = {
                "request_json": take.ERASED_DOCUMENT,
                "response_text": None if event.response_text is None else take.ERASED,
                "source_event_id": None if event.source_event_id is None else take.ERASED,
                "evidence": None if event.evidence is None else {},
                "checkpoint": None,
            }
        if left and event.request_json != take.ERASED_DOCUMENT:
            yield Hit(_put_event(tables, event, left), event.id, whole, event.completed_at is None)


def _put_event(tables: Tables, event: Event, left: Mapping[str, Any]) -> Act:
    def act() -> None:
        row = tables.event_row(event.id) or EventRow(event)
        tables.put_event_row(replace(row, event=replace(event, **left)))

    return act


def _transcripts(look: _Look) -> Iterator[Hit]:
    agents = look.agents()
    for key, entries in list(look.tables.transcript_entries.items()):
        if key[0] not in agents:
            continue
        for number, entry in list(entries.items()):
            left = look.rest(entry, (), ("data",))
            if look.marks.get(key[1], False):
                yield Hit(_drop_entry(look.tables, key, number), key[1], whole=True)
            elif left:
                changed = replace(entry, **left, size=len(to_json(left["data"])))
                act = _setting(entries, number, changed)
                yield Hit(act, key[1], is_open=look.is_open(key[1]))


def _drop_entry(tables: Tables, key: tuple[UUID, UUID, int], number: int) -> Act:
    def act() -> None:
        del tables.transcript_entries[key][number]
        tables.transcripts[key] = replace(tables.transcripts[key], is_removed=True, entries=0, bytes=0)

    return act


def _setting(rows: Any, key: Any, row: Any) -> Act:
    def act() -> None:
        rows[key] = row

    return act


def _deleting(rows: Any, key: Any) -> Act:
    def act() -> None:
        del rows[key]

    return act


def _gates(look: _Look) -> Iterator[Hit]:
    gone = {"proposed_action": take.ERASED, "blast_radius": "", "detail": "", "evidence": {}}
    for gate in look.mine(look.tables.gates):
        whole = look.marks.get(gate.event_id, False)
        left = (
            gone if whole else look.rest(gate, ("proposed_action", "blast_radius", "detail"), ("evidence",))
        )
        if left and not (whole and gate.proposed_action == take.ERASED):
            is_open = gate.status is GateStatus.PENDING or look.is_open(gate.event_id)
            yield Hit(
                _setting(look.tables.gates, gate.id, replace(gate, **left)), gate.event_id, whole, is_open
            )


def _follow_ups(look: _Look) -> Iterator[Hit]:
    agents = look.agents()
    for row in [one for one in look.tables.follow_ups.values() if one.zombie_id in agents]:
        whole = look.marks.get(row.event_id, False)
        left = _ended(row, look.tables.now()) if whole else look.rest(row, ("message",))
        if left and row.message != take.ERASED:
            yield Hit(_setting(look.tables.follow_ups, row.id, replace(row, **left)), row.event_id, whole)


def _ended(row: FollowUp, now: int) -> dict[str, Any]:
    if row.status is not FollowUpStatus.PENDING:
        return {"message": take.ERASED}
    return {"message": take.ERASED, "status": FollowUpStatus.CANCELLED, "closed_at": now}


def _memories(look: _Look) -> Iterator[Hit]:
    for agent_id in look.agents():
        rows = look.tables.memories.get(agent_id, {})
        for key, memory in list(rows.items()):
            if look.rest(memory, ("key", "content")):
                yield Hit(_deleting(rows, key))


def _has_file(look: _Look, blob_id: UUID) -> bool:
    return take.is_in_bytes(look.needle, b"".join(look.tables.blob_chunks.get(blob_id, [])))


def _files(look: _Look) -> Iterator[Hit]:
    tables = look.tables
    for row in look.mine(tables.artefacts):
        whole = look.marks.get(row.event_id, False)
        if whole or look.rest(row, ("name",)) or _has_file(look, row.blob_id):
            yield Hit(partial(let_go, tables, [row]), row.event_id, whole)


def _event_files(look: _Look) -> Iterator[Hit]:
    tables = look.tables
    for row in look.mine(tables.event_files):
        whole = look.marks.get(row.event_id, False)
        if whole or look.rest(row, ("name",)) or _has_file(look, row.blob_id):
            is_open = look.is_open(row.event_id)
            yield Hit(partial(event_files.let_go, tables, [row]), row.event_id, whole, is_open)


def _deliveries(look: _Look) -> Iterator[Hit]:
    tables = look.tables
    for row in look.mine(tables.deliveries):
        body = tables.delivery_bodies.get(row.id)
        text = "" if body is None else body.decode(errors="replace")
        whole = (row.event_id is not None and look.marks.get(row.event_id, False)) or (
            take.is_at_path(look.needle, text)
            or take.without_json(look.needle, take.without_text(look.needle, text)) != text
        )
        left = (
            {"headers": {}, "detail": "", "body_bytes": 0}
            if whole
            else look.rest(row, ("detail",), ("headers",))
        )
        if left and not (whole and body is None and not row.headers):
            yield Hit(_put_delivery(tables, row.id, replace(row, **left), whole=whole))


def _put_delivery(tables: Tables, delivery_id: UUID, row: Any, *, whole: bool) -> Act:
    def act() -> None:
        tables.deliveries[delivery_id] = row
        if whole:
            tables.delivery_bodies.pop(delivery_id, None)

    return act


def _failure_groups(look: _Look) -> Iterator[Hit]:
    rows = look.tables.failure_groups
    for row in look.mine(rows):
        if left := look.rest(row, ("message",)):
            yield Hit(_setting(rows, row.id, replace(row, **left)))


def _bulk_jobs(look: _Look) -> Iterator[Hit]:
    rows = look.tables.jobs
    for row in look.mine(rows):
        if left := look.rest(row, ("filter", "request_json")):
            yield Hit(_setting(rows, row.id, replace(row, **left)), is_open=row.ended_at is None)


def _proposals(look: _Look) -> Iterator[Hit]:
    rows = look.tables.proposals
    for row in look.mine(rows):
        whole = row.event_id is not None and look.marks.get(row.event_id, False)
        left = look.rest(row, ("title", "rationale", "rejection_reason"))
        if whole and row.title != take.ERASED:
            reason = None if row.rejection_reason is None else take.ERASED
            left = {"title": take.ERASED, "rationale": take.ERASED, "rejection_reason": reason}
        if left:
            yield Hit(_setting(rows, row.id, replace(row, **left)), row.event_id, whole)


def _saved_answers(look: _Look) -> Iterator[Hit]:
    rows = look.tables.key_uses
    for key, use in list(rows.items()):
        if use.scope == look.erasure.tenant_id and use.status is not None and use.sealed:
            yield Hit(_setting(rows, key, replace(use, sealed=b"")))


def _frames(look: _Look) -> Iterator[Hit]:
    for agent_id in look.agents():
        rows = look.tables.frames.get(agent_id, [])
        for place, frame in enumerate(rows):
            text = to_json(frame.data)
            is_marked = frame.event_id is not None and frame.event_id in look.marks
            rest = take.emptied(text) if is_marked else take.without_json(look.needle, text)
            if rest != text:
                changed: Frame = replace(frame, data=from_json(rest), size=len(rest.encode()))
                yield Hit(
                    _setting(rows, place, changed), frame.event_id, is_open=look.is_open(frame.event_id)
                )


def _agent_versions(look: _Look) -> Iterator[Hit]:
    agents = look.agents()
    for row in look.tables.configs.values():
        if row.zombie_id in agents and look.rest(row, ("source_markdown", "trigger_markdown")):
            yield Hit(nothing, stays=True)


def _workspace_snapshots(look: _Look) -> Iterator[Hit]:
    for row in look.mine(look.tables.workspace_snapshots):
        if look.marks.get(row.event_id, False):
            yield Hit(nothing, stays=True)


def _audit_log(look: _Look) -> Iterator[Hit]:
    for line, _ in look.tables.audit.logs.get(look.erasure.tenant_id, []):
        in_body = take.without_json(look.needle, line.body) != line.body
        if in_body or take.without_text(look.needle, line.target) != line.target:
            yield Hit(nothing, stays=True)


_SURFACES: Mapping[str, Callable[[_Look], Iterator[Hit]]] = {
    "events": _events,
    "transcripts": _transcripts,
    "gates": _gates,
    "follow_ups": _follow_ups,
    "memories": _memories,
    "files": _files,
    "event_files": _event_files,
    "webhook_deliveries": _deliveries,
    "failure_groups": _failure_groups,
    "bulk_jobs": _bulk_jobs,
    "proposals": _proposals,
    "saved_answers": _saved_answers,
    "frames": _frames,
    "agent_versions": _agent_versions,
    "workspace_snapshots": _workspace_snapshots,
    "audit_log": _audit_log,
}
