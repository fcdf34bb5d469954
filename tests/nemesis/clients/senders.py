"""Send signed webhooks and messages, each again and again until it is accepted."""

from __future__ import annotations

import hmac
import random
from collections.abc import Sequence
from typing import Any, Final

import orjson
import trio

from tests.nemesis.clients.caller import Answer, Caller
from tests.nemesis.clients.tap import Tap
from tests.nemesis.clients.task import SECRET, Site

STEERED: Final = 0.2
"""The part that are messages of people; the others are webhooks."""
SENT_TWICE: Final = 0.02
"""The part that is sent once more after it was accepted."""
RETRY_S: Final = 0.5


class Sender:
    """One after the other, each for an agent of one tenant that chance picks."""

    def __init__(
        self, caller: Caller, site: Site, agents: Sequence[str], tap: Tap, rng: random.Random
    ) -> None:
        self._caller = caller
        self._site = site
        self._agents = agents
        self._tap = tap
        self._rng = rng
        self._sent = 0

    async def send(self, every_s: float) -> None:
        """At most one delivery each ``every_s``, and none while too much waits."""
        due = trio.current_time() - every_s * self._rng.random()  # Not all of them at the same time.
        while True:
            due = max(due + every_s, trio.current_time() - 1)
            await trio.sleep_until(due)
            await self._tap.until_open()
            await self._deliver(self._rng.choice(self._agents))

    async def _deliver(self, agent: str) -> None:
        self._sent += 1
        delivery = f"d{self._caller.process}-{self._sent}"
        steered = self._rng.random() < STEERED
        # What was begun is brought to its end: a sender that gives up has asked for nothing.
        await self._insist(agent, delivery, steered=steered)
        self._caller.recorder.events += 1
        if self._rng.random() < SENT_TWICE:
            await self._insist(agent, delivery, steered=steered)

    async def _insist(self, agent: str, delivery: str, *, steered: bool) -> None:
        recorder = self._caller.recorder
        while True:
            asked = {
                "tenant": self._site.tenant,
                "agent": agent,
                "delivery": delivery,
                "steered": steered,
            }
            op = recorder.begin(self._caller.process, "send", asked)
            answer = await (self._steer if steered else self._hook)(agent, delivery)
            if answer.is_yes and "event_id" in answer.body:
                recorder.ok(op, {"event": answer.body["event_id"]})
                return
            self._caller.note(op, answer)
            await trio.sleep(RETRY_S * (1 + self._rng.random()))

    async def _hook(self, agent: str, delivery: str) -> Answer:
        body = orjson.dumps({"nemesis": delivery})
        headers = {
            "x-github-event": "workflow_run",
            "x-github-delivery": delivery,
            "x-hub-signature-256": f"sha256={hmac.digest(SECRET.encode(), body, 'sha256').hex()}",
        }
        return await self._caller.call("POST", f"/v1/webhooks/{agent}/github", body, headers=headers)

    async def _steer(self, agent: str, delivery: str) -> Answer:
        said: dict[str, Any] = {"message": f"nemesis {delivery}"}
        path = f"{self._site.workspace}/zombies/{agent}/messages"
        key = {"idempotency-key": delivery}
        return await self._caller.call("POST", path, said, token=self._site.key, headers=key)
