"""Frames are gathered for a moment, sent in order, and sent again when the answer was lost."""

import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import msgspec
import pytest
import trio
from trio.testing import MockClock

from sexton_runner.client import ControlPlane, Outage
from sexton_runner.errors import ControlPlaneError, Refused, Unavailable
from sexton_runner.frame_sender import FrameSender
from sexton_runner.frames import chunk, step_started
from sexton_runner.lease import Halt, LiveLease
from sexton_runner.timing import Timing
from sexton_runner.wire import Lease
from tests.fakes.control_plane import make_lease


@dataclass
class Script:
    """The calls as they came, with their time, and the faults to answer with, one by one."""

    calls: list[tuple[float, list[Any]]] = field(default_factory=list)
    faults: list[ControlPlaneError] = field(default_factory=list)
    takes_s: float = 0.0


class ScriptedPlane(ControlPlane):
    def __init__(self, http: httpx2.AsyncClient, script: Script) -> None:
        super().__init__(http, Outage(trio.current_time))
        self._script = script

    async def activity(self, lease_id: str, frames: Sequence[Any]) -> None:
        await trio.sleep(self._script.takes_s)
        self._script.calls.append((trio.current_time(), list(frames)))
        if self._script.faults:
            raise self._script.faults.pop(0)


@asynccontextmanager
async def sending(script: Script) -> AsyncIterator[tuple[FrameSender, LiveLease]]:
    live = LiveLease(msgspec.convert(make_lease(""), Lease), trio.current_time, 30.0)
    async with httpx2.AsyncClient(trust_env=False) as http, trio.open_nursery() as nursery:
        sender = FrameSender(live, ScriptedPlane(http, script), Timing(), random.Random(1))
        nursery.start_soon(sender.run)
        yield sender, live
        nursery.cancel_scope.cancel()


async def test_what_comes_within_a_tenth_of_a_second_shares_a_call(autojump_clock: MockClock) -> None:
    script = Script()
    async with sending(script) as (sender, _):
        for number in range(5):
            sender.put(step_started(str(number)))
            await trio.sleep(0.015)
        await trio.sleep(1)
    ((at, frames),) = script.calls

    assert at == pytest.approx(0.1)
    assert [frame["name"] for frame in frames] == list("01234")


async def test_a_flush_sends_at_once_and_waits_for_the_answer(autojump_clock: MockClock) -> None:
    script = Script(takes_s=0.5)
    async with sending(script) as (sender, _):
        sender.put(chunk("last words"))
        await sender.flush()

        assert trio.current_time() == pytest.approx(0.5)
        assert script.calls == [(0.5, [chunk("last words")])]


async def test_a_flush_with_nothing_to_send_returns_at_once(autojump_clock: MockClock) -> None:
    async with sending(Script()) as (sender, _):
        await sender.flush()
        assert trio.current_time() == 0.0


async def test_a_flush_gives_up_when_the_control_plane_is_away(autojump_clock: MockClock) -> None:
    script = Script(faults=[Unavailable("503")] * 1000)
    async with sending(script) as (sender, _):
        sender.put(chunk("x"))
        await sender.flush()

        assert trio.current_time() == pytest.approx(Timing().flush_patience_s)


async def test_a_batch_whose_answer_was_lost_is_sent_again_before_the_next(autojump_clock: MockClock) -> None:
    script = Script(faults=[Unavailable("connection lost")])
    async with sending(script) as (sender, _):
        sender.put(step_started("one"))
        await trio.sleep(0.11)
        sender.put(step_started("two"))
        await sender.flush()

    assert [[frame["name"] for frame in frames] for _, frames in script.calls] == [["one"], ["one"], ["two"]]


async def test_a_stale_lease_ends_the_run(autojump_clock: MockClock) -> None:
    async with sending(Script(faults=[Refused(409, "UZ-RUN-005", "stale")])) as (sender, live):
        sender.put(chunk("x"))
        await trio.sleep(1)

        assert live.halted is Halt.LOST


async def test_frames_that_are_refused_for_another_reason_are_dropped_and_the_run_goes_on(
    autojump_clock: MockClock,
) -> None:
    script = Script(faults=[Refused(400, "UZ-REQ-001", "/frames/0")])
    async with sending(script) as (sender, live):
        sender.put(chunk("x"))
        await sender.flush()
        sender.put(chunk("y"))
        await sender.flush()

    assert live.halted is None
    assert [frames for _, frames in script.calls] == [[chunk("x")], [chunk("y")]]
