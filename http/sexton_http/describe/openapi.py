"""Makes the OpenAPI 3.1 document from the declarations."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from sexton_http.bodies.multipart import FORM_DATA
from sexton_http.describe.components import check_names, keep_used, plain, references
from sexton_http.describe.documented_headers import HEADERS
from sexton_http.describe.examples import EXAMPLES, Example
from sexton_http.describe.shared_answers import (
    PROBLEM,
    PROBLEM_ERROR,
    codes_by_status,
    describe,
    header_references,
    name_of,
    own_codes,
)
from sexton_http.describe.tags import TAGS
from sexton_http.error_codes.code import Shown
from sexton_http.gateway.operations import MAX_SEQ, Auth, Creates, NoQuery, Operation, Wait, is_id
from sexton_http.identity.context import VERSION
from sexton_http.pages.form_actions import FORM_TYPE
from sexton_http.problems import CODES
from sexton_storage.records.frames import PLACE

REF: Final = "#/components/schemas/{name}"
DESCRIPTION: Final = (
    "Agents that sleep until an event wakes them.\n\n"
    "Answers from 400 on are problem documents. `x-error-codes` says of each route which codes it has, by"
    " status, beside those that any may have (429, 500 and 503, and 404 `UZ-REQ-003`); `/docs/errors` says"
    " what they mean, and so does `x-error-codes` of this document. A path that exists answers other methods"
    " with 405 `UZ-REQ-004` and the header `Allow`. Every answer has the headers `Cache-Control`,"
    " `X-Content-Type-Options` and `Referrer-Policy`, and where the server is reached over https"
    " also `Strict-Transport-Security`."
)
EVENT: Final = {
    "type": "object",
    "description": "One server-sent event; its data is one line of JSON.",
    "properties": {name: {"type": "string"} for name in ("id", "event", "data")},
}
WEBHOOK: Final = {
    "type": "object",
    "description": "What the source sends. It is verified byte by byte, as it came.",
}
PARAMETERS: Final = {
    "IdempotencyKey": {
        "name": "Idempotency-Key",
        "in": "header",
        "required": False,
        "description": "The same request under the same key within a day is answered as the first was.",
        "schema": {"type": "string", "pattern": "^[!-~]([ -~]{0,253}[!-~])?$"},
    },
    "Range": {
        "name": "Range",
        "in": "header",
        "required": False,
        "description": "One range of bytes (RFC 9110); several are passed over.",
        "schema": {"type": "string"},
    },
    "IfRange": {
        "name": "If-Range",
        "in": "header",
        "required": False,
        "description": "The range counts only while the file has this `ETag`.",
        "schema": {"type": "string"},
    },
    "IfNoneMatch": {
        "name": "If-None-Match",
        "in": "header",
        "required": False,
        "description": "304 if the file has one of these entity tags.",
        "schema": {"type": "string"},
    },
    "LastEventId": {
        "name": "Last-Event-ID",
        "in": "header",
        "required": False,
        "description": "The last id that was seen: what was missed since comes first.",
        "schema": {"type": "integer", "format": "int64", "minimum": 0, "maximum": MAX_SEQ},
    },
    "LastPlace": {
        "name": "Last-Event-ID",
        "in": "header",
        "required": False,
        "description": "The last id that was seen: what was missed since comes first.",
        "schema": {"type": "string", "pattern": PLACE},
    },
}
BINARY: Final = {"type": "string", "format": "binary"}
_MEDIA: Final[dict[str, dict[str, Any]]] = {"text/event-stream": EVENT, "application/octet-stream": BINARY}
TRACED_MARK: Final = "traced"
TRACED: Final[dict[str, Any]] = {
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
    """One document for all operations; every type they name is a component with a name of its own."""
    shapes = list(dict.fromkeys(_shapes(operations)))
    schemas, made = msgspec.json.schema_components(shapes, ref_template=REF)
    components: dict[str, Any] = {name: plain(schema) for name, schema in made.items()}
    by_shape = dict(zip(shapes, schemas, strict=True))
    components |= {"Problem": PROBLEM, "ProblemError": PROBLEM_ERROR, "Traced": TRACED}
    _trace(operations, by_shape, components)
    paths: dict[str, dict[str, Any]] = {}
    responses: dict[str, Any] = {}
    parameters: dict[str, Any] = dict(PARAMETERS)
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _describe(operation, by_shape, made)
        parameters |= {name: _path_parameter(name) for name in operation.params}
        for status in codes_by_status(operation):
            responses[name_of(operation, status)] = describe(operation, status)
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": "Sexton",
            "version": VERSION,
            "description": DESCRIPTION,
            "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": base_url}],
        "tags": [
            {"name": tag, "description": TAGS[tag]}
            for tag in TAGS
            if any(operation.tag == tag for operation in operations)
        ],
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": responses,
            "headers": HEADERS,
            "parameters": parameters,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "browser": {"type": "apiKey", "in": "cookie", "name": "sexton"},
                "press": {"type": "apiKey", "in": "header", "name": "X-Slack-Signature"},
            },
        },
        "x-error-codes": {row.code: row.cause for row in CODES.values() if row.shown != (Shown.STARTUP,)},
    }
    check_names(components)
    keep_used(document)
    return document


def _trace(operations: Iterable[Operation], by_shape: dict[Any, Any], components: dict[str, Any]) -> None:
    """Give answers their request_id: in their own schema, where that is not a part of others as well."""
    inner = set(references(components))
    bare = {operation.answer for operation in operations if operation.untraced}
    for shape in {operation.answer for operation in operations} - bare - {None}:
        reference = by_shape[shape].get("$ref", "")
        if reference in inner or not reference:
            by_shape[shape, TRACED_MARK] = {"allOf": [by_shape[shape], {"$ref": REF.format(name="Traced")}]}
            continue
        schema = components[reference.rpartition("/")[2]]
        schema["properties"] = {**schema["properties"], **TRACED["properties"]}
        schema["required"] = [*schema.get("required", ()), *TRACED["required"]]


def _shapes(operations: Iterable[Operation]) -> Iterable[Any]:
    for operation in operations:
        if operation.has_body:
            yield operation.body
        if operation.form is not None:
            yield operation.form
        if operation.documented_body is not None:
            yield operation.documented_body
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
            *[{"$ref": f"#/components/parameters/{name}"} for name in _named_parameters(operation)],
            *_query_parameters(operation, by_shape, components),
        ],
        "responses": _responses(operation, by_shape),
    }
    described["security"] = _security(operation)
    described["x-error-codes"] = own_codes(operation)
    if operation.has_body:
        described["requestBody"] = {
            "required": not operation.body_optional,
            "content": {
                "application/json": {"schema": by_shape[operation.body]},
                **(PRESS if operation.press else {}),
                **({} if operation.intake is None else {FORM_DATA: {"schema": operation.intake.schema}}),
            },
        }
    elif operation.form is not None:
        content = {FORM_TYPE: {"schema": by_shape[operation.form]}}
        described["requestBody"] = {"required": True, "content": content}
    elif operation.documented_body is not None:
        content = {"application/json": {"schema": by_shape[operation.documented_body]}}
        described["requestBody"] = {"required": True, "content": content}
    elif operation.takes_bytes:
        content = {"application/octet-stream": {"schema": BINARY}}
        described["requestBody"] = {"required": True, "content": content}
    elif operation.auth is Auth.WEBHOOK:
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": WEBHOOK}}}
    if operation.deprecated:
        described["deprecated"] = True
    _show_examples(operation, described)
    return described


def _show_examples(operation: Operation, described: dict[str, Any]) -> None:
    example = EXAMPLES.get(operation.name, Example())
    if example.request is not msgspec.UNSET:
        described["requestBody"]["content"]["application/json"]["example"] = example.request
    for status, answer in example.answers.items():
        response = described["responses"][status]
        shown = {**response["content"]["application/json"], "example": answer}  # Statuses share a schema.
        response["content"] = {**response["content"], "application/json": shown}


def _security(operation: Operation) -> list[dict[str, list[str]]]:
    """An empty list says that no token is needed; a webhook is proved by its sender's own signature."""
    if operation.auth in {Auth.PUBLIC, Auth.WEBHOOK}:
        return []
    if operation.auth is Auth.SCRAPER:
        return [{}, {"bearer": []}]
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


