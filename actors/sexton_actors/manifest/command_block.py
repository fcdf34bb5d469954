"""Finds the block of SKILL.md that the command runtime runs."""

import re

import msgspec

from sexton_actors.manifest.model import Command

_MOST_SPACES = 3
"""As many as CommonMark lets stand before a fence."""
LANGUAGES = ("sh", "python")

_OPENING = re.compile(r"( {0,3})(`{3,}|~{3,})(.*)")
_HOW = "put the command into one block between a line ```sh (or ```python) and a line ```"


class NoCommand(msgspec.Struct, frozen=True):
    line: int
    message: str


def find_command(body: str, body_line: int) -> Command | NoCommand:
    r"""The one fenced block that can be run; fences are CommonMark's, an unclosed one is refused.

    >>> find_command("Say hello.\n\n```sh\necho hello\n```\n", body_line=5)
    Command(language='sh', code='echo hello\n', line=8)
    """
    commands: list[Command] = []
    lines = body.split("\n")
    number = 0
    while number < len(lines):
        opening = _opening(lines[number])
        if opening is None:
            number += 1
            continue
        indent, fence, language = opening
        end = _closing(lines, number + 1, fence)
        if end is None:
            return NoCommand(
                body_line + number, f"the block that begins here is not closed by a line {fence}"
            )
        if language in LANGUAGES:
            code = "".join(_unindented(line, indent) + "\n" for line in lines[number + 1 : end])
            commands.append(Command(language, code, body_line + number + 1))
        number = end + 1
    return _the_one(commands, body_line)


def _the_one(commands: list[Command], body_line: int) -> Command | NoCommand:
    if not commands:
        return NoCommand(body_line, f"runtime `command` needs a command; {_HOW}")
    if len(commands) > 1:
        return NoCommand(
            commands[1].line - 1,
            "a second sh or python block; keep one, and mark examples otherwise (```console, ```text)",
        )
    if not commands[0].code.strip():
        return NoCommand(commands[0].line, f"the block is empty; {_HOW}")
    return commands[0]


def _opening(line: str) -> tuple[int, str, str] | None:
    """Indentation, fence and first word after it."""
    found = _OPENING.fullmatch(line)
    if found is None:
        return None
    indent, fence, info = found.groups()
    if fence[0] == "`" and "`" in info:
        return None  # code within a line, not a fence
    return len(indent), fence, (info.split() or [""])[0].lower()


def _closing(lines: list[str], start: int, fence: str) -> int | None:
    for number in range(start, len(lines)):
        line = lines[number].rstrip()
        bare = line.lstrip(" ")
        is_fence = len(bare) >= len(fence) and not bare.strip(fence[0])
        if is_fence and len(line) - len(bare) <= _MOST_SPACES:
            return number
    return None


def _unindented(line: str, indent: int) -> str:
    spaces = len(line) - len(line.lstrip(" "))
    return line[min(spaces, indent) :]
