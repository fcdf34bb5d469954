"""No file of the project says what does not belong in it, and all of them say it in plain English."""

import ast
import re
from collections.abc import Iterator

from tests.house.survey import relative, texts, tree, wing_modules

# A letter of each word stands in brackets, so that this file does not find itself.
UNFINISHED = re.compile(r"\b(?:T[O]DO|FI[X]ME|X[X]X|HA[C]K)\b")
INDEX_HOST = re.compile(r"py[p]i\.org|python[h]osted|--(?:extra-)?index-ur[l][ =]|--find-link[s][ =]")
FOLDER_OF_A_MACHINE = re.compile(r"(?<![\w.~})-])/(?:home|Users|work)/[\w.-]+")
PRIVATE_KEY = re.compile(r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----\s+[A-Za-z0-9+/=]{40}")
OLD_ENGLISH = re.compile(
    r"\b(?:ane[w]|hangs? o[n]|ha(?:s|ve) not th[e]|so man[y]|for wan[t] of|comes? roun[d]|in the plac[e] of"
    r"|shal[l]|whereo[f]|thereo[f]|slips of the pe[n])\b",
    re.IGNORECASE,
)
"""Plainly: again, belongs to, does not have the, at most, because, at intervals, instead of, will."""
BARE_START = re.compile(
    r"(?:Of|Its|His|Their|Theirs|Whose|That of|Those of|None:|So (?:many|much|long|often|far|that))\b"
)
"""A docstring that begins so can be read only together with the name that it belongs to."""
GERUND = re.compile(r"[a-z_]+ing")
GERUNDS_THAT_ARE_NOUNS = frozenset(
    {
        "billing",  # the trade's word, in the paths of the interface too
        "timing",  # a record of intervals
        "metering",  # the trade's word
        "matching",  # of a bipartite graph
        "masking",  # of secrets in logs
        "paging",  # of a list
        "scoring",  # the word of the interface
        "tracing",  # the trade's word
        "decoding",  # of bodies
    }
)


def test_nothing_is_left_for_later() -> None:
    assert places(UNFINISHED) == []


def test_no_file_names_a_package_index() -> None:
    assert places(INDEX_HOST) == []


def test_no_file_names_a_folder_of_one_machine() -> None:
    assert places(FOLDER_OF_A_MACHINE) == []


def test_no_file_holds_a_private_key() -> None:
    assert places(PRIVATE_KEY) == []


def test_no_text_uses_old_turns_of_phrase() -> None:
    found = [place for place in places(OLD_ENGLISH) if not place.startswith("LICENSE:")]

    assert found == []


def test_no_docstring_begins_with_a_bare_genitive() -> None:
    found = [
        f"{relative(path)}:{line}: {text}"
        for path in wing_modules()
        for line, text in docstrings(tree(path))
        if BARE_START.match(text)
    ]

    assert found == []


def test_modules_are_named_by_nouns() -> None:
    found = [relative(path) for path in wing_modules() if is_bare_gerund(path.stem)]

    assert found == []


def test_each_gerund_that_may_stay_is_in_use() -> None:
    assert {path.stem for path in wing_modules()} >= GERUNDS_THAT_ARE_NOUNS


def test_what_is_looked_for_would_be_found() -> None:
    assert UNFINISHED.search("# FIX" + "ME: later")
    assert INDEX_HOST.search("https://py" + "pi.org/simple")
    assert FOLDER_OF_A_MACHINE.search('data = "/ho' + 'me/somebody/sexton"')
    assert PRIVATE_KEY.search("-----BEGIN EC PRIVATE KEY-----\n" + "A" * 40)
    assert OLD_ENGLISH.search("So m" + "any at most.")
    assert OLD_ENGLISH.search("it begins an" + "ew")
    assert not OLD_ENGLISH.search("a new lease, whatever it hangs")
    assert places(re.compile(r"^site_name: Sexton$", re.MULTILINE)) == ["mkdocs.yml:2: site_name: Sexton"]


def test_a_bare_genitive_and_a_bare_gerund_would_be_found() -> None:
    module = ast.parse('"""Caption."""\n\nX = 1\n"""Of the key."""\n\n\ndef f():\n    """Its name."""\n')

    assert [text for _, text in docstrings(module) if BARE_START.match(text)] == ["Of the key.", "Its name."]
    assert is_bare_gerund("handing")
    assert not is_bare_gerund("billing")
    assert not is_bare_gerund("ring_buffer")


def docstrings(module: ast.Module) -> Iterator[tuple[int, str]]:
    """The line and first line of each docstring, and of each text that explains a name."""
    for node in ast.walk(module):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text.strip().split("\n")[0]
            case _:
                pass


def is_bare_gerund(stem: str) -> bool:
    return bool(GERUND.fullmatch(stem)) and stem not in GERUNDS_THAT_ARE_NOUNS


def places(pattern: re.Pattern[str]) -> list[str]:
    """Where the pattern occurs, as ``file:line: what``."""
    return [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()}"
        for name, text in texts()
        for match in pattern.finditer(text)
    ]
