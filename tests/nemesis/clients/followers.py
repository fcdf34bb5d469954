"""Follow the stream of an agent, over nodes that die, and go on each time where they were."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Any, Final

import httpx2
import orjson
import trio

from tests.nemesis.clients.caller import Caller
from tests.nemesis.clients.task import Site

STAYS_S: Final = (5.0, 40.0)
QUIET_S: Final = 20.0
"""A stream that says nothing for so long is given up."""
AGAIN_S: Final = 0.5
OK_BELOW: Final = 300


class Follower:
    """One agent, one connection after the other."""

    def __init__(self, caller: Caller, site: Site, agent: str, rng: random.Random) -> None:
        self._caller = caller
        self._site = site
        self._agent = agent
        self._rng = rng
        self._after: int | None = None

    async def follow(self) -> None:
        recorder = self._caller.recorder
        while True:
            asked = {"agent": self._agent, "after": self._after}
            op = recorder.begin(self._caller.process, "follow", asked)
            seen: dict[str, Any] = {"ranges": [], "ends": {}, "resync": False}
            opened = False
            base_url = self._caller.base_url
            try:
                with trio.move_on_after(self._rng.uniform(*STAYS_S)):
                    async for frame in self._frames(base_url):
                        opened = True
                        self._see(frame, seen)
            except httpx2.HTTPError as error:
                self._caller.leave(base_url)
                if not opened:
                    recorder.unknown(op, type(error).__name__)
                    await trio.sleep(AGAIN_S)
                    continue
            recorder.ok(op, seen)
            await trio.sleep(AGAIN_S)

    def _see(self, frame: dict[str, Any], seen: dict[str, Any]) -> None:
        if "data" in frame and frame.get("event") == "resync":
            seen["resync"] = True
        elif "data" in frame:
            number = int(frame["id"])
            if seen["ranges"] and seen["ranges"][-1][1] == number - 1:
                seen["ranges"][-1][1] = number
            else:
                seen["ranges"].append([number, number])
            if frame["event"] == "event_complete":
                told = orjson.loads(frame["data"])
                seen["ends"][told["event_id"]] = told["status"]
        self._after = int(frame["id"])

    async def _frames(self, base_url: str) -> AsyncIterator[dict[str, Any]]:
        path = f"{self._site.workspace}/zombies/{self._agent}/events/stream"
        headers = {"authorization": f"Bearer {self._site.key}"}
        if self._after is not None:
            headers["last-event-id"] = str(self._after)
        url = f"{base_url}{path}"
        async with self._caller.http.stream("GET", url, headers=headers, timeout=QUIET_S) as answer:
            if answer.status_code >= OK_BELOW:
                raise httpx2.ReadError(f"the stream was refused with {answer.status_code}")
            frame: dict[str, Any] = {}
            async for line in answer.aiter_lines():
                if line:
                    name, _, value = line.partition(": ")
                    frame[name] = value
                    continue
                if "id" in frame:
                    yield frame
                frame = {}
