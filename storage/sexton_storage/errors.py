"""Errors that every store may raise."""


class StorageError(Exception):
    """Any fault of the wing."""


class StorageUnavailable(StorageError):
    """The database cannot be reached now.

    The same call may succeed later. Nothing was done, or it is settled.
    """


class RowRefused(StorageError):
    """The database takes no such row (a constraint, or a value out of range).

    The same write will fail again.
    """


class SumsDiffer(StorageError):
    """A compaction would have changed what was metered; nothing was changed.

    The same call will fail again, until somebody has found out why.
    """


class NameTaken(StorageError):
    """A unique name is in use already."""


class Conflict(StorageError):
    """The row is not at the version that the save had seen."""
