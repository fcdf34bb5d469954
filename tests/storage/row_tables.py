"""The rows of a storage in plain JSON: out of memory, into PostgreSQL, and out of it again."""

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any
from uuid import UUID

import asyncpg
import msgspec
import orjson

from sexton_storage.memory.tables import Tables
from sexton_storage.records.events import EventStatus
from sexton_storage.rules import LIVE_LEASE

KEYS: Mapping[str, tuple[str, ...]] = {
    "tenants": ("id",),
    "workspaces": ("id",),
    "runners": ("id",),
    "config_versions": ("id",),
    "zombies": ("id",),
    "agent_heads": ("zombie_id",),
    "events": ("id",),
    "dedup_keys": ("zombie_id", "key"),
    "event_counts": ("tenant_id", "day"),
    "cron_triggers": ("zombie_id", "schedule", "timezone"),
    "follow_ups": ("id",),
    "leases": ("id",),
    "gates": ("id",),
    "metering": ("event_id", "attempt", "slice_seq"),
    "spend": ("zombie_id", "day"),
    "charges": ("id",),
    "scores": ("event_id",),
    "proposals": ("id",),
    "memories": ("zombie_id", "key"),
    "frames": ("zombie_id", "seq"),
    "transcripts": ("zombie_id", "event_id", "attempt"),
    "transcript_entries": ("zombie_id", "event_id", "attempt", "number"),
    "webhook_deliveries": ("id",),
    "webhook_bodies": ("delivery_id",),
    "failure_groups": ("id",),
    "key_uses": ("scope", "key_hash"),
    "bulk_jobs": ("id",),
    "erasures": ("id",),
    "erasure_events": ("erasure_id", "event_id"),
    "waiting_events": ("zombie_id", "arrival"),
    "live_leases": ("zombie_id",),
}
"""All that the writes compared here read or change, in an order in which rows can be inserted."""
FOLLOWING = {"waiting_events", "live_leases"}
"""Tables that PostgreSQL alone has, and fills by itself."""
OF_POSTGRES_ALONE = ("unusual_status", "look_at", "txid", "pass_txid", "settled_txid")
"""Columns that follow from others, when a deadline is looked at next, and the numbers of transactions."""
Row = Mapping[str, Any]
Snapshot = Mapping[str, Mapping[tuple[Any, ...], Row]]
"""By table and key."""

_PLAIN = " - ".join(["to_jsonb(t)", *(f"'{name}'" for name in OF_POSTGRES_ALONE)])
_SELECT_ALL = " UNION ALL ".join(f"SELECT '{name}', ({_PLAIN})::text FROM {name} t" for name in KEYS)


def plain(value: Any) -> Any:
    """Spell a value as PostgreSQL's JSON has it."""
    match value:
        case UUID() | StrEnum():
            return str(value)
        case bytes():
            return f"\\x{value.hex()}"
        case tuple() | list():
            return [plain(item) for item in value]
        case Mapping():
            return {key: plain(item) for key, item in value.items()}
        case _:
            return value


