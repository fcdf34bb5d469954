"""No test gives what must come a few seconds: on a busy machine, beside other tests, that is not enough."""

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
OWN_CLOCKS = {"engine", "fuzz", "simulation"}
"""Their seconds are those of a clock that jumps, or what is tried itself."""


def test_a_test_waits_as_long_as_the_common_patience() -> None:
    limits = re.compile(r"\bfail_after\(\s*[\d.]+\s*\)")

    hasty = {
        f"{path.relative_to(TESTS)}: {found[0]}"
        for path in TESTS.rglob("*.py")
        if path.relative_to(TESTS).parts[0] not in OWN_CLOCKS
        for found in limits.finditer(path.read_text())
    }

    assert hasty == set(), "wait with fail_after(PATIENCE_S), from tests/patience.py"
