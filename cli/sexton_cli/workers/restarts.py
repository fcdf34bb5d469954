"""Decides what becomes of a worker that has ended or fallen silent; the states are in docs/reference."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from sexton_cli.exits import CONFIG
from sexton_http.wire.worker_board import WorkerState

FIRST_PAUSE_S: Final = 0.1
MAX_PAUSE_S: Final = 10.0
SHORT_S: Final = 10.0
"""A worker that served for less has not stayed up."""
MOST_SHORT: Final = 5
"""Short lives in a row after which the parent ends, if no other worker serves."""
FROZEN_S: Final = 10.0
"""A worker that says nothing for this long is killed. A third of a lease's term."""
START_S: Final = 120.0
"""How long a worker may take until it serves."""


class History(NamedTuple):
    """What is remembered of the lives of one worker's slot."""

    short: int = 0
    """Short lives in a row."""
    status: int = 0
    """What the last life ended with; negative: the signal."""

    @property
    def pause_s(self) -> float:
        """How long the next life waits.

        >>> [History(short).pause_s for short in (0, 1, 2, 3, 8, 100)]
        [0.0, 0.1, 0.2, 0.4, 10.0, 10.0]
        """
        if not self.short:
            return 0.0
        return float(min(FIRST_PAUSE_S * 2 ** min(self.short - 1, 16), MAX_PAUSE_S))


def after_end(history: History, status: int, served_s: float) -> History:
    """A worker has ended after it served for this long; 0: it never did.

    >>> after_end(History(2), -9, served_s=60.0), after_end(History(2), 1, served_s=0.0)
    (History(short=0, status=-9), History(short=3, status=1))
    """
    return History(0 if served_s >= SHORT_S else history.short + 1, status)


def gives_up(histories: Sequence[History], serving: int) -> bool:
    """Whether it makes no sense to go on: nobody serves, and one slot's workers do not stay up.

    >>> bad, refused, fresh = History(5, 1), History(1, 78), History()
    >>> gives_up([bad, fresh], serving=1), gives_up([bad, fresh], serving=0)
    (False, True)
    >>> gives_up([refused], serving=0), gives_up([History(4, 1)], serving=0)
    (True, False)
    """
    return not serving and any(
        one.short >= MOST_SHORT or (one.short and one.status == CONFIG) for one in histories
    )


def is_to_be_killed(state: WorkerState, silent_s: float, started_s: float) -> bool:
    """Whether a worker is beyond hope. ``silent_s``: since its last beat; ``started_s``: since its start.

    >>> SERVING, STARTING = WorkerState.SERVING, WorkerState.STARTING
    >>> is_to_be_killed(SERVING, 9.0, 99.0), is_to_be_killed(SERVING, 11.0, 99.0)
    (False, True)
    >>> is_to_be_killed(STARTING, 60.0, 60.0), is_to_be_killed(STARTING, 121.0, 121.0)
    (False, True)
    """
    match state:
        case WorkerState.SERVING | WorkerState.DRAINING:
            return silent_s > FROZEN_S
        case WorkerState.STARTING:
            return started_s > START_S
        case WorkerState.WAITING:
            return False
