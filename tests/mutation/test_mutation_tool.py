"""The tool that changes rules: what it changes, and that it knows a mutant that lives."""

import ast
import inspect
import re
import subprocess
import sys
from importlib import import_module
from types import ModuleType

import pytest

from sexton_storage.decisions import fence
from tests.house.survey import ROOT
from tests.mutation.__main__ import modules
from tests.mutation.makers import mutants
from tests.mutation.survivors import explained

CHANGES = [
    ("a < b", {"a >= b", "a <= b"}),
    ("a is None", {"a is not None"}),
    ("a and b and c", {"a or b or c", "b and c", "a and c", "a and b"}),
    ("not a", {"a"}),
    ("a + b", {"a - b"}),
    ("f(1, x=a)", {"f(2, x=a)", "f(1)"}),
    ("{a, b}", {"{b}", "{a}"}),
    ("max(a, b)", {"min(a, b)"}),
    ("b if a else c", {"b if not a else c"}),
    ("[x for x in a if x]", {"[x for x in a]"}),
    ("'word'", {"'XXword'"}),
    ("'a sentence'", set()),
    ("True", {"False"}),
    ("{'k': a}", {"{'XXk': a}", "{}"}),
]


@pytest.mark.parametrize(("expression", "changed"), CHANGES)
def test_an_expression_is_changed_in_one_place_at_a_time(expression: str, changed: set[str]) -> None:
    module = ModuleType("sample")
    made = {
        re.sub(r"(?s).*return ", "", ast.unparse(one.source))
        for one in mutants(module, f"def f(a, b, c):\n    return {expression}")
    }

    assert made == changed


def test_each_mutant_has_a_name_of_its_own_and_the_source_is_left_as_it_was() -> None:
    text = inspect.getsource(fence)
    names = [one.name for one in mutants(fence, text)]

    assert len(names) == len(set(names)) >= 16
    assert "is_live: lease.expires_at > clock -> lease.expires_at >= clock" in names


def test_a_mutant_that_a_test_notices_is_killed_and_one_that_changes_nothing_lives() -> None:
    words = ["tests.mutation.sample.rules", "--tests", "tests/mutation/sample/checks.py"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.mutation", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    alive = set(re.findall(r"^survives: \S+ (.*)$", done.stdout, re.MULTILINE))

    assert alive == {
        "larger: one > other -> one >= other",
        "is_over: now >= lease.expires_at -> now < lease.expires_at",
        "is_over: now >= lease.expires_at -> now > lease.expires_at",
    }, done.stdout + done.stderr
    assert re.search(r"sample\.rules +10 +3 survive$", done.stdout, re.MULTILINE), done.stdout
    assert done.returncode == 1, "a survivor that nobody has explained"


def test_only_mutants_of_rules_are_explained_and_each_by_a_sentence() -> None:
    reasons = explained()

    assert set(reasons) <= set(modules())
    assert all(why.endswith(".") for told in reasons.values() for why in told.values())


@pytest.mark.parametrize("module", sorted(explained()))
def test_what_is_explained_is_still_a_mutant(module: str) -> None:
    imported = import_module(module)
    names = {one.name for one in mutants(imported, inspect.getsource(imported))}

    assert set(explained()[module]) - names == set()
