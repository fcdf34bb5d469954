"""How much of files a server keeps, and for how long."""

from dataclasses import dataclass
from typing import Final

from sexton_actors.terms import FILES_KEEP_MS

MIB: Final = 1024 * 1024
DEFAULT_FILE_MIB: Final = 2_048
DEFAULT_QUOTA_MIB: Final = 10_240
DEFAULT_WEBHOOK_MIB: Final = 256
DAY_MS: Final = 24 * 3600 * 1000
DEFAULT_KEEP_DAYS: Final = FILES_KEEP_MS // DAY_MS


@dataclass(frozen=True, slots=True)
class FileBounds:
    """What a run may leave, and what a workspace keeps."""

    file_bytes: int = DEFAULT_FILE_MIB * MIB
    """The largest file."""
    quota_bytes: int | None = DEFAULT_QUOTA_MIB * MIB
    """All that a workspace keeps or is being sent; None: no bound."""
    keep_ms: int = FILES_KEEP_MS
    webhook_bytes: int | None = DEFAULT_WEBHOOK_MIB * MIB
    """The bodies of deliveries of webhooks that a workspace keeps; None: no bound."""


def bounds_of(file_mib: int, quota_mib: int, keep_days: int, webhook_mib: int) -> FileBounds:
    """Give the bounds as an operator sets them; a quota of 0 is none.

    >>> bounds_of(1, 0, 2, 3)
    FileBounds(file_bytes=1048576, quota_bytes=None, keep_ms=172800000, webhook_bytes=3145728)
    """
    return FileBounds(
        file_mib * MIB,
        quota_mib * MIB if quota_mib else None,
        keep_days * DAY_MS,
        webhook_mib * MIB if webhook_mib else None,
    )
