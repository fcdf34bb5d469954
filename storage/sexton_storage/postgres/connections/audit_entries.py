"""Hands an audit entry to PostgreSQL, which makes a line of it in the transaction that changes something."""

from typing import Final

import msgspec

from sexton_storage.decisions.audit import body_of
from sexton_storage.documents import storable
from sexton_storage.records.audit import AuditEntry

ATTRIBUTE: Final = "SELECT set_config('sexton.audit', $1, true)"
"""Until the end of the transaction; triggers read it."""
APPEND: Final = "SELECT sexton_audit_append($1::text::jsonb, '')"


def entry_json(entry: AuditEntry) -> str:
    """As ``sexton_audit_append`` reads it."""
    document = {
        "id": entry.id,
        "log_id": entry.log_id,
        "workspace_id": entry.workspace_id,
        "actor": storable(entry.actor),
        "action": entry.action,
        "target": storable(entry.target),
        "body": body_of(entry),
    }
    return msgspec.json.encode(document).decode()
