"""Finds which functions of the PostgreSQL stores write the status of which table."""

import ast
import importlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

import sexton_storage.postgres

PACKAGE = sexton_storage.postgres
ROOT = Path(PACKAGE.__path__[0])
_UPDATE = re.compile(
    r"\bUPDATE\s+(\w+)(?:\s+(?!SET\b)\w+)?\s+SET\s+(.*?)(?=\bWHERE\b|\bFROM\b|\Z)", re.DOTALL
)
_UPDATE_LIST = re.compile(r"\bUPDATE\s+(\w+)\s+SET\s+\(([^)]*)\)")
_INSERT = re.compile(r"\bINSERT\s+INTO\s+(\w+)\s*\(([^)]*)\)")
_STATUS = re.compile(r"(?:^|,)\s*(?:status|admin_state)\s*=")
_COLUMN = re.compile(r"\b(?:status|admin_state)\b")
_WITHOUT = {"key_uses"}
"""Tables whose status is an HTTP answer's."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


def tables_written(sql: str) -> set[str]:
    """The tables whose status a statement writes.

    >>> sorted(tables_written("UPDATE leases l SET version = 2, status = 'parked' WHERE l.id = $1"))
    ['leases']
    >>> tables_written("UPDATE leases SET version = 2 WHERE status = 'active'")
    set()
    """
    updated = {table for table, columns in _UPDATE.findall(sql) if _STATUS.search(columns)}
    listed = [*_INSERT.findall(sql), *_UPDATE_LIST.findall(sql)]
    return (updated | {table for table, columns in listed if _COLUMN.search(columns)}) - _WITHOUT


@cache
def writers() -> Mapping[str, set[str]]:
    """``module:function`` to the tables whose status it writes, itself or by what it calls in its module."""
    found: dict[str, set[str]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).with_suffix("").as_posix()
        module = importlib.import_module(f"{PACKAGE.__name__}.{name.replace('/', '.')}")
        for function, tables in _written_in(module, ast.parse(path.read_text(encoding="utf-8"))):
            if tables:
                found[f"{name}:{function}"] = tables
    return found


def _written_in(module: ModuleType, tree: ast.Module) -> Iterator[tuple[str, set[str]]]:
    functions = {node.name: node for node in tree.body if isinstance(node, Function)}
    for name, node in functions.items():
        if not name.startswith("_"):
            yield name, _reached(module, node, functions, set())
    for kind in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        for method in kind.body:
            if isinstance(method, Function):
                yield f"{kind.name}.{method.name}", _reached(module, method, functions, set())


def _reached(
    module: ModuleType, node: Function, functions: Mapping[str, Function], seen: set[str]
) -> set[str]:
    tables: set[str] = set()
    for part in ast.walk(node):
        match part:
            case ast.Name(id=name) if name in functions and name not in seen:
                seen.add(name)
                # What others may call is named for itself.
                if name.startswith("_"):
                    tables |= _reached(module, functions[name], functions, seen)
            case ast.Name(id=name) if isinstance(getattr(module, name, None), str):
                tables |= tables_written(getattr(module, name))
            case ast.Constant(value=str() as text):
                tables |= tables_written(text)
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=rows), attr="insert"),
                args=[ast.Constant(value=str() as table)],
            ):
                tables |= tables_written(getattr(module, rows).insert(table))
            case _:
                pass
    return tables
