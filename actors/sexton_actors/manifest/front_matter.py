"""Takes a Markdown file apart into its front matter and its body."""

import msgspec

from sexton_actors.manifest.problems import INVALID_REQUEST, SKILL_FILE, Problems

MAX_FILE_BYTES = 65_536

_FENCES = frozenset({"---", "..."})
_FIELDS = {SKILL_FILE: "/source_markdown"}


class Front(msgspec.Struct, frozen=True):
    """Both parts with line feeds only, and the lines of the file, from 1, where they begin."""

    yaml: str
    yaml_line: int
    body: str
    body_line: int


def split(text: str, problems: Problems, *, fence_optional: bool = False) -> Front | None:
    """Split after the second ``---``; None with the problem noted.

    A byte order mark, CRLF and blank lines before the first ``---`` are all right. With ``fence_optional`` a
    file that does not begin with ``---`` is YAML as a whole.
    """
    if not _size_is_right(text, problems):
        return None
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    start = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if lines[start].rstrip() != "---":
        if fence_optional:
            return Front("\n".join(lines), 1, "", len(lines))
        problems.add(start + 1, "", "must begin with a line `---`, the front matter, and another line `---`")
        return None
    for number in range(start + 1, len(lines)):
        if lines[number].rstrip() in _FENCES:
            yaml = "\n".join(lines[start + 1 : number])
            return Front(yaml, start + 2, "\n".join(lines[number + 1 :]), number + 2)
    problems.add(start + 1, "", "the front matter is not closed; put a line `---` after it")
    return None


def _size_is_right(text: str, problems: Problems) -> bool:
    field = _FIELDS.get(problems.file, "/trigger_markdown")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        problems.add(1, field, "not UTF-8: it holds half of a surrogate pair", INVALID_REQUEST)
        return False
    if not 1 <= size <= MAX_FILE_BYTES:
        problems.add(1, field, f"must have 1 to {MAX_FILE_BYTES} bytes, has {size}", INVALID_REQUEST)
        return False
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        problems.add(line, field, "the character U+0000, which cannot be kept", INVALID_REQUEST)
        return False
    return True
