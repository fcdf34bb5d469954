"""Puts a question to one worker of a server, and has each worker answer what the others ask it."""

import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import structlog
import trio

from sexton_http.wire.relay import Relay
from sexton_http.wire.worker_mail import Parcel, drop

ASK: Final = b"Q"
"""A parcel with a question; its files: memory for the answer, and a pipe on which to say that it is there."""
ANSWER_S: Final = 8.0
"""How long another worker may take, a restart's own budget included."""
ANSWER_BYTES: Final = 8 * 1024 * 1024
AT_ONCE: Final = 16
"""Questions that a worker works on or has in line; more are not answered, and whoever asks is told so."""

Answering = Callable[[bytes], Awaitable[bytes]]

log = structlog.get_logger()


class WorkerQuestions:
    """One worker's questions to the others, and theirs to it."""

    def __init__(self, relay: Relay, answer: Answering) -> None:
        self._relay = relay
        self._answer = answer
        self._send, self._take = trio.open_memory_channel[Parcel](AT_ONCE)
        relay.on(ASK, self._note)

    def __repr__(self) -> str:
        return f"<WorkerQuestions of {self._relay!r}>"

    @property
    def worker(self) -> int:
        """The number of this process."""
        return self._relay.slot

    def up(self) -> list[int]:
        """The workers that serve, this one among them."""
        return sorted({*self._relay.others_up(), self._relay.slot})

    async def ask(self, worker: int, question: bytes) -> bytes | None:
        """What that worker answers; None when it is not there, is frozen, or has too much to answer."""
        if worker == self._relay.slot:
            return await self._answer(question)
        if worker not in self._relay.others_up():
            return None
        memory = os.memfd_create("sexton-answer")
        ours, theirs = os.pipe()
        try:
            given = self._relay.put(worker, Parcel(ASK, question, (memory, theirs)))
            os.close(theirs)
            if not given:
                return None
            with trio.move_on_after(ANSWER_S):
                await trio.lowlevel.wait_readable(ours)
                if os.read(ours, 1):
                    return os.pread(memory, ANSWER_BYTES, 0)
            return None
        finally:
            os.close(ours)
            os.close(memory)

    def close(self) -> None:
        """Answer what is in line, and end."""
        self._send.close()

    async def run(self) -> None:
        """Answer one question after the other, until closed."""
        async for parcel in self._take:
            try:
                await self._reply(parcel)
            except Exception:
                # Whoever asked sees the pipe end without an answer; this worker serves on.
                log.exception("question_failed")
            finally:
                drop(parcel)

    async def _reply(self, parcel: Parcel) -> None:
        memory, pipe = parcel.files
        body = await self._answer(parcel.body)
        if len(body) > ANSWER_BYTES:
            log.warning("answer_too_long", size=len(body))
            return
        os.pwrite(memory, body, 0)
        with suppress(OSError):  # Whoever asked waits no more.
            os.write(pipe, b".")

    def _note(self, parcel: Parcel) -> None:
        try:
            self._send.send_nowait(parcel)
        except (trio.WouldBlock, trio.ClosedResourceError):
            drop(parcel)
