"""Tables whose changes are told in the audit log, in memory: what triggers do in PostgreSQL."""

from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

from sexton_storage.attribution import current_entry
from sexton_storage.decisions.audit import GENESIS, append
from sexton_storage.records.audit import AuditEntry, AuditHead, AuditLine

K = TypeVar("K")
V = TypeVar("V")
_MISSING: Any = object()


class AuditLogs:
    """All logs of one installation."""

    def __init__(self, now: Callable[[], int], tell: Callable[[UUID], None]) -> None:
        self._now = now
        self._tell = tell
        self.logs: dict[UUID, list[tuple[AuditLine, AuditEntry]]] = {}
        self._kept: set[UUID] = set()

    def __repr__(self) -> str:
        return f"<AuditLogs, {len(self._kept)} lines>"

    def head(self, log_id: UUID) -> AuditHead:
        log = self.logs.get(log_id)
        return GENESIS if not log else AuditHead(log[-1][0].seq, log[-1][0].hash)

    def append(self, entry: AuditEntry, row_id: str = "") -> None:
        """Add the entry's line, once."""
        if entry.id not in self._kept:
            self._kept.add(entry.id)
            line = append(entry, self.head(entry.log_id), self._now(), row_id)
            self.logs.setdefault(entry.log_id, []).append((line, entry))
            self._tell(entry.workspace_id or entry.log_id)

    def note(self, row: object) -> None:
        """A row has changed: whoever the task is attributed to has changed it."""
        entry = current_entry()
        if entry is not None:
            self.append(entry, str(getattr(row, "id", "")))


class AuditedRows(dict[K, V]):
    """The rows of one table."""

    def __init__(self, logs: AuditLogs, tell: Callable[[V], None] | None = None) -> None:
        super().__init__()
        self._logs = logs
        self._tell = tell

    def __setitem__(self, key: K, row: V) -> None:
        changed = self.get(key, _MISSING) != row
        super().__setitem__(key, row)
        if changed:
            self._logs.note(row)
            if self._tell is not None:
                self._tell(row)

    def __delitem__(self, key: K) -> None:
        row = self[key]
        super().__delitem__(key)
        self._logs.note(row)

    def pop(self, key: K, default: Any = _MISSING) -> Any:
        """As of a dictionary."""
        if key not in self:
            if default is _MISSING:
                raise KeyError(key)
            return default
        row = self[key]
        del self[key]
        return row

    def setdefault(self, key: K, default: Any = None) -> Any:
        """As of a dictionary."""
        if key not in self:
            self[key] = default
        return self[key]

    def keep_if(self, wanted: Callable[[V], bool]) -> None:
        """Delete the others."""
        for key in [key for key, row in self.items() if not wanted(row)]:
            del self[key]
