"""The processes of clients, as the run starts, tells, freezes and kills them."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Final

import msgspec
import trio

from tests.nemesis.clients.task import STOP, Progress, Task

START_S: Final = 120.0
"""How long a process may take to begin."""
STOP_S: Final = 60.0
"""How long a process may take to write down that nothing more comes."""


class Crew:
    """All of them, with the histories of all their lives."""

    def __init__(self, folder: Path, nursery: trio.Nursery) -> None:
        self._folder = folder
        self._nursery = nursery
        self._lives = count(1)
        self._progress: dict[int, Progress] = {}
        self._begun: dict[int, trio.Event] = {}
        self.clients: list[Client] = []
        self.histories: list[Path] = []

    @property
    def events(self) -> int:
        """Accepted, as the processes themselves say now and then."""
        return sum(said.events for said in self._progress.values())

    @property
    def renewals(self) -> int:
        return sum(said.renewals for said in self._progress.values())

    async def start(self, tasks: Sequence[Task]) -> Sequence[Client]:
        """Start one for each; ``life`` and ``history`` of a task are filled in for each of its lives."""
        clients = [Client(self, task) for task in tasks]
        self.clients += clients
        async with trio.open_nursery() as nursery:
            for client in clients:
                nursery.start_soon(client.start)
        return clients

    async def spawn(self, task: Task) -> trio.Process:
        """One life, from when it has begun its work: on a busy machine that takes a while."""
        life = next(self._lives)
        self._begun[life] = trio.Event()
        history = self._folder / f"life-{life}.jsonl"
        history.touch()
        self.histories.append(history)
        words = [sys.executable, "-m", "tests.nemesis.clients"]
        with (self._folder / "log").open("ab") as log:
            process = await trio.lowlevel.open_process(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
            )
        self._nursery.start_soon(self._listen, life, process)
        told = msgspec.structs.replace(task, life=life, history=str(history))
        assert process.stdin is not None
        await process.stdin.send_all(msgspec.json.encode(told) + b"\n")
        with trio.fail_after(START_S):
            await self._begun[life].wait()
        return process

    async def _listen(self, life: int, process: trio.Process) -> None:
        rest = b""
        assert process.stdout is not None
        async for piece in process.stdout:
            *whole, rest = (rest + piece).split(b"\n")
            if whole:
                self._progress[life] = msgspec.json.decode(whole[-1], type=Progress)
                self._begun[life].set()


class Client:
    """One process of clients, over as many lives as it takes."""

    def __init__(self, crew: Crew, task: Task) -> None:
        self._crew = crew
        self._task = task
        self._process: trio.Process | None = None

    async def start(self) -> None:
        self._process = await self._crew.spawn(self._task)

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    async def kill(self) -> None:
        """It writes nothing more, and forgets what it holds."""
        assert self._process is not None
        self._process.kill()
        await self._process.wait()

    async def tell(self, command: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        await self._process.stdin.send_all(command + b"\n")

    async def stop(self) -> None:
        """Let it write down what has no answer, and end."""
        assert self._process is not None
        await self.tell(STOP)
        with trio.fail_after(STOP_S):
            status = await self._process.wait()
        assert status == 0, f"a process of clients ended with {status}: see the log beside its history"


async def stop_all(clients: Sequence[Client]) -> None:
    async with trio.open_nursery() as nursery:
        for client in clients:
            nursery.start_soon(client.stop)


@asynccontextmanager
async def open_crew(folder: Path) -> AsyncIterator[Crew]:
    """Whoever runs still is killed at the end."""
    folder.mkdir()
    async with trio.open_nursery() as nursery:
        crew = Crew(folder, nursery)
        try:
            yield crew
        finally:
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                for client in crew.clients:
                    await client.kill()
