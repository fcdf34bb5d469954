"""Reads paths so that no server can take an allowed one for another."""

import re
import unicodedata
from collections.abc import Sequence
from urllib.parse import unquote_to_bytes

MAX_DECODINGS = 4
_DOTS = re.compile(r"[. ]*\.[. ]*")
_BETWEEN = re.compile(r"[/\\]")
_ENCODED = re.compile(r"%[0-9a-fA-F]{2}")
_LOWEST_PRINTED = " "
_DELETE = "\x7f"


def without_dots(path: str) -> str:
    """Take plain ``.`` and ``..`` segments out, as RFC 3986 says.

    >>> without_dots("/a/b/../c/./d"), without_dots("/../a/.."), without_dots("/a//b")
    ('/a/c/d', '/', '/a//b')
    """
    found: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        match segment:
            case ".":
                pass
            case "..":
                del found[-1:]
            case _:
                found.append(segment)
    if segments[-1:] in (["."], [".."]) and found:
        found.append("")
    return "/" + "/".join(found)


def ambiguity(path: str) -> str | None:
    """Say how servers could differ about a path from which the plain dots are out; None when they cannot.

    Some decode twice, take a backslash for a slash, cut what follows a semicolon, or fold wide characters. A
    path that holds a ``..`` in any of these readings may lead out of its prefix.

    >>> ambiguity("/a/%2e%2e/b"), ambiguity("/a/..;x/b"), ambiguity("/@scope%2fname")
    ('hidden dots', 'hidden dots', None)
    """
    text = path
    for _ in range(MAX_DECODINGS):
        if not _ENCODED.search(text):
            break
        try:
            text = unquote_to_bytes(text).decode()
        except UnicodeDecodeError:
            return "percent codes that are no UTF-8"
    else:
        return "percent codes within percent codes"
    text = unicodedata.normalize("NFKC", text)
    if any(char < _LOWEST_PRINTED or char == _DELETE for char in text):
        return "control characters"
    segments = (segment.partition(";")[0] for segment in _BETWEEN.split(text))
    return "hidden dots" if any(_DOTS.fullmatch(segment) for segment in segments) else None


def lies_under(path: str, prefixes: Sequence[str]) -> bool:
    """Hold a path against prefixes, by whole segments. Both are compared as they are spelled.

    >>> lies_under("/repos/acme/x", ["/repos/acme"]), lies_under("/repos/acme-2", ["/repos/acme"])
    (True, False)
    >>> lies_under("/repos/acme", ["/repos/acme/"]), lies_under("/anything", ["/"])
    (True, True)
    """
    for prefix in prefixes:
        wanted = prefix.rstrip("/")
        if path == wanted or path.startswith(f"{wanted}/"):
            return True
    return False
