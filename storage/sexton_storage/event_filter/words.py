"""What counts as a word when the texts of events are searched."""

import re
from typing import Final

from sexton_storage.records.event_filters import SEARCHED_CHARS

_ESCAPES: Final = re.compile(r'\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})')
_BETWEEN: Final = re.compile("[^a-z0-9_\u0080-\U0010ffff]+")
_KEPT: Final = b"abcdefghijklmnopqrstuvwxyz0123456789_"
_SMALL: Final = {byte: byte + 32 for byte in b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
_BYTES: Final = bytes([b if b in _KEPT or b >= 0x80 else _SMALL.get(b, 32) for b in range(256)])  # noqa: PLR2004
"""To each byte of UTF-8 what it counts as: capitals as small letters, what is between words as a space."""
_CAPITALS: Final = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def words_of(text: str) -> str:
    r"""Give the words of the beginning of a text, each between spaces.

    A word is a run of ASCII letters, digits, underscores and whatever is not ASCII; capital ASCII letters
    count as small ones. The escapes of JSON are no part of a word. PostgreSQL's ``sexton_words`` is the same.

    >>> words_of('{"say": "Hello,\\nworld-wide"}').split()
    ['say', 'hello', 'world', 'wide']
    """
    return f" {_BETWEEN.sub(' ', _ESCAPES.sub(' ', text[:SEARCHED_CHARS]).translate(_CAPITALS))} "


def distinct_words(text: str) -> set[bytes]:
    r"""Give each word that ``words_of`` gives, once, in UTF-8, in a third of the time.

    >>> sorted(distinct_words('{"say": "Hello,\\nHELLO-wide"}'))
    [b'hello', b'say', b'wide']
    """
    looked_at = text[:SEARCHED_CHARS]
    plain = _ESCAPES.sub(" ", looked_at) if "\\" in looked_at else looked_at
    # What is not ASCII is part of a word, and so is each of its bytes.
    return set(plain.encode("utf-8", "surrogatepass").translate(_BYTES).split())


def phrase_of(text: str) -> str:
    """Give the words of a phrase in their order, one space apart; a star at its end stays there.

    >>> phrase_of("Connection  REFUSED!"), phrase_of("refus*"), phrase_of("?!")
    ('connection refused', 'refus*', '')
    """
    words = " ".join(words_of(text).split())
    return f"{words}*" if words and text.endswith("*") else words


def has_phrase(words: str, phrase: str) -> bool:
    """Whether these words stand beside one another, the last of them as a whole unless a star follows it.

    >>> words = words_of("Connection refused by the host")
    >>> [has_phrase(words, phrase) for phrase in ("connection refused", "refus", "refus*", "by host")]
    [True, False, True, False]
    """
    wanted = f" {phrase.removesuffix('*')}" if phrase.endswith("*") else f" {phrase} "
    return wanted in words
