"""The reports of several runs in one call: what is shared, what stays each run's own."""

import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from sexton_runner.errors import Refused, TokenRejected, Unavailable
from sexton_runner.reporter import Reporter
from sexton_runner.wire import ReportResult
from tests.fakes.control_plane import Fault, Plane, open_plane
from tests.worlds.runner import PACE, WAITING, command_line, eventually, process, running, settings_for

GATHER_S = 0.005
DONE = {"duplicate": False}


class Calls:
    """A control plane that notes what it is asked, and answers as it is told."""

    def __init__(self) -> None:
        self.single: list[Any] = []
        self.many: list[list[Any]] = []
        self.answers: list[Any] = []
        """Of calls for many, one each: results, or what is raised. Then all is well."""

    async def report(self, body: Any) -> dict[str, Any]:
        self.single.append(body["n"])
        await trio.lowlevel.checkpoint()
        return DONE

    async def report_many(self, bodies: Sequence[Any]) -> list[ReportResult]:
        self.many.append([body["n"] for body in bodies])
        await trio.lowlevel.checkpoint()
        answer = (
            self.answers.pop(0)
            if self.answers
            else [ReportResult(ok=True, status=200, report=DONE)] * len(bodies)
        )
        if isinstance(answer, Exception):
            raise answer
        result: list[ReportResult] = answer
        return result


async def told(calls: Calls, count: int, *, apart_s: float = 0.0) -> list[Any]:
    """What that many runs are told of their reports, which are ready one after the other."""
    reporter = Reporter(calls, GATHER_S)  # type: ignore[arg-type] # The two calls that it makes.
    heard: list[Any] = [None] * count

    async def run(number: int) -> None:
        try:
            heard[number] = await reporter.report({"n": number})
        except Exception as fault:  # noqa: BLE001 - it is what is looked at
            heard[number] = fault

    async with trio.open_nursery() as calling:
        calling.start_soon(reporter.run)
        async with trio.open_nursery() as runs:
            for number in range(count):
                runs.start_soon(run, number)
                await trio.sleep(apart_s)
        calling.cancel_scope.cancel()
    return heard


async def test_reports_that_are_ready_together_share_a_call(autojump_clock: MockClock) -> None:
    calls = Calls()

    assert await told(calls, 3, apart_s=GATHER_S / 5) == [DONE] * 3
    assert (calls.many, calls.single) == ([[0, 1, 2]], [])


async def test_a_report_alone_takes_the_call_for_one(autojump_clock: MockClock) -> None:
    calls = Calls()
    await told(calls, 2, apart_s=GATHER_S * 3)

    assert (calls.many, calls.single) == ([], [0, 1])


async def test_each_report_hears_its_own_fault(autojump_clock: MockClock) -> None:
    calls = Calls()
    busy = ReportResult(ok=False, status=503, error_code="UZ-API-003", retry_after_s=2)
    calls.answers = [
        [
            ReportResult(ok=True, status=200, report=DONE),
            busy,
            ReportResult(ok=False, status=409, error_code="UZ-RUN-005"),
        ]
    ]
    taken, away, stale = await told(calls, 3)

    assert taken == DONE
    assert (type(away), away.retry_after_s) == (Unavailable, 2)
    assert (type(stale), stale.code) == (Refused, "UZ-RUN-005")


@pytest.mark.parametrize("fault", [Unavailable("away"), TokenRejected(401, "UZ-RUN-009", "")])
async def test_a_call_that_fails_whole_fails_for_each(fault: Exception, autojump_clock: MockClock) -> None:
    calls = Calls()
    calls.answers = [fault]

    assert await told(calls, 2) == [fault, fault]
    assert calls.single == []


