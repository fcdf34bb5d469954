"""What a tool takes, as JSON Schema: the path, the query and the body of its route, side by side."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from sexton_http.gateway.operations import Creates, Operation, is_id

WORKSPACE: Final = "workspace_id"
KEY: Final = "idempotency_key"
LIMIT: Final = "limit"
TIMEOUT: Final = "timeout_s"
PAGE: Final = 20
"""How many of a list an assistant gets that names no number."""
MAX_WAIT_S: Final = 600
WAIT_S: Final = 120
_REF: Final = "#/components/schemas/"
_KEY: Final = {
    "type": "string",
    "minLength": 1,
    "maxLength": 255,
    "description": "The same call under the same key within a day is answered as the first was.",
}
_TIMEOUT: Final = {
    "type": "integer",
    "minimum": 1,
    "maximum": MAX_WAIT_S,
    "default": WAIT_S,
    "description": "Seconds to wait at most.",
}


def input_schema(
    operation: Operation, document: Mapping[str, Any], *, left_out: frozenset[str], waits: bool
) -> tuple[dict[str, Any], frozenset[str], frozenset[str]]:
    """The schema, and which of its properties belong to the query and to the body.

    Raises ValueError where one name is in two places.
    """
    described = document["paths"][operation.path][operation.method.lower()]
    path = {name: _path_parameter(name) for name in operation.params}
    asked = {one["name"]: one for one in described["parameters"] if one.get("in") == "query"}
    query = {name: _bounded(name, one["schema"]) for name, one in asked.items() if name not in left_out}
    body = _body(operation, described, document)
    fields = {name: one for name, one in body.get("properties", {}).items() if name not in left_out}
    required = [
        *operation.params,
        *(name for name in query if asked[name]["required"]),
        *(name for name in body.get("required", ()) if name in fields),
    ]
    more: dict[str, Any] = {}
    if operation.creates is not Creates.NOTHING:
        more[KEY] = _KEY
    if waits:
        more[TIMEOUT] = _TIMEOUT
    properties = {**path, **query, **fields, **more}
    if len(properties) < len(path) + len(query) + len(fields) + len(more):
        raise ValueError(f"{operation.name} takes two things of one name")
    schema: dict[str, Any] = {
        "type": "object",
        "properties": _local(properties),
        "required": required,
        "additionalProperties": False,
    }
    definitions = _definitions(properties, document["components"]["schemas"])
    if definitions:
        schema["$defs"] = definitions
    return schema, frozenset(query), frozenset(fields)


def _path_parameter(name: str) -> dict[str, Any]:
    return {"type": "string", "format": "uuid"} if is_id(name) else {"type": "string", "minLength": 1}


def _bounded(name: str, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**schema, "default": PAGE} if name == LIMIT else schema


def _body(
    operation: Operation, described: Mapping[str, Any], document: Mapping[str, Any]
) -> Mapping[str, Any]:
    if not operation.has_body:
        return {}
    schema = described["requestBody"]["content"]["application/json"]["schema"]
    named: Mapping[str, Any] = document["components"]["schemas"][schema["$ref"].removeprefix(_REF)]
    return named


def _definitions(properties: Mapping[str, Any], schemas: Mapping[str, Any]) -> dict[str, Any]:
    """All shapes that are referred to, and those within them."""
    found: dict[str, Any] = {}
    ahead = list(_references(properties))
    while ahead:
        name = ahead.pop()
        if name not in found:
            found[name] = _local(schemas[name])
            ahead += _references(schemas[name])
    return found


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].removeprefix(_REF)
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list | tuple):
        for value in node:
            yield from _references(value)


def _local(node: Any) -> Any:
    """The same with references that stay within it.

    >>> _local({"$ref": "#/components/schemas/EventStatus"})
    {'$ref': '#/$defs/EventStatus'}
    """
    if isinstance(node, Mapping):
        return {
            key: f"#/$defs/{value.removeprefix(_REF)}" if key == "$ref" else _local(value)
            for key, value in node.items()
        }
    return [_local(one) for one in node] if isinstance(node, list | tuple) else node
