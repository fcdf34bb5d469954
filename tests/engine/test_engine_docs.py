"""The reference of the runtime semantics names tests; they must be there."""

from __future__ import annotations

import re
from pathlib import Path

from sexton_engine.mail.dead_letters import Reason

ROOT = Path(__file__).parents[2]
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
