"""leasebench, small: real systems on a real PostgreSQL, one of which is faulty on purpose."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest

from bench.leasebench import __main__ as leasebench
from bench.leasebench.checker import DOUBLE, STALE_RENEWAL, STALE_REPORT
from bench.leasebench.referee import FAILURES, LEASES, LOOPS

FAULTY = str(Path(__file__).with_name("faulty_lease_table.py"))
GUIDE = Path(leasebench.__file__).with_name("ADAPTERS.md")


Run = tuple[dict[str, Any], str]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One quick run for most tests: what it found, and its page."""
    return play(tmp_path_factory.mktemp("leasebench"), "plain_sql", "sexton_http")


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Failures only, of the faulty table and of the guide's example, word for word."""
    folder = tmp_path_factory.mktemp("leasebench")
    guided = folder / "guided.py"
    [program] = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    guided.write_text(program, encoding="utf-8")
    return play(folder, FAULTY, str(guided), "--no-rates")


def play(folder: Path, *words: str) -> Run:
    status = leasebench.main([*words, "--quick", "--out", str(folder)])
    found = orjson.loads((folder / "leasebench.json").read_bytes())
    assert status == 0, {name: one["failed"] for name, one in found["systems"].items()}
    found["systems"] = {Path(name).stem: one for name, one in found["systems"].items()}
    return found, (folder / "leasebench.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["plain_sql", "sexton_http"])
def test_each_loop_of_a_sound_system_is_measured(run: Run, name: str) -> None:
    rates = run[0]["systems"][name]["rates"]

    assert list(rates) == list(LOOPS)

    for loop in rates.values():
        assert loop["done"] > 0
        assert loop["refused"] == loop["late"] == 0
        assert loop["due"]["percentiles"]["50"] >= loop["sent"]["percentiles"]["50"] > 0


def test_what_it_costs_is_told_of_the_service_and_of_the_database(run: Run) -> None:
    ours = run[0]["systems"]["sexton_http"]["rates"]["renew closed"]
    by_hand = run[0]["systems"]["plain_sql"]["rates"]["renew closed"]

    assert min(ours["service_s"], ours["database_s"], by_hand["holder_s"], by_hand["database_s"]) > 0
    assert by_hand["service_s"] == 0


def test_a_fenced_table_is_judged_sound_though_its_holders_fail(run: Run) -> None:
    found = run[0]["systems"]["plain_sql"]["failures"]

    assert found["faults"] == []
    assert found["late_writes"] > 0
    assert found["late_writes_taken"] == 0
    assert {name: told["taken"] for name, told in found["takeovers"].items()} == dict.fromkeys(
        FAILURES, LEASES
    )


def test_a_service_that_takes_back_early_and_fences_nothing_is_caught(failures: Run) -> None:
    faults = Counter(
        fault["what"] for fault in failures[0]["systems"]["faulty_lease_table"]["failures"]["faults"]
    )

    assert faults[DOUBLE] > 0
    assert faults[STALE_RENEWAL] > 0
    assert faults[STALE_REPORT] > 0


def test_the_adapter_of_the_guide_runs_as_it_stands(failures: Run) -> None:
    found = failures[0]["systems"]["guided"]["failures"]
    taken = {name: told["taken"] for name, told in found["takeovers"].items()}

    # A lock that belongs to a connection goes with it, and stays with whoever hangs.
    assert taken == {"killed": LEASES, "stopped": 0, "held back": 0, "cut off": LEASES}


def test_the_page_needs_nothing_from_elsewhere(run: Run) -> None:
    page = run[1]

    assert re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?(?:https?:)?//""", page) == []
    assert page.count("<svg") == 5
    assert "A quick run" in page
    assert page.count("Sexton, HTTP") > 3


def test_the_page_says_what_a_system_does_not_do(failures: Run) -> None:
    assert "a holder that hangs keeps what it has" in failures[1]
