"""What a person is asked before a tool changes something: what it is about, as the server knows it."""

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

import msgspec

from sexton_http.gateway.call import Call
from sexton_http.routes.mcp.confirmations import plain_line
from sexton_http.routes.mcp.tool_calls import ToolRequest, ask_route, request_of
from sexton_http.routes.mcp.tool_results import REFUSED, document_of, problem_of
from sexton_http.routes.mcp.tools import Tool

_LOOKED_AT: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "approval_approve": ("approval_get", ("zombie_name", "tool_name", "proposed_action", "blast_radius")),
    "approval_deny": ("approval_get", ("zombie_name", "tool_name", "proposed_action", "blast_radius")),
    "agent_delete": ("agent_get", ("name", "status")),
    "agent_set_status": ("agent_get", ("name", "status")),
    "event_cancel": ("event_get", ("zombie_name", "actor", "type", "status")),
}
"""By the tool: what is looked up first, and what of it the person is shown."""


async def question_of(
    call: Call[Any, Any], tool: Tool, arguments: Mapping[str, Any], workspace_id: UUID | None
) -> str | dict[str, Any]:
    """The question; or the result of the call, where what it is about cannot be looked at.

    Raises Problem for arguments that make no request.
    """
    asked = request_of(tool, arguments, workspace_id)
    lines = [f"An assistant asks to do this as you: {tool.operation.summary}"]
    look = _LOOKED_AT.get(tool.name)
    if look is not None:
        reading = call.services.documents.tools[look[0]]
        answer = await ask_route(call, reading, ToolRequest(asked.params, {}, b"", ""))
        if answer.status >= REFUSED:
            return problem_of(answer)
        found = document_of(answer)
        lines += [f"{name}: {plain_line(_spelled(found[name]))}" for name in look[1] if found.get(name)]
    lines += [f"{name}: {plain_line(_spelled(value))}" for name, value in sorted(arguments.items())]
    return "\n".join(lines)


def _spelled(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
