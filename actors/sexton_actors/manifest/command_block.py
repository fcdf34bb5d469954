"""Finds the block of SKILL.md that the command runtime runs."""

import re

import msgspec

from sexton_actors.manifest.model import Command

LANGUAGES = ("sh", "python")
MAX_FENCES = 1_024
"""Lines that begin or end a block: each is looked at by itself."""

_OPENING = re.compile(r"( {0,3})(`{3,}|~{3,})(.*)")
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
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
    fences = _fences(body)
    if len(fences) > MAX_FENCES:
        return NoCommand(body_line + fences[-1].line, f"more than {MAX_FENCES:,} lines with ``` or ~~~")
    at = 0
    while at < len(fences) and len(commands) <= 1:
        opening = _opening(fences[at].text)
        if opening is None:
            at += 1
            continue
        indent, fence, language = opening
        begun, end = fences[at], _closing(fences, at + 1, fence)
        if end is None:
            return NoCommand(
                body_line + begun.line, f"the block that begins here is not closed by a line {fence}"
            )
        if language in LANGUAGES:
            code = body[begun.end : fences[end].start]
            commands.append(Command(language, _unindented(code, indent), body_line + begun.line + 1))
        at = end + 1
    return _the_one(commands, body_line)


class _Fence(msgspec.Struct, frozen=True):
    """A line that may begin or end a block."""

    text: str
    line: int
    start: int
    end: int
    """Where the next line begins."""


def _fences(body: str) -> list[_Fence]:
    found: list[_Fence] = []
    line = last = 0
    for match in _FENCE.finditer(body):
        start = match.start()
        line += body.count("\n", last, start)
        last = start
        end = body.find("\n", start)
        end = len(body) if end < 0 else end
        found.append(_Fence(body[start:end], line, start, min(end + 1, len(body))))
        if len(found) > MAX_FENCES:
            break
    return found


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


def _closing(fences: list[_Fence], start: int, fence: str) -> int | None:
    for number in range(start, len(fences)):
        line = fences[number].text.rstrip()
        bare = line.lstrip(" ")
        if len(bare) >= len(fence) and not bare.strip(fence[0]):
            return number
    return None


def _unindented(code: str, indent: int) -> str:
    """Without the blanks that stand before the fence."""
    return re.sub(rf"^ {{1,{indent}}}", "", code, flags=re.MULTILINE) if indent else code
