"""What a server says when what it stands on goes away while it starts."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import trio

import sexton_cli.ground
from sexton_cli.exits import UNAVAILABLE, StartupFault
from sexton_cli.ground import open_ground
from sexton_cli.settings import NodeSettings
from sexton_http.wire.server import open_doors
from sexton_storage.memory import Faults, MemoryStorage
from sexton_storage.memory.tables import Tables
from sexton_storage.stores import Storage


def _say_nothing(_: str) -> None:
    """Nobody reads the progress here."""


def test_a_database_that_goes_away_during_the_start_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = MemoryStorage(Tables(now=lambda: 0), Faults(away=True))

    async def opened(*_: object, checks: bool) -> tuple[None, Storage]:
        del checks
        await trio.lowlevel.checkpoint()
        return None, storage

    async def start() -> None:
        # Given its doors it is a worker, which leaves less to do before the database is asked.
        doors = await open_doors("127.0.0.1", 0)
        async with AsyncExitStack() as stack:
            for listener in doors.listeners:
                await stack.enter_async_context(listener)
            await open_ground(stack, NodeSettings(data=tmp_path), _say_nothing, doors)

    monkeypatch.setattr(sexton_cli.ground, "open_storage", opened)

    with pytest.raises(StartupFault) as fault:
        trio.run(start)

    assert fault.value.status == UNAVAILABLE
    assert fault.value.line().startswith(
        "UZ-STARTUP-003: the database went away while the server was starting"
    )
