"""An erasure as it stands when it has just been asked for."""

from uuid import UUID

from sexton_storage.decisions.erasure import needle_of
from sexton_storage.records.erasures import Erasure, ErasureStatus


def new_erasure(
    erasure_id: UUID, tenant_id: UUID, workspace_id: UUID, *, path: str, value: str, now: int
) -> Erasure:
    """Of ``value``, where events have it at ``path``."""
    return Erasure(
        erasure_id,
        tenant_id,
        workspace_id,
        *needle_of(path, value),
        dry_run=False,
        restored=False,
        status=ErasureStatus.RUNNING,
        created_by="user:1",
        created_by_name="admin",
        created_at=now,
        updated_at=now,
    )