def _path_parameter(name: str) -> dict[str, Any]:
    schema = {"type": "string", "format": "uuid"} if is_id(name) else {"type": "string", "minLength": 1}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _named_parameters(operation: Operation) -> list[str]:
    named = list(operation.params)
    if operation.creates is not Creates.NOTHING:
        named.append("IdempotencyKey")
    if operation.ranges:
        named += ["Range", "IfRange", "IfNoneMatch"]
    if operation.resumes:
        named.append(operation.resumes)
    return named


def _query_parameters(
    operation: Operation, by_shape: Mapping[Any, Any], components: Mapping[str, Any]
) -> list[dict[str, Any]]:
    if operation.query is NoQuery:
        return []
    shape = components[by_shape[operation.query]["$ref"].rpartition("/")[2]]
    return [
        {
            "name": name,
            "in": "query",
            "required": name in shape.get("required", ()),
            "schema": plain(_said(schema)),
        }
        for name, schema in shape["properties"].items()
    ]


def _said(schema: dict[str, Any]) -> dict[str, Any]:
    """A query cannot say null: what may be left out is simply not required."""
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:
        return {
            key: value for key, value in {**schema, **options[0]}.items() if key not in {"anyOf", "default"}
        }
    return schema


def _responses(operation: Operation, by_shape: Mapping[Any, Any]) -> dict[str, Any]:
    """By status. A page may say no with one that problem documents have, too; then either may come."""
    responses = _success(operation, by_shape)
    for status in codes_by_status(operation):
        if str(status) in responses:
            mine = responses[str(status)]
            mine["content"] = {**mine.get("content", {}), **describe(operation, status)["content"]}
        else:
            reference = f"#/components/responses/{name_of(operation, status)}"
            responses[str(status)] = {"$ref": reference}
    return dict(sorted(responses.items()))


def _success(operation: Operation, by_shape: Mapping[Any, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {"description": "Done."}
    schema: dict[str, Any]
    if operation.media != "application/json":
        medias = operation.media.split(", ")
        described["content"] = {media: {"schema": _MEDIA.get(media, {"type": "string"})} for media in medias}
        if "application/json" in medias and operation.answer is not None:
            described["content"]["application/json"] = {"schema": by_shape[operation.answer]}
    elif operation.answer is not None:
        schema = by_shape[operation.answer]
        if not operation.untraced:
            schema = by_shape.get((operation.answer, TRACED_MARK), schema)
        described["content"] = {"application/json": {"schema": schema}}
    return {
        str(status): {**described, "headers": header_references(operation, status)}
        for status in (operation.status, *operation.extra_statuses)
    }


def anchor(operation: Operation) -> str:
    """A name for a route within a page.

    >>> import re
    >>> re.sub(r"[^a-z0-9]+", "-", "GET /v1/x/{y_id}".lower()).strip("-")
    'get-v1-x-y-id'
    """
    return re.sub(r"[^a-z0-9]+", "-", f"{operation.method} {operation.path}".lower()).strip("-")
