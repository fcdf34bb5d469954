"""What the engine may know."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import sexton_engine

ALLOWED = {"trio", "pykka", "outcome", "prometheus_client", "sexton_engine"}
SOURCES = sorted(Path(sexton_engine.__file__).parent.glob("*.py"))


def imported(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                names.update(alias.name for alias in aliases)
            case ast.ImportFrom(module=str(module)):
                names.add(module)
            case _:
                pass
    return names


def test_the_engine_imports_nothing_but_trio_pykka_and_the_metrics() -> None:
    for source in SOURCES:
        roots = {name.partition(".")[0] for name in imported(ast.parse(source.read_text()))}
        assert roots <= ALLOWED | sys.stdlib_module_names, source.name


def test_its_modules_form_no_circle_and_do_not_import_their_own_face() -> None:
    graph = {
        source.stem: {
            name.removeprefix("sexton_engine.")
            for name in imported(ast.parse(source.read_text()))
            if name.startswith("sexton_engine")
        }
        for source in SOURCES
        if source.stem != "__init__"
    }
    assert not any("sexton_engine" in needs for needs in graph.values())

    while graph:
        free = {name for name, needs in graph.items() if not needs & graph.keys()}
        assert free, f"a circle among {sorted(graph)}"
        graph = {name: needs for name, needs in graph.items() if name not in free}


def test_everything_on_the_face_is_there() -> None:
    assert sorted(sexton_engine.__all__) == sorted(set(sexton_engine.__all__))
    assert all(hasattr(sexton_engine, name) for name in sexton_engine.__all__)
