"""Pages of the console that stay open: told when to look again, and made once for all of a role."""

from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
import trio
import trio.testing

from sexton_http.gateway.page_parts import MOST, PageParts
from sexton_http.routes.console.changes import look
from sexton_storage.records.frame_kinds import QUIET_KINDS, FrameKind
from sexton_storage.records.frames import Frame, FramePlace, WorkspaceFrames
from tests.worlds.browser import Visitor, visiting
from tests.worlds.event_stream import listening
from tests.worlds.http import HttpWorld

PLACE = "1-00000000000000000000000000000000-0"


@pytest.fixture
async def visitor(world: HttpWorld) -> AsyncIterator[Visitor]:
    async with visiting(world) as opened:
        yield await opened.sign_in()


async def test_an_open_page_is_told_and_asks_for_its_parts(world: HttpWorld, visitor: Visitor) -> None:
    zombie = await world.install()
    here = f"/console/{world.installation.workspace_id}"
    cookie = visitor.cookies["sexton"]
    async with listening(world.base_url, f"{here}/changes", None, cookie=f"sexton={cookie}") as stream:
        first = await stream.frame()
        await world.post(f"{world.ws}/zombies/{zombie['zombie_id']}/messages", {"message": "Hello."})
        told = await stream.frame()

    assert (first["within_ms"], told["within_ms"]) == (0, 0)
    assert told["id"] > first["id"]

    whole = (await visitor.get(f"{here}/events")).text
    part = (await visitor.get(f"{here}/events", headers={"sexton-as-of": told["id"]})).text
    assert ("<html" in whole, "<html" in part) == (True, False)
    assert all('id="events" data-part' in page and "steer:admin" in page for page in (whole, part))
    assert "<html" in (await visitor.get(f"{here}/events", headers={"sexton-as-of": "x" * 999})).text


@pytest.mark.parametrize(
    ("kinds", "tells"),
    [(QUIET_KINDS, False), ((*QUIET_KINDS, FrameKind.GATE_PENDING), True), ((), False)],
)
async def test_what_a_run_says_in_between_is_no_change(kinds: Sequence[FrameKind], *, tells: bool) -> None:
    agent, place = UUID(int=1), FramePlace(2, UUID(int=1), 1)
    frames = tuple(Frame(agent, seq, None, kind, 0, {}, 2) for seq, kind in enumerate(kinds))
    found = WorkspaceFrames(frames, (place,) * len(frames), place, is_all=True)

    class Replays:
        async def take_of_workspace(self, *_: object) -> object:
            return SimpleNamespace(found=found)

        def release(self, _: object) -> None:
            """Nothing is held."""

    services: Any = SimpleNamespace(replays=Replays())

    assert await look(services, None, agent, FramePlace(1, agent, 1)) == (place, tells)


async def test_who_asks_at_once_shares_a_page_and_a_failure_is_nobodys_page() -> None:
    made: list[int] = []
    now = 0.0
    parts: PageParts[int] = PageParts(lambda: now)

    async def make() -> int:
        made.append(len(made))
        await trio.testing.wait_all_tasks_blocked()
        return made[-1]

    async def fail() -> int:
        await go.wait()
        raise ValueError

    got: list[Any] = []
    go = trio.Event()

    async def ask(key: str, how: Any = make) -> None:
        try:
            got.append(await parts.share(key, how, now_ms=7))
        except ValueError:
            got.append("failed")

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(ask, "a")
    assert (got, await parts.share("b", make, now_ms=7)) == ([0, 0, 0], 1)

    now = 0.9
    assert await parts.share("a", make, now_ms=8) == 0

    assert await parts.share("a", make, now_ms=8, newer_than_ms=6) == 0
    assert await parts.share("a", make, now_ms=8, newer_than_ms=7) == 2, "who asks has seen what came since"

    now = 2.0
    assert await parts.share("a", make, now_ms=9) == 3

    got.clear()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, "c", fail)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(ask, "c")
        await trio.testing.wait_all_tasks_blocked()
        go.set()
    assert sorted(map(str, got)) == ["4", "failed"]

    for key in range(2 * MOST):
        await parts.share(key, make, now_ms=9)
    assert str(MOST) in repr(parts)
