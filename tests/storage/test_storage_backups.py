"""A backup counts when it is whole, opens for its recipient alone, and is refused when anything is wrong."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from sexton_storage.backups.archives import unpack
from sexton_storage.backups.copies import KEYS_FILE
from sexton_storage.backups.faults import BackupFault
from sexton_storage.backups.manifest import MANIFEST_FILE, Kind, Manifest, Wal, encode
from sexton_storage.backups.repository import Repository, pack_all
from sexton_storage.backups.restores import Wanted, check_empty, check_wanted, write_keys
from sexton_storage.backups.sealed_keys import make_key, read_recipient, seal
from sexton_storage.embedded.server import RESTORING

DAY_MS = 86_400_000
KEYS = {"master.keys": b"1:c2VjcmV0\n"}
SCHEMA = 56
SYSTEM = "7400000000000000001"


def made(repository: Repository, day: int, *, recipient: str | None = None, schema: int = SCHEMA) -> Manifest:
    """A backup of one small file, with the log from the segment of its day."""
    backup_id = f"202601{day:02}T020000Z-00aa"
    with repository.locked():
        draft = repository.begin(backup_id)
        (draft / "base.tar.gz").write_bytes(b"rows" * day)
        if recipient is not None:
            (draft / KEYS_FILE).write_bytes(seal(KEYS, read_recipient(recipient), backup_id))
        manifest = Manifest(
            id=backup_id,
            kind=Kind.CLUSTER,
            release="0.1.0",
            schema=schema,
            began_at=day * DAY_MS - 1,
            ended_at=day * DAY_MS,
            wal=Wal(SYSTEM, 1, f"0/{day:X}000028", f"0/{day:X}000120"),
            recipient=recipient,
            files=pack_all(draft),
        )
        repository.finish(draft, manifest)
    return manifest


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "backups")


def refusal(repository: Repository, wanted: Wanted) -> str:
    with pytest.raises(BackupFault) as caught:
        check_wanted(repository, wanted, SCHEMA, "0.1.0")
    assert caught.value.way_out
    return str(caught.value)


# --- what counts --------------------------------------------------------------------------------------------


def test_a_backup_that_was_interrupted_is_not_listed_and_is_cleared_by_the_next(
    repository: Repository,
) -> None:
    with repository.locked():
        left = repository.begin("20260101T020000Z-00aa")
        (left / "base.tar.gz").write_bytes(b"ro")

    assert repository.list_all() == []

    kept = made(repository, 2)

    assert [one.id for one in repository.list_all()] == [kept.id]
    assert not left.exists()


def test_a_folder_is_changed_by_one_at_a_time_and_by_what_a_killed_one_left_running(
    repository: Repository,
) -> None:
    made(repository, 1)
    inherited = os.open(repository.path / ".lock", os.O_RDWR)
    fcntl.flock(inherited, fcntl.LOCK_EX)

    with pytest.raises(BackupFault, match="another backup is being made"):
        made(repository, 2)

    os.close(inherited)
    made(repository, 2)


def test_the_newest_that_ended_before_a_moment_is_chosen(repository: Repository) -> None:
    first, second = made(repository, 1), made(repository, 3)

    assert repository.newest() == second
    assert repository.newest(2 * DAY_MS) == first

    with pytest.raises(BackupFault, match="before the end of the oldest"):
        repository.newest(DAY_MS - 1)


@pytest.mark.parametrize(
    ("file", "change", "said"),
    [
        ("base.tar.gz", lambda raw: raw[:-1], "is missing or has another size"),
        (MANIFEST_FILE, lambda raw: raw.replace(b'"schema":56', b'"schema":55'), "its hash differs"),
        (MANIFEST_FILE, lambda raw: raw[:40], "is damaged"),
    ],
)
def test_what_was_changed_is_listed_with_its_damage_and_not_chosen(
    repository: Repository, file: str, change: Callable[[bytes], bytes], said: str
) -> None:
    made(repository, 1)
    newest = made(repository, 2)
    path = repository.path / newest.id / file
    path.write_bytes(change(path.read_bytes()))

    damaged, whole = repository.list_all()

    assert (damaged.manifest, said in str(damaged.fault)) == (None, True)
    assert repository.newest() == whole.manifest


def test_a_format_of_a_later_release_is_not_guessed_at(repository: Repository) -> None:
    manifest = made(repository, 1)
    path = repository.path / manifest.id / MANIFEST_FILE
    path.write_bytes(encode(msgspec.structs.replace(manifest, format=2)))

    with pytest.raises(BackupFault, match="this release reads format 1"):
        repository.get(manifest.id)


def test_pruning_keeps_the_newest_whole_ones_and_the_log_that_they_need(repository: Repository) -> None:
    backups = [made(repository, day) for day in (1, 2, 3, 4)]
    repository.wal.mkdir()
    for number in (1, 2, 3, 4):
        (repository.wal / f"0000000100000000{number:08X}").touch()
    (repository.wal / "00000002.history").touch()
    (repository.path / backups[3].id / "base.tar.gz").unlink()

    with repository.locked():
        gone = repository.prune(2)

    assert gone == [backups[0].id]
    assert [one.id for one in repository.list_all()] == [one.id for one in reversed(backups[1:])]
    assert sorted(path.name[-8:] for path in repository.wal.iterdir()) == [
        ".history",
        "00000002",
        "00000003",
        "00000004",
    ]


# --- what is refused ----------------------------------------------------------------------------------------


def test_the_keys_open_for_their_recipient_and_in_their_backup_alone(
    repository: Repository, tmp_path: Path
) -> None:
    recipient, _ = make_key(tmp_path / "key"), make_key(tmp_path / "other")
    first = made(repository, 1, recipient=recipient)
    second = made(repository, 2, recipient=recipient)
    fitting = Wanted(second, key=tmp_path / "key")

    assert check_wanted(repository, fitting, SCHEMA, "0.1.0") == KEYS
    assert b"secret" not in (repository.path / second.id / KEYS_FILE).read_bytes()
    assert (tmp_path / "key").stat().st_mode & 0o077 == 0
    assert "the key does not fit" in refusal(repository, Wanted(second, key=tmp_path / "other"))
    assert "are sealed to" in refusal(repository, Wanted(second))

    swapped = (repository.path / first.id / KEYS_FILE).read_bytes()
    (repository.path / second.id / KEYS_FILE).write_bytes(swapped)
    assert "its hash differs" in refusal(repository, fitting)

    files = pack_all(repository.path / second.id)
    del files[MANIFEST_FILE]
    forged = msgspec.structs.replace(second, files=files)
    assert "do not open" in refusal(repository, fitting._replace(manifest=forged))


def test_a_restore_is_refused_before_anything_is_written(repository: Repository) -> None:
    manifest = made(repository, 2, schema=SCHEMA + 1)
    older = msgspec.structs.replace(manifest, schema=SCHEMA)
    dump = msgspec.structs.replace(older, kind=Kind.DUMP, wal=None)

    assert f"schema {SCHEMA + 1}" in refusal(repository, Wanted(manifest))
    assert "before the end of the backup" in refusal(repository, Wanted(older, DAY_MS))
    assert "in the future" in refusal(repository, Wanted(older, 99_999 * DAY_MS))
    assert "there is no archive" in refusal(repository, Wanted(older, 3 * DAY_MS))
    assert "is a dump" in refusal(repository, Wanted(dump, 3 * DAY_MS))

    repository.wal.mkdir()
    (repository.wal / "system").write_text("another\n")
    assert "that of another database" in refusal(repository, Wanted(older, 3 * DAY_MS))

    (repository.path / manifest.id / "base.tar.gz").write_bytes(b"swor" * 2)
    assert "its hash differs" in refusal(repository, Wanted(older))


def test_only_an_empty_folder_is_restored_into_and_an_unfinished_restore_counts_as_one(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    check_empty(data)
    data.mkdir()
    (data / "lock").touch()
    check_empty(data)
    (data / RESTORING).mkdir()
    check_empty(data)
    (data / RESTORING).rmdir()
    (data / "notes").touch()

    with pytest.raises(BackupFault, match="is not empty"):
        check_empty(data)


@pytest.mark.parametrize("name", ["../master.keys", "postgres", "restoring", "lock"])
def test_sealed_keys_stay_in_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(BackupFault, match="which no backup has"):
        write_keys(tmp_path, {name: b""})


def test_an_archive_that_is_cut_is_told(tmp_path: Path) -> None:
    (tmp_path / "base.tar.gz").write_bytes(b"\x1f\x8b\x08\x00cut")

    with pytest.raises(BackupFault, match="is damaged"):
        unpack(tmp_path / "base.tar.gz", tmp_path)
