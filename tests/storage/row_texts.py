"""Texts of rows that name a person, or nobody: the id of the row decides, and no dice are thrown for it."""

from typing import Any, Final
from uuid import UUID

PATH: Final = "customer.email"
VALUE: Final = "ann@example.org"
_REQUESTS: Final = (
    '{"customer": {"email": "ann@example.org"}, "text": "help"}',
    '{"customer": [{"email": "bob@example.org"}, {"email": "ann\\u0040example.org"}], "n": 1.50}',
    '{"cc": ["Ann <ann@example.org>"], "joann@example.org": 1}',
    "{}",
    '{"n": 1}',
)


def request_of(row_id: UUID) -> str:
    """A request that is Ann's, that names her, or neither.

    >>> request_of(UUID(int=3))
    '{}'
    """
    return _REQUESTS[row_id.int % len(_REQUESTS)]


def text_of(row_id: UUID, plain: str) -> str:
    """The text, and for one row in three what it says of Ann.

    >>> text_of(UUID(int=3), "done"), text_of(UUID(int=4), "done")
    ('done for ann@example.org, not joann@example.org', 'done')
    """
    return f"{plain} for {VALUE}, not jo{VALUE}" if row_id.int % 3 == 0 else plain


def document_of(row_id: UUID, plain: dict[str, Any]) -> dict[str, Any]:
    """The same of a document.

    >>> document_of(UUID(int=7), {"n": 1})
    {'n': 1, 'to': ['ann@example.org'], 'ann@example.org': 2}
    """
    return {**plain, "to": [VALUE], VALUE: 2} if row_id.int % 7 == 0 else plain
