"""What is indexed of the words of an event."""

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from sexton_storage.event_filter.words import distinct_words

LEXEME_CHARS: Final = 64
"""A longer word is indexed by its beginning."""


def lexeme_of(word: str) -> str:
    """Give what is indexed of a word."""
    return word[:LEXEME_CHARS]


def workspace_lexeme(workspace_id: UUID) -> str:
    """Give what stands among the words of each event of a workspace, and is no word itself."""
    return f"#{workspace_id.hex}"


def lexemes_of(workspace_id: UUID, texts: Iterable[str | None]) -> str:
    r"""Give all that is indexed of an event, each once, with spaces between.

    >>> sorted(lexemes_of(UUID(int=7), ['{"say": "No\\nNo"}', None, "x" * 99]).split())[1:] == [
    ...     "no",
    ...     "say",
    ...     "x" * 64,
    ... ]
    True
    """
    words: set[bytes] = set()
    for text in texts:
        if text is not None:
            words |= distinct_words(text)
    if max(map(len, words), default=0) > LEXEME_CHARS:
        words = {
            lexeme_of(word.decode("utf-8", "surrogatepass")).encode("utf-8", "surrogatepass")
            for word in words
        }
    return b" ".join([workspace_lexeme(workspace_id).encode(), *words]).decode("utf-8", "surrogatepass")
