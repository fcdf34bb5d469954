"""Programs as pages show them: the fenced blocks of one language, with what each is said to print."""

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

FENCE: Final = re.compile(
    r"^(?P<fence>`{3,})(?P<language>\w*)\n(?P<text>.*?)^(?P=fence)$", re.MULTILINE | re.DOTALL
)
PRINTED: Final = "text"
"""A block of this language is what the block of each program that stands before it prints."""
VARIES: Final = "…"
MARKS: Final[Mapping[str, str]] = {
    "bash": "printf '@@ %s\\n' {}",
    "python": "print('@@', {}, flush=True)",
    "ts": "console.log('@@', {});",
}
"""How a program of each language says that its block of this number is over."""


class Block(NamedTuple):
    """One block of a program. ``printed``: what the page says that it prints, if it does."""

    line: int
    text: str
    printed: str | None


def blocks(page: str, language: str) -> list[Block]:
    r"""The blocks of one language.

    >>> page = "```bash\necho 1\n```\nor\n```ts\nconsole.log(1);\n```\n\n```text\n1\n```\n```bash\n:\n```\n"
    >>> blocks(page, "bash")
    [Block(line=1, text='echo 1\n', printed='1\n'), Block(line=12, text=':\n', printed=None)]
    >>> blocks(page, "ts")
    [Block(line=5, text='console.log(1);\n', printed='1\n')]
    """
    found = list(FENCE.finditer(page))
    return [
        Block(page.count("\n", 0, one.start()) + 1, one["text"], _printed(one["language"], found[at + 1 :]))
        for at, one in enumerate(found)
        if one["language"] == language
    ]


def _printed(language: str, following: list[re.Match[str]]) -> str | None:
    for one in following:
        if one["language"] == PRINTED:
            return one["text"]
        if one["language"] == language:
            return None
    return None


def program(page: str, language: str) -> str:
    """All blocks of a language as one program, which says after each that it is over."""
    mark = MARKS[language]
    return "".join(f"{block.text}\n{mark.format(block.line)}\n" for block in blocks(page, language))


def differences(page: str, language: str, output: str) -> Iterator[str]:
    r"""What a program printed otherwise than its page says.

    >>> page = "```bash\necho 1; date\n```\n\n```text\n1\n…\n```\n"
    >>> list(differences(page, "bash", "1\nMonday\n@@ 1\n"))
    []
    >>> list(differences(page, "bash", "2\nMonday\n@@ 1\n"))
    ["line 1 (bash) printed '2\\nMonday' and not '1\\n…'"]
    >>> list(differences(page, "bash", "1\n"))
    ['line 1 (bash) was not reached']
    """
    for block in blocks(page, language):
        printed, reached, output = _cut(output, f"@@ {block.line}\n")
        if not reached:
            yield f"line {block.line} ({language}) was not reached"
            return
        expected = (block.printed or "").strip()
        pattern = ".*".join(map(re.escape, expected.split(VARIES)))
        if block.printed is not None and not re.fullmatch(pattern, printed.strip(), re.DOTALL):
            yield f"line {block.line} ({language}) printed {printed.strip()!r} and not {expected!r}"


def _cut(output: str, mark: str) -> tuple[str, bool, str]:
    before, found, after = output.partition(mark)
    return before, bool(found), after
