"""The tables of each kind of batch of the archive: how their rows are found, read and deleted."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from sexton_storage.records.archives import ArchiveKind

_BATCH: Final = "unnest($1::uuid[], $2::uuid[], $3::int[]) b(zombie_id, id, attempt)"
_LINE: Final = "row_to_json(o)::text"


class ArchivedTable(NamedTuple):
    name: str
    of: str
    """Which rows ``o`` belong to the row ``b`` of a batch."""
    slice: int
    """For how many rows of the batch these are read at once: what comes is in memory."""
    key: tuple[str, ...] = ()
    """Where one row of the batch may have thousands: they are read in this order, ``page`` at a time."""
    page: int = 0

    @property
    def read(self) -> str:
        """Give the lines; with a key, each after its columns, behind the values from $4 on."""
        if not self.key:
            return f"SELECT {_LINE} FROM {_BATCH} JOIN {self.name} o ON {self.of}"
        columns = ", ".join(f"o.{name}" for name in self.key)
        after = ", ".join(f"${number}::int" for number in range(4, 4 + len(self.key)))
        return (
            f"SELECT {columns}, {_LINE} FROM {_BATCH} JOIN {self.name} o ON {self.of}"
            f" WHERE ({columns}) > ({after}) ORDER BY {columns} LIMIT {self.page}"
        )

    @property
    def delete(self) -> str:
        """Delete all rows of the batch, and tell what they were, to the byte."""
        return (
            f"WITH gone AS (DELETE FROM {self.name} o USING {_BATCH} WHERE {self.of}"
            f" RETURNING {_LINE} AS line)"
            " SELECT count(*), coalesce(sum(sexton_line_sum(line)), 0) FROM gone"
        )


_OF_EVENT: Final = "o.event_id = b.id"
_OF_AGENT: Final = "o.zombie_id = b.zombie_id AND o.event_id = b.id"
_OF_ATTEMPT: Final = f"{_OF_AGENT} AND o.attempt = b.attempt"
# An entry may have 256 KiB, a body 1 MiB, which is twice as long in hex.
_ENTRY: Final = ("attempt", "number")

TABLES: Final[Mapping[ArchiveKind, tuple[ArchivedTable, ...]]] = {
    ArchiveKind.EVENTS: (
        ArchivedTable("events", "o.id = b.id", 16),
        ArchivedTable("leases", _OF_EVENT, 100),
        ArchivedTable("gates", _OF_EVENT, 50),
        ArchivedTable("scores", _OF_EVENT, 500),
        ArchivedTable("artefacts", _OF_EVENT, 50),
        ArchivedTable("event_files", _OF_EVENT, 50),
        ArchivedTable("transcripts", _OF_AGENT, 100),
        ArchivedTable("transcript_entries", _OF_AGENT, 1, _ENTRY, 32),
    ),
    ArchiveKind.TRANSCRIPTS: (
        ArchivedTable("transcripts", _OF_ATTEMPT, 100),
        ArchivedTable("transcript_entries", _OF_ATTEMPT, 1, _ENTRY, 32),
    ),
    ArchiveKind.DELIVERIES: (
        ArchivedTable("webhook_deliveries", "o.id = b.id", 50),
        ArchivedTable("webhook_bodies", "o.delivery_id = b.id", 8),
    ),
}
METERING: Final = "metering"
METERING_PAGE: Final = 5_000
METERING_EVENTS: Final = 5
"""Where they have no day; a run of twelve hours has some thousand slices."""
# A day may have millions of rows. They are read along the key of their partition: to sort them for each page
# would read all of them each time, which a planner without statistics takes for cheap.
ALONG_THE_KEY: Final = "BEGIN READ ONLY; SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off"
READ_DAY: Final = """
SELECT o.event_id, o.attempt, o.slice_seq, row_to_json(o)::text
  FROM metering_slices o
 WHERE o.event_id >= $2 AND o.event_id <= $1 AND (o.event_id, o.attempt, o.slice_seq) > ($2, $3::int, $4::int)
 ORDER BY o.event_id, o.attempt, o.slice_seq LIMIT $5
"""
READ_EVENTS: Final = "SELECT row_to_json(o)::text FROM {source} o WHERE o.event_id = ANY($1::uuid[])"

# Which workspaces have a bound, and since when they keep; $1, $2: of plans, $3: the server's.
KEPT: Final = """
WITH kept AS MATERIALIZED (
    SELECT w.id AS workspace_id,
           sexton_now_ms() - least(b.keep_ms, r.{days}::bigint * 86400000, $3::bigint) AS since
      FROM workspaces w JOIN tenants t ON t.id = w.tenant_id
      LEFT JOIN unnest($1::text[], $2::bigint[]) b(tier, keep_ms) ON b.tier = t.plan_tier
      LEFT JOIN workspace_retention r ON r.workspace_id = w.id
     WHERE coalesce(b.keep_ms, r.{days}, $3) IS NOT NULL)
"""


class Age(NamedTuple):
    """How the age of a kind's rows is told."""

    days: str
    """The column of a workspace's policy."""
    is_old: str
    order: str
    key: str
    """Agent, id and attempt of a row."""


AGES: Final[Mapping[ArchiveKind, Age]] = {
    ArchiveKind.EVENTS: Age(
        "event_days",
        "o.created_at < k.since AND o.completed_at < k.since",
        "o.created_at, o.arrival",
        "o.zombie_id, o.id, 0 AS attempt",
    ),
    ArchiveKind.TRANSCRIPTS: Age(
        "transcript_days", "o.began_at < k.since", "o.began_at", "o.zombie_id, o.event_id AS id, o.attempt"
    ),
    ArchiveKind.DELIVERIES: Age(
        "delivery_days", "o.at < k.since", "o.at, o.id", "o.zombie_id, o.id, 0 AS attempt"
    ),
}


def collect_of(kind: ArchiveKind) -> str:
    """Find a workspace with something due, and of that the oldest; $4: the most rows."""
    age, table = AGES[kind], TABLES[kind][0].name
    old = f"FROM {table} o WHERE o.workspace_id = k.workspace_id AND {age.is_old} ORDER BY {age.order}"
    return f"""
{KEPT.format(days=age.days)},
first AS (
    SELECT k.* FROM kept k CROSS JOIN LATERAL (SELECT 1 {old} LIMIT 1) x LIMIT 1)
SELECT k.workspace_id, due.* FROM first k CROSS JOIN LATERAL (SELECT {age.key} {old} LIMIT $4) due
"""


def due_of(kind: ArchiveKind) -> str:
    """Count the rows of a batch that are due now; $4 to $6 as the others' $1 to $3."""
    age, table = AGES[kind], TABLES[kind][0]
    batch = _BATCH.replace("$3", "$6").replace("$2", "$5").replace("$1", "$4")
    return f"""
{KEPT.format(days=age.days)}
SELECT count(*) FROM {batch} JOIN {table.name} o ON {table.of}
  JOIN kept k ON k.workspace_id = o.workspace_id AND {age.is_old}
"""
