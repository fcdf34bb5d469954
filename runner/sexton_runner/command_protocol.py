"""The lines that a sandboxed command sends to its runner, parsed defensively."""

import base64
import binascii
import re
from dataclasses import dataclass

MAX_LINE_BYTES = 4096  # PIPE_BUF: a write of this size to a pipe is never mixed with another.
MAX_WORD_CHARS = 1024
MAX_NAME_CHARS = 128
_ID = re.compile(r"[0-9]{1,10}")


@dataclass(frozen=True, slots=True)
class Started:
    """The sandbox stands and the program is about to run."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step begins, and the one before it has gone well."""

    name: str


@dataclass(frozen=True, slots=True)
class Progress:
    """The present step is still going on."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The present step has gone wrong."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the evidence for the ask that will come under the same id."""

    ask_id: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Ask:
    """The command waits for an approval."""

    ask_id: str
    action: str
    tool: str
    kind: str
    summary: str
    blast_radius: str


@dataclass(frozen=True, slots=True)
class Garbage:
    """Not a line of this protocol."""


Line = Started | Step | Progress | Failed | Part | Ask | Garbage


def parse(line: bytes) -> Line:
    """Read one line without its end; whatever is wrong with it makes it ``Garbage``.

    >>> parse(b"step YnVpbGQ=")
    Step(name='build')
    >>> parse(b"reboot now")
    Garbage()
    """
    try:
        # Bytes are parted at blanks alone; text would be at control characters as well.
        verb, *words = (word.decode("ascii") for word in line.split())
        return _read(verb, words)
    except (ValueError, binascii.Error):
        return Garbage()


def _read(verb: str, words: list[str]) -> Line:
    match verb, len(words):
        case "started", 0:
            return Started()
        case "progress", 0:
            return Progress()
        case "fail", 0:
            return Failed()
        case "step", 1:
            name = _text(words[0])[:MAX_NAME_CHARS]
            return Step(name) if name else Garbage()
        case "part", 2:
            return Part(_ask_id(words[0]), base64.b64decode(words[1], validate=True))
        case "ask", 6:
            action, tool, kind, summary, blast = (_text(word)[:MAX_WORD_CHARS] for word in words[1:])
            named = (action[:MAX_NAME_CHARS], tool[:MAX_NAME_CHARS], kind[:MAX_NAME_CHARS])
            return Ask(_ask_id(words[0]), *named, summary, blast) if action else Garbage()
        case _:
            return Garbage()


def _ask_id(word: str) -> str:
    if not _ID.fullmatch(word):
        raise ValueError(word)
    return word


def _text(word: str) -> str:
    return "" if word == "-" else base64.b64decode(word, validate=True).decode("utf-8", "replace")


def reply(verdict: str, ask_id: str, detail: str) -> bytes:
    r"""Spell an answer: ``approved``, ``denied`` or ``ended``, with a short text for the command's stdout.

    >>> reply("denied", "17", "")
    b'denied 17 -\n'
    """
    word = base64.b64encode(detail[:MAX_WORD_CHARS].encode()).decode() if detail else "-"
    return f"{verdict} {ask_id} {word}\n".encode()
