"""How lists are sorted and paged."""

from uuid import UUID

import msgspec


class Page(msgspec.Struct, frozen=True):
    """Keyset position.

    Rows strictly before ``(created_at, id)`` when newest first, strictly after when oldest first.
    """

    created_at: int
    id: UUID


def sort_key(sort: str, allowed: frozenset[str]) -> tuple[str, bool]:
    """Split a sort order into its field and whether it descends; ValueError for a field that is not allowed.

    >>> sort_key("-created_at", frozenset({"created_at"}))
    ('created_at', True)
    """
    field = sort.removeprefix("-")
    if field not in allowed:
        raise ValueError(f"cannot sort by {sort!r}")
    return field, sort.startswith("-")


API_KEY_SORTS = frozenset({"created_at", "key_name"})
RUNNER_SORTS = frozenset({"created_at", "host_id"})
