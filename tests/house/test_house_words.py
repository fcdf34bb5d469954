"""No file of the project says what does not belong in it."""

import re

from tests.house.survey import texts

# A letter of each word stands in brackets, so that this file does not find itself.
UNFINISHED = re.compile(r"\b(?:T[O]DO|FI[X]ME|X[X]X|HA[C]K)\b")
INDEX_HOST = re.compile(r"py[p]i\.org|python[h]osted|--(?:extra-)?index-ur[l][ =]|--find-link[s][ =]")
FOLDER_OF_A_MACHINE = re.compile(r"(?<![\w.~})-])/(?:home|Users|work)/[\w.-]+")
PRIVATE_KEY = re.compile(r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----\s+[A-Za-z0-9+/=]{40}")


def test_nothing_is_left_for_later() -> None:
    assert places(UNFINISHED) == []


def test_no_file_names_a_package_index() -> None:
    assert places(INDEX_HOST) == []


def test_no_file_names_a_folder_of_one_machine() -> None:
    assert places(FOLDER_OF_A_MACHINE) == []


def test_no_file_holds_a_private_key() -> None:
    assert places(PRIVATE_KEY) == []


def test_what_is_looked_for_would_be_found() -> None:
    assert UNFINISHED.search("# FIX" + "ME: later")
    assert INDEX_HOST.search("https://py" + "pi.org/simple")
    assert FOLDER_OF_A_MACHINE.search('data = "/ho' + 'me/somebody/sexton"')
    assert PRIVATE_KEY.search("-----BEGIN EC PRIVATE KEY-----\n" + "A" * 40)
    assert places(re.compile(r"^site_name: Sexton$", re.MULTILINE)) == ["mkdocs.yml:2: site_name: Sexton"]


def places(pattern: re.Pattern[str]) -> list[str]:
    """Where the pattern occurs, as ``file:line: what``."""
    return [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()}"
        for name, text in texts()
        for match in pattern.finditer(text)
    ]
