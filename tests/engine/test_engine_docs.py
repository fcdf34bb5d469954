"""What the engine's pages say holds: named tests exist, the table is the code's, the examples run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sexton_engine.mail.dead_letters import Reason
from tests.engine.phase_table import phase_table

ROOT = Path(__file__).parents[2]
PYKKA_PAGE = ROOT / "docs" / "explanation" / "for-those-who-know-pykka.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PYKKA_PAGE.read_text(encoding="utf-8"), re.DOTALL)
REFERENCE = (ROOT / "docs" / "reference" / "runtime-semantics.md").read_text(encoding="utf-8")


def test_every_test_named_in_the_reference_exists() -> None:
    sources = "\n".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "engine").glob("test_*.py")
    )
    there = set(re.findall(r"^(?:async )?def (test_\w+)|^(Test\w+) =", sources, re.MULTILINE))
    names = {function or case for function, case in there}
    named = set(re.findall(r"`(test_\w+|Test\w+)`", REFERENCE))

    assert len(named) > 80
    assert named - names == set()


def test_every_reason_of_a_dead_letter_is_explained() -> None:
    table = REFERENCE.partition("## Dead letters")[2].partition("## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == {reason.value for reason in Reason}


def test_the_table_of_phases_and_requests_is_what_the_code_decides() -> None:
    section = REFERENCE.partition("## Phases and requests")[2].partition("\n## ")[0]

    table = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)[0].splitlines()

    assert table == phase_table(), "make it again: print(*phase_table(), sep='\\n')"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.partition("\n")[0].strip("# "))
def test_an_example_of_the_page_for_those_who_know_pykka_runs(example: str) -> None:
    exec(compile(example, str(PYKKA_PAGE), "exec"), {"__name__": "example"})
