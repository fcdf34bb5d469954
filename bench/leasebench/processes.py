"""The processes that hold leases, as their referee sees them."""

import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from bench.machine import plain_environment

ROOT = Path(__file__).parents[2]
ANSWER_S = 90.0
"""A holder that says nothing for so long hangs."""
STOP_S = 10.0


class HolderFailed(Exception):
    """A holder ended, or said nothing; with its last words."""


class Holder:
    """One process of ``bench.leasebench.holder``."""

    def __init__(self, process: trio.Process, log: Path) -> None:
        assert process.stdout is not None
        self._process = process
        self._log = log
        self._buffer = b""
        self.pid = process.pid

    async def told(self) -> dict[str, Any]:
        """The next thing that it says; raises HolderFailed."""
        assert self._process.stdout is not None
        with trio.move_on_after(ANSWER_S) as waited:
            while b"\n" not in self._buffer:
                data = await self._process.stdout.receive_some()
                if not data:
                    raise HolderFailed(self._last_words())
                self._buffer += data
        if waited.cancelled_caught:
            raise HolderFailed(f"nothing was heard for {ANSWER_S:g} s; {self._last_words()}")
        line, _, self._buffer = self._buffer.partition(b"\n")
        told: dict[str, Any] = json.loads(line)
        return told

    async def say(self, word: str) -> None:
        """One that has ended hears nothing, which is no fault of the referee's."""
        assert self._process.stdin is not None
        try:
            await self._process.stdin.send_all(f"{word}\n".encode())
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return

    async def marked(self, name: str) -> dict[str, Any]:
        """Wait for that mark; raises HolderFailed when another comes."""
        told = await self.told()
        if told.get("mark") != name:
            raise HolderFailed(f"{name} was expected, {told} came")
        return told

    def send(self, sign: signal.Signals) -> None:
        self._process.send_signal(sign)

    async def ended(self, within_s: float = STOP_S) -> int | None:
        """Wait for its end; None when it had to be killed."""
        with trio.move_on_after(within_s):
            return await self._process.wait()
        self._process.kill()
        await self._process.wait()
        return None

    def _last_words(self) -> str:
        return self._log.read_text(errors="replace")[-1500:].strip() or "it ended without a word"


@asynccontextmanager
async def open_holder(python: str, spec: Mapping[str, Any], log: Path) -> AsyncIterator[Holder]:
    """Start one; killed at the end if it still runs."""
    words = [python, "-m", "bench.leasebench.holder", json.dumps(spec)]
    with log.open("ab") as errors:
        process = await trio.lowlevel.open_process(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=ROOT, env=_environment()
        )
    try:
        yield Holder(process, log)
    finally:
        with trio.CancelScope(shield=True):
            if process.poll() is None:
                process.kill()
            await process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    await stream.aclose()


@asynccontextmanager
async def open_service(command: Sequence[str], log: Path) -> AsyncIterator[int | None]:
    """Start a server; answers its process id, or None when there is no command."""
    if not command:
        yield None
        return
    with log.open("ab") as out:
        process = await trio.lowlevel.open_process(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd=ROOT,
            env=_environment(),
            start_new_session=True,
        )
    try:
        yield process.pid
    finally:
        with trio.CancelScope(shield=True):
            if process.poll() is None:
                process.terminate()
                with trio.move_on_after(STOP_S):
                    await process.wait()
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


def _environment() -> dict[str, str]:
    return {name: value for name, value in plain_environment().items() if not name.startswith("SEXTON_")}
