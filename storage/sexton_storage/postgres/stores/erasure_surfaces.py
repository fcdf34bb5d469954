"""The tables that an erasure looks through in PostgreSQL, and what it does to each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from sexton_storage.decisions.erasure import ERASED, ERASED_DOCUMENT

PAGE_ROWS: Final = 1_000
WALKED_ROWS: Final = 20
"""How many times as many rows a page of a pass that confirms goes past: most of them it does not read."""
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
        picked = ", ".join(f"{value} AS {name}" for name, value in self._picked().items())
        return f"""
SELECT p.*, m.whole FROM (
    SELECT t.*, sum(t.size) OVER (ORDER BY t.place) - t.size AS before FROM (
        SELECT {picked}, true AS is_read, row_number() OVER (ORDER BY {self._order}) AS place
          FROM {self.table} t WHERE {self.scope} AND {self._behind()}
         ORDER BY {self._order} LIMIT {PAGE_ROWS}) t) p
  LEFT JOIN erasure_events m ON m.erasure_id = $2 AND m.event_id = p.of_event
 WHERE p.before < {PAGE_BYTES} ORDER BY p.place
"""

    def page_of_written(self) -> str:
        """As ``page``, but only rows that were written since, or belong to an event of the erasure.

        Texts of others are not even read. $4: the first transaction that is not looked past.
        The last row comes as well, where it is none of these, for the place of the next page.
        """
        named = self._picked()
        # What needs no reading: where the row is, and whose.
        bare = [name for name in named if name.startswith("k") or name == "of_event"]
        picked = ", ".join(
            f"{value if name in bare else f'CASE WHEN t.is_read THEN {value} END'} AS {name}"
            for name, value in named.items()
        )
        return f"""
SELECT q.* FROM (
    SELECT p.*, max(p.place) OVER () AS last FROM (
        SELECT t.*, coalesce(sum(t.size) OVER (ORDER BY t.place) - coalesce(t.size, 0), 0) AS before FROM (
            SELECT {picked}, t.is_read, t.whole_event AS whole,
                   row_number() OVER (ORDER BY {self._order}) AS place
              FROM (SELECT t.*, m.whole AS whole_event,
                           age(t.written_by) <= age($4::text::xid) OR m.whole IS NOT NULL AS is_read
                      FROM (SELECT t.*, t.xmin AS written_by FROM {self.table} t
                             WHERE {self.scope} AND {self._behind()}
                             ORDER BY {self._order} LIMIT {PAGE_ROWS * WALKED_ROWS}) t
                      LEFT JOIN erasure_events m
                             ON m.erasure_id = $2 AND m.event_id = {self.event}) t) t) p
     WHERE p.before < {PAGE_BYTES}) q
 WHERE q.is_read OR q.place = q.last ORDER BY q.place
"""

    @property
    def _order(self) -> str:
        return ", ".join(f"t.{key}" for key in self.keys)

    def _behind(self) -> str:
        after = ", ".join(f"($3::text[])[{n}]::{kind}" for n, kind in enumerate(self.keys.values(), 1))
        return f"($3::text[] = '{{}}' OR ({self._order}) > ({after}))"

    def _picked(self) -> Mapping[str, str]:
        """What is taken of a row, by the name that it has in a page."""
        sizes = [f"coalesce(octet_length(t.{one}::text), 0)" for one in self.columns]
        if self.bytes_of is not None:
            sizes.append(f"coalesce(octet_length({self.bytes_of}), 0)")
        return {
            **{f"k{n}": f"t.{key}::text" for n, key in enumerate(self.keys)},
            "of_event": self.event,
            "is_open": self.is_open,
            **{f"c{n}": f"t.{one}::text" for n, one in enumerate(self.columns)},
            "raw": self.bytes_of or "NULL::bytea",
            "blob_id": "t.blob_id" if self.blob else "NULL::uuid",
            "size": " + ".join(sizes) or "0",
        }

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
