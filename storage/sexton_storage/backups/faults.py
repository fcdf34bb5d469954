"""What can go wrong with a backup, and what to do about it."""

from sexton_storage.errors import StorageError


class BackupFault(StorageError):
    """A backup or a restore was refused or failed; nothing that counts as whole was left."""

    def __init__(self, what: str, way_out: str) -> None:
        super().__init__(what)
        self.way_out = way_out
