"""Puts a mutant instead of what is imported already, in a process that ends with it."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any, Final

from tests.mutation.makers import Mutant

_CALLED: Final = "__called__"


def plant(mutant: Mutant) -> None:
    """Have the functions and constants of the product behave as the changed source says.

    A function keeps its identity and gets other code, so whoever imported it has the mutant too.
    """
    module = sys.modules[mutant.module]
    scratch = _made(module, mutant.source)
    function, changed = function_at(module, mutant.where), function_at(scratch, mutant.where)
    if function is not None and changed is not None:
        _give_code(function, changed)
        return
    for name in _made_from(mutant.where, mutant.source):
        _replace(name, vars(module)[name], vars(scratch)[name])


def note_calls(module: ModuleType, text: str) -> set[tuple[str, str]]:
    """Have each function of a module note in this set that it was called: the module, and the function."""
    source, called = ast.parse(text), set[tuple[str, str]]()
    places = [
        (f"{one.name}.{inner.name}" if isinstance(one, ast.ClassDef) else inner.name, inner)
        for one in source.body
        for inner in (one.body if isinstance(one, ast.ClassDef) else [one])
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    for where, function in places:
        note = ast.parse(f"{_CALLED}.add(({module.__name__!r}, {where!r}))").body[0]
        function.body.insert(0, note)
    scratch = _made(module, source)
    setattr(module, _CALLED, called)
    for where, _ in places:
        before, after = function_at(module, where), function_at(scratch, where)
        if before is not None and after is not None:
            _give_code(before, after)
    return called


def _made(module: ModuleType, source: ast.Module) -> ModuleType:
    """The module once more, from another source, and known to nobody."""
    scratch = ModuleType(module.__name__)
    scratch.__dict__.update(
        {name: vars(module)[name] for name in ("__file__", "__package__", "__spec__", "__loader__")}
    )
    code = compile(ast.fix_missing_locations(source), inspect.getfile(module), "exec", dont_inherit=True)
    exec(code, scratch.__dict__)
    return scratch


def _give_code(function: FunctionType, other: FunctionType) -> None:
    function.__code__ = other.__code__
    function.__defaults__ = other.__defaults__
    function.__kwdefaults__ = other.__kwdefaults__


def function_at(module: ModuleType, where: str) -> FunctionType | None:
    """The function of this name, or ``Class.method``; None where something else has the name."""
    top, _, member = where.partition(".")
    value = vars(module)[top]
    return function_in(inspect.getattr_static(value, member) if member else value)


def function_in(value: Any) -> FunctionType | None:
    """The function itself, under what decorates it; None of what is none."""
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    elif isinstance(value, property):
        value = value.fget
    elif isinstance(value, functools.cached_property):
        value = value.func
    if hasattr(value, "__wrapped__"):
        value = inspect.unwrap(value)
    return value if isinstance(value, FunctionType) else None


def _made_from(constant: str, source: ast.Module) -> Iterator[str]:
    """Its name, and those of the constants after it that are computed from it."""
    names = {constant}
    yield constant
    for statement in source.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                pass
            case _:
                continue
        used = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
        if names & used and name not in names:
            names.add(name)
            yield name


def _replace(name: str, before: Any, after: Any) -> None:
    for other in list(sys.modules.values()):
        if getattr(other, name, None) is before:
            setattr(other, name, after)
