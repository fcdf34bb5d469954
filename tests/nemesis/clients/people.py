"""Decide at gates, two or more at once, and look what became of them."""

from __future__ import annotations

import random
from typing import Any, Final

import trio

from tests.nemesis.clients.caller import Caller
from tests.nemesis.clients.task import Site

LOOK_S: Final = 1.0
DECIDED_BEFORE: Final = "UZ-APPROVAL-002"
LOOKS_AGAIN: Final = 0.2


class Person:
    """Goes through what is pending at one tenant, in an order of their own."""

    def __init__(self, caller: Caller, site: Site, rng: random.Random) -> None:
        self._caller = caller
        self._site = site
        self._rng = rng

    async def decide(self) -> None:
        while True:
            await trio.sleep(LOOK_S)
            path = f"{self._site.workspace}/approvals?status=pending"
            answer = await self._caller.call("GET", path, token=self._site.key)
            if not answer.is_yes:
                continue
            gates = [item["gate_id"] for item in answer.body["items"]]
            self._rng.shuffle(gates)
            for gate in gates:
                await self._decide(gate)

    async def _decide(self, gate: str) -> None:
        recorder, process = self._caller.recorder, self._caller.process
        verb, wants = self._rng.choice((("approve", "approved"), ("deny", "denied")))
        op = recorder.begin(process, "decide", {"gate": gate, "wants": wants})
        path = f"{self._site.workspace}/approvals/{gate}"
        answer = await self._caller.call("POST", f"{path}:{verb}", {}, token=self._site.key)
        if answer.is_yes:
            recorder.ok(op, {"status": answer.body["outcome"], "first": True})
        elif answer.code == DECIDED_BEFORE and (outcome := _outcome(answer.body)):
            recorder.ok(op, {"status": outcome, "first": False})
        else:
            self._caller.note(op, answer)
        if self._rng.random() < LOOKS_AGAIN:
            op = recorder.begin(process, "read-gate", {"gate": gate})
            answer = await self._caller.call("GET", path, token=self._site.key)
            if answer.is_yes:
                recorder.ok(op, {"status": answer.body["status"]})
            else:
                self._caller.note(op, answer)


def _outcome(body: Any) -> str:
    return str(body.get("outcome") or "")
