"""The client libraries are apart from the wings, and know every route that is for programs."""

import ast
import sys
import tomllib

from sexton_client import ErrorCode
from sexton_client.generated import operations
from sexton_client.generated.codes import HINTS
from sexton_client.messages import Operation
from sexton_http.error_codes.code import Shown
from sexton_http.problems import CODES
from sexton_http.routes.table import OPERATIONS
from tests.house.survey import PACKAGES, ROOT, modules, relative, tree, wing_modules

CLIENT = "clients/python/sexton_client/"
MAY_IMPORT = {"sexton_client", "anyio", "httpx2", "msgspec", *sys.stdlib_module_names}
NAMES = tomllib.loads((ROOT / "clients/names.toml").read_text())


def imported(module: ast.Module) -> set[str]:
    """The top of each name that a module imports."""
    found: set[str] = set()
    for node in ast.walk(module):
        match node:
            case ast.Import(names=names):
                found |= {name.name.partition(".")[0] for name in names}
            case ast.ImportFrom(module=str(name)):
                found.add(name.partition(".")[0])
            case _:
                pass
    return found


def test_the_python_client_imports_what_it_declares_and_nothing_of_the_wings() -> None:
    client = [path for path in modules() if relative(path).startswith(CLIENT)]
    wrong = {relative(path): more for path in client if (more := imported(tree(path)) - MAY_IMPORT)}

    assert len(client) > len(PACKAGES)
    assert wrong == {}
    assert imported(ast.parse("import sexton_http.app\nfrom sexton_cli import main")) - MAY_IMPORT


def test_no_wing_imports_the_client() -> None:
    assert [relative(path) for path in wing_modules() if "sexton_client" in imported(tree(path))] == []


def test_the_python_client_has_each_route_that_is_for_programs() -> None:
    left_out, tags = {*NAMES["left_out"]}, {*NAMES["left_out_tags"]}
    declared = {
        (row.name, row.method, row.path)
        for row in OPERATIONS
        if row.name not in left_out and row.tag not in tags
    }
    known = {
        (one.name, one.method, one.path) for one in vars(operations).values() if isinstance(one, Operation)
    }

    assert known == declared, "run `make clients ARGS=--write`, and name what is new in clients/names.toml"


def test_the_python_client_knows_each_code_and_what_to_do_about_it() -> None:
    met = {code: row.way_out for code, row in CODES.items() if row.shown != (Shown.STARTUP,)}

    assert met == HINTS, "run `make clients ARGS=--write`"
    assert {code.value for code in ErrorCode} == {*met, ""}