@pytest.mark.parametrize(("status", "again"), [(404, []), (413, [[2, 3]])])
async def test_what_is_refused_whole_is_sent_one_by_one(
    status: int, again: list[list[int]], autojump_clock: MockClock
) -> None:
    calls = Calls()
    calls.answers = [Refused(status, "UZ-REQ-002", "")]
    reporter = Reporter(calls, GATHER_S)  # type: ignore[arg-type] # The two calls that it makes.
    async with trio.open_nursery() as calling:
        calling.start_soon(reporter.run)
        for first in (0, 2):
            async with trio.open_nursery() as runs:
                runs.start_soon(reporter.report, {"n": first})
                runs.start_soon(reporter.report, {"n": first + 1})
        calling.cancel_scope.cancel()

    assert [sorted(many) for many in calls.many] == [[0, 1], *again]
    assert sorted(calls.single) == ([0, 1] if again else [0, 1, 2, 3])


async def test_a_run_that_lets_go_takes_nobody_s_answer_away(autojump_clock: MockClock) -> None:
    calls = Calls()
    reporter = Reporter(calls, GATHER_S)  # type: ignore[arg-type] # The two calls that it makes.
    async with trio.open_nursery() as calling:
        calling.start_soon(reporter.run)
        async with trio.open_nursery() as runs:
            runs.start_soon(reporter.report, {"n": 1})
            with trio.move_on_after(GATHER_S / 2):
                await reporter.report({"n": 0})
        calling.cancel_scope.cancel()

    assert (calls.many, calls.single) == ([], [1])


# --- whole runners ------------------------------------------------------------------------------------------


async def waiting(plane: Plane, count: int) -> None:
    """As many runs, each at its gate."""
    for _ in range(count):
        plane.give(WAITING)
    await plane.until(lambda: len(plane.gates) == count)


def let_go(plane: Plane) -> None:
    for gate_id in list(plane.gates):
        plane.resolve(gate_id, "approved")


def reported(plane: Plane) -> list[str]:
    return [str(report.lease_id) for report in plane.reports()]


async def test_runs_that_end_together_are_taken_and_reported_together(tmp_path: Path) -> None:
    pace = replace(PACE, gather_s=0.5)
    async with open_plane() as plane, running(settings_for(plane, tmp_path, slots=4), pace):
        await waiting(plane, 4)
        let_go(plane)
        await plane.until(lambda: len(plane.reports()) == 4)

    assert {poll.max for poll in plane.of("poll")} >= {4}
    assert max(len(call.reports) for call in plane.of("report_many")) > 1
    assert sorted(reported(plane)) == sorted(plane.leases)


async def test_only_what_must_be_is_sent_again_after_a_lost_answer_or_a_fault_of_one(tmp_path: Path) -> None:
    pace = replace(PACE, gather_s=0.5)
    async with open_plane() as plane, running(settings_for(plane, tmp_path, slots=3), pace):
        plane.faults["answer_of_report_many"] = [Fault(503, "UZ-INTERNAL-001")]
        await waiting(plane, 3)
        let_go(plane)
        await plane.until(lambda: len(plane.of("duplicate")) >= 2)

        plane.gates.clear()
        plane.faults["report_of_many"] = [Fault(503, "UZ-API-003")]
        await waiting(plane, 3)
        let_go(plane)
        await plane.until(lambda: len(plane.reports()) == 6)

    assert sorted(reported(plane)) == sorted(plane.leases)
    assert len(plane.of("duplicate")) <= 3, "what was answered is not said again"


async def test_a_runner_that_drains_sends_the_reports_that_are_gathered(tmp_path: Path) -> None:
    settings = {"base_url": "", "state_dir": tmp_path / "state", "slots": 3}
    async with (
        open_plane() as plane,
        process(tmp_path, command_line(settings | {"base_url": plane.base_url})) as runner,
    ):
        await waiting(plane, 3)
        runner.send(signal.SIGTERM)
        await eventually(lambda: "draining" in runner.log)
        let_go(plane)

        assert await runner.ended() == 0

    assert sorted(reported(plane)) == sorted(plane.leases)
    assert plane.of("release") == []
