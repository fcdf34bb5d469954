"""Forks children that work on a copy of everything, and hears their results."""

from __future__ import annotations

import os
import pickle
import select
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeVar

T = TypeVar("T")
ENDED: Final = "ended by a signal"
WAITS_S: Final = 900


class _Child(NamedTuple):
    pid: int
    results: int
    """The end of a pipe."""


def answers(jobs: Iterable[tuple[T, Callable[[], Any], float]], processes: int) -> Iterator[tuple[T, Any]]:
    """Have each job done in a child of its own, a few at a time, and give what it returned.

    A job is a tag, the work, and the seconds that it may take. One that ends otherwise answers ``ENDED``.
    """
    running: dict[int, tuple[T, _Child]] = {}
    for tag, work, seconds in jobs:
        if len(running) >= processes:
            yield _next(running)
        child = _fork(work, seconds)
        running[child.results] = (tag, child)
    while running:
        yield _next(running)


def _fork(work: Callable[[], Any], seconds: float) -> _Child:
    results, out = os.pipe()
    pid = os.fork()
    if pid:
        os.close(out)
        return _Child(pid, results)
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        # Nothing handles these signals, so they end even what never comes back from a library. The time is
        # that of the processor, for a busy machine is no fault of the work; one that waits for ever ends too.
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.alarm(WAITS_S)
        answer = pickle.dumps(work())
    except BaseException:  # noqa: BLE001  (the parent raises it)
        answer = pickle.dumps(RuntimeError(traceback.format_exc()))
    with os.fdopen(out, "wb") as file:
        file.write(answer)
    os._exit(0)


def _next(running: dict[int, tuple[Any, _Child]]) -> tuple[Any, Any]:
    ready, _, _ = select.select(list(running), [], [])
    tag, child = running.pop(ready[0])
    with os.fdopen(child.results, "rb") as file:
        answer = file.read()
    os.waitpid(child.pid, 0)
    if not answer:
        return tag, ENDED
    value = pickle.loads(answer)
    if isinstance(value, RuntimeError):
        raise value
    return tag, value
