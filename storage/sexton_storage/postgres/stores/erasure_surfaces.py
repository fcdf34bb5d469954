"""The tables that an erasure looks through in PostgreSQL, and what it does to each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from sexton_storage.decisions.erasure import ERASED, ERASED_DOCUMENT

PAGE_ROWS: Final = 1_000
PAGE_BYTES: Final = 512 * 1024
"""Texts of one page; a single row may have more."""
_OF_AGENTS: Final = "t.zombie_id IN (SELECT id FROM zombies WHERE workspace_id = $1)"
_OF_WORKSPACE: Final = "t.workspace_id = $1"
_EVENT_OPEN: Final = "(SELECT e.completed_at IS NULL FROM events e WHERE e.id = t.event_id)"


class Fate(Enum):
    """What becomes of a row that has the value, and belongs to no event of the person."""

    CHANGED = auto()
    DELETED = auto()
    COUNTED = auto()
    """It stays."""


@dataclass(frozen=True, slots=True)
class Surface:
    table: str
    keys: Mapping[str, str]
    """The columns of the order in which it is walked, with their types."""
    scope: str
    texts: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    event: str = "NULL::uuid"
    is_open: str = "false"
    """Whether a row is still being written, so that it is left for the next pass."""
    fate: Fate = Fate.CHANGED
    whole: Mapping[str, str] = field(default_factory=dict)
    """What stands in the columns of an event of the person, as SQL; empty: the row is deleted."""
    bytes_of: str | None = None
    """Raw bytes that are looked through as well."""
    blob: bool = False
    """Whether a row has contents, in a blob."""

    @property
    def columns(self) -> tuple[str, ...]:
        return self.texts + self.documents

    def page(self) -> str:
        """Rows after a key, as many as fit. Parameters: the workspace, the erasure, and the key as texts."""
        keys, ordered = tuple(self.keys), ", ".join(f"t.{key}" for key in self.keys)
        after = ", ".join(f"($3::text[])[{n}]::{kind}" for n, kind in enumerate(self.keys.values(), 1))
        behind = f"($3::text[] = '{{}}' OR ({ordered}) > ({after}))"
        sizes = [f"coalesce(octet_length(t.{one}::text), 0)" for one in self.columns]
        if self.bytes_of is not None:
            sizes.append(f"coalesce(octet_length({self.bytes_of}), 0)")
        picked = [f"t.{key}::text AS k{n}" for n, key in enumerate(keys)]
        picked += [f"{self.event} AS of_event", f"{self.is_open} AS is_open"]
        picked += [f"t.{one}::text AS c{n}" for n, one in enumerate(self.columns)]
        picked += [
            f"{self.bytes_of or 'NULL::bytea'} AS raw",
            "t.blob_id" if self.blob else "NULL::uuid AS blob_id",
        ]
        return f"""
SELECT p.*, m.whole FROM (
    SELECT t.*, sum(t.size) OVER (ORDER BY t.place) - t.size AS before FROM (
        SELECT {", ".join(picked)}, {" + ".join(sizes) or "0"} AS size,
               row_number() OVER (ORDER BY {ordered}) AS place
          FROM {self.table} t WHERE {self.scope} AND {behind} ORDER BY {ordered} LIMIT {PAGE_ROWS}) t) p
  LEFT JOIN erasure_events m ON m.erasure_id = $2 AND m.event_id = p.of_event
 WHERE p.before < {PAGE_BYTES} ORDER BY p.place
