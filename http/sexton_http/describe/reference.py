"""Writes the pages of the reference that are made from tables.

Run as ``python -m sexton_http.describe.reference DIR``.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from sexton_http.describe.openapi import make_document
from sexton_http.error_codes.code import Shown
from sexton_http.gateway.operations import Auth, Operation, Wait
from sexton_http.problems import CODES
from sexton_http.routes.mcp.tools import make_tools, reference_page
from sexton_http.routes.table import OPERATIONS

MADE = (
    "<!-- Made by `python -m sexton_http.describe.reference docs/reference`: "
    "change the tables, not this page. -->"
)


def errors_page() -> str:
    """``docs/reference/errors.md``."""
    lines = [
        "# Error codes",
        "",
        MADE,
        "",
        "Every answer from 400 on is a problem document (`application/problem+json`). `error_code` is one of",
        "these; `title` is the same for every occurrence of a code, `detail` says what happened here.",
        "A code is met in an answer, on an event that failed, in the activity stream, or at start-up.",
        "Each has a page on the built site, with what to do, an example, and the routes that answer it;",
        "a running server says what to do at `/docs/errors`, where `type` and `docs_uri` of an answer lead.",
        "",
        "| Code | Status | Title | Means | Met in |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in CODES.values():
        shown = ", ".join(where.value for where in row.shown)
        lines.append(f"| `{row.code}` | {row.status} | {row.title} | {row.cause} | {shown} |")
    startup = [row.code for row in CODES.values() if Shown.STARTUP in row.shown]
    last = f"Start-up faults are `{startup[0]}` to `{startup[-1]}`: one line on standard error, then the end."
    return "\n".join([*lines, "", last, ""])


def http_page(operations: Sequence[Operation] = OPERATIONS) -> str:
    """``docs/reference/http.md``."""
    document = make_document(operations, "")
    lines = [
        "# HTTP interface",
        "",
        MADE,
        "",
        "The same declarations make `/openapi.json` and the page at `/docs` of a running server.",
        "Answers carry `request_id` beside the fields shown. The codes of each route are its own, and those",
        "that come with what it takes: a body, ids, a token.",
        "",
    ]
    for tag in dict.fromkeys(operation.tag for operation in operations):
        lines += [f"## {tag}", ""]
        for operation in operations:
            if operation.tag == tag:
                lines += _route(operation, document)
    return "\n".join(lines)


def _route(operation: Operation, document: dict[str, Any]) -> list[str]:
    described = document["paths"][operation.path][operation.method.lower()]
    lines = [f"### {operation.method} {operation.path}", "", operation.summary]
    if operation.notes:
        lines += ["", " ".join(operation.notes.split())]
    lines += ["", *[f"- {fact}" for fact in facts(operation)]]
    fields = [_field(parameter) for parameter in described["parameters"] if parameter.get("in") == "query"]
    if fields:
        lines.append(f"- Query: {', '.join(fields)}")
    shapes = {
        "Body": operation.body if operation.has_body else operation.documented_body,
        "Answer": operation.answer,
    }
    for word, shape in shapes.items():
        named = _fields(shape, document)
        if named:
            lines.append(f"- {word}: {named}")
    lines.append(f"- Codes: {', '.join(f'`{code}`' for code in operation.all_codes())}")
    return [*lines, ""]


def facts(operation: Operation) -> list[str]:
    """Who may call, what success is, and what is special."""
    who = operation.auth.value
    if operation.auth is Auth.MEMBER and operation.role is not None:
        who = f"{who}, role {operation.role.value} and above"
    if operation.tenant_wide and operation.auth is Auth.MEMBER:
        who += "; not limited to one workspace"
    statuses = " or ".join(str(status) for status in (operation.status, *operation.extra_statuses))
    lines = [f"For {who}", f"Success: {statuses}"]
    if operation.wait is not Wait.ORDINARY:
        lines.append(f"Deadline: {operation.wait.value}")
    if operation.deprecated:
        lines.append("Removed; only its shape is kept")
    return lines


def _field(parameter: dict[str, Any]) -> str:
    return f"`{parameter['name']}`"


def _fields(shape: Any, document: dict[str, Any]) -> str:
    if not isinstance(shape, type) or not issubclass(shape, msgspec.Struct):
        return ""
    schema = document["components"]["schemas"].get(shape.__name__, {})
    required = schema.get("required", ())
    return ", ".join(
        f"`{name}`" if name in required else f"`{name}`?"
        for name in schema.get("properties", {})
        if name != "request_id"
    )


def tools_page() -> str:
    """What assistants may use, as a page."""
    return reference_page(make_tools(OPERATIONS, make_document(OPERATIONS, "")), MADE)


PAGES: Final = {"errors.md": errors_page, "http.md": http_page, "mcp-tools.md": tools_page}


def write(folder: Path) -> None:
    for name, page in PAGES.items():
        (folder / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
