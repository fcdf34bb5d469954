"""Makes the OpenAPI 3.1 document from the declarations."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from sexton_http.acting import FORM_TYPE
from sexton_http.context import VERSION
from sexton_http.operations import Auth, Creates, NoQuery, Operation, Wait, is_id
from sexton_http.problems import CODES
from sexton_http.told_headers import METHOD_NOT_ALLOWED, headers_of

REF: Final = "#/components/schemas/{name}"
PROBLEM: Final = {
    "type": "object",
    "description": "A problem document (RFC 9457); conflicts add their facts as members.",
    "required": ["docs_uri", "title", "detail", "error_code", "request_id", "type", "status", "error"],
    "properties": {
        "docs_uri": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "detail": {"type": "string"},
        "error_code": {"type": "string", "pattern": "^UZ-[A-Z0-9]+-[0-9]{3}$"},
        "request_id": {"type": "string", "format": "uuid"},
        "type": {"type": "string", "format": "uri"},
        "status": {"type": "integer"},
        "error": {
            "type": "object",
            "required": ["code", "message", "details"],
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "details": {"type": "object"},
            },
        },
    },
}
EVENT: Final = {
    "type": "object",
    "description": "One server-sent event; its data is one line of JSON.",
    "properties": {name: {"type": "string"} for name in ("id", "event", "data")},
}
TRACED: Final = {
    "type": "object",
    "required": ["request_id"],
    "properties": {"request_id": {"type": "string", "format": "uuid"}},
}
PRESS: Final = {
    "application/x-www-form-urlencoded": {
        "schema": {
            "type": "object",
            "required": ["payload"],
            "properties": {"payload": {"type": "string", "contentMediaType": "application/json"}},
        }
    }
}


def make_document(operations: Sequence[Operation], base_url: str) -> dict[str, Any]:
    """One document for all operations; every type they name is a component."""
    shapes = list(dict.fromkeys(_shapes(operations)))
    schemas, components = msgspec.json.schema_components(shapes, ref_template=REF)
    by_shape = dict(zip(shapes, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _describe(
            operation, by_shape, components
        )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Sexton",
            "version": VERSION,
            "description": "Agents that sleep until an event wakes them.",
        },
        "servers": [{"url": base_url}],
        "tags": [{"name": tag} for tag in dict.fromkeys(operation.tag for operation in operations)],
        "paths": paths,
        "components": {
            "schemas": {**components, "Problem": PROBLEM, "Traced": TRACED},
            "responses": {"MethodNotAllowed": METHOD_NOT_ALLOWED},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "browser": {"type": "apiKey", "in": "cookie", "name": "sexton"},
                "press": {"type": "apiKey", "in": "header", "name": "X-Slack-Signature"},
            },
        },
    }


def _shapes(operations: Iterable[Operation]) -> Iterable[Any]:
    for operation in operations:
        if operation.has_body:
            yield operation.body
        if operation.form is not None:
            yield operation.form
        if operation.told is not None:
            yield operation.told
        if operation.answer is not None:
            yield operation.answer
        if operation.query is not NoQuery:
            yield operation.query


def _describe(
    operation: Operation, by_shape: Mapping[Any, Any], components: Mapping[str, Any]
) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": _description(operation),
        "parameters": [
            *_path_parameters(operation),
            *_header_parameters(operation),
            *_query_parameters(operation, by_shape, components),
        ],
        "responses": _responses(operation, by_shape),
    }
    if operation.auth not in {Auth.PUBLIC, Auth.WEBHOOK}:
        described["security"] = _security(operation)
    if operation.has_body:
        described["requestBody"] = {
            "required": not operation.body_optional,
            "content": {
                "application/json": {"schema": by_shape[operation.body]},
                **(PRESS if operation.press else {}),
            },
        }
    elif operation.form is not None:
        content = {FORM_TYPE: {"schema": by_shape[operation.form]}}
        described["requestBody"] = {"required": True, "content": content}
    elif operation.told is not None:
        content = {"application/json": {"schema": by_shape[operation.told]}}
        described["requestBody"] = {"required": True, "content": content}
    elif operation.auth is Auth.WEBHOOK:
        described["requestBody"] = {"required": True, "content": {"*/*": {"schema": {}}}}
    if operation.deprecated:
        described["deprecated"] = True
    return described


def _security(operation: Operation) -> list[dict[str, list[str]]]:
    if operation.auth is Auth.BROWSER:
        return [{"browser": []}]
    if operation.press:
        return [{"bearer": []}, {"press": []}]
    return [{"bearer": []}, {"browser": []}] if operation.cookie else [{"bearer": []}]


def _description(operation: Operation) -> str:
    who = f"For {operation.auth.value}"
    if operation.agents:
        who += " or the agent's own key"
    if operation.role is not None:
        who += f", from the role {operation.role.value} on"
    if operation.tenant_wide:
        who += "; not for a token that is limited to one workspace"
    wait = "" if operation.wait is Wait.ORDINARY else f" Deadline: {operation.wait.value}."
    return " ".join(part for part in (operation.notes, f"{who}.{wait}") if part)


def _path_parameters(operation: Operation) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "format": "uuid"}
            if is_id(name)
            else {"type": "string", "minLength": 1},
        }
        for name in operation.params
    ]


def _header_parameters(operation: Operation) -> list[dict[str, Any]]:
    if operation.creates is Creates.NOTHING:
        return []
    return [
        {
            "name": "Idempotency-Key",
            "in": "header",
            "required": False,
            "description": "The same request under the same key within a day is answered as the first was.",
            "schema": {"type": "string", "pattern": "^[!-~]([ -~]{0,253}[!-~])?$"},
        }
    ]


def _query_parameters(
    operation: Operation, by_shape: Mapping[Any, Any], components: Mapping[str, Any]
) -> list[dict[str, Any]]:
    if operation.query is NoQuery:
        return []
    shape = components[by_shape[operation.query]["$ref"].rpartition("/")[2]]
    return [
        {"name": name, "in": "query", "required": name in shape.get("required", ()), "schema": _plain(schema)}
        for name, schema in shape["properties"].items()
    ]


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """A query cannot say null: what may be left out is simply not required."""
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:
        return {
            key: value for key, value in {**schema, **options[0]}.items() if key not in {"anyOf", "default"}
        }
    return schema


def _responses(operation: Operation, by_shape: Mapping[Any, Any]) -> dict[str, Any]:
    """By status. A page may say no with one that problem documents have, too; then either may come."""
    success, failures = _success(operation, by_shape), _failures(operation)
    both = {
        status: {
            **failures[status],
            "content": {**success[status].get("content", {}), **failures[status]["content"]},
        }
        for status in success.keys() & failures.keys()
    }
    return {**success, **failures, **both}


def _success(operation: Operation, by_shape: Mapping[Any, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {"description": operation.summary}
    schema: dict[str, Any]
    if operation.media != "application/json":
        schema = EVENT if operation.wait is Wait.STREAM else {"type": "string"}
        described["content"] = {operation.media: {"schema": schema}}
    elif operation.answer is not None:
        schema = {"allOf": [by_shape[operation.answer], {"$ref": REF.format(name="Traced")}]}
        if operation.untraced:
            schema = by_shape[operation.answer]
        described["content"] = {"application/json": {"schema": schema}}
    statuses = [operation.status, *operation.also]
    return {str(status): {**described, "headers": headers_of(operation, status)} for status in statuses}


def _failures(operation: Operation) -> dict[str, Any]:
    by_status: dict[int, list[str]] = {}
    # A parameter with a slash or a colon in it is part of another path.
    beside = {"UZ-REQ-003"} if operation.params else set()
    for code in sorted({*operation.all_codes(), *beside}, key=list(CODES).index):
        by_status.setdefault(operation.status_of(code), []).append(code)
    return {
        str(status): {
            "description": "; ".join(f"{code}: {CODES[code].title}" for code in codes),
            "headers": headers_of(operation, status),
            "content": {
                "application/problem+json": {
                    "schema": {
                        "allOf": [
                            {"$ref": REF.format(name="Problem")},
                            {"type": "object", "properties": {"error_code": {"enum": codes}}},
                        ]
                    }
                }
            },
        }
        for status, codes in sorted(by_status.items())
    }


def anchor(operation: Operation) -> str:
    """A name for a route within a page.

    >>> import re
    >>> re.sub(r"[^a-z0-9]+", "-", "GET /v1/x/{y_id}".lower()).strip("-")
    'get-v1-x-y-id'
    """
    return re.sub(r"[^a-z0-9]+", "-", f"{operation.method} {operation.path}".lower()).strip("-")
