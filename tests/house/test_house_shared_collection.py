"""Processes that share the collection of the tests agree on one list, and each can run any test of it."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest

from tests import shared_collection
from tests.shared_collection import KnownTest, SharedCollection, part_of

FOLDER = "shared_collection_sample"
CONFTEST = "import pytest\n\n@pytest.fixture\ndef word():\n    return 'told'\n"
TESTS = """
def test_a_fixture_of_the_folder_is_there(word):
    assert word == "told"

def test_other():
    pass
"""
FILES = [f"test_sample_{number}.py" for number in range(4)]
PROCESSES = 2


class Process:
    """What one process of a run does: it collects, and runs each test by its number, as xdist asks it to."""

    def __init__(self, own: list[int]) -> None:
        self._own = own
        self.listed: list[str] = []
        self.passed: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.listed = [one.nodeid for one in session.items]
        session.testscollected = len(session.items)  # As tests/conftest.py says it.
        for number in self._own or range(len(session.items)):
            item = session.items[number]
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.passed.append(report.nodeid)


Run = Callable[..., tuple[int, Process]]


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A folder of tests of two processes; each file belongs to one of them."""
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib -p no:cacheprovider\n")
    folder = tmp_path / FOLDER
    folder.mkdir()
    (folder / "conftest.py").write_text(CONFTEST)
    for name in FILES:
        (folder / name).write_text(TESTS)
    assert {part_of(folder / name, tmp_path, PROCESSES) for name in FILES} == {0, 1}
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith(FOLDER)]:
        del sys.modules[name]


@pytest.fixture
def run(root: Path) -> Run:
    def run(number: int, *own: int) -> tuple[int, Process]:
        process = Process([*own])
        plugins = [SharedCollection(root / "collected", number, PROCESSES), process]
        words = [f"--rootdir={root}", "-c", str(root / "pytest.ini"), "-q", str(root / FOLDER)]
        return int(pytest.main(words, plugins=plugins)), process

    return run


def names_of(root: Path) -> list[str]:
    """All tests of the folder, the part of the first process before that of the second."""
    ordered = sorted(FILES, key=lambda name: part_of(root / FOLDER / name, root, PROCESSES))
    tests = ("test_a_fixture_of_the_folder_is_there", "test_other")
    return [f"{FOLDER}/{name}::{test}" for name in ordered for test in tests]


def tell(root: Path, number: int, names: list[str]) -> None:
    """What another process has collected."""
    (root / "collected").mkdir(exist_ok=True)
    told = {name: str(root / name.partition("::")[0]) for name in names}
    (root / "collected" / f"{number}.json").write_bytes(orjson.dumps(told))


def part(root: Path, number: int) -> list[str]:
    return [
        name for name in names_of(root) if part_of(root / name.partition("::")[0], root, PROCESSES) == number
    ]


@pytest.mark.parametrize("number", range(PROCESSES))
def test_each_process_tells_its_part_and_runs_the_tests_of_all(root: Path, run: Run, number: int) -> None:
    tell(root, 1 - number, part(root, 1 - number))

    status, process = run(number)

    assert status == pytest.ExitCode.OK
    assert process.listed == process.passed == names_of(root)
    assert [*orjson.loads((root / "collected" / f"{number}.json").read_bytes())] == part(root, number)


def test_a_process_that_replaces_a_lost_one_collects_nothing_and_has_all(root: Path, run: Run) -> None:
    for number in range(PROCESSES):
        tell(root, number, part(root, number))

    status, process = run(PROCESSES)

    assert status == pytest.ExitCode.OK
    assert process.passed == names_of(root)
    assert len([*(root / "collected").iterdir()]) == PROCESSES


def test_a_file_is_imported_only_where_one_of_its_tests_runs(root: Path, run: Run) -> None:
    tell(root, 1, part(root, 1))

    _, process = run(0, 0)

    imported = {name.rpartition(".")[2] for name in sys.modules if name.startswith(f"{FOLDER}.test_")}

    assert process.passed == names_of(root)[:1]
    assert imported == {Path(name.partition("::")[0]).stem for name in part(root, 0)}


def test_a_process_whose_tests_are_never_told_is_named(
    root: Path, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shared_collection, "PATIENCE_S", 0.0)

    status, _ = run(0)

    assert status == pytest.ExitCode.USAGE_ERROR

    said = capsys.readouterr()
    assert "process 1 of this run has not collected its tests" in said.out + said.err
    assert sorted(path.name for path in (root / "collected").iterdir()) == ["0.json"]


def test_what_is_known_of_a_test_has_its_name() -> None:
    assert KnownTest("tests/test_a.py::test_b[1]", Path("tests/test_a.py")).name == "test_b[1]"
