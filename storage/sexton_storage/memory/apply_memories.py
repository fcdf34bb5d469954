"""Keeps and forgets what agents remember."""

from collections.abc import Sequence
from uuid import UUID

from sexton_storage.memory.tables import Tables
from sexton_storage.records.memories import Mark, Memory, MemoryChange, Plan, is_over, plan


def remember(tables: Tables, zombie_id: UUID, changes: Sequence[MemoryChange], now: int) -> Plan:
    """Decide over the entries that are kept, and change them; what was done comes back."""
    rows = tables.memories.setdefault(zombie_id, {})
    decided = plan({key: Mark(row.category, row.updated_at) for key, row in rows.items()}, changes, now)
    for key in decided.drop:
        del rows[key]
    for key, change in decided.put.items():
        rows[key] = Memory(zombie_id, key, change.content or "", change.category, now)
    return decided


def sweep_memories(tables: Tables, now: int) -> int:
    """Delete entries that have outlived their category; how many rows."""
    swept = 0
    for rows in tables.memories.values():
        over = [key for key, row in rows.items() if is_over(row.category, row.updated_at, now)]
        for key in over:
            del rows[key]
        swept += len(over)
    return swept
