"""A test that fails beside others is tried once more by itself, and the run says so."""

from pathlib import Path

import pytest
from scripts.suite import FAILED, PASSED, TRIED_AGAIN_AT_MOST, main

ALWAYS = "def test_{name}():\n    assert False\n"
ONCE = """
from pathlib import Path

def test_{name}(request):
    tried = Path(request.path).with_suffix(".tried")
    seen = tried.exists()
    tried.touch()
    assert seen
"""
NEVER = "def test_{name}():\n    pass\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -q -p xdist.plugin\n")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # The others take long to import.
    return tmp_path


def test_what_fails_once_passes_by_itself_and_is_named(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "test_fine.py").write_text(NEVER.format(name="fine"))
    (folder / "test_chance.py").write_text(ONCE.format(name="chance"))

    status = main([], processes=0)

    told = capfd.readouterr().out

    assert status == PASSED
    assert "PASSED THE SECOND TIME test_chance.py::test_chance" in told
    assert "1 passed in" in told, "the second run is of this one alone"


def test_what_fails_twice_has_failed(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "test_wrong.py").write_text(ALWAYS.format(name="wrong"))
    (folder / "test_chance.py").write_text(ONCE.format(name="chance"))

    status = main([], processes=0)

    assert status == FAILED
    assert "PASSED THE SECOND TIME" not in capfd.readouterr().out


def test_where_many_fail_none_is_tried_again(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for number in range(TRIED_AGAIN_AT_MOST + 1):
        (folder / f"test_chance_{number}.py").write_text(ONCE.format(name=f"chance_{number}"))

    status = main([], processes=0)

    assert status == FAILED
    assert "tried again" not in capfd.readouterr().out


def test_a_run_that_did_not_come_to_its_tests_is_not_repeated(capfd: pytest.CaptureFixture[str]) -> None:
    status = main(["--no-such-option"], processes=0)

    assert status not in {PASSED, FAILED}
    assert "tried again" not in capfd.readouterr().out
