"""Does what a tool asks for as a request of its route: the same checks, rates, keys, counters and audit."""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode
from uuid import UUID

import msgspec
import trio

from sexton_http.answers import Answer, Problem, RequestHead
from sexton_http.gateway.call import Call
from sexton_http.routes.mcp.messages import INTERNAL_ERROR, RpcFault
from sexton_http.routes.mcp.tool_results import (
    MAX_BYTES,
    REFUSED,
    document_of,
    problem_of,
    result_of,
    size_of,
)
from sexton_http.routes.mcp.tool_schemas import KEY, LIMIT, PAGE, WORKSPACE
from sexton_http.routes.mcp.tools import Tool

VIA: Final = "mcp"
"""How the audit log and nothing else names the way by which it came."""
PASSED_ON: Final = (b"authorization", b"traceparent")
_SEGMENT: Final = re.compile(r"[^/:\x00-\x1f]{1,256}")


class ToolRequest(NamedTuple):
    """A tool's arguments as a request of its route."""

    params: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes
    key: str


def request_of(tool: Tool, arguments: Mapping[str, Any], workspace_id: UUID | None) -> ToolRequest:
    """Sort the arguments; the route checks their values. Raises Problem UZ-REQ-001 for those of no place."""
    given = dict(arguments)
    if workspace_id is not None and WORKSPACE in tool.operation.params:
        given.setdefault(WORKSPACE, str(workspace_id))
        if given[WORKSPACE] != str(workspace_id):
            raise Problem("UZ-AUTH-001", f"this connection is limited to the workspace {workspace_id}")
    unknown = sorted(given.keys() - tool.schema["properties"].keys())
    if unknown:
        known = ", ".join(tool.schema["properties"]) or "nothing"
        raise Problem("UZ-REQ-001", f"{unknown[0][:64]}: no argument of {tool.name}, which takes {known}")
    params = {name: _segment(name, given.get(name)) for name in tool.operation.params}
    if LIMIT in tool.query:
        given.setdefault(LIMIT, PAGE)
    query = {name: _text(name, given[name]) for name in sorted(tool.query) if given.get(name) is not None}
    fields = {name: given[name] for name in tool.fields if name in given}
    body = msgspec.json.encode(fields) if tool.operation.has_body else b""
    return ToolRequest(params, query, body, _text(KEY, given.get(KEY) or ""))


def _segment(name: str, value: Any) -> str:
    if not isinstance(value, str) or _SEGMENT.fullmatch(value) is None:
        raise Problem("UZ-REQ-001", f"{name}: missing, or no name of anything")
    return value


def _text(name: str, value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | str():
            return str(value)
        case _:
            raise Problem("UZ-REQ-001", f"{name}: a text or a whole number")


async def run_tool(
    call: Call[Any, Any], tool: Tool, arguments: Mapping[str, Any], workspace_id: UUID | None
) -> dict[str, Any]:
    """The result of a call. A list that is too long is asked for again with fewer entries on its page."""
    asked = request_of(tool, arguments, workspace_id)
    while True:
        answer = await ask_route(call, tool, asked)
        if answer.status >= REFUSED:
            return problem_of(answer)
        document = document_of(answer)
        fewer = _fewer(tool, asked, document)
        if fewer is None:
            return result_of(document)
        asked = fewer


def _fewer(tool: Tool, asked: ToolRequest, document: Mapping[str, Any]) -> ToolRequest | None:
    """The request for a page that fits; None where this one does, or cannot be made smaller."""
    items, size = document.get("items"), size_of(document)
    is_page = tool.reads and LIMIT in tool.query
    if size <= MAX_BYTES or not is_page or not isinstance(items, list) or len(items) <= 1:
        return None
    limit = max(1, min(len(items) // 2, len(items) * MAX_BYTES // size))
    return asked._replace(query={**asked.query, LIMIT: str(limit)})


async def ask_route(call: Call[Any, Any], tool: Tool, asked: ToolRequest) -> Answer:
    """What the route answers the caller, in whose name and from whose address it is asked."""
    operation = tool.operation
    route = call.services.routes.get(operation.name)
    if route is None:
        raise RpcFault(INTERNAL_ERROR, f"{operation.name} is not mounted")
    path = operation.path.format(**{name: quote(text, safe="") for name, text in asked.params.items()})
    headers = {name: call.head.headers[name] for name in PASSED_ON if name in call.head.headers}
    headers[b"content-type"] = b"application/json"
    headers[b"x-request-id"] = call.request_id.encode()
    if asked.key:
        headers[b"idempotency-key"] = asked.key.encode()
    query = urlencode(asked.query).encode()
    head = RequestHead(operation.method, path, query, headers, call.head.client, VIA)
    body = None if len(asked.body) > operation.max_body else asked.body
    answers: list[Any] = []

    async def run() -> None:
        answers.append(await route(head, asked.params, body))

    # A task of its own, so that what is said in its log lines stays with it.
    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
    answer = answers[0]
    if not isinstance(answer, Answer):
        raise RpcFault(INTERNAL_ERROR, f"{operation.name} is no route for tools")
    return answer
