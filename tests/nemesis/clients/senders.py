"""Send signed webhooks and messages, each again and again until it is accepted."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Final

import orjson
import trio

from tests.fakes.webhook_senders import hex_digest
from tests.nemesis.clients.backlog import Backlog
from tests.nemesis.clients.caller import Answer, Caller

SECRET: Final = "what the senders sign with"
CREDENTIAL: Final = "github"
STEERED: Final = 0.2
"""The part that are messages of people; the others are webhooks."""
SENT_TWICE: Final = 0.02
"""The part that is sent once more after it was accepted."""
RETRY_S: Final = 0.5


class Sender:
    """One after the other, each for an agent that chance picks."""

    def __init__(self, caller: Caller, agents: Sequence[str], backlog: Backlog, rng: random.Random) -> None:
        self._caller = caller
        self._agents = agents
        self._backlog = backlog
        self._rng = rng
        self._sent = 0

    async def send(self, every_s: float) -> None:
        """At most one delivery each ``every_s``, and none while too much waits."""
        due = trio.current_time()
        while True:
            due = max(due + every_s, trio.current_time() - 1)
            await trio.sleep_until(due)
            await self._backlog.until_there_is_room()
            await self._deliver(self._rng.choice(self._agents))

    async def _deliver(self, agent: str) -> None:
        self._sent += 1
        delivery = f"d{self._caller.process}-{self._sent}"
        steered = self._rng.random() < STEERED
        # What was begun is brought to its end: a sender that gives up has asked for nothing.
        event = await self._insist(agent, delivery, steered=steered)
        self._backlog.accepted(event)
        self._caller.recorder.events += 1
        if self._rng.random() < SENT_TWICE:
            await self._insist(agent, delivery, steered=steered)

    async def _insist(self, agent: str, delivery: str, *, steered: bool) -> str:
        recorder = self._caller.recorder
        while True:
            asked = {"agent": agent, "delivery": delivery, "steered": steered}
            op = recorder.begin(self._caller.process, "send", asked)
            answer = await (self._steer if steered else self._hook)(agent, delivery)
            if answer.is_yes and "event_id" in answer.body:
                recorder.ok(op, {"event": answer.body["event_id"]})
                return str(answer.body["event_id"])
            self._caller.note(op, answer)
            await trio.sleep(RETRY_S * (1 + self._rng.random()))

    async def _hook(self, agent: str, delivery: str) -> Answer:
        body = orjson.dumps({"nemesis": delivery})
        headers = {
            "x-github-event": "workflow_run",
            "x-github-delivery": delivery,
            "x-hub-signature-256": f"sha256={hex_digest(SECRET, body)}",
        }
        return await self._caller.call("POST", f"/v1/webhooks/{agent}/github", body, headers=headers)

    async def _steer(self, agent: str, delivery: str) -> Answer:
        said: dict[str, Any] = {"message": f"nemesis {delivery}"}
        path = f"{self._caller.workspace}/zombies/{agent}/messages"
        key = {"idempotency-key": delivery}
        return await self._caller.call("POST", path, said, token=self._caller.key, headers=key)
