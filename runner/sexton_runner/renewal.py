"""Renews the leases of this runner, in a separate task that nothing else can delay."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import structlog
import trio

from sexton_runner.client import RETRIED_STATUSES, SERVER_FAULT, ControlPlane
from sexton_runner.errors import Refused, TokenRejected, Unavailable
from sexton_runner.lease import Halt, LiveLease, halt_for
from sexton_runner.timing import LEASE_SAFETY_S, Clock, Timing, jittered
from sexton_runner.wire import MAX_RENEWALS_PER_CALL, Renewal

log = structlog.get_logger()


@dataclass(slots=True)
class _Turn:
    live: LiveLease
    due: float
    asking: bool = False


class Renewer:
    """Renews each live lease about every 10 s, several in one call; ends the runs whose lease is gone.

    A transient fault is tried again at the next short tick. When the term passes without an answer the run
    is ended: another runner may have been given the event by then.
    """

    def __init__(self, plane: ControlPlane, timing: Timing, rng: random.Random, clock: Clock) -> None:
        self._plane = plane
        self._timing = timing
        self._rng = rng
        self._clock = clock
        self._turns: dict[str, _Turn] = {}
        self._changed = trio.Event()

    def add(self, live: LiveLease) -> None:
        """Take a lease into care; one whose answer was long on its way is renewed sooner."""
        now = self._clock()
        due = now + jittered(self._timing.renew_s, self._rng.random())
        self._turns[live.lease.lease_id] = _Turn(live, min(due, now + (live.deadline - now) / 2))
        self._changed.set()

    def remove(self, live: LiveLease) -> None:
        """Let go of a lease; an answer that is still on its way is ignored."""
        self._turns.pop(live.lease.lease_id, None)

    async def run(self) -> None:
        """Renew until cancelled. A rejected token leaves as ``TokenRejected``."""
        async with trio.open_nursery() as nursery:
            while True:
                self._expire()
                for batch in self._due():
                    nursery.start_soon(self._renew, batch)
                self._changed = trio.Event()
                with trio.move_on_at(self._next_wake()):
                    await self._changed.wait()

    def _expire(self) -> None:
        for turn in list(self._turns.values()):
            if self._clock() >= turn.live.deadline:
                self._end(turn.live, Halt.LOST, "no renewal was answered within the term")

    def _due(self) -> list[list[_Turn]]:
        now = self._clock()
        idle = [turn for turn in self._turns.values() if not turn.asking]
        if not any(turn.due <= now for turn in idle):
            return []
        ready = [turn for turn in idle if turn.due <= now + self._timing.renew_window_s]
        for turn in ready:
            turn.asking = True
        return [ready[at : at + MAX_RENEWALS_PER_CALL] for at in range(0, len(ready), MAX_RENEWALS_PER_CALL)]

    def _next_wake(self) -> float:
        times = [turn.live.deadline for turn in self._turns.values()]
        times += [turn.due for turn in self._turns.values() if not turn.asking]
        return min(times, default=math.inf)

    async def _renew(self, turns: Sequence[_Turn]) -> None:
        sent = self._clock()
        try:
            with trio.fail_after(self._timing.renew_timeout_s):
                answers = await self._ask(turns)
        except (Unavailable, trio.TooSlowError):
            answers = {}
        for turn in turns:
            turn.asking = False
            if self._turns.get(turn.live.lease.lease_id) is not turn:
                continue
            self._apply(turn, sent, answers.get(turn.live.lease.lease_id))
        self._changed.set()

    async def _ask(self, turns: Sequence[_Turn]) -> dict[str, Renewal]:
        if len(turns) > 1:
            bodies = [
                {
                    "lease_id": t.live.lease.lease_id,
                    "fencing_token": t.live.lease.fencing_token,
                    **t.live.renewal(),
                }
                for t in turns
            ]
            return {answer.lease_id: answer for answer in await self._plane.renew_many(bodies)}
        live = turns[0].live
        try:
            answer = await self._plane.renew(live.lease.lease_id, live.renewal())
        except TokenRejected:
            raise
        except Refused as refusal:
            answer = Renewal(ok=False, error_code=refusal.code, status=refusal.status)
        return {live.lease.lease_id: answer}

    def _apply(self, turn: _Turn, sent: float, answer: Renewal | None) -> None:
        now = self._clock()
        if answer is None or _transient(answer):
            turn.due = now + jittered(self._timing.renew_retry_s, self._rng.random())
        elif not answer.ok:
            self._end(turn.live, halt_for(answer.error_code), answer.error_code)
        else:
            # Counted from before the call was sent: the database cannot have begun the term earlier than
            # that.
            turn.live.deadline = sent + self._timing.lease_term_s - LEASE_SAFETY_S
            turn.due = sent + jittered(self._timing.renew_s, self._rng.random())
            if answer.state == "cancelling":
                turn.live.halt(Halt.CANCELLED, "cancelled by the control plane")

    def _end(self, live: LiveLease, why: Halt, reason: str) -> None:
        if live.lease.lease_id in self._turns:
            log.warning("lease_ended", lease_id=live.lease.lease_id, why=why.value, reason=reason)
        self.remove(live)
        live.halt(why, reason)


def _transient(answer: Renewal) -> bool:
    return not answer.ok and (answer.status >= SERVER_FAULT or answer.status in RETRIED_STATUSES)
