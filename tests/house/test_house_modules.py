"""Every module keeps the manners of the house."""

import ast
from pathlib import Path

from tests.house.survey import ROOT, modules, relative, tree, wing_modules

MODULE_LINES = 400
GENERATED = "clients/python/sexton_client/generated/"
TEST_LINES = 600
"""More, because a table of cases is read by looking up, not from the top."""


def test_every_module_opens_with_its_caption() -> None:
    bare = [relative(path) for path in modules() if not has_caption(tree(path))]

    assert bare == [], "the first sentence of a module stands on its door: one line, with a full stop"


def test_every_module_can_be_read_at_one_sitting() -> None:
    written = [path for path in modules() if GENERATED not in relative(path)]
    long = {relative(path): lines for path in written if (lines := count_lines(path)) > bound(path)}

    assert long == {}, "split by concern what is longer"


def test_nobody_inside_a_package_imports_its_face() -> None:
    selfish = [relative(path) for path in wing_modules() if uses_face(tree(path), package_of(path))]

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
    assert uses_face(module, package_of(ROOT / "engine/sexton_engine/actor.py"))
    assert uses_face(
        ast.parse("import sexton_storage"), package_of(ROOT / "storage/sexton_storage/stores.py")
    )
    assert not uses_face(module, package_of(ROOT / "storage/sexton_storage/stores.py"))
    assert hidden_imports(module) == [5]


def has_caption(module: ast.Module) -> bool:
    caption = (ast.get_docstring(module) or "").partition("\n\n")[0]
    return caption.endswith(".") and "\n" not in caption


def bound(path: Path) -> int:
    return TEST_LINES if relative(path).startswith("tests/") else MODULE_LINES


def count_lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def package_of(path: Path) -> Path:
    wing, package, *_ = relative(path).split("/")
    return ROOT / wing / package


def uses_face(module: ast.Module, package: Path) -> bool:
    """Tell names of the face from modules, which ``from package import module`` may take."""
    inside = {path.stem for path in package.iterdir()}
    for node in ast.walk(module):
        match node:
            case ast.Import(names=names) if any(name.name == package.name for name in names):
                return True
            case ast.ImportFrom(module=package.name, names=names) if not {n.name for n in names} <= inside:
                return True
            case _:
                pass
    return False


def hidden_imports(module: ast.Module) -> list[int]:
    """Lines of the imports that are not statements of the module itself."""
    return [
        node.lineno
        for statement in module.body
        if not isinstance(statement, ast.Import | ast.ImportFrom)
        for node in ast.walk(statement)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
