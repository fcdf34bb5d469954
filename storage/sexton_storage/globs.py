"""Globs in filters: ``*`` for any run of characters, all else itself."""

from typing import Final

LAST_CHARACTER: Final = "\U0010ffff"
"""Sorts behind all text, byte by byte."""


def like_pattern(glob: str) -> str:
    r"""Spell a glob for SQL's LIKE.

    >>> like_pattern("cron:*")
    'cron:%'
    >>> like_pattern("100%_?")
    '100\\%\\_?'
    """
    return glob.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_").replace("*", "%")


def literal_prefix(glob: str) -> str:
    """The part before the first wildcard.

    >>> literal_prefix("webhook:*"), literal_prefix("what?"), literal_prefix("*:git")
    ('webhook:', 'what?', '')
    """
    return glob.partition("*")[0]


def matches(glob: str, text: str) -> bool:
    """Whether the whole text fits; in time that grows with the text, however many wildcards there are.

    >>> matches("steer:*", "steer:ann"), matches("what?", "what!"), matches("[a]", "a")
    (True, False, False)
    >>> matches("a*b*c", "abbc"), matches("aa*aa", "aaa"), matches("*", "")
    (True, False, True)
    """
    first, *others = glob.split("*")
    if not others:
        return text == glob
    *inner, last = others
    at, end = len(first), len(text) - len(last)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    for part in inner:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True
