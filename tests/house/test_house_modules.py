"""Every module keeps the manners of the house."""

import ast
from pathlib import Path

from tests.house.survey import modules, relative, tree, wing_modules

MODULE_LINES = 400


def test_every_module_opens_with_its_caption() -> None:
    bare = [relative(path) for path in modules() if not has_caption(tree(path))]

    assert bare == [], "the first sentence of a module stands on its door: one line, with a full stop"


def test_every_module_can_be_read_at_one_sitting() -> None:
    long = {relative(path): lines for path in modules() if (lines := count_lines(path)) > MODULE_LINES}

    assert long == {}, f"split by concern what is longer than {MODULE_LINES} lines"


def test_nobody_inside_a_package_imports_its_face() -> None:
    selfish = [relative(path) for path in wing_modules() if package_of(path) in imported_modules(tree(path))]

    assert selfish == [], "the face is for other wings"


def test_imports_stand_in_the_open() -> None:
    hidden = [f"{relative(path)}:{line}" for path in wing_modules() for line in hidden_imports(tree(path))]

    assert hidden == [], "an import in a function, a condition or a try hides a wrong layer"


def test_what_is_looked_for_would_be_found() -> None:
    module = ast.parse(
        '"""Not a sentence"""\n'
        "from sexton_engine import Actor\n"
        "import sexton_storage.records\n"
        "def late():\n"
        "    import json\n"
    )

    assert not has_caption(module)
    assert imported_modules(module) == {"sexton_engine", "sexton_storage.records", "json"}
    assert hidden_imports(module) == [5]


def has_caption(module: ast.Module) -> bool:
    caption = (ast.get_docstring(module) or "").partition("\n\n")[0]
    return caption.endswith(".") and "\n" not in caption


def count_lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def package_of(path: Path) -> str:
    return relative(path).split("/")[1]


def imported_modules(module: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(module):
        match node:
            case ast.Import(names=names):
                found.update(name.name for name in names)
            case ast.ImportFrom(module=str(name), level=0):
                found.add(name)
            case _:
                pass
    return found


def hidden_imports(module: ast.Module) -> list[int]:
    """Lines of the imports that are not statements of the module itself."""
    return [
        node.lineno
        for statement in module.body
        if not isinstance(statement, ast.Import | ast.ImportFrom)
        for node in ast.walk(statement)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
