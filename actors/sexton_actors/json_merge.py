"""Changes a JSON document by another: RFC 7396."""

from typing import Any


def merged(document: Any, patch: Any) -> Any:
    """The document with the patch's fields in place of its own; a null takes a field away.

    >>> merged({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"c": None, "e": 4}, "f": [5]})
    {'a': 1, 'b': {'d': 3, 'e': 4}, 'f': [5]}
    >>> merged([1], {"a": {"b": None}}), merged({"a": 1}, "whole")
    ({'a': {}}, 'whole')
    """
    if not isinstance(patch, dict):
        return patch
    changed = dict(document) if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            changed.pop(name, None)
        else:
            changed[name] = merged(changed.get(name), value)
    return changed
