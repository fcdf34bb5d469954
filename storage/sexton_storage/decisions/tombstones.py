"""What is kept of an erasure beside the database, and how it begins again from that."""

from collections.abc import Sequence

import msgspec

from sexton_storage.records.erasures import CHARS_MAX, Erasure, ErasureStatus, Tombstone

HASH_CHARS = 64


def tombstone_of(erasure: Erasure) -> Tombstone:
    return Tombstone(
        id=erasure.id,
        tenant_id=erasure.tenant_id,
        workspace_id=erasure.workspace_id,
        path=erasure.path,
        sha256=erasure.sha256.hex(),
        chars=erasure.chars,
        by=erasure.created_by,
        name=erasure.created_by_name,
        created_at=erasure.created_at,
        ended_at=erasure.ended_at or erasure.updated_at,
    )


def again(tombstone: Tombstone, now: int) -> Erasure:
    """The erasure as it begins in a database that has lost it."""
    return Erasure(
        id=tombstone.id,
        tenant_id=tombstone.tenant_id,
        workspace_id=tombstone.workspace_id,
        path=tombstone.path,
        sha256=bytes.fromhex(tombstone.sha256),
        chars=tombstone.chars,
        dry_run=False,
        restored=True,
        status=ErasureStatus.RUNNING,
        created_by=tombstone.by,
        created_by_name=tombstone.name,
        created_at=tombstone.created_at,
        updated_at=now,
    )


def written(tombstones: Sequence[Tombstone]) -> bytes:
    """Spell a list of tombstones: a JSON object a line."""
    return b"".join(msgspec.json.encode(one) + b"\n" for one in tombstones)


def read(content: bytes) -> Sequence[Tombstone]:
    """Read a list of tombstones. Raises ValueError, which names the line.

    >>> from uuid import UUID
    >>> it = UUID(int=1)
    >>> one = Tombstone(it, it, it, "a", "00" * 32, 3, "user:u", "ann", 1, 2)
    >>> read(written([one])) == [one]
    True
    >>> read(written([one]) + b"{")
    Traceback (most recent call last):
    ValueError: line 2 is no erasure
    """
    found: list[Tombstone] = []
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        one = _decoded(line)
        if one is None:
            raise ValueError(f"line {number} is no erasure")
        found.append(one)
    return found


def _decoded(line: bytes) -> Tombstone | None:
    try:
        one = msgspec.json.decode(line, type=Tombstone)
        is_right = len(bytes.fromhex(one.sha256)) * 2 == HASH_CHARS and 0 < one.chars <= CHARS_MAX
    except ValueError:
        return None
    return one if is_right else None
