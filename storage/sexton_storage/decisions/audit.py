"""How the lines of an audit log hang together, so that an edit, a gap or another order shows."""

import hashlib
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import msgspec

from sexton_storage.documents import storable
from sexton_storage.records.audit import AuditEntry, AuditHead, AuditLine
from sexton_storage.writes import Appended, Cancelled, CancelOutcome, GateResolved

GENESIS: Final = AuditHead(0, bytes(32))
"""Before the first line."""
_encode = msgspec.json.Encoder(order="sorted").encode


def body_of(entry: AuditEntry) -> str:
    """The text that is kept and hashed; the same for the same entry, with its keys in order.

    >>> from uuid import UUID
    >>> print(body_of(AuditEntry(UUID(int=1), UUID(int=2), "key.create", "user:u", "ann", "::1", "r")))
    {"action":"key.create","actor":"user:u","address":"::1","entry_id":"00000000-0000-0000-0000-000000000001",\
"facts":{},"name":"ann","request_id":"r","workspace_id":null}
    """
    document = {
        "entry_id": entry.id,
        "action": entry.action,
        "actor": entry.actor,
        "name": entry.name,
        "address": entry.address,
        "request_id": entry.request_id,
        "workspace_id": entry.workspace_id,
        "facts": entry.facts,
    }
    # Twice: what a person wrote may hold what no text column holds, and is replaced inside its string.
    plain = msgspec.to_builtins(document, str_keys=True)
    return _encode(_storable(plain)).decode()


def _storable(part: object) -> object:
    match part:
        case str():
            return storable(part)
        case dict():
            return {storable(key): _storable(value) for key, value in part.items()}
        case list():
            return [_storable(value) for value in part]
        case _:
            return part


def hash_of(previous: bytes, seq: int, at: int, target: str, body: str) -> bytes:
    """Bind a line to the one before it. PostgreSQL reckons the same in ``sexton_audit_append``.

    >>> hash_of(GENESIS.hash, 1, 5, "t", "{}").hex()[:16]
    '75e3411493524783'
    """
    parts = (previous, seq.to_bytes(8), at.to_bytes(8), target.encode(), b"\0", body.encode())
    return hashlib.sha256(b"".join(parts)).digest()


def append(entry: AuditEntry, head: AuditHead, at: int, row_id: str) -> AuditLine:
    """The next line of the entry's log, about what it names, or else about the row that has changed."""
    named = entry.target or row_id or ("" if entry.workspace_id is None else str(entry.workspace_id))
    target, body, seq = storable(named), body_of(entry), head.seq + 1
    hashed = hash_of(head.hash, seq, at, target, body)
    return AuditLine(entry.log_id, seq, at, target, body, head.hash, hashed)


def has_changed(answer: object) -> bool:
    """Whether a write of the journal that somebody is named for has changed anything.

    >>> from sexton_storage.records.events import EventStatus
    >>> from uuid import UUID
    >>> from sexton_storage.writes import Lost
    >>> has_changed(Lost()), has_changed(Cancelled(CancelOutcome.CLOSED, None, EventStatus.PROCESSED))
    (False, False)
    >>> has_changed(Appended(UUID(int=1)))
    True
    """
    match answer:
        case GateResolved() | Appended():
            return True
        case Cancelled(outcome=outcome):
            return outcome is not CancelOutcome.CLOSED
        case _:
            return False


class Break(StrEnum):
    """What is wrong with a log."""

    GAP = "a line is missing before it"
    LINK = "it does not follow the line before it"
    CONTENT = "it was changed"
    HEAD = "it is not what was kept of it"


def first_break(lines: Iterable[AuditLine], known: Iterable[AuditHead] = ()) -> tuple[int, Break] | AuditHead:
    """Where a log, read from its first line on, is not whole; else where it ends.

    ``known``: numbers and hashes that somebody has kept elsewhere.

    >>> from msgspec.structs import replace
    >>> from uuid import UUID
    >>> one = AuditEntry(UUID(int=1), UUID(int=2), "key.create", "user:u", "ann", "::1", "r")
    >>> first = append(one, GENESIS, 5, "a")
    >>> second = append(replace(one, id=UUID(int=3)), AuditHead(1, first.hash), 6, "b")
    >>> first_break([first, second]) == AuditHead(2, second.hash)
    True
    >>> first_break([first, replace(second, target="c")])
    (2, <Break.CONTENT: 'it was changed'>)
    >>> first_break([second])
    (2, <Break.GAP: 'a line is missing before it'>)
    >>> first_break([append(one, GENESIS, 4, "a"), second])
    (2, <Break.LINK: 'it does not follow the line before it'>)
    >>> first_break([first], [AuditHead(2, second.hash)])
    (2, <Break.HEAD: 'it is not what was kept of it'>)
    """
    kept = {head.seq: head.hash for head in known}
    before = GENESIS
    for line in lines:
        if line.seq != before.seq + 1:
            return line.seq, Break.GAP
        if line.previous_hash != before.hash:
            return line.seq, Break.LINK
        if line.hash != hash_of(before.hash, line.seq, line.at, line.target, line.body):
            return line.seq, Break.CONTENT
        before = AuditHead(line.seq, line.hash)
        if kept.pop(line.seq, line.hash) != line.hash:
            return line.seq, Break.HEAD
    return (min(kept), Break.HEAD) if kept else before
