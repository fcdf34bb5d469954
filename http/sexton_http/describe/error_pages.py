"""A page for each error code: what it means, what to do, how an answer looks, which routes give it."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import msgspec

from sexton_actors.failure_codes import FAILURE_CODES
from sexton_http.answers import Problem
from sexton_http.error_codes.code import Code, Shown
from sexton_http.gateway.operations import Operation
from sexton_http.problems import CODES
from sexton_http.routes.table import OPERATIONS

EXAMPLE_ADDRESS: Final = "https://sexton.example.com"
EXAMPLE_REQUEST: Final = "019346de-6400-7000-8000-000000000038"
MOST_NAMED: Final = 40
"""A code of more routes than this is one of the interface, and not of its routes."""
READ_MORE: Final[dict[str, tuple[str, str]]] = {
    "ACTOR": ("Actors", "actors.md"),
    "AGENT": ("States", "states.md"),
    "API": ("Admission", "admission.md"),
    "APPLY": ("Keep agents in git", "../how-to/keep-agents-in-git.md"),
    "APPROVAL": ("Manifests: gates", "manifests.md#gates"),
    "AUTH": ("Sign in", "../how-to/sign-in.md"),
    "BILLING": ("Money, plans and prices", "billing.md"),
    "CATALOGUE": ("Set prices and plans", "../how-to/set-prices-and-plans.md"),
    "CHATPLUGIN": ("Ask in Slack", "../how-to/ask-in-slack.md"),
    "CRED": ("Model keys", "model-keys.md"),
    "ENTL": ("Money, plans and prices", "billing.md#plans"),
    "EVENT": ("Events and streams", "events.md"),
    "EXEC": ("Runner", "runner.md"),
    "FAILURE": ("Events and streams", "events.md"),
    "FILE": ("Files", "files.md"),
    "FOLLOWUP": ("Schedules", "schedules.md#follow-ups"),
    "GATE": ("Tools", "tools.md"),
    "GRANT": ("Let an agent use a service", "../how-to/let-an-agent-use-a-service.md"),
    "HARNESS": ("States", "states.md"),
    "INTERNAL": ("Answer alerts", "../how-to/answer-alerts.md"),
    "JOB": ("Events and streams", "events.md"),
    "MCP": ("MCP servers", "mcp-servers.md"),
    "MEM": ("Memory", "memory.md"),
    "MEMBER": ("Members", "members.md"),
    "PROVIDER": ("Models", "models.md"),
    "RELAY": ("Models", "models.md"),
    "REQ": ("Requests", "requests.md"),
    "RETENTION": ("Retention", "retention.md"),
    "RUN": ("Runner", "runner.md"),
    "SCHEDULE": ("Schedules", "schedules.md"),
    "SCORING": ("Scoring", "scoring.md"),
    "STARTUP": ("Run a server", "../how-to/run-a-server.md"),
    "TENANT": ("Members", "members.md"),
    "TOOL": ("Tools", "tools.md"),
    "VAULT": ("Security", "security.md"),
    "WH": ("Webhooks", "webhooks.md"),
    "ZMB": ("Look after agents", "../how-to/look-after-agents.md"),
}
"""By the middle of a code: where more is said; paths are from the reference."""


def error_page(row: Code) -> str:
    """The page ``reference/errors/CODE.md`` of the documentation."""
    lines = [
        f"# {row.code}: {row.title}",
        "",
        met_in(row),
        "",
        "## What it means",
        "",
        row.cause,
        "",
        "## What to do",
        "",
        row.way_out,
        "",
        *example(row),
        *answered_by(row),
    ]
    more = READ_MORE.get(row.code.split("-")[1])
    if more is not None:
        title, path = more
        lines += ["## Read more", "", f"[{title}](../{path}) · [All codes](../errors.md)", ""]
    return "\n".join(lines)


def met_in(row: Code) -> str:
    """One sentence of where a newcomer has seen the code."""
    places = {
        Shown.ANSWER: f"in an answer of status {row.status}",
        Shown.EVENT: "as `error_code` of an event that failed",
        Shown.STREAM: "in the activity stream",
        Shown.STARTUP: "on standard error, when a server starts",
    }
    return f"Met {' or '.join(places[where] for where in row.shown)}."


def example(row: Code) -> list[str]:
    """How it looks, in its own form, as lines of Markdown."""
    if Shown.STARTUP in row.shown:
        text = f"sexton: {row.code}: {row.detail.rstrip('.')}."
        return ["## An example", "", "```text", text, "```", ""]
    document: dict[str, Any]
    if Shown.ANSWER in row.shown:
        title, problem = "## An example answer", Problem(row.code, row.detail, facts=dict(row.facts))
        document = problem.document(EXAMPLE_ADDRESS, EXAMPLE_REQUEST)
    else:
        labels = {code: label for label, code in FAILURE_CODES.items()}
        title = "## An example event"
        document = {
            "status": "agent_error" if row.code in labels else "dead_lettered",
            "failure_label": labels.get(row.code, "runner_lost"),
            "error_code": row.code,
            "response_text": row.detail,
        }
    text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
    return [title, "", "```json", text, "```", ""]


def answered_by(row: Code, operations: Sequence[Operation] = OPERATIONS) -> list[str]:
    """The routes, as links into the reference; a code of nearly all of them says so."""
    routes = _routes(tuple(operations)).get(row.code, ())
    if not routes:
        return []
    lines = ["## Which routes answer it", ""]
    if len(routes) > MOST_NAMED:
        return [*lines, f"{len(routes)} of the {len(operations)} [routes](../http.md).", ""]
    return [
        *lines,
        *(f"- [`{route.method} {route.path}`](../http.md#{page_anchor(route)})" for route in routes),
        "",
    ]


def page_anchor(operation: Operation) -> str:
    """Name the place of the route's heading on the page of the HTTP interface, as the site spells it.

    >>> page_anchor(next(row for row in OPERATIONS if row.path == "/v1/agents/{agent_id}/scores"))
    'get-v1agentsagent_idscores'
    """
    return re.sub(r"[^\w-]", "", f"{operation.method}-{operation.path}".lower())


@cache
def _routes(operations: tuple[Operation, ...]) -> dict[str, list[Operation]]:
    found: dict[str, list[Operation]] = {code: [] for code in CODES}
    for operation in operations:
        for code in operation.all_codes():
            found[code].append(operation)
    return found