class Columns:
    """Remembers the columns of records, which never change, so that only those of new ones are spelt."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[msgspec.Struct, Row]] = {}

    def of(self, record: msgspec.Struct, **others: Any) -> Row:
        """A record's fields as columns, a nested record's among them, and columns that it does not have."""
        kept = self._known.get(id(record))
        if kept is None:
            # The record is kept as well, so that no other one comes to have its address.
            kept = self._known[id(record)] = record, _columns(record)
        row = kept[1]
        return {**row, **{name: plain(value) for name, value in others.items()}} if others else row


def _columns(record: msgspec.Struct) -> Row:
    columns: dict[str, Any] = {}
    for name in record.__struct_fields__:
        value = getattr(record, name)
        if isinstance(value, msgspec.Struct):
            columns |= msgspec.structs.asdict(value)
        else:
            columns[name] = value
    return {name: plain(value) for name, value in columns.items()}


Owners = Mapping[UUID, tuple[UUID, UUID]]
"""The agent and the workspace of each event."""
NO_OWNERS: Owners = {}


def owners_of(tables: Tables) -> Owners:
    return {event.id: (event.zombie_id, event.workspace_id) for event in tables.events.values()}


def rows_in_memory(tables: Tables, gone: Owners = NO_OWNERS, columns: Columns | None = None) -> Snapshot:
    """All rows. ``gone``: whose the events were that have been deleted, for their metered rows stay."""
    row_of = (columns or Columns()).of
    agents = tables.zombies.values()
    events = tables.events
    owner = {**gone, **owners_of(tables)}
    rows: dict[str, list[Row]] = {
        "tenants": [row_of(t) for t in tables.tenants.values()],
        "workspaces": [row_of(w) for w in tables.workspaces.values()],
        "runners": [row_of(r) for r in tables.runners.values()],
        "config_versions": [row_of(c) for c in tables.configs.values()],
        "zombies": [
            {name: value for name, value in row_of(z).items() if name not in {"compiled", "last_event_at"}}
            for z in agents
        ],
        "agent_heads": [
            row_of(
                tables.heads[z.id],
                workspace_id=z.workspace_id,
                tenant_id=z.tenant_id,
                status=z.status,
                last_event_at=z.last_event_at,
            )
            for z in agents
        ],
        "events": [
            row_of(
                event,
                lease_count=tables.lease_counts.get(event.id, 0),
                waiting_gate_id=tables.waits_at.get(event.id),
                arrival=tables.arrivals[event.id],
            )
            for event in events.values()
        ],
        "dedup_keys": [row_of(key) for key in tables.dedup.values()],
        "event_counts": [
            {"tenant_id": str(tenant_id), "day": day, "events": count}
            for (tenant_id, day), count in tables.event_counts.items()
        ],
        "cron_triggers": [row_of(entry) for entry in tables.crons.values()],
        "follow_ups": [row_of(follow_up) for follow_up in tables.follow_ups.values()],
        "leases": [row_of(lease) for lease in tables.leases.values()],
        "gates": [row_of(gate) for gate in tables.gates.values()],
        "metering": [
            row_of(
                period,
                zombie_id=owner[event_id][0],
                workspace_id=owner[event_id][1],
                tenant_id=tables.metered_tenants[event_id],
            )
            for event_id, periods in tables.metering.items()
            for period in periods.values()
        ],
        "spend": [
            {"zombie_id": str(zombie_id), "day": day, "nanos": nanos}
            for (zombie_id, day), nanos in tables.spend.items()
        ],
        "charges": [row_of(charge) for charge in tables.charges.values()],
        "scores": [row_of(score) for score in tables.scores.values()],
        "proposals": [row_of(proposal) for proposal in tables.proposals.values()],
        "memories": [
            row_of(memory, folded=memory.content)
            for entries in tables.memories.values()
            for memory in entries.values()
        ],
        "frames": [row_of(frame) for frames in tables.frames.values() for frame in frames],
        "transcripts": [row_of(one) for one in tables.transcripts.values()],
        "transcript_entries": [
            row_of(entry) for entries in tables.transcript_entries.values() for entry in entries.values()
        ],
        "webhook_deliveries": [row_of(one) for one in tables.deliveries.values()],
        "webhook_bodies": [
            {"delivery_id": str(delivery_id), "body": plain(body)}
            for delivery_id, body in tables.delivery_bodies.items()
        ],
        "failure_groups": [row_of(one) for one in tables.failure_groups.values()],
        "key_uses": [row_of(use) for use in tables.key_uses.values()],
        "bulk_jobs": [row_of(job) for job in tables.jobs.values()],
        "erasures": [row_of(one) for one in tables.erasures.values()],
        "erasure_events": [
            {"erasure_id": str(erasure_id), "event_id": str(event_id), "whole": whole}
            for erasure_id, marks in tables.erasure_events.items()
            for event_id, whole in marks.items()
        ],
        "waiting_events": [
            {
                "zombie_id": str(event.zombie_id),
                "arrival": tables.arrivals[event.id],
                "event_id": str(event.id),
                "workspace_id": str(event.workspace_id),
                "created_at": event.created_at,
                "retry_at": event.retry_at,
                "asked_version": event.asked_version,
                "trial_id": None
                if event.asked is None or event.asked.trial_id is None
                else str(event.asked.trial_id),
            }
            for event in events.values()
            if event.status is EventStatus.RECEIVED
        ],
        "live_leases": [
            {
                "workspace_id": str(lease.workspace_id),
                "zombie_id": str(lease.zombie_id),
                "lease_id": str(lease.id),
                "event_id": str(lease.event_id),
                "runner_id": str(lease.runner_id),
            }
            for lease in tables.leases.values()
            if lease.status in LIVE_LEASE
        ],
    }
    return {name: _by_key(name, rows[name]) for name in KEYS}


def _by_key(table: str, rows: Sequence[Row]) -> Mapping[tuple[Any, ...], Row]:
    return {tuple(row[column] for column in KEYS[table]): row for row in rows}


async def load(connection: asyncpg.Connection, snapshot: Snapshot, next_arrival: int) -> None:
    """Insert the rows into empty tables, in one message; the next event takes ``next_arrival``."""
    script = [f"SELECT setval('events_arrival', {next_arrival}, false)"]
    for name, rows in snapshot.items():
        if rows and name not in FOLLOWING:
            listed = list(rows.values())
            columns = ", ".join(listed[0])
            # Without white space, as the statements write documents: sizes are counted of that text.
            text = json.dumps(listed, separators=(",", ":")).replace("'", "''")
            script.append(
                f"INSERT INTO {name} ({columns})"
                f" SELECT {columns} FROM json_populate_recordset(null::{name}, '{text}'::json)"
            )
    await connection.execute(";".join(script))


async def sweep(connection: asyncpg.Connection) -> None:
    """Give back the room of rows that were rolled back; outside of any transaction."""
    await connection.execute(f"VACUUM {', '.join(KEYS)}")


async def rows_in_postgres(connection: asyncpg.Connection) -> Snapshot:
    found: dict[str, list[Row]] = {name: [] for name in KEYS}
    for name, text in await connection.fetch(_SELECT_ALL):
        found[name].append(orjson.loads(text))
    return {name: _by_key(name, rows) for name, rows in found.items()}


def differences(rules: Snapshot, statements: Snapshot) -> list[str]:
    """Each field that differs, as a line."""
    lines = []
    for table in KEYS:
        if rules[table] == statements[table]:
            continue
        for key in sorted(rules[table].keys() | statements[table].keys(), key=repr):
            ours, theirs = rules[table].get(key), statements[table].get(key)
            if ours is None or theirs is None:
                who = "the statement" if ours is None else "the rule"
                lines.append(f"{table} {key}: only {who} has it: {ours or theirs}")
                continue
            lines += [
                f"{table} {key} {column}: rule {ours.get(column)!r}, statement {theirs.get(column)!r}"
                for column in sorted(ours.keys() | theirs.keys())
                if ours.get(column) != theirs.get(column) or (column in ours) != (column in theirs)
            ]
    return lines
