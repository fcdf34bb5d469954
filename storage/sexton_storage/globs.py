"""Globs in filters: ``*`` for any run of characters, all else itself."""

import re
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
    """Whether the whole text fits.

    >>> matches("steer:*", "steer:ann"), matches("what?", "what!"), matches("[a]", "a")
    (True, False, False)
    """
    return re.fullmatch(".*".join(map(re.escape, glob.split("*"))), text, re.DOTALL) is not None
