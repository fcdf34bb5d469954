"""An empty PostgreSQL of a benchmark's own, on the folder that it may write to."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench import machine
from sexton_storage.embedded import EmbeddedSettings, open_embedded_server


class Database(NamedTuple):
    """Where it is, and what it runs on."""

    dsn: str
    about: dict[str, Any]
    """The machine and the database's settings, for the report."""


@asynccontextmanager
async def open_database() -> AsyncIterator[Database]:
    """Nothing is left of it at the end."""
    with tempfile.TemporaryDirectory(prefix="sexton-bench-") as folder:
        async with open_embedded_server(EmbeddedSettings(Path(folder))) as server:
            yield Database(server.dsn, machine.describe_with(server.dsn))
