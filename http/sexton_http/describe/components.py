"""Makes schemas into components that every reader of OpenAPI understands: short, plain, and all in use."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

NAME: Final = re.compile(r"[A-Z][A-Za-z0-9]*")
"""How a component is named: the classes of generated clients get these names."""
KINDS: Final = ("schemas", "responses", "headers", "parameters")
_NULL: Final = {"type": "null"}


def plain(schema: Any) -> Any:
    r"""The same, in words that all readers of JSON Schema have: patterns are those of ECMA-262.

    Without the flag ``m`` a dollar there is the end of the text, which in Python is spelled otherwise.

    >>> plain({"type": "string", "pattern": r"^[a-z]+\Z"})
    {'type': 'string', 'pattern': '^[a-z]+$'}
    >>> plain({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": None})
    {'type': ['integer', 'null'], 'minimum': 1, 'default': None}
    """
    if isinstance(schema, list | tuple):
        return [plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: plain(value) for key, value in schema.items() if not (key == "title" and isinstance(value, str))
    }
    if isinstance(kept.get("pattern"), str):
        kept["pattern"] = kept["pattern"].replace(r"\Z", "$")
    options = kept.get("anyOf", ())
    others = [option for option in options if option != _NULL]
    if len(options) == 2 and len(others) == 1 and isinstance(others[0].get("type"), str):  # noqa: PLR2004
        [other] = others
        if "enum" not in other and "const" not in other:
            del kept["anyOf"]
            kept = {**other, "type": [other["type"], "null"], **kept}
    return kept


def references(node: Any) -> Iterator[str]:
    """All that is referred to, anywhere within."""
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list | tuple):
        for value in node:
            yield from references(value)


def keep_used(document: dict[str, Any]) -> None:
    """Drop what nothing refers to: the shapes of queries stand as parameters in their routes."""
    kinds = {kind: document["components"][kind] for kind in KINDS}
    used: set[str] = set()
    ahead = list(references(document["paths"]))
    while ahead:
        reference = ahead.pop()
        if reference not in used:
            used.add(reference)
            kind, _, name = reference.removeprefix("#/components/").partition("/")
            ahead += references(kinds[kind][name])
    for kind, parts in kinds.items():
        document["components"][kind] = {
            name: part for name, part in parts.items() if f"#/components/{kind}/{name}" in used
        }


def check_names(schemas: Mapping[str, Any]) -> None:
    """Raises ValueError where generated clients would lose a type.

    >>> check_names({"Gate": {}, "routes.grants.Gate": {}})
    Traceback (most recent call last):
    ValueError: two types have one name, or one that is no name for a class: routes.grants.Gate
    """
    wrong = sorted(name for name in schemas if NAME.fullmatch(name) is None)
    if wrong:
        raise ValueError(f"two types have one name, or one that is no name for a class: {', '.join(wrong)}")
    folded: dict[str, str] = {}
    for name in schemas:
        other = folded.setdefault(name.casefold(), name)
        if other != name:
            raise ValueError(f"{other} and {name} are one file to some clients")
