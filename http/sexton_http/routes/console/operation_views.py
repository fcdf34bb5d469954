"""The interface as pages of the console show it: what each operation takes and gives."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from sexton_http.gateway.operations import Auth, Operation, Wait

MOST_SHAPES: Final = 12
"""Shapes that one page shows beside the first: what is in what is in it."""
REF: Final = "#/components/schemas/"
NO_SCHEMAS: Final[Mapping[str, Any]] = {}
TRIED: Final = frozenset({Auth.MEMBER, Auth.PLATFORM})
"""Who calls what can be tried: people do, with the rights that they have anyway."""


class Field(NamedTuple):
    name: str
    kind: str
    """As `string`, `list of EventItem` or `uuid or null`."""
    required: bool
    says: str


class Table(NamedTuple):
    """The fields of one shape."""

    name: str
    fields: Sequence[Field]


class Entry(NamedTuple):
    """One operation in the list of all."""

    name: str
    method: str
    path: str
    summary: str


class Group(NamedTuple):
    """What belongs to one thing."""

    tag: str
    says: str
    entries: Sequence[Entry]


class Described(NamedTuple):
    """One operation whole."""

    entry: Entry
    tag: str
    notes: str
    parameters: Sequence[Field]
    body: Sequence[Table]
    answer: Sequence[Table]
    sent: str
    """An example of its body as JSON; empty where it has none."""
    given: str
    """An example of its answer."""
    codes: Sequence[str]
    can_be_tried: bool


def groups_of(document: Mapping[str, Any]) -> Sequence[Group]:
    """All operations, by what they are about, in the order of the reference."""
    found: dict[str, list[Entry]] = {tag["name"]: [] for tag in document["tags"]}
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            entry = Entry(described["operationId"], method.upper(), path, described["summary"])
            found[described["tags"][0]].append(entry)
    return [Group(tag["name"], tag["description"], found[tag["name"]]) for tag in document["tags"]]


def describe_operation(document: Mapping[str, Any], operation: Operation) -> Described:
    """What the document says of an operation."""
    described = document["paths"][operation.path][operation.method.lower()]
    content = described.get("requestBody", {}).get("content", {})
    body: Mapping[str, Any] = content.get("application/json") or next(iter(content.values()), {})
    answer = described["responses"][str(operation.status)].get("content", {}).get("application/json", {})
    return Described(
        entry=Entry(operation.name, operation.method, operation.path, operation.summary),
        tag=operation.tag,
        notes=described["description"],
        parameters=[_parameter(document, one) for one in described["parameters"]],
        body=_tables(document, body.get("schema", {})),
        answer=_tables(document, answer.get("schema", {})),
        sent=_json(body),
        given=_json(answer),
        codes=operation.all_codes(),
        can_be_tried=can_be_tried(operation),
    )


def can_be_tried(operation: Operation) -> bool:
    """Whether people can call it from its page: it takes and gives JSON, at once."""
    is_plain = operation.media == "application/json" and operation.wait is Wait.ORDINARY
    return operation.auth in TRIED and is_plain and not operation.takes_bytes and not operation.deprecated


def kind_of(schema: Mapping[str, Any], schemas: Mapping[str, Any] = NO_SCHEMAS) -> str:
    """What may stand in a place, in words; an enumeration among ``schemas`` is shown by its values.

    >>> kind_of({"type": "array", "items": {"$ref": "#/components/schemas/EventItem"}})
    'list of EventItem'
    >>> kind_of({"type": ["string", "null"], "maxLength": 64})
    'string, 64 characters at most or null'
    >>> kind_of({"anyOf": [{"type": "string", "format": "uuid"}, {"type": "null"}]})
    'uuid or null'
    >>> kind_of({"enum": ["a", "b"]}), kind_of({"type": "integer", "minimum": 1, "maximum": 9}), kind_of({})
    ('"a" or "b"', 'integer, 1 to 9', 'anything')
    """
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        named = schemas.get(name, {})
        return kind_of(named) if "enum" in named else name
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(kind_of(one, schemas) for one in schema[several]))
    if "allOf" in schema:
        return kind_of(schema["allOf"][0], schemas)
    if "enum" in schema:
        return " or ".join(msgspec.json.encode(one).decode() for one in schema["enum"])
    kind = schema.get("type")
    if isinstance(kind, list | tuple):
        return " or ".join(kind_of({**schema, "type": one}) for one in kind)
    if kind == "array":
        return f"list of {kind_of(schema.get('items') or {}, schemas)}"
    if kind == "null":
        return "null"
    if kind is None:
        return "anything"
    return f"{schema.get('format') or kind}{_bounds(schema)}"


def _bounds(schema: Mapping[str, Any]) -> str:
    for least, most, what in (("minimum", "maximum", ""), ("minLength", "maxLength", " characters")):
        low, high = schema.get(least), schema.get(most)
        if high is not None:
            return f", {low:,} to {high:,}{what}" if low is not None else f", {high:,}{what} at most"
        if low:
            return f", {low:,}{what} at least"
    return ""


def _parameter(document: Mapping[str, Any], parameter: Mapping[str, Any]) -> Field:
    if "$ref" in parameter:
        parameter = document["components"]["parameters"][parameter["$ref"].rpartition("/")[2]]
    schema = parameter["schema"]
    where = {"path": "In the path. ", "header": "A header. "}.get(parameter["in"], "")
    says = parameter.get("description") or schema.get("description", "")
    kind = kind_of(schema, document["components"]["schemas"])
    return Field(parameter["name"], kind, bool(parameter.get("required")), f"{where}{says}")


def _tables(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Sequence[Table]:
    """The shape and those within it, each once, the outer ones first."""
    schemas = document["components"]["schemas"]
    waiting, seen, tables = _references(schema), set[str](), list[Table]()
    while waiting and len(tables) <= MOST_SHAPES:
        name = waiting.pop(0)
        shape = schemas.get(name, {})
        if name in seen or "properties" not in shape:
            continue
        seen.add(name)
        required = shape.get("required", ())
        fields = [
            Field(field, kind_of(inner, schemas), field in required, inner.get("description", ""))
            for field, inner in shape["properties"].items()
        ]
        tables.append(Table(name, fields))
        waiting += [one for inner in shape["properties"].values() for one in _references(inner)]
    return tables


def _references(node: Any) -> list[str]:
    if isinstance(node, Mapping):
        own = [node["$ref"].removeprefix(REF)] if isinstance(node.get("$ref"), str) else []
        return own + [name for value in node.values() for name in _references(value)]
    if isinstance(node, list | tuple):
        return [name for value in node for name in _references(value)]
    return []


def _json(content: Mapping[str, Any]) -> str:
    if "example" not in content:
        return ""
    return msgspec.json.format(msgspec.json.encode(content["example"]), indent=2).decode()
