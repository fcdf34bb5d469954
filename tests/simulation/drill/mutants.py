"""Mutants of decisions and transitions, made by rule: one comparison, word or number at a time is another."""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import FunctionType, ModuleType
from typing import Any, Final

from tests.simulation.drill.planting import Fault

BESIDE: Final[Mapping[str, tuple[tuple[str, str, Callable[[Any], Any]], ...]]] = {
    # A firing that is kept again has the key of the first one, whatever is said of its plan.
    "append.is_due": (("sexton_actors.schedules.times", "key_of", lambda _: lambda *_, **__: None),),
}
"""What else is planted with the mutants of a function, where the product holds the same promise twice."""
CHANGES_NOTHING: Final[Mapping[str, str]] = {
    "end._is_unheard-2": "what a lease was handed is rejected and unheard",
}
"""Mutants that no history can tell from the rule, and why; a test with rows of its own stands for them."""
MODULES: Final = (
    "sexton_storage.decisions.claim",
    "sexton_storage.decisions.end",
    "sexton_storage.decisions.renew",
    "sexton_storage.decisions.gates",
    "sexton_storage.decisions.fence",
    "sexton_storage.decisions.charge",
    "sexton_storage.decisions.append",
)
_OPPOSITES: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


class _Change(ast.NodeTransformer):
    """Changes the one place of this number, and says how."""

    def __init__(self, place: int) -> None:
        self._left = place
        self.says = ""

    def _is_here(self, node: ast.AST, says: str) -> bool:
        self._left -= 1
        if self._left == -1:
            self.says = f"{ast.unparse(node)}: {says}"
        return self._left == -1

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        opposite = _OPPOSITES.get(type(node.ops[0]))
        if opposite is not None and self._is_here(node, "the opposite"):
            return ast.Compare(node.left, [opposite(), *node.ops[1:]], node.comparators)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        if self._is_here(node, "the other of and, or"):
            other = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
            return ast.BoolOp(other, node.values)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Add | ast.Sub) and self._is_here(node, "the other of plus, minus"):
            return ast.BinOp(node.left, ast.Sub() if isinstance(node.op, ast.Add) else ast.Add(), node.right)
        return node


def _mutant(function: FunctionType, place: int) -> tuple[str, FunctionType] | None:
    source = ast.parse(textwrap.dedent(inspect.getsource(function)))
    change = _Change(place)
    changed = ast.fix_missing_locations(change.visit(source))
    if not change.says:
        return None
    scope: dict[str, Any] = {}
    code = compile(changed, inspect.getfile(function), "exec", dont_inherit=True)
    exec(code, function.__globals__, scope)
    made: FunctionType = scope[function.__name__]
    return change.says, made


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    for value in vars(module).values():
        if isinstance(value, FunctionType) and value.__module__ == module.__name__:
            yield value


def mutants() -> Iterator[Fault]:
    """All of them, in the order of the sources."""
    for name in MODULES:
        module = importlib.import_module(name)
        for function in _functions(module):
            place = 0
            while (made := _mutant(function, place)) is not None:
                says, changed = made
                whole = f"{name.rpartition('.')[2]}.{function.__name__}"
                beside = BESIDE.get(whole, ())
                if beside:
                    says += "; and what else prevents it is away"
                yield Fault(
                    f"{whole}-{place}", says, name, function.__name__, partial(_instead, changed), beside
                )
                place += 1


def _instead(changed: FunctionType, _: Any) -> FunctionType:
    return changed


EVERY: Final = 9
"""The drill tries one mutant in this number, unless it is asked for more."""
MUTANTS: Final = tuple(mutants())
