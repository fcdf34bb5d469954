"""The tools of the MCP endpoint, made from the declared routes: which there are, and what they are called."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from sexton_http.gateway.operations import Auth, Creates, Operation, Wait
from sexton_http.identity.principals import Member, is_enough
from sexton_http.routes.mcp.tool_schemas import MAX_WAIT_S, WORKSPACE, input_schema

MAX_DESCRIPTION_CHARS: Final = 600
WAIT_TOOL: Final = "event_wait"
SHOWN: Final[Mapping[str, str]] = {
    "whoami": "whoami",
    "list_workspaces": "workspaces_list",
    "list_zombies": "agents_list",
    "get_zombie": "agent_get",
    "list_workspace_events": "events_list",
    "get_workspace_event": "event_get",
    "explain_workspace_event": "event_why",
    "get_workspace_transcript": "event_transcript",
    "list_artefacts": "files_list",
    "list_approvals": "approvals_list",
    "get_approval": "approval_get",
    "list_failures": "failures_list",
    "get_failure": "failure_get",
    "list_schedules": "schedules_list",
    "get_throughput": "throughput_get",
    "get_balance": "balance_get",
    "total_charges": "charges_total",
    "steer_zombie": "event_send",
    "replay_workspace_event": "event_replay",
    "cancel_workspace_event": "event_cancel",
    "approve": "approval_approve",
    "deny": "approval_deny",
    "change_zombie": "agent_set_status",
    "delete_zombie": "agent_delete",
    "run_schedule": "schedule_run",
    "pause_schedule": "schedule_pause",
    "resume_schedule": "schedule_resume",
    "acknowledge_failure": "failure_acknowledge",
    "mute_failure": "failure_mute",
}
"""The tools that are offered unless all are asked for: what people ask an assistant about their agents.

