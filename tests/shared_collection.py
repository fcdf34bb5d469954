"""Collects the tests once for all processes of a run: each a part, whose names it tells the others.

A process that is given a test of another's part collects that one file when its turn comes.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, overload
from zlib import crc32

import orjson
import pytest

PATIENCE_S: Final = 900.0
"""Only a run that lost a process waits this long."""
LOOK_AGAIN_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class KnownTest:
    """What a process knows of a test that it need not have collected."""

    nodeid: str
    path: Path

    @property
    def name(self) -> str:
        return self.nodeid.rpartition("::")[2]


def part_of(path: Path, root: Path, count: int) -> int:
    """Which of ``count`` processes collects a file.

    >>> part_of(Path("/here/tests/test_a.py"), Path("/here"), 1)
    0
    """
    return crc32(path.relative_to(root).as_posix().encode()) % count


class LaterItems(Sequence[pytest.Item]):
    """All tests of a run by their number; one that is not collected yet is when it is asked for.

    To iterate collects nothing, and gives what is known of each test.
    """

    def __init__(
        self, session: pytest.Session, known: Sequence[KnownTest], folders: dict[Path, pytest.Directory]
    ) -> None:
        self._session = session
        self._known = known
        self._folders = folders
        self._made = {item.nodeid: item for item in session.items}

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[pytest.Item]:
        return iter(self._known)  # type: ignore[arg-type] # only names and paths are looked at

    @overload
    def __getitem__(self, number: int) -> pytest.Item: ...
    @overload
    def __getitem__(self, number: slice) -> list[pytest.Item]: ...
    def __getitem__(self, number: int | slice) -> pytest.Item | list[pytest.Item]:
        if isinstance(number, slice):
            return [self[one] for one in range(len(self))[number]]
        one = self._known[number]
        if one.nodeid not in self._made:
            self._collect(one.path)
        return self._made[one.nodeid]

    def _collect(self, path: Path) -> None:
        folder = self._folders[path.parent]
        session = self._session
        items = [
            item
            for module in folder.ihook.pytest_collect_file(file_path=path, parent=folder)
            for item in session.genitems(module)
        ]
        self._made.update({item.nodeid: item for item in items})
        # What is left out for good is left out of the numbers; this marks the tests that trio runs.
        session.config.hook.pytest_collection_modifyitems(session=session, config=session.config, items=items)


class SharedCollection:
    """A plugin of one process among ``count``: it collects its own part, and then has all items."""

    def __init__(self, place: Path, number: int, count: int) -> None:
        self._place = place
        self._number = number
        self._count = count
        self._folders: dict[Path, pytest.Directory] = {}

    def pytest_ignore_collect(self, collection_path: Path, config: pytest.Config) -> bool | None:
        """Leave the files of other parts out, and look into all folders."""
        if collection_path.suffix != ".py" or collection_path.name == "__init__.py":
            return None
        is_own = part_of(collection_path, config.rootpath, self._count) == self._number
        return None if is_own else True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep the folders: a conftest's fixtures belong to this very object, not to its path."""
        self._folders |= {one.path: one for one in report.result or () if isinstance(one, pytest.Directory)}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Name the tests of this part, and learn of the others, before their number is told."""
        config = session.config
        config.pluginmanager.unregister(self)
        named = {item.nodeid: str(item.path) for item in session.items}
        if self._number < self._count:
            self._write(named)
        merged: dict[str, str] = {}
        for number in range(self._count):
            merged |= self._read(number)
        known = [KnownTest(nodeid, Path(path)) for nodeid, path in merged.items()]
        session.items = LaterItems(session, known, self._folders)  # type: ignore[assignment]

    def _write(self, named: dict[str, str]) -> None:
        self._place.mkdir(exist_ok=True)
        unfinished = self._place / f"{self._number}.unfinished"
        unfinished.write_bytes(orjson.dumps(named))
        unfinished.rename(self._place / f"{self._number}.json")

    def _read(self, number: int) -> dict[str, str]:
        file = self._place / f"{number}.json"
        end = time.monotonic() + PATIENCE_S
        while not file.exists():
            if time.monotonic() > end:
                message = f"process {number} of this run has not collected its tests; run them again"
                raise pytest.UsageError(message)
            time.sleep(LOOK_AGAIN_S)
        told: dict[str, str] = orjson.loads(file.read_bytes())
        return told
