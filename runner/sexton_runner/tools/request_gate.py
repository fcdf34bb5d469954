"""Holds the requests of a run's programs against the agent's gates, before the proxy sends them."""

from collections.abc import Awaitable, Callable, Sequence

import orjson
import trio

from sexton_runner.command_protocol import Ask
from sexton_runner.errors import TooManyAsks
from sexton_runner.gates import BY_DENY_RULE, Asking, Decision
from sexton_runner.rules import DENY, Rule, behaviour, glob_matches

TOOL = "http"
"""By which name rules mean a request of a program."""
MAX_ACTION_CHARS = 128
MAX_SUMMARY_CHARS = 1_024
MAX_WAITING = 16
"""Requests of one run that wait for people at a time; there is a gate for each."""


class Undecided(Exception):
    """Nobody has decided in the time that a request may wait; the gate stays open."""


def may_gate_requests(rules: Sequence[Rule]) -> bool:
    """Tell whether a rule could be about a request, so that the proxy has to read them all.

    >>> may_gate_requests([Rule("http")]), may_gate_requests([Rule("http_request")]), may_gate_requests([])
    (True, False, False)
    """
    return any(glob_matches(rule.tool, TOOL) for rule in rules)


class RequestGate:
    """The gate of one run's requests. The same request, asked for again, is answered as before.

    ``park`` is called when a request has waited long enough; without one the run is parked as for any gate.
    """

    def __init__(
        self,
        asking: Asking,
        rules: Sequence[Rule],
        park: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self._asking, self._rules, self._park = asking, rules, park
        self._waiting = 0
        self._turns: dict[str, trio.Lock] = {}

    async def judge(
        self, method: str, host: str, port: int, path: str, body_sha256: str | None
    ) -> str | None:
        """Wait for the decision; None: it may go out, else why not."""
        fields = {"method": method, "host": host, "port": str(port), "path": path}
        action = f"{method} {host}"[:MAX_ACTION_CHARS]
        rule = behaviour(self._rules, TOOL, action, fields)
        if rule is None:
            return None
        if rule == DENY:
            return Decision("denied", by=BY_DENY_RULE).told
        if self._waiting >= MAX_WAITING:
            return f"{MAX_WAITING} requests of this run wait for people already"
        self._waiting += 1
        try:
            return await self._asked(fields, action, body_sha256)
        finally:
            self._waiting -= 1

    async def _asked(self, fields: dict[str, str], action: str, body_sha256: str | None) -> str | None:
        evidence = {**fields, **({"body_sha256": body_sha256} if body_sha256 else {})}
        call_id = f"{TOOL} {fields['method']} {fields['host']}:{fields['port']}{fields['path']} {body_sha256}"
        ask = Ask(
            ask_id="",
            action=action,
            tool=TOOL,
            kind="tool_call",
            summary=f"{fields['method']} {fields['host']}{fields['path']}"[:MAX_SUMMARY_CHARS],
            blast_radius="",
        )
        # The same request at the same time is one question.
        async with self._turns.setdefault(call_id, trio.Lock()):
            try:
                decision = await self._asking.decide(ask, orjson.dumps(evidence), call_id, park=self._park)
            except Undecided:
                return "nobody has decided yet; ask again later"
            except TooManyAsks as fault:
                return str(fault)
        return None if decision.status == "approved" else decision.told
