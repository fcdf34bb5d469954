"""Runners without runs: they hold many leases, renew them in batches, ask people at some, and report them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import trio

from tests.nemesis.clients.caller import PATIENCE_S, Answer, Caller
from tests.nemesis.clients.task import SLOTS

POLL_MS: Final = 1_000
POLLS_S: Final = PATIENCE_S + POLL_MS / 1000
POLLED: Final = 64
"""Leases that one poll may ask for."""
HOLD_S: Final = (5.0, 15.0)
"""How long a lease is held before it is reported."""
GATED: Final = 0.03
"""The part of leases that ask a person."""
REPORTS: Final = 64
RENEWALS: Final = 64
"""In one request."""
RENEWAL_PATIENCE_S: Final = 4.0
"""For one batch: another node is asked while there is time."""
TICK_S: Final = 0.25
USAGE: Final = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0}
RUNNER: Final = "/v1/runners/me"
LOST_BELOW: Final = 500


@dataclass(slots=True)
class Held:
    """A lease as its holder knows it."""

    agent: str
    event: str
    lease: str
    token: int
    attempt: int
    until: float
    """When it is reported; infinite while a person is waited for."""
    is_live: bool = True
    """Its renewals are not refused."""
    is_asked: bool = False
    """A renewal is under way."""

    @property
    def named(self) -> dict[str, Any]:
        """As the history has it."""
        told = ("agent", "event", "lease", "token", "attempt")
        return {name: getattr(self, name) for name in told}


class Holder:
    """One runner token, and the leases that it was granted."""

    def __init__(self, caller: Caller, token: str, rng: random.Random) -> None:
        self._caller = caller
        self._token = token
        self._rng = rng
        self._held: dict[str, Held] = {}
        # Each operation that may go on beside others is a process of the history's own.
        self._batches = count()
        self._gates = count()

    async def work(self, renew_s: float) -> None:
        """Poll, renew each ``renew_s``, and report, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._poll, nursery)
            nursery.start_soon(self._renew, renew_s, nursery)
            nursery.start_soon(self._report)

    async def _poll(self, nursery: trio.Nursery) -> None:
        while True:
            room = min(POLLED, SLOTS - len(self._held))
            if room <= 0:
                await trio.sleep(TICK_S)
                continue
            op = self._caller.recorder.begin(self._caller.process, "grant", {})
            asked = {"wait_ms": POLL_MS, "max": room}
            answer = await self._ask(f"{RUNNER}/leases", asked, POLLS_S)
            if not answer.is_yes:
                self._caller.note(op, answer)
                await trio.sleep(TICK_S)
                continue
            granted = [self._take(lease) for lease in answer.body["leases"]]
            self._caller.recorder.ok(op, {"leases": [one.named for one in granted]})
            for one in granted:
                if one.until == float("inf"):
                    nursery.start_soon(self._ask_people, one)
            if not granted:
                await trio.sleep(TICK_S)

    def _take(self, lease: dict[str, Any]) -> Held:
        gated = self._rng.random() < GATED
        until = float("inf") if gated else trio.current_time() + self._rng.uniform(*HOLD_S)
        event = lease["event"]
        held = Held(
            agent=event["zombie_id"],
            event=event["event_id"],
            lease=lease["lease_id"],
            token=lease["fencing_token"],
            attempt=lease["attempt"],
            until=until,
        )
        self._held[held.lease] = held
        return held

    async def _renew(self, every_s: float, nursery: trio.Nursery) -> None:
        """All that are live, each ``every_s``, but for those whose last renewal has no answer yet."""
        while True:
            await trio.sleep(every_s)
            held = [one for one in self._held.values() if one.is_live and not one.is_asked]
            for first in range(0, len(held), RENEWALS):
                nursery.start_soon(self._renew_batch, held[first : first + RENEWALS])

    async def _renew_batch(self, batch: Sequence[Held]) -> None:
        for one in batch:
            one.is_asked = True
        process = self._caller.process + 1_000 + next(self._batches)
        op = self._caller.recorder.begin(process, "renew-batch", {"asked": len(batch)})
        items = [{"lease_id": one.lease, "fencing_token": one.token, **USAGE} for one in batch]
        answer = await self._caller.call(
            "POST",
            f"{RUNNER}/leases:renew",
            {"leases": items},
            token=self._token,
            patience_s=RENEWAL_PATIENCE_S,
        )
        for one in batch:
            one.is_asked = False
        if not answer.is_yes:
            self._caller.note(op, answer)
            return
        self._renewed(op, batch, answer.body["results"])

    def _renewed(self, op: int, batch: Sequence[Held], results: Sequence[dict[str, Any]]) -> None:
        slices: dict[str, tuple[int, int]] = {}
        refused: dict[str, int] = {}
        for one, result in zip(batch, results, strict=True):
            if result["ok"]:
                slices[one.lease] = (result["slice_seq"], result["charged_nanos"])
                continue
            refused[one.lease] = result["status"]
            if result["status"] < LOST_BELOW:
                self._lost(one)
        self._caller.recorder.renewals += len(slices)
        self._caller.recorder.ok(op, {"slices": slices, "refused": refused})

    def _lost(self, one: Held) -> None:
        one.is_live = False
        if one.until > trio.current_time():
            self._held.pop(one.lease, None)  # A report that is due is still sent: it may have come through.

    async def _report(self) -> None:
        while True:
            await trio.sleep(TICK_S)
            now = trio.current_time()
            due = [one for one in self._held.values() if one.until <= now][:REPORTS]
            if due:
                await self._report_all(due)

    async def _report_all(self, due: list[Held]) -> None:
        recorder, first = self._caller.recorder, self._caller.process + 100
        ops = [recorder.begin(first + place, "report", one.named) for place, one in enumerate(due)]
        answer = await self._ask(f"{RUNNER}/reports:batch", {"reports": [_report_of(one) for one in due]})
        if not answer.is_yes:
            for op in ops:
                self._caller.note(op, answer)
            return
        for op, one, result in zip(ops, due, answer.body["results"], strict=True):
            if result["ok"]:
                told = result["report"]
                recorder.ok(op, {"status": told["status"], "duplicate": told["duplicate"]})
                self._held.pop(one.lease, None)
                continue
            known = Answer(result["status"], {"error_code": result.get("error_code", "")})
            self._caller.note(op, known)
            if known.is_refusal:
                self._held.pop(one.lease, None)

    async def _ask_people(self, one: Held) -> None:
        """Open a gate, wait until it is decided, and let the lease be reported."""
        recorder, process = self._caller.recorder, self._caller.process + 200 + next(self._gates) % 700
        gate = None
        action = f"act-{one.attempt % 2}"
        while one.lease in self._held:
            if gate is None:
                op = recorder.begin(process, "open-gate", {**one.named, "action": action})
                asked = {"action_id": action, "tool_name": "http", "action_name": "POST"}
                answer = await self._ask(
                    f"{RUNNER}/leases/{one.lease}/gates", {**asked, "fencing_token": one.token}
                )
                if answer.is_yes:
                    gate = answer.body["gate_id"]
                    recorder.ok(op, {"gate": gate})
                else:
                    self._caller.note(op, answer)
                    await trio.sleep(TICK_S)
                    if answer.is_refusal:
                        break
                continue
            op = recorder.begin(process, "read-gate", {"gate": gate})
            path = f"{RUNNER}/leases/{one.lease}/gates/{gate}?wait_ms={POLL_MS}"
            answer = await self._caller.call("GET", path, token=self._token, patience_s=POLLS_S)
            if not answer.is_yes:
                self._caller.note(op, answer)
                await trio.sleep(TICK_S)
                if answer.is_refusal:
                    break
                continue
            recorder.ok(op, {"status": answer.body["status"]})
            if answer.body["status"] != "pending":
                break
        one.until = trio.current_time()

    async def _ask(self, path: str, body: Any, patience_s: float = PATIENCE_S) -> Answer:
        return await self._caller.call("POST", path, body, token=self._token, patience_s=patience_s)


def _report_of(one: Held) -> dict[str, Any]:
    return {
        "lease_id": one.lease,
        "event_id": one.event,
        "fencing_token": one.token,
        "outcome": "processed",
        "response_text": "Done.",
        **USAGE,
        "telemetry": {"time_to_first_token_ms": None, "wall_ms": 1},
    }
