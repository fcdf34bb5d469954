"""The numbers of the contract are written in the modules called terms, and nowhere else."""

import ast

from tests.house.survey import ROOT, relative, tree, wing_modules

TERMS = ("actors/sexton_actors/terms.py", "storage/sexton_storage/terms.py")
WINGS = ("actors/", "storage/")
TELLING = 30_000
"""Milliseconds from here on tell what they are; a smaller number may be anything."""
ROUND = {60_000, 600_000, 3_600_000, 86_400_000}
"""A minute, ten, an hour and a day are units as well."""


def test_a_term_of_the_contract_is_written_once() -> None:
    terms = {name: value for path in TERMS for name, value in constants(tree(ROOT / path)).items()}
    numbers = {v for name, v in terms.items() if name.endswith("_MS") and v >= TELLING} - ROUND
    again = [
        f"{relative(path)}: {name} = {value}"
        for path in wing_modules()
        if relative(path).startswith(WINGS) and relative(path) not in TERMS
        for name, value in constants(tree(path)).items()
        if name in terms or value in numbers
    ]

    assert numbers >= {30_000, 12 * 3_600_000}, "the term of a lease and its ceiling"
    assert again == [], "import it from terms"


def test_a_number_that_is_written_again_would_be_found() -> None:
    module = ast.parse(
        "TERM: int = 30 * 1000\nother = 7\nname = 'x'\n\ndef f():\n    return 12 * 3600 * 1000\n"
    )

    assert constants(module) == {"TERM": 30_000, "other": 7, "line 6": 43_200_000}


def constants(module: ast.Module) -> dict[str, int]:
    """Give the numbers a module writes: by name those at its top, by line those inside."""
    found: dict[str, int] = {}
    for node in module.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                number = number_of(value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                number = number_of(value)
            case _:
                for inner in ast.walk(node):
                    number = number_of(inner) if isinstance(inner, ast.expr) else None
                    if number is not None and number >= TELLING:
                        # An expression is walked before its parts: the whole is what is meant.
                        found.setdefault(f"line {getattr(inner, 'lineno', 0)}", number)
                continue
        if number is not None:
            found[name] = number
    return found


def number_of(node: ast.expr) -> int | None:
    """Give what an expression of literals alone comes to."""
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return value
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            factors = number_of(left), number_of(right)
            return None if factors[0] is None or factors[1] is None else factors[0] * factors[1]
        case _:
            return None
