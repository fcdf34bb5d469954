"""What can keep storage from opening; each with the way out in its text."""

from sexton_storage.stores import StorageError


class StartupFailed(StorageError):
    """Storage could not be opened; waiting does not help."""


class ConnectFailed(StartupFailed):
    """No database: it cannot be reached, or does not start, or let us in."""


class AlreadyOwned(ConnectFailed):
    """Another server process owns this data directory."""


class MigrationFailed(StartupFailed):
    """The schema is not, and could not be brought, to what this program needs."""


class DatabaseNewer(MigrationFailed):
    """The database was written by a newer release."""
