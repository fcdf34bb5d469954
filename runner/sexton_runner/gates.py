"""Asks people for approval on behalf of a run, and parks the run that waits too long."""

import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog
import trio

from sexton_runner.checkpoint import (
    RESOLVED,
    Checkpoint,
    Counter,
    Remembered,
    action_id,
    as_object,
    call_action_id,
    decode,
    encode,
)
from sexton_runner.command_protocol import Ask
from sexton_runner.errors import ControlPlaneError, Refused, TokenRejected, TooManyAsks, Unavailable
from sexton_runner.lease import Halt, halt_for
from sexton_runner.run import Run
from sexton_runner.timing import backoff
from sexton_runner.wire import Gate

MAX_GATE_EVIDENCE_BYTES = 16 * 1024
MAX_ASKS = 256  # Of one run; a checkpoint keeps as many decisions.
NOT_FOUND = 404
BY_DENY_RULE = "system:deny"
_PAUSED = (
    "nobody was asked, and the agent is paused: end this run with what you have, for no later event is "
    "worked on until somebody has made the agent active again"
)
_BY_RULE = {
    "system:auto_kill": f"a rule of this agent forbids it (auto_kill); {_PAUSED}",
    "system:anomaly": f"it was done too often for an anomaly rule of this agent; {_PAUSED}",
    BY_DENY_RULE: "a rule of this agent refuses it (deny); nobody was asked, nor will be: go on without it",
    "system:kill": "the agent was killed while the question waited for its answer",
    "system:cancel": "the event was cancelled while the question waited for its answer",
    "system:run_ended": "the run that asked ended before anybody answered",
}
_BY_STATUS = {
    "denied": "a person was asked and said no",
    "timed_out": "a person was asked and did not answer in time",
    "auto_killed": "the platform stopped it",
}
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Decision:
    """How an ask ended: one of the gate's final statuses, what the resolver said, and who that was."""

    status: str
    detail: str = ""
    by: str = ""

    @property
    def told(self) -> str:
        """Say why a thing was not done, in words for whoever wanted to do it.

        >>> Decision("denied", "Not on a Friday.", "user:1").told
        'a person was asked and said no: Not on a Friday.'
        """
        why = _BY_RULE.get(self.by) or _BY_STATUS.get(self.status, f"the answer is {self.status}")
        return f"{why}: {self.detail}" if self.detail and self.by not in _BY_RULE else why


