"""The options that say how many processes serve, and how many connections each has to the database."""

import os
from typing import Any, Final

import click

AUTO: Final = "auto"
MAX_WORKERS: Final = 64


class WorkerCount(click.IntRange):
    """A number, or ``auto``: one for each processor that this process may use."""

    name = "N|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == AUTO:
            return min(MAX_WORKERS, len(os.sched_getaffinity(0)))
        return super().convert(value, param, ctx)


WORKER_OPTIONS: Final = (
    click.option(
        "--workers",
        type=WorkerCount(1, MAX_WORKERS),
        default=1,
        show_default=True,
        envvar="SEXTON_WORKERS",
        help="Processes that serve; 'auto': one for each processor.",
    ),
    click.option(
        "--database-pool",
        type=click.IntRange(2, 1000),
        envvar="SEXTON_DATABASE_POOL",
        help="Connections of each process' pool. [default: 6, or fewer where the database has no room]",
    ),
)
