"""A worker asks another one, which answers in its own process; a frozen one keeps nobody waiting long."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest
import trio

from sexton_http.gateway import worker_questions
from sexton_http.gateway.worker_questions import ANSWER_BYTES, WorkerQuestions
from sexton_http.wire.relay import Relay
from sexton_http.wire.worker_board import Row, WorkerBoard, WorkerState
from sexton_http.wire.worker_mail import make_inbox

WORKERS: Final = 3
TIMES: Final = 20_000
FILES: Final = Path("/proc/self/fd")


@asynccontextmanager
async def open_crew(*running: int) -> AsyncIterator[tuple[list[WorkerQuestions], WorkerBoard]]:
    """Workers of one server, all in this process; only those that are named take what comes."""
    board = WorkerBoard.create(WORKERS)
    inboxes = [make_inbox() for _ in range(WORKERS)]
    putting = [inbox.putting for inbox in inboxes]
    crew = []
    try:
        async with trio.open_nursery() as nursery:
            for slot in range(WORKERS):
                relay = Relay(slot, board, inboxes[slot].reading, putting, b"zrn_")

                async def answer(question: bytes, slot: int = slot) -> bytes:
                    await trio.lowlevel.checkpoint()
                    if question == b"fail":
                        raise ValueError(question)
                    if question == b"long":
                        return bytes(ANSWER_BYTES + 1)
                    return b"%d heard %s" % (slot, question) * TIMES

                questions = WorkerQuestions(relay, answer)
                crew.append(questions)
                board.put(slot, Row(WorkerState.STARTING, 0.0, os.getpid(), 0))
                board.beat(slot, WorkerState.SERVING)
                if slot in running:
                    nursery.start_soon(relay.run)
                    nursery.start_soon(questions.run)
            yield crew, board
            nursery.cancel_scope.cancel()
    finally:
        board.close()
        for inbox in inboxes:
            for end in inbox:
                end.close()


async def test_each_worker_answers_for_itself_and_what_cannot_be_answered_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_questions, "ANSWER_S", 0.1)
    async with open_crew(0, 1) as (crew, board):
        files = len(list(FILES.iterdir()))
        answers = [await crew[0].ask(slot, b"x") for slot in (0, 1)]
        failed = [await crew[0].ask(1, question) for question in (b"fail", b"long")]
        frozen = [await crew[0].ask(2, b"x") for _ in range(3)]
        board.beat(2, WorkerState.DRAINING)
        gone = await crew[0].ask(2, b"x")
        again = await crew[0].ask(1, b"y")

        assert crew[0].up() == [0, 1]
        assert answers == [b"0 heard x" * TIMES, b"1 heard x" * TIMES]
        assert again == b"1 heard y" * TIMES
        assert (failed, frozen, gone) == ([None, None], [None, None, None], None)
        assert len(list(FILES.iterdir())) - files == 0
