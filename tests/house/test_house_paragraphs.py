"""In a test, what is done and what is asserted stand in paragraphs of their own."""

import ast
from collections.abc import Iterator
from itertools import pairwise
from typing import TypeAlias, TypeGuard

from tests.house.survey import modules, relative, tree

Block: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.With | ast.AsyncWith
SHORT = 3
"""A test with fewer statements reads as one paragraph."""
RULE = (
    "Part what a test does from what it asserts by a blank line. Where a test goes in steps, "
    "let a blank line follow the asserts of each step. It is missing after these lines."
)


def test_what_is_asserted_stands_apart_from_what_is_done() -> None:
    crowded = [
        f"{relative(path)}:{line}"
        for path in modules()
        if relative(path).startswith("tests/")
        for line in missing_blanks(tree(path), path.read_text(encoding="utf-8"))
    ]

    assert crowded == [], RULE


PLAIN = """\
def test_plain():
    one = 1
    two = one + 1
    # Two.
    assert two == 2
    assert one == 1
"""
STEPS = """\
async def test_steps():
    with world:
        one = 1
        assert one
        two = 2
        assert two
"""
SHORT_ONE = """\
def test_short():
    one = 1
    assert one == 1
"""


def test_what_is_looked_for_would_be_found() -> None:
    parted = PLAIN.replace("    # Two", "\n    # Two")

    assert missing_blanks(ast.parse(PLAIN), PLAIN) == [3]
    assert missing_blanks(ast.parse(STEPS), STEPS) == [4]
    assert missing_blanks(ast.parse(SHORT_ONE), SHORT_ONE) == []
    assert missing_blanks(ast.parse(parted), parted) == []


def missing_blanks(module: ast.Module, text: str) -> list[int]:
    """The lines after which a blank line is missing."""
    lines = text.splitlines()
    return sorted(
        done.end_lineno
        for body in bodies(module)
        for done, following in borders(body)
        if done.end_lineno is not None and all(lines[done.end_lineno : following.lineno - 1])
    )


def bodies(module: ast.Module) -> Iterator[list[ast.stmt]]:
    """What each test does, and what it does in its ``with`` blocks."""
    blocks: list[Block] = [node for node in ast.walk(module) if is_test(node)]
    while blocks:
        body = [statement for statement in blocks.pop().body if not is_docstring(statement)]
        yield body
        blocks += [node for node in body if isinstance(node, ast.With | ast.AsyncWith)]


def borders(body: list[ast.stmt]) -> Iterator[tuple[ast.stmt, ast.stmt]]:
    """Pairs that a blank line parts: before the asserts of a single act, or after those of each step."""
    if len(body) < SHORT:
        return
    pairs = [(one, other) for one, other in pairwise(body) if is_assert(one) != is_assert(other)]
    steps = [(one, other) for one, other in pairs if is_assert(one)]
    yield from steps or pairs


def is_test(node: ast.AST) -> TypeGuard[ast.FunctionDef | ast.AsyncFunctionDef]:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")


def is_assert(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assert)


def is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
