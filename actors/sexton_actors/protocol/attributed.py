"""Messages that change something for somebody, whom the audit log names."""

import msgspec

from sexton_storage.records.audit import AuditEntry


class Attributed(msgspec.Struct, frozen=True, kw_only=True):
    """Whoever handles it does so under ``attributed(message.audit)``, or hands it to the journal."""

    audit: AuditEntry | None = None