"""

    def where(self, first: int) -> str:
        """The condition that names one row; parameters from ``first`` on."""
        return " AND ".join(
            f"{key} = ${first + n}::text::{kind}" for n, (key, kind) in enumerate(self.keys.items())
        )

    def put(self) -> str:
        """Write the columns of one row."""
        kinds = ["text"] * len(self.texts) + ["json"] * len(self.documents)
        put = [
            f"{one} = ${n}::text::{kind}"
            for n, (one, kind) in enumerate(zip(self.columns, kinds, strict=True), 1)
        ]
        if self.table in _SIZED:
            put.append(f"size = octet_length(${len(self.columns)}::text)")
        return f"UPDATE {self.table} SET {', '.join(put)} WHERE {self.where(len(self.columns) + 1)}"

    def empty(self) -> str:
        """Write what is left of a row of an event of the person."""
        if not self.whole:
            return f"DELETE FROM {self.table} WHERE {self.where(1)}"
        put = ", ".join(f"{one} = {value}" for one, value in self.whole.items())
        return f"UPDATE {self.table} SET {put} WHERE {self.where(1)}"


_SIZED: Final = ("transcript_entries", "frames")
TABLES: Final[Mapping[str, Surface]] = {
    "events": Surface(
        "events",
        {"id": "uuid"},
        _OF_WORKSPACE,
        ("request_json", "response_text", "source_event_id"),
        ("evidence", "checkpoint"),
        event="t.id",
        is_open="t.completed_at IS NULL",
        whole={
            "request_json": f"'{ERASED_DOCUMENT}'",
            "response_text": f"CASE WHEN response_text IS NOT NULL THEN '{ERASED}' END",
            "source_event_id": f"CASE WHEN source_event_id IS NOT NULL THEN '{ERASED}' END",
            "evidence": "CASE WHEN evidence IS NOT NULL THEN '{}'::json END",
            "checkpoint": "NULL",
        },
    ),
    "transcripts": Surface(
        "transcript_entries",
        {"zombie_id": "uuid", "event_id": "uuid", "attempt": "integer", "number": "integer"},
        _OF_AGENTS,
        documents=("data",),
        event="t.event_id",
        is_open=_EVENT_OPEN,
    ),
    "gates": Surface(
        "gates",
        {"id": "uuid"},
        _OF_WORKSPACE,
        ("proposed_action", "blast_radius", "detail"),
        ("evidence",),
        event="t.event_id",
        is_open=f"t.status = 'pending' OR {_EVENT_OPEN}",
        whole={
            "proposed_action": f"'{ERASED}'",
            "blast_radius": "''",
            "detail": "''",
            "evidence": "'{}'::json",
        },
    ),
    "follow_ups": Surface(
        "follow_ups",
        {"id": "uuid"},
        _OF_AGENTS,
        ("message",),
        event="t.event_id",
        whole={
            "message": f"'{ERASED}'",
            "closed_at": "CASE WHEN status = 'pending' THEN sexton_now_ms() ELSE closed_at END",
            "status": "CASE WHEN status = 'pending' THEN 'cancelled' ELSE status END",
        },
    ),
    "memories": Surface(
        "memories",
        {"zombie_id": "uuid", "key": "text"},
        _OF_AGENTS,
        ("key", "content"),
        fate=Fate.DELETED,
    ),
    "files": Surface(
        "artefacts",
        {"id": "uuid"},
        _OF_WORKSPACE,
        ("name",),
        event="t.event_id",
        fate=Fate.DELETED,
        blob=True,
    ),
    "event_files": Surface(
        "event_files",
        {"event_id": "uuid", "number": "integer"},
        _OF_WORKSPACE,
        ("name",),
        event="t.event_id",
        is_open=_EVENT_OPEN,
        fate=Fate.DELETED,
        blob=True,
    ),
    "webhook_deliveries": Surface(
        "webhook_deliveries",
        {"id": "uuid"},
        _OF_WORKSPACE,
        ("detail",),
        ("headers",),
        event="t.event_id",
        whole={"headers": "'{}'::json", "detail": "''", "body_bytes": "0"},
        bytes_of="(SELECT b.body FROM webhook_bodies b WHERE b.delivery_id = t.id)",
    ),
    "failure_groups": Surface("failure_groups", {"id": "uuid"}, _OF_WORKSPACE, ("message",)),
    "bulk_jobs": Surface(
        "bulk_jobs",
        {"id": "uuid"},
        _OF_WORKSPACE,
        ("filter", "request_json"),
        is_open="t.ended_at IS NULL",
    ),
    "proposals": Surface(
        "proposals",
        {"id": "uuid"},
        _OF_WORKSPACE,
        ("title", "rationale", "rejection_reason"),
        event="t.event_id",
        whole={
            "title": f"'{ERASED}'",
            "rationale": f"'{ERASED}'",
            "rejection_reason": f"CASE WHEN rejection_reason IS NOT NULL THEN '{ERASED}' END",
        },
    ),
    "frames": Surface(
        "frames",
        {"zombie_id": "uuid", "seq": "bigint"},
        _OF_AGENTS,
        documents=("data",),
        event="t.event_id",
        is_open=_EVENT_OPEN,
    ),
    "agent_versions": Surface(
        "config_versions",
        {"id": "uuid"},
        _OF_AGENTS,
        ("source_markdown", "trigger_markdown"),
        fate=Fate.COUNTED,
    ),
    "workspace_snapshots": Surface(
        "workspace_snapshots",
        {"lease_id": "uuid"},
        _OF_WORKSPACE,
        event="t.event_id",
        fate=Fate.COUNTED,
    ),
    "audit_log": Surface(
        "audit_log",
        {"seq": "bigint"},
        "t.log_id = (SELECT tenant_id FROM workspaces WHERE id = $1)",
        ("target",),
        ("body",),
        fate=Fate.COUNTED,
    ),
}
"""By the name of the surface; the answers that are saved under keys are no rows that could be read."""
