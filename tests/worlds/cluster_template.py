"""A database's files as a first start leaves them: made once for a whole test run, then copied."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trio

from sexton_storage.embedded import EmbeddedSettings, open_embedded_server
from sexton_storage.postgres import open_postgres_storage

STILL = ("1", "4", "5")
"""The folders of the databases template1, template0 and postgres, to which no server of a test writes."""
PLACE_VARIABLE = "SEXTON_TEST_CLUSTER"
"""Names the folder that the processes of a run share; without it each start makes a database of its own."""
THROW_AWAY = {"fsync": "off", "full_page_writes": "off"}


async def put_cluster(data: Path) -> None:
    """Give a data folder that has no database a migrated one without a row, as a first start would."""
    place = os.environ.get(PLACE_VARIABLE)
    if place is None or (data / "postgres").exists():
        return
    template = Path(place)
    await trio.to_thread.run_sync(_make_once, template)
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    # The files belong to whom PostgreSQL runs as, and stay theirs.
    await trio.run_process(["cp", "-a", "--reflink=auto", str(template / "made"), str(data / "postgres")])
    # More than half of all files: a link costs a tenth of a copy. Another file system takes copies alone.
    still, base = [str(template / "still" / name) for name in STILL], str(data / "postgres" / "base")
    linked = await trio.run_process(["cp", "-al", *still, base], check=False, capture_stderr=True)
    if linked.returncode:
        await trio.run_process(["cp", "-a", *still, base])


def _make_once(template: Path) -> None:
    template.mkdir(mode=0o700, exist_ok=True)
    with _alone(template / "lock"):
        if not (template / "made").exists():
            shutil.rmtree(template / "data", ignore_errors=True)
            shutil.rmtree(template / "still", ignore_errors=True)
            trio.run(_make, template / "data")
            (template / "still").mkdir()
            for name in STILL:
                (template / "data" / "postgres" / "base" / name).rename(template / "still" / name)
            (template / "data" / "postgres").rename(template / "made")


async def _make(data: Path) -> None:
    async with (
        open_embedded_server(EmbeddedSettings(data, server=THROW_AWAY)) as server,
        open_postgres_storage(server.dsn),
    ):
        pass


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Keep the other processes of the run waiting."""
    with lock.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
