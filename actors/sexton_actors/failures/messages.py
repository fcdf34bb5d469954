"""What two messages of failures have in common: their words, without what is different each time."""

import hashlib
import re
from typing import Final

MAX_CHARS: Final = 240
"""The length of a line that is looked at, and of what is made of it."""
# In this order: each leaves what the next may not take for something else. None can go back and forth in a
# long text, as no two runs in one of them have a character in common.
_RULES: Final = (
    (re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]+"), " "),
    (re.compile(r"\b[a-zA-Z][a-zA-Z0-9+.-]{1,15}://[^\s'\"<>)\]]{1,1000}"), "<url>"),
    (re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"), "<id>"),
    (
        re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?)?(?:Z\b|[+-]\d\d:?\d\d\b)?"),
        "<time>",
    ),
    (re.compile(r"\b\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?\b"), "<time>"),
    (re.compile(r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}"), "<mail>"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b"), "<address>"),
    (re.compile(r"(?<![\w<])(?:~|\.{1,2})?(?:/[\w.@%+=~-]{1,255}){1,64}/?"), "<path>"),
    (re.compile(r"\b[a-zA-Z]:(?:\\[\w.@%+=~ -]{1,255}){1,64}"), "<path>"),
    (re.compile(r"\b0[xX][0-9a-fA-F]{1,64}\b"), "<hex>"),
    (re.compile(r"\b(?=[a-fA-F]{0,63}\d)[0-9a-fA-F]{8,64}\b"), "<hex>"),
    (re.compile(r"\b(?=[A-Za-z_-]{0,99}\d)[A-Za-z0-9_-]{20,100}\b"), "<id>"),
    (re.compile(r"\d{1,100}(?:[.,]\d{1,100}){0,8}"), "<n>"),
    (re.compile(r"\s+"), " "),
)


def alike(message: str) -> str:
    r"""The message without ids, numbers, times, addresses and paths.

    >>> alike("Timeout after 31.5 s at 2026-11-23T09:15:57Z (request 019363b0-0000-7000-8000-00000000ffff)")
    'Timeout after <n> s at <time> (request <id>)'
    >>> alike("open /var/lib/sexton/run-17/a.txt: no such file"), alike("exit status 137 at 0x7fffdead")
    ('open <path>: no such file', 'exit status <n> at <hex>')
    >>> alike("GET https://api.example.com/v1/x?y=1 gave 503 from 10.0.0.7:8080, mail ann@example.com")
    'GET <url> gave <n> from <address>, mail <mail>'
    >>> alike("key sk_live_51Hh29sKqLmN0pQ is wrong") == alike("key sk_live_99Zz11sKqLmN0pR is wrong")
    True
    >>> alike("Traceback (most recent call last):\n  File x\nKeyError: 'k'\n"), alike("")
    ("Traceback (most recent call last): … KeyError: 'k'", '')
    """
    lines = [line for line in message.splitlines() if line.strip()]
    # The first line says what happened, the last of a traceback why; what is between is as long as it likes.
    ends = lines if len(lines) <= 1 else [lines[0], lines[-1]]
    return " … ".join(_alike(line[:MAX_CHARS]) for line in ends)


def _alike(line: str) -> str:
    for pattern, instead in _RULES:
        line = pattern.sub(instead, line)
    return line.strip()[:MAX_CHARS]


def digest_of(failure_label: str | None, error_code: str | None, message: str) -> bytes:
    """What failures have in common that are alike; ``message`` as ``alike`` gives it.

    >>> digest_of("a", "b", "c") == digest_of("a", "b", "c") != digest_of("ab", "", "c")
    True
    """
    spelled = "\x00".join((failure_label or "", error_code or "", message))
    return hashlib.sha256(spelled.encode(errors="replace")).digest()
