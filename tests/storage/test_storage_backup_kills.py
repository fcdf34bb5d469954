"""A backup and a restore that are killed at any step leave nothing that counts, or all of it."""

import io
import os
import signal
import sys
import tarfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trio

from sexton_storage.backups import restores
from sexton_storage.backups.copies import BASE_FILE, WAL_FILE
from sexton_storage.backups.faults import BackupFault
from sexton_storage.backups.manifest import Kind, Manifest
from sexton_storage.backups.repository import Repository, pack_all
from sexton_storage.backups.restores import Wanted, check_empty, restore_cluster
from sexton_storage.embedded import EmbeddedSettings, open_embedded_server
from sexton_storage.embedded.server import RESTORING
from sexton_storage.startup import ConnectFailed
from tests.storage.test_storage_backups import made

STEPS = ("open", "os.", "shutil.")
"""What is told before a file is opened, made, renamed or removed."""
FEWEST_STEPS = 5
MOST_STEPS = 500
WHOLE = {
    "postgres/PG_VERSION": b"18\n",
    "postgres/base/1": b"rows",
    "postgres/pg_wal/1": b"log",
    "postgres/recovery.signal": b"",
    "master.keys": b"1:c2VjcmV0\n",
}
KEYS = {"master.keys": WHOLE["master.keys"]}


def was_killed(work: Callable[[], object], at_step: int) -> bool:
    """Do some work in a process of its own, which is killed before one of its steps with files."""
    with warnings.catch_warnings():
        # Newer interpreters warn of forks beside threads; the child has none to wait for.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        steps = 0

        def count(event: str, _args: object) -> None:
            nonlocal steps
            if event.startswith(STEPS):
                steps += 1
                if steps == at_step:
                    os.kill(os.getpid(), signal.SIGKILL)

        status = 1
        try:
            sys.addaudithook(count)
            work()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


def each_step(work_in: Callable[[Path], Callable[[], object]], folder: Path) -> Iterator[Path]:
    """Give a folder for each step, where the work was killed before it, until the work comes to its end."""
    for at_step in range(1, MOST_STEPS):
        place = folder / str(at_step)
        if not was_killed(work_in(place), at_step):
            assert at_step > FEWEST_STEPS
            return
        yield place
    raise AssertionError("the work has no end")


def filled(place: Path, *days: int) -> Repository:
    repository = Repository(place)
    for day in days:
        made(repository, day)
    return repository


def test_a_backup_that_is_killed_before_any_of_its_steps_counts_wholly_or_not_at_all(tmp_path: Path) -> None:
    def second(place: Path) -> Callable[[], object]:
        repository = filled(place, 1)
        return lambda: made(repository, 2)

    seen = set()
    for place in each_step(second, tmp_path):
        repository = Repository(place)
        found = repository.list_all()
        for one in found:
            assert one.manifest is not None, one.fault
            repository.check(one.manifest)
        assert found[-1].id.startswith("20260101")
        seen.add(len(found))

        made(repository, 3)

        assert len(repository.list_all()) == len(found) + 1
        assert [path.name for path in place.iterdir() if path.name.endswith(".unfinished")] == []

    assert seen == {1, 2}


def test_pruning_that_is_killed_before_any_of_its_steps_leaves_whole_backups(tmp_path: Path) -> None:
    def prune(repository: Repository) -> None:
        with repository.locked():
            repository.prune(1)

    def of_three(place: Path) -> Callable[[], object]:
        repository = filled(place, 1, 2, 3)
        return lambda: prune(repository)

    for place in each_step(of_three, tmp_path):
        repository = Repository(place)
        found = repository.list_all()
        assert [one.fault for one in found] == [None] * len(found)
        assert found[0].id.startswith("20260103")

        prune(repository)

        assert [one.id for one in repository.list_all()] == [found[0].id]


# --- a restore ----------------------------------------------------------------------------------------------


def archive(path: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as members:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            members.addfile(member, io.BytesIO(content))


@pytest.fixture
def wanted(tmp_path: Path) -> Wanted:
    """A backup of a small cluster, in the folder ``backups``."""
    repository = Repository(tmp_path / "backups")
    with repository.locked():
        draft = repository.begin("20260101T020000Z-00aa")
        archive(draft / BASE_FILE, {"PG_VERSION": b"18\n", "base/1": b"rows"})
        archive(draft / WAL_FILE, {"1": b"log"})
        manifest = Manifest(
            id="20260101T020000Z-00aa",
            kind=Kind.CLUSTER,
            release="0.1.0",
            schema=1,
            began_at=1,
            ended_at=2,
            wal=None,
            recipient=None,
            files=pack_all(draft),
        )
        repository.finish(draft, manifest)
    return Wanted(manifest)


def content_of(data: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(data)): path.read_bytes()
        for path in data.rglob("*")
        if path.is_file() and path.relative_to(data).parts[0] not in {"lock", RESTORING, ".restored"}
    }


async def refused_to_start(data: Path) -> bool:
    try:
        async with open_embedded_server(EmbeddedSettings(data)):
            raise AssertionError("it started")
    except ConnectFailed as refusal:
        return "has not ended" in str(refusal)


def test_a_restore_that_is_killed_before_any_of_its_steps_is_whole_or_is_begun_again(
    tmp_path: Path, wanted: Wanted, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def recover(*_: object) -> None:
        """PostgreSQL's own part has tests with a real one: here no server runs."""

    monkeypatch.setattr(restores, "_recover", recover)

    def restore(data: Path) -> None:
        repository = Repository(tmp_path / "backups")
        trio.run(restore_cluster, repository, wanted, data, KEYS, lambda _: None)

    whole = 0
    for data in each_step(lambda place: lambda: restore(place), tmp_path / "data"):
        if (data / RESTORING).exists():
            assert trio.run(refused_to_start, data)
        elif (data / "postgres").exists():
            assert content_of(data) == WHOLE
            whole += 1
            with pytest.raises(BackupFault, match="is not empty"):
                check_empty(data)
            continue
        restore(data)
        assert content_of(data) == WHOLE
        assert not (data / RESTORING).exists()

    assert whole > 0
