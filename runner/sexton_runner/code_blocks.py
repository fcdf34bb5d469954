"""Finds the program in an agent's instructions."""

import re
from dataclasses import dataclass

_FENCE = re.compile(r"(?P<indent> {0,3})(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*?)[ \t]*$")
MAX_INDENT = 3  # From four on, markdown takes the line for code.
_LANGUAGES = {"sh": "sh", "python": "python"}


@dataclass(frozen=True, slots=True)
class Block:
    """A runnable fenced block: ``language`` is ``sh`` or ``python``."""

    language: str
    source: str


def first_runnable(instructions: str) -> Block | None:
    r"""Give the first closed fenced block whose info string is ``sh`` or ``python``.

    Fences follow CommonMark: three or more backticks or tildes, closed by at least as many of the same.

    >>> first_runnable("Do this:\n```sh\necho hi\n```\n")
    Block(language='sh', source='echo hi\n')
    >>> first_runnable("```text\necho hi\n```") is None
    True
    """
    opening: re.Match[str] | None = None
    body: list[str] = []
    for line in instructions.replace("\r\n", "\n").split("\n"):
        if opening is None:
            opening, body = _FENCE.match(line), []
        elif not _closes(line, opening["fence"]):
            body.append(_unindented(line, len(opening["indent"])))
        elif language := _LANGUAGES.get(opening["info"].split(" ")[0]):
            return Block(language, "".join(f"{text}\n" for text in body))
        else:
            opening = None
    return None


def _unindented(line: str, most: int) -> str:
    return line[min(most, len(line) - len(line.lstrip(" "))) :]


def _closes(line: str, fence: str) -> bool:
    mark = line.strip()
    indent = len(line) - len(line.lstrip(" "))
    return indent <= MAX_INDENT and len(mark) >= len(fence) and set(mark) == {fence[0]}
