"""Waits for an event's end in the stream of a call, and says meanwhile how far it is."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final
from uuid import UUID

from sexton_http.answers import Problem
from sexton_http.gateway.call import Call
from sexton_http.routes.mcp.confirmations import KEEP
from sexton_http.routes.mcp.messages import as_event, spell_note
from sexton_http.routes.mcp.tool_calls import ask_route, request_of
from sexton_http.routes.mcp.tool_results import REFUSED, document_of, problem_of, result_of
from sexton_http.routes.mcp.tool_schemas import MAX_WAIT_S, TIMEOUT, WAIT_S
from sexton_http.routes.mcp.tools import Tool

STEP_S: Final = 10
"""How long one look takes: after that a client is told that the event goes on."""
_OPEN: Final = frozenset({"received", "waiting_approval", "running"})


class EventWait:
    """One wait; ``result`` is there when all pieces are sent."""

    def __init__(
        self, call: Call[Any, Any], tool: Tool, arguments: Mapping[str, Any], workspace_id: UUID | None
    ) -> None:
        """Raises Problem for arguments that make no request."""
        self._call = call
        self._tool = tool
        self._left_s = timeout_of(arguments)
        given = {name: value for name, value in arguments.items() if name != TIMEOUT}
        self._asked = request_of(tool, given, workspace_id)
        self.result: dict[str, Any] = {}

    async def pieces(self, token: Any) -> AsyncGenerator[bytes, None]:
        """A progress notification for each look where the client has given a token, else a sign of life.

        The first look does not wait, so that whoever asks for what is over has it at once.
        """
        call, began, wait_s = self._call, self._call.ctx.monotonic(), 0.0
        over = began + self._left_s
        while True:
            query = {"wait_ms": str(round(wait_s * 1000))}
            answer = await ask_route(call, self._tool, self._asked._replace(query=query))
            if answer.status >= REFUSED:
                self.result = problem_of(answer)
                return
            event = document_of(answer)
            left_s = over - call.ctx.monotonic()
            has_ended = event.get("status") not in _OPEN
            if has_ended or left_s <= 0 or call.ctx.stop.is_set():
                self.result = result_of({"ended": has_ended, **event})
                return
            yield _progress(token, call.ctx.monotonic() - began, self._left_s, str(event.get("status")))
            wait_s = min(STEP_S, left_s)


def timeout_of(arguments: Mapping[str, Any]) -> int:
    """The seconds that a call asks to wait. Raises Problem UZ-REQ-001."""
    value = arguments.get(TIMEOUT, WAIT_S)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_WAIT_S:
        raise Problem("UZ-REQ-001", f"{TIMEOUT}: a whole number from 1 to {MAX_WAIT_S}")
    return value


def _progress(token: Any, spent_s: float, total_s: int, status: str) -> bytes:
    if token is None:
        return KEEP
    told = {"progressToken": token, "progress": round(spent_s, 3), "total": total_s}
    return as_event(spell_note("notifications/progress", {**told, "message": f"the event is {status}"}))
