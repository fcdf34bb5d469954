"""Storage in PostgreSQL."""

from sexton_storage.postgres.settings import PostgresSettings
from sexton_storage.postgres.storage import PostgresStorage, open_postgres_storage

__all__ = ["PostgresSettings", "PostgresStorage", "open_postgres_storage"]
