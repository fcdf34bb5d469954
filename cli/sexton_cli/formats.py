"""Spells an answer for a program: as JSON, as YAML, or as the names of the things in it."""

from importlib import import_module
from typing import Any, Final

import msgspec

NAMES: Final = (
    "follow_up_id",
    "delivery_id",
    "gate_id",
    "lease_id",
    "proposal_id",
    "grant_id",
    "schedule_id",
    "failure_id",
    "job_id",
    "key_name",
    "name",
    "config_version_id",
    "credential",
    "event_id",
    "zombie_id",
    "workspace_id",
    "agent_id",
    "entry_id",
    "id",
    "kind",
    "key",
    "provider",
    "period_id",
)
"""The fields that name a thing as commands take it; the first that it has counts."""
ONCE: Final = ("key", "token", "approval_token", "sign_in_url", "webhook_urls")
"""What an answer shows once, and what would be lost where only names are written."""


def spelled(value: Any, form: str) -> bytes:
    r"""One document, indented for who looks at it all the same.

    >>> spelled({"a": [1, "no"]}, "yaml")
    b"a:\n- 1\n- 'no'\n"
    """
    if form == "yaml":
        return _yaml(value, explicit_start=False)
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def spelled_item(value: Any, form: str) -> bytes:
    r"""One of many documents.

    >>> spelled_item({"a": 1}, "json"), spelled_item({"a": 1}, "yaml")
    (b'{"a":1}\n', b'---\na: 1\n')
    """
    return _yaml(value, explicit_start=True) if form == "yaml" else msgspec.json.encode(value) + b"\n"


def names_in(value: Any) -> list[str]:
    """The names of the items of a list, or the one of a thing; what has no name is left out.

    >>> names_in({"items": [{"zombie_id": "1", "name": "echo"}, {"event_id": "2", "zombie_id": "1"}, {}]})
    ['echo', '2']
    >>> names_in({"job_id": "7", "kind": "replay"}), names_in({"total": 3})
    (['7'], [])
    """
    rows = _rows(value)
    return [name for row in ([value] if rows is None else rows) if (name := _name(row)) is not None]


def shown_once(value: Any) -> dict[str, str]:
    """What a single answer shows that nobody will show again.

    >>> shown_once({"key_name": "robot", "key": "zmb_t_0"}), shown_once({"key": "note", "deleted": True})
    ({'key': 'zmb_t_0'}, {})
    """
    if not isinstance(value, dict) or _rows(value) is not None:
        return {}
    name = _name(value)
    told = {field: value[field] for field in ONCE if value.get(field) and value[field] != name}
    return {
        field: " ".join(map(str, shown.values())) if isinstance(shown, dict) else str(shown)
        for field, shown in told.items()
    }


def _rows(value: Any) -> list[Any] | None:
    """The items of a list; of an answer of one list alone, those of that."""
    if not isinstance(value, dict):
        return None
    items = value.get("items")
    if isinstance(items, list):
        return items
    lists = [part for part in value.values() if isinstance(part, list) and part and isinstance(part[0], dict)]
    return lists[0] if len(lists) == 1 and _name(value) is None else None


def _name(row: Any) -> str | None:
    if not isinstance(row, dict):
        return None
    return next((str(row[field]) for field in NAMES if isinstance(row.get(field), str) and row[field]), None)


def _yaml(value: Any, *, explicit_start: bool) -> bytes:
    # Few ask for it, and it takes a while to import.
    made: bytes = import_module("sexton_cli.yaml_documents").document(value, explicit_start=explicit_start)
    return made