Each tool costs its reader some two hundred tokens before the first question, and models choose worse among a
hundred tools than among thirty.
"""
HARMLESS: Final = frozenset(
    {
        *("steer_zombie", "replay_workspace_event", "run_schedule", "pause_schedule", "resume_schedule"),
        *("acknowledge_failure", "mute_failure", "create_workspace", "create_proposal", "compile_harness"),
        *("request_integration", "pause_job", "resume_job", "replay_delivery", "probe_chat"),
        *("verify_webhook",),
    }
)
"""Changes that take nothing away: a person is not asked before each of them."""
LEFT_OUT: Final[Mapping[str, str]] = {
    "put_credential": "its body is a secret",
    "put_llm_key": "its body is a secret",
    "put_platform_key": "its body is a secret",
    "put_named_platform_key": "its body is a secret",
    "complete_auth_session": "its body is a token",
    "approve_auth_session": "its body is a token",
    "abort_auth_sessions": "signing in and out is for people themselves",
    "end_session": "signing in and out is for people themselves",
    "end_sessions": "signing in and out is for people themselves",
    "end_sign_in": "signing in and out is for people themselves",
    "begin_workspace_upload": "the bytes that it announces cannot be sent from here",
    "get_zombie_transcript": "the same is there for an event of a workspace",
    "explain_zombie_event": "the same is there for an event of a workspace",
    "get_zombie_event": "the same is there for an event of a workspace",
    "replay_event": "the same is there for an event of a workspace",
    "cancel_event": "the same is there for an event of a workspace",
}
"""Routes that are no tools, and why; a route with a secret in its answer is none either."""
FIELDS_LEFT_OUT: Final[Mapping[str, frozenset[str]]] = {
    # New files may come with a new secret, which is shown once, and not to an assistant.
    "change_zombie": frozenset({"source_markdown", "trigger_markdown"}),
    "steer_zombie": frozenset({"files"}),
    "get_workspace_event": frozenset({"wait_ms"}),
}


@dataclass(frozen=True, slots=True)
class Tool:
    """One route as an assistant sees it."""

    name: str
    operation: Operation
    description: str
    schema: Mapping[str, Any]
    """What it takes, as JSON Schema."""
    fields: frozenset[str]
    """The fields of the body among what it takes."""
    query: frozenset[str]
    """The fields of the query among what it takes."""
    shown: bool
    """Offered unless all are asked for, too."""

    @property
    def reads(self) -> bool:
        return self.operation.method == "GET"

    @property
    def asks(self) -> bool:
        """A person is asked before it does anything."""
        return not self.reads and self.operation.name not in HARMLESS

    @property
    def waits(self) -> bool:
        return self.name == WAIT_TOOL

    @property
    def takes_key(self) -> bool:
        return self.operation.creates is not Creates.NOTHING


def make_tools(operations: Iterable[Operation], document: Mapping[str, Any]) -> dict[str, Tool]:
    """All tools by name. Raises ValueError where two routes would have one name."""
    tools: dict[str, Tool] = {}
    for operation in operations:
        if not is_tool(operation):
            continue
        names = [SHOWN.get(operation.name) or tool_name(operation.name)]
        if operation.name == "get_workspace_event":
            names.append(WAIT_TOOL)
        for name in names:
            if name in tools:
                raise ValueError(f"two tools are called {name}")
            tools[name] = _tool(name, operation, document)
    return tools


def is_tool(operation: Operation) -> bool:
    """Whether assistants get it: it is for people, takes and gives JSON without secrets, and ends soon."""
    for_people = operation.auth in {Auth.MEMBER, Auth.PLATFORM} and not operation.deprecated
    is_plain = operation.media == "application/json" and not operation.takes_bytes
    ends = operation.wait is not Wait.STREAM
    return for_people and is_plain and ends and not operation.secret and operation.name not in LEFT_OUT


def tool_name(name: str) -> str:
    """A tool's name from that of its operation: the thing first, then what is done.

    >>> tool_name("list_api_keys"), tool_name("get_zombie"), tool_name("approve")
    ('api_keys_list', 'agent_get', 'approve')
    """
    verb, _, noun = name.replace("zombie", "agent").partition("_")
    return f"{noun}_{verb}" if noun else verb


def _tool(name: str, operation: Operation, document: Mapping[str, Any]) -> Tool:
    schema, query, fields = input_schema(
        operation,
        document,
        left_out=FIELDS_LEFT_OUT.get(operation.name, frozenset()),
        waits=name == WAIT_TOOL,
    )
    return Tool(
        name=name,
        operation=operation,
        description=_description(name, operation),
        schema=schema,
        fields=fields,
        query=query,
        shown=operation.name in SHOWN,
    )


def _description(name: str, operation: Operation) -> str:
    if name == WAIT_TOOL:
        return (
            f"Wait until an event has ended, {MAX_WAIT_S} seconds at most, and show it. How far it is is"
            " told meanwhile as progress. If it has not ended by then, call this again."
        )
    if operation.name == "change_zombie":
        return "Stop, wake or kill an agent; one that was killed is not woken again."
    text = " ".join(f"{operation.summary} {operation.notes}".split())
    return text if len(text) <= MAX_DESCRIPTION_CHARS else operation.summary


def may_use(tool: Tool, member: Member) -> bool:
    """Whether the route would let the caller in, so that only what can be done is offered."""
    operation = tool.operation
    if operation.auth is Auth.PLATFORM and not member.platform_admin:
        return False
    if operation.tenant_wide and member.workspace_id is not None:
        return False
    return operation.role is None or is_enough(member.role, operation.role)


def describe_tool(tool: Tool, workspace_id: UUID | None) -> dict[str, Any]:
    """One entry of ``tools/list``. Where the workspace is settled the tool does not ask for it."""
    schema = tool.schema
    if workspace_id is not None and WORKSPACE in schema["properties"]:
        properties = {name: one for name, one in schema["properties"].items() if name != WORKSPACE}
        required = [name for name in schema.get("required", ()) if name != WORKSPACE]
        schema = {**schema, "properties": properties, "required": required}
    return {
        "name": tool.name,
        "title": tool.operation.summary.rstrip("."),
        "description": tool.description,
        "inputSchema": schema,
        "annotations": annotations_of(tool),
    }


def annotations_of(tool: Tool) -> dict[str, bool]:
    """What a client may show of the tool's effects."""
    if tool.reads:
        return {"readOnlyHint": True, "openWorldHint": False}
    return {
        "readOnlyHint": False,
        "destructiveHint": tool.asks,
        "idempotentHint": tool.operation.method in {"PUT", "PATCH", "DELETE"},
        "openWorldHint": False,
    }


def reference_page(tools: Mapping[str, Tool], made: str) -> str:
    """``docs/reference/mcp-tools.md``."""
    lines = [
        "# Tools of the MCP endpoint",
        "",
        made,
        "",
        "Made from the routes. *Offered* says with which parameters of the address a tool is in the list;",
        "*asks*: a person is asked before it does anything. [MCP endpoint](mcp.md) says the rest.",
        "",
        "| Tool | Route | Role | Offered | Asks |",
        "| --- | --- | --- | --- | --- |",
    ]
    for tool in sorted(tools.values(), key=lambda one: (not one.shown, not one.reads)):
        operation = tool.operation
        role = "platform admin" if operation.role is None else operation.role.value
        given = [*([] if tool.shown else ["tools=all"]), *([] if tool.reads else ["write=1"])]
        offered = f"`{'&'.join(given)}`" if given else "always"
        route = f"`{operation.method} {operation.path}`"
        lines.append(f"| `{tool.name}` | {route} | {role} | {offered} | {'yes' if tool.asks else ''} |")
    return "\n".join([*lines, ""])
