"""One process of clients: its task is the first line that it reads, and each further line is a command."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import IO, Final

import httpx2
import msgspec
import trio

from tests.nemesis.clients.caller import Caller
from tests.nemesis.clients.followers import Follower
from tests.nemesis.clients.holders import Holder
from tests.nemesis.clients.people import Person
from tests.nemesis.clients.senders import Sender
from tests.nemesis.clients.tap import Tap
from tests.nemesis.clients.task import (
    CLOSE,
    OPEN,
    OPS_OF_A_LIFE,
    PROCESSES_OF_A_CALLER,
    PROCESSES_OF_A_LIFE,
    STOP,
    Progress,
    Role,
    Task,
)
from tests.nemesis.recorder import Recorder

TELL_S: Final = 2.0
COMMAND_EVERY_S: Final = 1.5
PEOPLE_A_SITE: Final = 2
FOLLOWERS_A_SITE: Final = 2


async def main() -> None:
    """Until it is told to stop, or nobody is left to tell it anything."""
    lines = _lines()
    task = msgspec.json.decode(await anext(lines), type=Task)
    # Each line is one write: a process that is killed leaves whole lines.
    with _opened(task.history) as file:
        recorder = Recorder(file, first_op=task.life * OPS_OF_A_LIFE)
        tap = Tap()
        # One for all: to make one for each takes longer than many a fault.
        http = httpx2.AsyncClient(limits=httpx2.Limits(max_connections=None))
        async with http, trio.open_nursery() as nursery:
            _begin(nursery, http, task, recorder, tap)
            nursery.start_soon(_tell, recorder)
            async for line in lines:
                if line == STOP:
                    break
                if line == CLOSE:
                    tap.close()
                elif line == OPEN:
                    tap.open()
            nursery.cancel_scope.cancel()
        recorder.close()


def _opened(history: str) -> IO[bytes]:
    return Path(history).open("wb", buffering=0)


def _begin(nursery: trio.Nursery, http: httpx2.AsyncClient, task: Task, recorder: Recorder, tap: Tap) -> None:
    rng = random.Random(f"{task.seed} {task.life}")
    turns = count()

    def caller() -> Caller:
        turn = next(turns)
        process = task.life * PROCESSES_OF_A_LIFE + turn * PROCESSES_OF_A_CALLER
        return Caller(http, task.bases, recorder, process, task.life + turn)

    def own() -> random.Random:
        return random.Random(rng.getrandbits(64))

    match task.role:
        case Role.SENDERS:
            for number in range(task.count):
                site = task.sites[number % len(task.sites)]
                nursery.start_soon(Sender(caller(), site, site.agents, tap, own()).send, task.every_s)
            for site in task.sites:
                if site.commands:
                    beside = Sender(caller(), site, site.commands, Tap(), own())
                    nursery.start_soon(beside.send, COMMAND_EVERY_S)
        case Role.HOLDER:
            nursery.start_soon(Holder(caller(), task.token, own()).work, task.every_s)
        case Role.WATCHERS:
            for site in task.sites:
                for _ in range(PEOPLE_A_SITE):
                    nursery.start_soon(Person(caller(), site, own()).decide)
                for agent in (*site.agents[:FOLLOWERS_A_SITE], *site.commands[:FOLLOWERS_A_SITE]):
                    nursery.start_soon(Follower(caller(), site, agent, own()).follow)


async def _lines() -> AsyncIterator[bytes]:
    """What the run says, line by line."""
    rest = b""
    async with trio.lowlevel.FdStream(os.dup(sys.stdin.fileno())) as stream:
        async for piece in stream:
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                yield line


async def _tell(recorder: Recorder) -> None:
    while True:
        said = msgspec.json.encode(Progress(recorder.events, recorder.renewals)) + b"\n"
        await trio.to_thread.run_sync(os.write, sys.stdout.fileno(), said)
        await trio.sleep(TELL_S)


if __name__ == "__main__":
    trio.run(main)
