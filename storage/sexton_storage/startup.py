"""What storage needs to open, and what can keep it from that; each with the way out in its text."""

from typing import Final

from sexton_storage.errors import StorageError

POOL_SIZE: Final = 6
"""Connections of a node's pool."""
BESIDE_POOL: Final = 3
"""Connections that a node has beside its pool: the journal's two, and the one for signals."""


class StartupFailed(StorageError):
    """Storage could not be opened; waiting does not help."""

    way_out = ""
    """What to do about it, where one thing helps."""


class ConnectFailed(StartupFailed):
    """No database: it cannot be reached, or does not start, or let us in."""


class AlreadyOwned(ConnectFailed):
    """Another server process owns this data directory."""


class MigrationFailed(StartupFailed):
    """The schema is not, and could not be brought, to what this program needs."""


class DatabaseNewer(MigrationFailed):
    """A newer release has changed the schema in a way that this one cannot work with."""

    way_out = "Start the release that changed the schema, or a newer one; the way further back is a backup"


class ServerTooOld(ConnectFailed):
    """The PostgreSQL that was named lacks what this program needs."""

    way_out = "Give DATABASE_URL of a newer PostgreSQL, or leave it out: Sexton brings one of its own"


class PooledByTransaction(ConnectFailed):
    """A pooler gives each transaction another session: locks, settings and LISTEN would not hold."""

    way_out = (
        "Set pool_mode = session for this database in the pooler, or name PostgreSQL itself in DATABASE_URL"
    )


class NotAllowed(MigrationFailed):
    """The role may not do what bringing the schema up to date needs."""

    way_out = "Run 'sexton migrate' as a role that owns the schema, and grant this one the use of the tables"


class RestoreUnfinished(MigrationFailed):
    """The rows of a backup were being restored when it stopped."""

    way_out = "Drop the database, create it again, and run 'sexton backup restore' again"


class SchemaBehind(MigrationFailed):
    """Migrations have not run, and were not asked for."""

    way_out = "Run 'sexton migrate' with this release, as a role that owns the schema"