class Asking:
    """The asks of one run.

    ``resting`` is told when the run begins (True) and ends (False) to wait for a person. ``park`` is called
    with the gate when it has waited long enough, and may return when the run has to wait on; without one the
    run is parked with what is known of its gates.
    """

    def __init__(
        self,
        run: Run,
        *,
        resting: Callable[[bool], None],
        park: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self._live, self._plane, self._timing, self._rng = run.live, run.plane, run.timing, run.rng
        self._redactor, self._shown, self._record = run.redactor, run.shown, run.record
        self._resting = resting
        self._park_by = park or self._park
        self._counter = Counter()
        self._waiting = 0
        self._asked: set[str] = set()
        self.checkpoint: Checkpoint = decode(run.live.lease.checkpoint)
        self.refusal: str | None = None

    async def decide(
        self,
        ask: Ask,
        evidence: bytes,
        call_id: str | None = None,
        *,
        park: Callable[[str], Awaitable[None]] | None = None,
    ) -> Decision:
        """Wait for the decision.

        A run that has waited ``park_after_s`` is parked: its scope is cancelled meanwhile. With a
        ``call_id`` the ask is known again by it and by what is asked, else by its place among the asks of
        its name. Raises ``TooManyAsks``.
        """
        event_id = self._live.lease.event.event_id
        if call_id is None:
            key = action_id(event_id, self._counter.name(ask.tool, ask.action))
        else:
            shown = evidence.decode("utf-8", "replace")
            key = call_action_id(event_id, call_id, ask.tool, ask.action, ask.summary, shown)
        self._asked.add(key)
        if len(self._asked) > MAX_ASKS:
            raise TooManyAsks(f"it asked for more than {MAX_ASKS} approvals")
        asked = {"action_id": key, "tool": ask.tool, "action": ask.action}
        self._record("gate", {**asked, "status": "asked", "summary": ask.summary})
        # Who is asked looks at the stream: it must show what led here before it shows the question.
        await self._shown()
        self._rest(1)
        try:
            gate = await self._find(key, ask, evidence)
            gate = await self._wait(key, gate, park or self._park_by)
        finally:
            self._rest(-1)
        self._remember(key, gate)
        ruled = {"status": gate.status, "by": gate.resolved_by or "", "detail": gate.detail or ""}
        self._record("gate", {**asked, **ruled})
        if gate.status != "approved":
            self.refusal = gate.status
        return Decision(gate.status, self._redactor.text(gate.detail or ""), gate.resolved_by or "")

    def _rest(self, change: int) -> None:
        self._waiting += change
        if self._waiting == max(change, 0):
            self._resting(self._waiting > 0)

    def _remember(self, key: str, gate: Gate) -> None:
        self.checkpoint = self.checkpoint.remember(
            key, Remembered(gate.gate_id, gate.status, gate.detail or "", gate.resolved_by or "")
        )

    async def _find(self, key: str, ask: Ask, evidence: bytes) -> Gate:
        known = self.checkpoint.gates.get(key)
        if known is not None and known.status in RESOLVED:
            return Gate(known.gate_id, known.status, key, known.detail, known.by)
        if known is not None:
            found = await self._retried(lambda: self._watch(known.gate_id, 0.0), absent_ok=True)
            if found is not None:
                return found
        body = {
            "action_id": key,
            "tool_name": self._redactor.text(ask.tool),
            "action_name": self._redactor.text(ask.action),
            "gate_kind": self._redactor.text(ask.kind),
            "proposed_action": self._redactor.text(ask.summary),
            "evidence": self._redactor.json(as_object(evidence)),
            "blast_radius": self._redactor.text(ask.blast_radius),
        }
        return await self._answered(lambda: self._plane.open_gate(self._live.lease.lease_id, body))

    async def _wait(self, key: str, gate: Gate, park: Callable[[str], Awaitable[None]]) -> Gate:
        park_at = trio.current_time() + self._timing.park_after_s
        while gate.status not in RESOLVED:
            self._remember(key, gate)
            left = park_at - trio.current_time()
            if left <= 0:
                await self._shown()  # What is not sent before the lease is given back is lost.
                await park(gate.gate_id)
                park_at = trio.current_time() + self._timing.backoff_max_s
                left = 0.0
            gate_id, wait_s = gate.gate_id, max(0.0, min(self._timing.gate_wait_s, left))
            asked = trio.current_time()
            gate = await self._answered(functools.partial(self._watch, gate_id, wait_s))
            if gate.status not in RESOLVED:
                # A plane that answers a long poll too early must not be asked in a tight loop.
                await trio.sleep(
                    max(0.0, min(wait_s, self._timing.backoff_first_s) - (trio.current_time() - asked))
                )
        return gate

    async def _watch(self, gate_id: str, wait_s: float) -> Gate:
        return await self._plane.watch_gate(
            self._live.lease.lease_id, gate_id, wait_s, self._timing.call_timeout_s
        )

    async def _park(self, gate_id: str) -> None:
        try:
            await self._plane.park(self._live.lease.lease_id, gate_id, encode(self.checkpoint))
        except TokenRejected:
            raise
        except ControlPlaneError as fault:
            # The gate may have been resolved this very moment; if the lease is gone the next call will say
            # so.
            log.info("not_parked", lease_id=self._live.lease.lease_id, why=str(fault))
            return
        self._live.halt(Halt.PARKED)
        await trio.sleep_forever()  # The halt has cancelled the scope that this runs in.

    async def _answered(self, call: Callable[[], Awaitable[Gate]]) -> Gate:
        gate = await self._retried(call)
        if gate is None:
            await trio.sleep_forever()  # Refused: the halt has cancelled the scope that this runs in.
            raise AssertionError
        return gate

    async def _retried(self, call: Callable[[], Awaitable[Gate]], *, absent_ok: bool = False) -> Gate | None:
        attempt = 0
        while True:
            try:
                return await call()
            except Unavailable:
                await trio.sleep(backoff(attempt, self._rng.random(), self._timing))
                attempt += 1
            except TokenRejected:
                raise
            except Refused as refusal:
                if not (absent_ok and refusal.status == NOT_FOUND):
                    self._live.halt(halt_for(refusal.code), refusal.code)
                return None
