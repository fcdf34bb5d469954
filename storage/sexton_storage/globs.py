"""Globs in filters: ``*`` for any run of characters, ``?`` for one, all else itself."""

import re
from typing import Final

LAST_CHARACTER: Final = "\U0010ffff"
"""Sorts behind all text, byte by byte."""


def like_pattern(glob: str) -> str:
    r"""Spell a glob for SQL's LIKE.

    >>> like_pattern("cron:*")
    'cron:%'
    >>> like_pattern("100%_?")
    '100\\%\\__'
    """
    escaped = glob.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return escaped.replace("*", "%").replace("?", "_")


def literal_prefix(glob: str) -> str:
    """The part before the first wildcard.

    >>> literal_prefix("webhook:*"), literal_prefix("cron:0 5"), literal_prefix("*:git?")
    ('webhook:', 'cron:0 5', '')
    """
    return re.split(r"[*?]", glob, maxsplit=1)[0]


def matches(glob: str, text: str) -> bool:
    """Whether the whole text fits.

    >>> matches("steer:*", "steer:ann"), matches("steer:?", "steer:ann"), matches("[a]", "a")
    (True, False, False)
    """
    pattern = "".join({"*": ".*", "?": "."}.get(c, re.escape(c)) for c in glob)
    return re.fullmatch(pattern, text, re.DOTALL) is not None
