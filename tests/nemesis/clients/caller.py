"""Asks one node after the other: each client stays with a node until it does not answer."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any, Final, NamedTuple

import httpx2
import orjson

from tests.nemesis.recorder import Recorder
from tests.nemesis.world import World

PATIENCE_S: Final = 10.0
REFUSED: Final = 400
FAULT: Final = 500
OPEN_CODES: Final = frozenset({"UZ-REQ-007"})
"""Refusals that leave open whether it was done: the first of two requests has no answer yet."""


class Answer(NamedTuple):
    """What came back; ``status`` 0 when nothing did."""

    status: int
    body: Any = None
    why: str = ""

    @property
    def is_yes(self) -> bool:
        return 0 < self.status < REFUSED

    @property
    def is_refusal(self) -> bool:
        """Nothing of it was done, and will not be."""
        return REFUSED <= self.status < FAULT and self.code not in OPEN_CODES

    @property
    def code(self) -> str:
        return str(self.body.get("error_code", "")) if isinstance(self.body, dict) else ""


class Caller:
    """The connections of one client."""

    _numbers = count()

    def __init__(self, world: World, recorder: Recorder) -> None:
        self.process = 1_000 * next(self._numbers)
        """In the history; those up to the next thousand are this client's as well."""
        self.recorder = recorder
        self._world = world
        self._turn = self.process // 1_000
        ready = world.nodes[0].server.ready
        self.workspace = f"/v1/workspaces/{ready['workspace_id']}"
        self.key = str(ready["api_key"])
        self.http = httpx2.AsyncClient(timeout=PATIENCE_S)

    @property
    def base_url(self) -> str:
        return self._world.nodes[self._turn % len(self._world.nodes)].base_url

    def leave(self) -> None:
        """Go to the next node."""
        self._turn += 1

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        wait_s: float = 0.0,
    ) -> Answer:
        """Ask once. ``body``: JSON, or bytes as they are; ``wait_s``: how long the server may take anyway."""
        content = body if isinstance(body, bytes) or body is None else orjson.dumps(body)
        sent = {"content-type": "application/json", **(headers or {})}
        if token is not None:
            sent["authorization"] = f"Bearer {token}"
        try:
            answer = await self.http.request(
                method,
                f"{self.base_url}{path}",
                content=content,
                headers=sent,
                timeout=PATIENCE_S + wait_s,
            )
        except httpx2.HTTPError as error:
            self.leave()
            return Answer(0, why=type(error).__name__)
        told = orjson.loads(answer.content) if answer.content else None
        result = Answer(answer.status_code, told)
        if answer.status_code >= FAULT:
            self.leave()
        return result

    def note(self, op: int, answer: Answer) -> None:
        """Write down an answer that is no yes."""
        if answer.is_refusal:
            self.recorder.fail(op, answer.status, answer.code)
        else:
            self.recorder.unknown(op, answer.why or f"{answer.status} {answer.code}")
