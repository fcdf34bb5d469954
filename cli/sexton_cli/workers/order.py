"""What the parent tells a worker that it starts, and what part of the server's bounds each worker has."""

from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from sexton_cli.exits import CONFIG, StartupFault
from sexton_cli.settings import NodeSettings
from sexton_storage.startup import BESIDE_POOL, POOL_SIZE

LEAST_POOL: Final = 2
PARENT_POOL: Final = 2
SPARE: Final = 3
"""Connections left for an operator, a migration and a backup."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOrder:
    """Sent to a worker over its standard input. Numbers of files are those that it inherits."""

    settings: NodeSettings
    node: UUID
    """The id of the server."""
    slot: int
    host: str
    port: int
    secure: bool
    listeners: tuple[int, ...]
    board: int
    workers: int
    parent: int
    """Reads nothing, and ends with the parent."""
    reading: int
    """The worker's own inbox."""
    putting: tuple[int, ...]
    """The inboxes of all."""
    limits: int
    """The memory of rate limits."""
    metrics: tuple[int, ...]
    """The memory of each worker's counts."""


def needed(workers: int, pool: int) -> int:
    """Connections that a server with that many workers opens, its parent's included.

    >>> needed(2, 6), needed(4, 6)
    (25, 45)
    """
    return workers * (pool + BESIDE_POOL + 1) + PARENT_POOL + BESIDE_POOL


def pool_within(allowed: int, workers: int, wanted: int | None) -> int:
    """The size of each worker's pool where the database allows that many connections. Raises StartupFault.

    >>> pool_within(97, 2, None), pool_within(40, 4, None), pool_within(97, 2, 20)
    (6, 4, 20)
    """
    pool = POOL_SIZE if wanted is None else wanted
    while wanted is None and pool > LEAST_POOL and needed(workers, pool) + SPARE > allowed:
        pool -= 1
    if needed(workers, pool) + SPARE > allowed:
        what = (
            f"{workers} workers need {needed(workers, pool)} connections, and {SPARE} should be spare; "
            f"the database allows {allowed}"
        )
        way_out = "Raise max_connections of PostgreSQL, or lower --workers or --database-pool"
        raise StartupFault("UZ-STARTUP-002", what, way_out, CONFIG)
    return pool


def part_of(settings: NodeSettings, *, database_url: str, pool: int) -> NodeSettings:
    """One worker's settings: what bounds the server as a whole is divided among its workers.

    >>> from pathlib import Path
    >>> part = part_of(
    ...     NodeSettings(data=Path("d"), workers=3, max_in_flight=100), database_url="postgresql:///", pool=6
    ... )
    >>> part.max_in_flight, part.migrate, part.workers
    (33, False, 1)
    """
    count = settings.workers
    of_address = settings.max_connections_per_address
    return replace(
        settings,
        database_url=database_url,
        database_pool=pool,
        migrate=False,
        workers=1,
        max_in_flight=_part(settings.max_in_flight, count),
        max_long_polls=_part(settings.max_long_polls, count),
        max_streams=_part(settings.max_streams, count),
        max_connections=_part(settings.max_connections, count),
        max_connections_per_address=None if of_address is None else _part(of_address, count),
        max_body_memory=_part(settings.max_body_memory, count),
        max_answer_mib=_part(settings.max_answer_mib, count),
    )


def _part(whole: int, count: int) -> int:
    return max(1, whole // count)
