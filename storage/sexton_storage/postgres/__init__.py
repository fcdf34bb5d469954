"""Storage in PostgreSQL."""

from sexton_storage.postgres.connections.settings import PostgresSettings
from sexton_storage.postgres.storage import (
    PostgresStorage,
    connections_allowed,
    excess_rights,
    migrate_database,
    open_postgres_storage,
    plan_migrations,
)

__all__ = [
    "PostgresSettings",
    "PostgresStorage",
    "connections_allowed",
    "excess_rights",
    "migrate_database",
    "open_postgres_storage",
    "plan_migrations",
]
