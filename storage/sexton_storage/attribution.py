"""To whom the changes of a task are put down: whatever it writes, the audit log says for whom."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import trio

from sexton_storage.records.audit import AuditEntry

# With the task that it is for: one that is started meanwhile inherits the variable, and works for everybody.
_CURRENT: ContextVar[tuple[AuditEntry, trio.lowlevel.Task] | None] = ContextVar(
    "sexton_audit_entry", default=None
)


def current_entry() -> AuditEntry | None:
    found = _CURRENT.get()
    return None if found is None or found[1] is not trio.lowlevel.current_task() else found[0]


@contextmanager
def attributed(entry: AuditEntry | None) -> Iterator[None]:
    """Within it, the first row of an audited table that this task changes takes the entry's line along.

    In one transaction: neither is there without the other. None: what is changed within is nobody's.
    """
    token = _CURRENT.set(None if entry is None else (entry, trio.lowlevel.current_task()))
    try:
        yield
    finally:
        _CURRENT.reset(token)
