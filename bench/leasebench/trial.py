"""Holders that fail, and the one that takes over; each writes down what it believed.

Those that fail are naive on purpose: they look at no clock before they write, as a program does that was
stopped between its look at the clock and its write. Only the service can stop them.
"""

import json
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import anyio

from bench.leasebench.adapter import Adapter, Lease, Place
from bench.leasebench.checker import Entry, Kind

RENEWALS_A_TERM = 3
AGAIN_S = 0.5
"""After a call that failed."""
POLL_S = 0.02
HOUSE_S = 1.0
FILL_S = 20.0
REPORT_S = 5.0


class Diary:
    """What one holder was answered, a line each, on disk before it goes on."""

    def __init__(self, adapter: Adapter, place: Place, file: IO[str]) -> None:
        self._adapter = adapter
        self._place = place
        self._file = file
        self._grants = 0
        self.held: dict[int, Lease] = {}
        """By the number of the grant."""

    async def claim(self, most: int) -> None:
        sent = time.monotonic_ns()
        for lease in await self._adapter.claim(most):
            self._grants += 1
            self.held[self._grants] = lease
            self._write("claim", self._grants, lease, sent, ok=True)

    async def renew(self, grants: Iterable[int]) -> None:
        await self._call("renew", self._adapter.renew, grants)

    async def report(self, grants: Iterable[int]) -> None:
        await self._call("report", self._adapter.report, grants)

    async def _call(
        self, kind: Kind, call: Callable[[Sequence[Lease]], Awaitable[list[bool]]], grants: Iterable[int]
    ) -> None:
        """Those that are still held; nothing where nothing can be renewed."""
        if kind == "renew" and not self._adapter.renews:
            return
        mine = {grant: self.held[grant] for grant in grants if grant in self.held}
        if not mine:
            return
        sent = time.monotonic_ns()
        oks = await call(list(mine.values()))
        for (grant, lease), ok in zip(mine.items(), oks, strict=True):
            self._write(kind, grant, lease, sent, ok=ok)
            if not ok or kind == "report":
                self.held.pop(grant, None)

    def _write(self, kind: Kind, grant: int, lease: Lease, sent: int, *, ok: bool) -> None:
        had, until = time.monotonic_ns(), sent + int(self._place.term_s * 1e9)
        entry = Entry(kind, self._place.holder, lease.key, lease.token, grant, sent, had, until, ok)
        self._file.write(json.dumps(entry) + "\n")
        self._file.flush()


def read(path: Path) -> list[Entry]:
    """What one holder wrote; of one that was killed the last line may be torn."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [Entry(*json.loads(line)) for line in lines if line.endswith("\n")]


class Referee(NamedTuple):
    """How a holder speaks with its referee."""

    mark: Callable[..., Awaitable[str]]
    heard: Callable[[], Awaitable[str]]


async def fail(adapter: Adapter, place: Place, leases: int, referee: Referee, log: Path) -> None:
    """Hold leases and renew them. On ``write`` report the second half, in the faith of holding it."""
    with log.open("w", encoding="utf-8") as file:
        diary = Diary(adapter, place, file)
        await adapter.fill(leases)
        with anyio.fail_after(FILL_S):
            while len(diary.held) < leases:
                await diary.claim(leases - len(diary.held))
        mine = list(diary.held)
        reported = mine[leases // 2 :]
        async with anyio.create_task_group() as group:
            renewing = anyio.CancelScope()
            group.start_soon(_renew_on, diary, mine, place.term_s, renewing)
            group.start_soon(_keep_house, adapter)
            assert await referee.mark("held") == "go on"
            said = await referee.heard()
            if said == "write":
                group.start_soon(_insist, diary, reported)
                said = await referee.heard()
            assert said == "finish", said
            group.cancel_scope.cancel()


async def survive(adapter: Adapter, place: Place, leases: int, referee: Referee, log: Path) -> None:
    """Take whatever falls free, keep it to the end, and report it then."""
    with log.open("w", encoding="utf-8") as file:
        diary = Diary(adapter, place, file)
        assert await referee.mark("held") == "go on"
        async with anyio.create_task_group() as group:
            group.start_soon(_renew_all, diary, place.term_s)
            group.start_soon(_take, diary, leases)
            group.start_soon(_keep_house, adapter)
            assert await referee.heard() == "finish"
            group.cancel_scope.cancel()
        with anyio.move_on_after(REPORT_S):
            await diary.report(list(diary.held))


async def _renew_on(diary: Diary, grants: Sequence[int], term_s: float, scope: anyio.CancelScope) -> None:
    with scope:
        while True:
            await _tried(diary.renew, grants)
            await anyio.sleep(term_s / RENEWALS_A_TERM)


async def _renew_all(diary: Diary, term_s: float) -> None:
    while True:
        await anyio.sleep(term_s / RENEWALS_A_TERM)
        await _tried(diary.renew, list(diary.held))


async def _take(diary: Diary, leases: int) -> None:
    while True:
        await _tried(diary.claim, leases)
        await anyio.sleep(POLL_S)


async def _insist(diary: Diary, grants: Sequence[int]) -> None:
    while not await _tried(diary.report, grants):  # noqa: ASYNC110 -- a program that tries again
        await anyio.sleep(AGAIN_S)


async def _keep_house(adapter: Adapter) -> None:
    while True:
        await anyio.sleep(HOUSE_S)
        await _tried(lambda _: adapter.keep_house(), None)


async def _tried(call: Callable[[Any], Awaitable[object]], argument: Any) -> bool:
    """Whether it was answered; what a network that has failed raises is each library's own."""
    try:
        await call(argument)
    except Exception:  # noqa: BLE001 -- the holder goes on, as a naive program does
        return False
    return True
