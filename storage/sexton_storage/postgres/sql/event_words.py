"""Writes what a filter asks of the words of events as a query of the index of words."""

from typing import Final
from uuid import UUID

from sexton_storage.event_filter.lexemes import lexeme_of, workspace_lexeme
from sexton_storage.records.event_filters import EventFilter, Field

TAIL: Final = """
SELECT f.event_id FROM frames f
 WHERE f.txid >= {} AND f.txid < 9223372036854775807 AND f.kind = ANY({}::text[]) AND f.event_id IS NOT NULL
"""
"""Events whose words may not be in the index yet: those with news behind its place."""
INDEXED: Final = "SELECT s.event_id FROM event_words s WHERE s.words @@ {}::tsquery"


def words_query(workspace_id: UUID, picked: EventFilter) -> str | None:
    """Give a ``tsquery`` that holds of every event that the filter picks; None: words do not narrow it down.

    It may hold of others too: words of a phrase need not stand beside one another, and long ones are cut.

    >>> from sexton_storage.event_filter.parse import parse_filter
    >>> query = words_query(UUID(int=7), parse_filter('"refused by host" text:a,b* status:received', now=0))
    >>> query.removeprefix(f"'{workspace_lexeme(UUID(int=7))}'")
    " & ('refused' & 'by' & 'host') & ('a' | 'b':*)"
    >>> words_query(UUID(int=7), parse_filter("-text:a type:push", now=0))
    """
    asked = [
        " | ".join(_phrase(value) for value in term.values)
        for term in picked.terms
        if term.field is Field.TEXT and not term.negated
    ]
    if not asked:
        return None
    return " & ".join([f"'{workspace_lexeme(workspace_id)}'", *(f"({one})" for one in asked)])


def _phrase(phrase: str) -> str:
    words = phrase.removesuffix("*").split(" ")
    asked = [f"'{lexeme_of(word)}'" for word in words]
    if phrase.endswith("*") and lexeme_of(words[-1]) == words[-1]:
        asked[-1] += ":*"
    return " & ".join(asked)
