"""A path that a line of the log tells has its secrets masked: a webhook's, a sign-in link's."""

import ast
from collections.abc import Iterator

from tests.house.survey import modules, relative, tree

LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}


def test_no_path_is_logged_as_it_came() -> None:
    bare = [
        f"{relative(path)}:{line}"
        for path in modules()
        if relative(path).startswith("http/")
        for line in bare_paths(tree(path))
    ]

    assert bare == [], "log masked(path), for secrets stand in paths"


def test_what_is_looked_for_would_be_found() -> None:
    assert list(bare_paths(ast.parse('log.info("x", path=head.path)'))) == [1]
    assert list(bare_paths(ast.parse('log.info("x", where=scope["path"])'))) == [1]
    assert list(bare_paths(ast.parse('log.info("x", path=masked(head.path), route=operation.path)'))) == []


def bare_paths(module: ast.Module) -> Iterator[int]:
    """The lines of calls of a logger that tell the path of a request, and do not mask it."""
    for call in ast.walk(module):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        if call.func.attr in LEVELS and ast.unparse(call.func.value) == "log":
            yield from (call.lineno for word in call.keywords if _is_bare(word.value))


def _is_bare(value: ast.expr) -> bool:
    if isinstance(value, ast.Attribute):
        return value.attr == "path" and not ast.unparse(value).endswith("operation.path")
    return isinstance(value, ast.Subscript) and ast.unparse(value.slice) == "'path'"
