"""Reads a part of a file whose keys are the author's own into plain JSON."""

import re
from typing import Any, assert_never

from sexton_actors.manifest.fields import Fields, yaml_type
from sexton_actors.manifest.nodes import Node, Scalar, Sequence, Table

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]{0,17})\.[0-9]{1,18}")
_PLAIN = {"true": True, "false": False, "null": None, "": None, "~": None}


def free_json(fields: Fields | None) -> dict[str, Any]:
    """The mapping as JSON; each value that YAML 1.1 and its author may read differently is a problem."""
    if fields is None:
        return {}
    return {entry.key: _value(entry.value, entry.key, fields) for entry in fields.entries()}


def _value(node: Node, key: str, fields: Fields) -> Any:
    match node:
        case Scalar():
            return _scalar(node, key, fields)
        case Sequence():
            return [_value(item, f"{key}[{number}]", fields) for number, item in enumerate(node.items)]
        case Table():
            return {entry.key: _value(entry.value, f"{key}.{entry.key}", fields) for entry in node.entries}
        case _:
            assert_never(node)


def _scalar(node: Scalar, key: str, fields: Fields) -> str | float | bool | None:
    if node.plain and _INTEGER.fullmatch(node.text):
        return int(node.text)  # The commonest, which every reader takes alike.
    kind = yaml_type(node)
    if kind in {"str", "timestamp"}:
        return node.text
    if node.text in _PLAIN:
        return _PLAIN[node.text]
    if _FLOAT.fullmatch(node.text):
        return float(node.text)
    fields.wrong(
        key,
        f"`{node.text[:64]}` can be read in two ways; write it in quotes, "
        "or as a plain number, true, false or null",
        line=node.line,
    )
    return None
