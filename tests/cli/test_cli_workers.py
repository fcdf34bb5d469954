"""The parent of workers: what it does when they end, fall silent, or do not stay up."""

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from sexton_cli.exits import CONFIG, UNAVAILABLE, StartupFault, first_of
from sexton_cli.workers import restarts
from sexton_cli.workers.crew import Crew
from sexton_http.wire.worker_board import Row, WorkerBoard, WorkerState
from tests.patience import PATIENCE_S

FAKE = """
import os, pickle, signal, sys, time
from sexton_http.wire.worker_board import BEAT_S, WorkerBoard, WorkerState
slot, slots, memory, status = pickle.load(sys.stdin.buffer)
board = WorkerBoard(memory, slots)
if status is not None:
    sys.exit(status)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
while True:
    board.beat(slot, WorkerState.SERVING)
    time.sleep(BEAT_S)
"""
"""A worker that serves nobody, or ends at once with a status."""


@asynccontextmanager
async def open_fakes(*statuses: int | None) -> AsyncIterator[tuple[Crew, WorkerBoard]]:
    """A crew with a slot for each: None for a worker that stays, else what it ends with at once."""
    board = WorkerBoard.create(len(statuses))

    def order(slot: int, parent: int) -> object:
        del parent
        return slot, len(statuses), board.file, statuses[slot]

    crew = Crew(board, order, [board.file], trio.Event(), [sys.executable, "-c", FAKE])
    try:
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                await nursery.start(crew.run)
                yield crew, board
                nursery.cancel_scope.cancel()
    finally:
        board.close()


async def until_another(board: WorkerBoard, slot: int, before: Row) -> None:
    """Wait until another process serves where the one that the row names did."""
    while (row := board.row(slot)).pid == before.pid or row.state is not WorkerState.SERVING:
        await trio.sleep(0.05)


async def test_a_worker_that_ends_or_falls_silent_is_replaced_and_the_others_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(restarts, "FROZEN_S", 1.5)
    async with open_fakes(None, None, None) as (crew, board):
        first = board.rows()
        assert sorted(crew.pids) == sorted(row.pid for row in first)

        os.kill(first[0].pid, signal.SIGKILL)
        await until_another(board, 0, first[0])

        os.kill(first[1].pid, signal.SIGSTOP)
        await until_another(board, 1, first[1])

        assert board.row(2) == first[2]._replace(beat_at=board.row(2).beat_at)
        assert [row.restarts for row in board.rows()] == [1, 1, 0]

        pids = crew.pids
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_all_are_restarted_one_by_one() -> None:
    async with open_fakes(None, None) as (crew, board):
        first = board.rows()
        fewest = [2]

        async def count() -> None:
            while True:
                fewest.append(len(board.up()))
                await trio.sleep(0.02)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(count)
            await crew.restart_one_by_one()
            nursery.cancel_scope.cancel()

        assert not {row.pid for row in board.rows()} & {row.pid for row in first}
        assert min(fewest) == 1


@pytest.mark.parametrize(("status", "exits"), [(3, UNAVAILABLE), (CONFIG, CONFIG)])
async def test_workers_that_end_at_once_end_the_parent_and_it_says_why(status: int, exits: int) -> None:
    with pytest.raises(BaseExceptionGroup) as caught:
        async with open_fakes(status):
            pass
    group = caught.value
    assert isinstance(group, BaseExceptionGroup)

    fault = first_of(group)

    assert isinstance(fault, StartupFault)
    assert fault.status == exits
    assert f"it ended with status {status}" in fault.line()
    assert "has not stayed up" in fault.line()


async def test_a_worker_that_does_not_stay_up_ends_nobody_while_another_serves() -> None:
    memory = Path("/proc/self/fd")
    files = len(list(memory.iterdir()))
    board = WorkerBoard.create(2)

    def order(slot: int, parent: int) -> object:
        del parent
        return slot, 2, board.file, None if slot else 3

    crew = Crew(board, order, [board.file], trio.Event(), [sys.executable, "-c", FAKE])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(crew.run)
        with trio.fail_after(PATIENCE_S):
            while board.row(0).restarts < restarts.MOST_SHORT:
                await trio.sleep(0.05)
        assert board.is_up(1)

        nursery.cancel_scope.cancel()
    board.close()

    assert len(list(memory.iterdir())) == files
