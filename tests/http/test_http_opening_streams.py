"""Streams that are opened by the hundred: a few at once, and callers in turn."""

from collections import Counter
from typing import Any
from uuid import UUID

import pytest
import trio

from sexton_http.gateway import opening_line
from sexton_http.gateway.opening_line import AT_ONCE, EACH, OpeningLine, Turn
from sexton_storage.memory.frames import MemoryFrames
from tests.worlds.event_stream import listening
from tests.worlds.http import open_http_world

CROWD = 40


async def test_callers_take_turns_and_none_has_more_than_his_part() -> None:
    line, opening, most = OpeningLine(at_once=3, each=2), Counter[str](), Counter[str]()
    opened: list[str] = []

    async def open_one(whose: str) -> None:
        turn = await line.take(whose)
        assert turn is not None
        opening[whose] += 1
        most[whose] = max(most[whose], opening[whose])
        most["all"] = max(most["all"], opening.total())
        await trio.testing.wait_all_tasks_blocked()
        opening[whose] -= 1
        opened.append(whose)
        turn.leave()
        turn.leave()

    async with trio.open_nursery() as nursery:
        for whose in "a" * 20 + "b" * 3 + "c" * 3:
            nursery.start_soon(open_one, whose)

    assert (most["a"], most["all"]) == (2, 3)
    assert max(most["b"], most["c"]) <= 2
    assert max(opened.index("b"), opened.index("c")) < 6
    assert max(len(opened) - 1 - opened[::-1].index(one) for one in "bc") < 16
    assert repr(line) == "<OpeningLine 0/3, 0 wait>"


async def test_whoever_gives_up_in_line_takes_no_turn() -> None:
    line = OpeningLine(at_once=1, each=1)

    async def give_up(whose: str, scope: trio.CancelScope) -> None:
        with scope:
            turn = await line.take(whose)
            if turn is not None:
                turn.leave()

    held = await line.take("a")
    assert held is not None

    async with trio.open_nursery() as nursery:
        waits, called = trio.CancelScope(), trio.CancelScope()
        nursery.start_soon(give_up, "b", waits)
        nursery.start_soon(give_up, "c", called)
        await trio.testing.wait_all_tasks_blocked()
        waits.cancel()
        await trio.testing.wait_all_tasks_blocked()
        # Called, and cancelled before it can go on.
        held.leave()
        called.cancel()

    assert repr(line) == "<OpeningLine 0/1, 0 wait>"


async def test_whoever_had_no_turn_in_time_is_told_to_come_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def no_turn(line: OpeningLine, _whose: str) -> Turn | None:
        with monkeypatch.context() as patch:
            patch.setattr(opening_line, "WAIT_S", 0.0)
            return await take(line, "somebody who has all turns")

    async with open_http_world() as world:
        zombie = await world.install()
        path = f"{world.ws}/zombies/{zombie['zombie_id']}/events/stream"
        take = OpeningLine.take
        line = OpeningLine(at_once=1)
        held = await line.take("another")
        assert held is not None

        monkeypatch.setattr(OpeningLine, "take", lambda _, whose: no_turn(line, whose))
        answer = await world.get(path)

    assert (answer.status_code, answer.json()["error_code"]) == (503, "UZ-API-002")
    assert int(answer.headers["retry-after"]) >= 1
    assert repr(line) == "<OpeningLine 1/1, 0 wait>"


async def test_a_crowd_of_streams_is_opened_a_few_at_once_and_others_need_not_wait_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A count and no time: what stands in the handler at once is what a turn of the loop can hold."""
    inside, most, gate, bounds = set[trio.Event](), [0], trio.Event(), MemoryFrames.bounds

    async def slow(frames: MemoryFrames, zombie_id: UUID, *rest: Any) -> tuple[int, int]:
        mine = trio.Event()
        inside.add(mine)
        most[0] = max(most[0], len(inside))
        await gate.wait()
        inside.discard(mine)
        return await bounds(frames, zombie_id, *rest)

    monkeypatch.setattr(MemoryFrames, "bounds", slow)
    async with open_http_world() as world, trio.open_nursery() as nursery:
        zombie = await world.install()
        path = f"{world.ws}/zombies/{zombie['zombie_id']}/events/stream"
        other = (await world.post("/v1/api-keys", {"key_name": "other", "role": "user"})).json()["key"]

        async def follow(token: str, told: trio.Event) -> None:
            async with listening(world.base_url, path, token):
                told.set()
                await trio.sleep_forever()

        crowd = [trio.Event() for _ in range(CROWD)]
        for told in crowd:
            nursery.start_soon(follow, world.api_key, told)
        while len(inside) < EACH:
            await trio.sleep(0.01)
        second = trio.Event()
        nursery.start_soon(follow, other, second)
        while len(inside) < EACH + 1:
            await trio.sleep(0.01)
        assert not any(told.is_set() for told in crowd)

        gate.set()
        for told in (second, *crowd):
            await told.wait()
        nursery.cancel_scope.cancel()

    assert EACH < most[0] <= AT_ONCE
