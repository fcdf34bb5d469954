"""Lets a runner die at a chosen moment of its talk with the server, and waits for what comes of its event."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import trio

from sexton_runner.main import run_runner
from sexton_runner.settings import RunnerSettings
from tests.patience import PATIENCE_S
from tests.worlds.http import HttpWorld
from tests.worlds.runner import LAUNCHER, PACE

TERM_MS = 31_000
"""A lease's term, and a second."""


class Tap:
    """Stands between a runner and its control plane, and tells when that many pieces have passed."""

    def __init__(self, base_url: str, moment: int, *, swallowed: bool) -> None:
        self._port = urlsplit(base_url).port or 0
        self._left = moment
        self._swallowed = swallowed
        self.base_url = ""
        self.now = trio.Event()

    async def serve(self, task_status: trio.TaskStatus[None]) -> None:
        async with trio.open_nursery() as nursery:
            listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
            self.base_url = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
            nursery.start_soon(trio.serve_listeners, self._pass_on, listeners)
            task_status.started()

    async def _pass_on(self, near: trio.SocketStream) -> None:
        far = await trio.open_tcp_stream("127.0.0.1", self._port)
        async with near, far, trio.open_nursery() as nursery:
            nursery.start_soon(self._pump, near, far, nursery.cancel_scope)
            nursery.start_soon(self._pump, far, near, nursery.cancel_scope)

    async def _pump(
        self, source: trio.SocketStream, sink: trio.SocketStream, scope: trio.CancelScope
    ) -> None:
        try:
            while piece := await source.receive_some(65536):
                if self._left == 0 and self._swallowed:
                    self.now.set()
                    await trio.sleep_forever()
                await sink.send_all(piece)
                if self._left == 0:
                    self.now.set()
                self._left -= 1
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        scope.cancel()


@asynccontextmanager
async def a_runner(settings_: RunnerSettings) -> AsyncIterator[None]:
    """A runner that is torn down at the end: no farewell, its connections just close."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(
            partial(run_runner, settings_, timing=PACE, rng=random.Random(1), launcher=LAUNCHER)
        )
        yield
        nursery.cancel_scope.cancel()


async def the_event(world: HttpWorld, zombie_id: str) -> dict[str, Any]:
    page = (await world.get(f"{world.ws}/zombies/{zombie_id}/events")).json()
    [event] = page["items"]
    return dict(event)


async def until_it_ends(world: HttpWorld, zombie_id: str) -> dict[str, Any]:
    with trio.fail_after(PATIENCE_S):
        while (event := await the_event(world, zombie_id))["completed_at"] is None:
            await trio.sleep(0.02)
    return event


async def until_it_ends_or(moment: trio.Event, world: HttpWorld, zombie_id: str) -> None:
    """Wait for that moment; a run that never reaches it has ended."""
    async with trio.open_nursery() as nursery:

        async def ended() -> None:
            await until_it_ends(world, zombie_id)
            nursery.cancel_scope.cancel()

        nursery.start_soon(ended)
        await moment.wait()
        nursery.cancel_scope.cancel()
