"""Puts a mutant in the place of what is imported already, in a process that ends with it."""

from __future__ import annotations

import ast
import functools
import inspect
import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from tests.mutation.makers import Mutant


def plant(mutant: Mutant) -> None:
    """Have the functions and constants of the product behave as the changed source says.

    A function keeps its identity and gets other code, so whoever imported it has the mutant too.
    """
    module = sys.modules[mutant.module]
    scratch = ModuleType(mutant.module)
    scratch.__dict__.update(
        {name: vars(module)[name] for name in ("__file__", "__package__", "__spec__", "__loader__")}
    )
    code = compile(mutant.source, inspect.getfile(module), "exec", dont_inherit=True)
    exec(code, scratch.__dict__)
    top, _, member = mutant.where.partition(".")
    before, after = vars(module)[top], vars(scratch)[top]
    if member:
        before, after = inspect.getattr_static(before, member), inspect.getattr_static(after, member)
    function, changed = function_in(before), function_in(after)
    if function is not None and changed is not None:
        function.__code__ = changed.__code__
        function.__defaults__ = changed.__defaults__
        function.__kwdefaults__ = changed.__kwdefaults__
        return
    for name in _made_from(top, mutant.source):
        _replace(name, vars(module)[name], vars(scratch)[name])


def function_in(value: Any) -> FunctionType | None:
    """The function itself, under what decorates it; None of what is none."""
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    elif isinstance(value, property):
        value = value.fget
    elif isinstance(value, functools.cached_property):
        value = value.func
    if callable(value) and not isinstance(value, type):
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
        if name not in names and names & used:
            names.add(name)
            yield name


def _replace(name: str, before: Any, after: Any) -> None:
    for other in list(sys.modules.values()):
        if isinstance(other, ModuleType) and vars(other).get(name) is before:
            setattr(other, name, after)
