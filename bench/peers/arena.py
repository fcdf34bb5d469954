"""One PostgreSQL on which Sexton and its peers take turns, each with an empty database for every round."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path

import asyncpg
import orjson
import trio

from bench import harness, machine
from bench.peers.ours import cycles

JOBS = 4000
PROGRAMS = Path(__file__).parent / "programs"


class Arena:
    """One PostgreSQL with an empty database for whoever asks."""

    def __init__(self, dsn: str, python: str) -> None:
        self._dsn = dsn
        self._python = python
        self._numbers = count(1)

    async def _database(self) -> str:
        name = f"round_{next(self._numbers)}"
        maintenance = machine.superuser(self._dsn).replace("/sexton?", "/postgres?")
        await trio.to_thread.run_sync(_execute, maintenance, f"CREATE DATABASE {name} OWNER sexton")
        return self._dsn.replace("/sexton?", f"/{name}?")

    async def ours(self) -> float:
        return await cycles(await self._database(), round(harness.lasting(JOBS)))

    def peer(self, program: str, jobs: int) -> Callable[[], Awaitable[float]]:
        async def measured() -> float:
            count = round(harness.lasting(jobs))
            command = [self._python, str(PROGRAMS / program), await self._database(), str(count)]
            done = await trio.run_process(command, capture_stdout=True)
            answer = orjson.loads(done.stdout.splitlines()[-1])
            return float(answer["jobs"] / answer["seconds"])

        return measured


def _execute(dsn: str, command: str) -> None:
    asyncio.run(_run(dsn, command))


async def _run(dsn: str, command: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(command)
    finally:
        await connection.close()
