"""What is wrong with an agent's files, described so that its author can fix it."""

import msgspec

SKILL_FILE = "SKILL.md"
TRIGGER_FILE = "TRIGGER.md"

INVALID_CONFIG = "UZ-ZMB-008"
NAMES_DIFFER = "UZ-ZMB-011"
INVALID_REQUEST = "UZ-REQ-001"
INVALID_GATES = "UZ-APPROVAL-001"
INVALID_CONDITION = "UZ-APPROVAL-005"

MAX_PROBLEMS = 32
"""Told at once; a file with more has its author look at these first."""
_MAX_KEY_CHARS = 200
_MAX_MESSAGE_CHARS = 600


class Problem(msgspec.Struct, frozen=True):
    """``line`` counts from 1; ``key`` is a path such as ``triggers[0].source``, empty for a whole file."""

    file: str
    line: int
    key: str
    message: str
    code: str


class ManifestRejected(msgspec.Struct, frozen=True):
    """``code`` and ``detail`` tell the first problem of the files; ``errors`` holds it and the others."""

    code: str
    detail: str
    errors: tuple[Problem, ...]


class Problems:
    """Collects what is wrong with one file, in the order found, at most ``MAX_PROBLEMS``."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[Problem] = []

    def add(self, line: int, key: str, message: str, code: str = INVALID_CONFIG) -> None:
        if len(self.found) < MAX_PROBLEMS:
            cut = Problem(self.file, line, key[:_MAX_KEY_CHARS], message[:_MAX_MESSAGE_CHARS], code)
            self.found.append(cut)


def rejected(errors: tuple[Problem, ...]) -> ManifestRejected:
    """``errors`` is not empty."""
    first = errors[0]
    return ManifestRejected(first.code, _detail(first), errors)


def _detail(problem: Problem) -> str:
    word = "ERR_ZOMBIE_INVALID_CONFIG: " if problem.code == INVALID_CONFIG else ""
    key = f", key `{problem.key}`" if problem.key else ""
    return f"{word}{problem.file} line {problem.line}{key}: {problem.message}"
