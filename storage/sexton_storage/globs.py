"""Globs in filters: ``*`` for any run of characters, ``?`` for one, all else itself."""

import re


def like_pattern(glob: str) -> str:
    r"""Spell a glob for SQL's LIKE.

    >>> like_pattern("cron:*")
    'cron:%'
    >>> like_pattern("100%_?")
    '100\\%\\__'
    """
    escaped = glob.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return escaped.replace("*", "%").replace("?", "_")


def matches(glob: str, text: str) -> bool:
    """Whether the whole text fits.

    >>> matches("steer:*", "steer:ann"), matches("steer:?", "steer:ann"), matches("[a]", "a")
    (True, False, False)
    """
    pattern = "".join({"*": ".*", "?": "."}.get(c, re.escape(c)) for c in glob)
    return re.fullmatch(pattern, text, re.DOTALL) is not None
