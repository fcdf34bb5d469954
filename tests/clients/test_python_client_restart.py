"""The pages' programs, word for word, and streams over a killed server, with a real server and runner."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
import trio

from sexton_client import AsyncSexton, Frame, Patience, Sexton
from tests.patience import PATIENCE_S
from tests.worlds.server_process import ServerProcess

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("docs/how-to/write-a-client-program.md", "clients/python/README.md")
BLOCK = re.compile(
    r"^(?P<fence>```+)python\n(?P<program>.*?)^(?P=fence)$(?:\n\n```text\n(?P<told>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
PATIENT = Patience(tries=20, longest_wait_s=1.0)


class Program(NamedTuple):
    """A program of a page, and what it says there that it prints; None where that differs each time."""

    text: str
    told: str | None


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path_factory.mktemp("server"), "--port", "0", "--runners", "1")
    trio.run(process.start)
    yield process
    assert trio.run(process.stop) == 0


def programs() -> list[Program]:
    """All of them, in the order of the pages: a later one may build on what an earlier one has made."""
    return [
        Program(found["program"], found["told"])
        for page in PAGES
        for found in BLOCK.finditer((ROOT / page).read_text())
    ]


def test_the_programs_of_the_pages_print_what_the_pages_say(server: ServerProcess, tmp_path: Path) -> None:
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "clients/python"),
        "SEXTON_BASE_URL": server.ready["base_url"],
        "SEXTON_TOKEN": server.ready["api_key"],
    }
    found = programs()
    assert len(found) == 7

    # One after the other in one process, since each would import the same.
    script = "\n".join(
        f"exec(compile({program.text!r}, 'program {number}', 'exec'), {{}})\nprint('--- next', flush=True)"
        for number, program in enumerate(found)
    )
    ended = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr

    told = ended.stdout.split("--- next\n")
    assert [
        (printed, program.told)
        for printed, program in zip(told, found, strict=False)
        if program.told is not None
    ] == [(program.told, program.told) for program in found if program.told is not None]


class Watch:
    """What the streams have brought; a program looks at it while they go on."""

    def __init__(self) -> None:
        self.by_thread: list[Frame] = []
        self.by_task: list[Frame] = []

    async def until(self, ended: int) -> None:
        """Wait until both have shown this number of ended events."""
        with trio.fail_after(PATIENCE_S):
            while min(map(_ends, (self.by_thread, self.by_task))) < ended:
                await trio.sleep(0.02)


def _ends(frames: list[Frame]) -> int:
    return sum(frame.kind == "event_complete" for frame in frames)


async def test_streams_and_waits_go_on_over_a_server_that_is_killed(server: ServerProcess) -> None:
    base_url, token = server.ready["base_url"], server.ready["api_key"]
    watch, done = Watch(), list[str]()
    with Sexton(base_url, token, patience=PATIENT) as plain:
        agent = plain.agents.list(name="greeter").items[0].zombie_id
        for earlier in plain.events.each(agent_id=agent):
            plain.events.wait(earlier.event_id, timeout_s=60)
        stream = plain.events.stream(agent_id=agent)

        def follow() -> None:
            for frame in stream:
                watch.by_thread.append(frame)
                if _ends(watch.by_thread) == 2:
                    return

        def send_and_wait(message: str) -> str:
            sent = plain.events.send(agent, message=message)
            return plain.events.wait(sent.event_id, timeout_s=60).status

        async with (
            AsyncSexton(base_url, token, patience=PATIENT) as client,
            await client.events.stream() as frames,
            trio.open_nursery() as nursery,
        ):

            async def follow_too() -> None:
                while _ends(watch.by_task) < 2:
                    with trio.move_on_after(0.5):  # A time limit does not end a stream.
                        watch.by_task.append(await anext(frames))

            async def while_it_is_away() -> None:
                done.append(await trio.to_thread.run_sync(send_and_wait, "meanwhile"))

            nursery.start_soon(trio.to_thread.run_sync, follow)
            nursery.start_soon(follow_too)
            done.append(await trio.to_thread.run_sync(send_and_wait, "before"))
            await watch.until(1)

            server.kill()
            nursery.start_soon(while_it_is_away)
            await server.start("--port", base_url.rpartition(":")[2])
            await watch.until(2)
        events = [event.event_id for event in plain.events.each(agent_id=agent, limit=2)]
        stream.close()

    numbers = [int(frame.id) for frame in watch.by_thread]
    assert [later - earlier for earlier, later in pairwise(numbers)] == [1] * (len(numbers) - 1)
    assert len({frame.id for frame in watch.by_task}) == len(watch.by_task)

    for frames_seen in (watch.by_thread, watch.by_task):
        begun = [frame.event_id for frame in frames_seen if frame.kind == "event_received"]
        assert begun == events[:2][::-1]
    assert done == ["processed", "processed"]
