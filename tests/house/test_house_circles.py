"""What the layer contracts cannot say about imports."""

import ast
from functools import cache
from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

from tests.house.survey import PACKAGES, modules, relative, tree

RUNTIME = "sexton_engine"


@cache
def imports() -> grimp.ImportGraph:
    first, *others = PACKAGES
    return grimp.build_graph(first, *others, cache_dir=None)


def test_no_circle_of_modules_closes() -> None:
    order = sort(
        {module: imports().find_modules_directly_imported_by(module) for module in imports().modules}
    )

    assert set(order) == imports().modules


def test_a_circle_would_be_seen() -> None:
    with pytest.raises(CycleError):
        sort({"left": {"right"}, "right": {"left"}})


def test_what_transitions_reach_takes_the_type_from_uuid_and_no_generator() -> None:
    taken = {name for module in reached_by_transitions() for name in names_from("uuid", tree_of(module))}

    assert taken <= {"UUID"}


def test_a_generator_of_ids_would_be_seen() -> None:
    assert names_from("uuid", ast.parse("import uuid\nfrom uuid import UUID, uuid4")) == {
        "*",
        "UUID",
        "uuid4",
    }


def sort(dependencies: dict[str, set[str]]) -> list[str]:
    return list(TopologicalSorter(dependencies).static_order())


def reached_by_transitions() -> set[str]:
    """Take all that a transition imports, directly or not, but the engine, which a contract keeps out."""
    roots = {module for module in imports().modules if "transitions" in module.split(".")}
    reached = roots.union(*(imports().find_upstream_modules(root) for root in roots))
    return {module for module in reached if not module.startswith(RUNTIME)}


def tree_of(module: str) -> ast.Module:
    stem = module.replace(".", "/")
    (path,) = (path for path in modules() if relative(path).endswith((f"/{stem}.py", f"/{stem}/__init__.py")))
    return tree(path)


def names_from(library: str, module: ast.Module) -> set[str]:
    """What a module takes from a library; the whole of it counts as ``*``."""
    found: set[str] = set()
    for node in ast.walk(module):
        match node:
            case ast.Import(names=names) if any(name.name == library for name in names):
                found.add("*")
            case ast.ImportFrom(module=name, names=names) if name == library:
                found.update(name.name for name in names)
            case _:
                pass
    return found
