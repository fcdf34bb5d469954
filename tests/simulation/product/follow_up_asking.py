"""Runs that ask to have their agent woken once more later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

import trio

from sexton_runner.client import ControlPlane
from sexton_runner.errors import Refused, TokenRejected, Unavailable
from sexton_runner.wire import Lease
from tests.simulation.product.runs import Runs

OF: Final = "follow_up_id"
"""What the request of an event has that a follow-up has made."""
ASKED_EACH: Final = 2
"""Every other event has its runs ask for a follow-up, however often it is attempted."""
CALL: Final = "later"
LEAST_S: Final = 60
SPREAD_S: Final = 30
AGAIN_S: Final = 1.0
TRIES: Final = 30


def told_apart_by(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """What decides the script of a run: no id, and no time that would be another with one fault fewer.

    >>> told_apart_by({"follow_up_id": "x", "scheduled_at": 7, "message": "Look."})
    {'message': 'Look.'}
    """
    if OF not in request:
        return request
    return {name: said for name, said in request.items() if name not in (OF, "scheduled_at")}


def asks_later(request: Mapping[str, Any], number: int) -> bool:
    """Whether the runs of this event do; those of follow-ups do not, so that there is an end to it."""
    return OF not in request and number // 7 % ASKED_EACH == 0


async def ask_later(lease: Lease, plane: ControlPlane, runs: Runs, number: int) -> None:
    """Ask until there is an answer. A run that is refused has enough follow-ups, or no lease any more."""
    body = {
        "call_id": CALL,
        "message": f"Look again at {number}.",
        "delay_s": LEAST_S + number % SPREAD_S,
    }
    for _ in range(TRIES):
        try:
            made = await plane.schedule_follow_up(lease.lease_id, body)
        except Unavailable:
            await trio.sleep(AGAIN_S)
        except TokenRejected:
            raise
        except Refused:
            return
        else:
            runs.follow_ups[UUID(made.follow_up_id)] = made.at
            return
