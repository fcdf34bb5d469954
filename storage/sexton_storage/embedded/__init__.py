"""A PostgreSQL server of our own in a data directory: found, made, started, watched, stopped."""

from sexton_storage.embedded.server import (
    EmbeddedServer,
    EmbeddedSettings,
    embedded_dsn,
    open_embedded_server,
)

__all__ = ["EmbeddedServer", "EmbeddedSettings", "embedded_dsn", "open_embedded_server"]
