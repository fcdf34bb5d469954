"""Asks one node after the other: each client stays with a node until it does not answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import httpx2
import orjson

from tests.nemesis.recorder import Recorder

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
    """One client, with the connections of its process."""

    def __init__(
        self, http: httpx2.AsyncClient, bases: Sequence[str], recorder: Recorder, process: int, turn: int
    ) -> None:
        """``turn``: the place of the node that is asked first."""
        self.process = process
        """In the history; those up to the next thousand are this client's as well."""
        self.recorder = recorder
        self._bases = bases
        self._turn = turn
        self.http = http

    @property
    def base_url(self) -> str:
        return self._bases[self._turn % len(self._bases)]

    def leave(self, base_url: str) -> None:
        """Go to the next node, unless another call has left this one meanwhile."""
        if self.base_url == base_url:
            self._turn += 1

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        patience_s: float = PATIENCE_S,
    ) -> Answer:
        """Ask once. ``body``: JSON, or bytes as they are."""
        content = body if isinstance(body, bytes) or body is None else orjson.dumps(body)
        sent = {"content-type": "application/json", **(headers or {})}
        if token is not None:
            sent["authorization"] = f"Bearer {token}"
        base_url = self.base_url
        try:
            answer = await self.http.request(
                method,
                f"{base_url}{path}",
                content=content,
                headers=sent,
                timeout=patience_s,
            )
        except httpx2.HTTPError as error:
            self.leave(base_url)
            return Answer(0, why=type(error).__name__)
        told = orjson.loads(answer.content) if answer.content else None
        result = Answer(answer.status_code, told)
        if answer.status_code >= FAULT:
            self.leave(base_url)
        return result

    def note(self, op: int, answer: Answer) -> None:
        """Write down an answer that is no yes."""
        if answer.is_refusal:
            self.recorder.fail(op, answer.status, answer.code)
        else:
            self.recorder.unknown(op, answer.why or f"{answer.status} {answer.code}")
