"""A folder of backups: each is there wholly or not at all."""

import fcntl
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from sexton_storage.backups.faults import BackupFault
from sexton_storage.backups.manifest import (
    MANIFEST_FILE,
    Kind,
    Manifest,
    PackedFile,
    check_files,
    encode,
    pack,
    read,
)
from sexton_storage.backups.wal_names import older_than, segment_at

WAL_FOLDER: Final = "wal"
UNFINISHED: Final = ".unfinished"
REMOVED: Final = ".removed"
_ID: Final = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{4,}")


class Found(NamedTuple):
    """A folder that has the name of a backup: what it says of itself, or why it does not count."""

    id: str
    manifest: Manifest | None
    fault: BackupFault | None


class Repository:
    """Where backups lie; the archive of the write-ahead log is the folder ``wal`` in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.wal = path / WAL_FOLDER

    def list_all(self) -> Sequence[Found]:
        """List what has the name of a backup, newest first. Raises BackupFault."""
        try:
            names = sorted((p.name for p in self.path.iterdir() if _ID.fullmatch(p.name)), reverse=True)
        except OSError as fault:
            raise BackupFault(
                f"{self.path} cannot be read: {fault.strerror}", "Give the folder that --to of a backup named"
            ) from fault
        return [self._look_at(name) for name in names]

    def newest(self, until: int | None = None) -> Manifest:
        """The newest backup that reads, and that ended by a time; for a restore. Raises BackupFault."""
        found = [one.manifest for one in self.list_all() if one.manifest is not None]
        if not found:
            raise BackupFault(
                f"{self.path} has no whole backup", "Give the folder that --to of a backup named"
            )
        fitting = [one for one in found if until is None or one.ended_at <= until]
        if not fitting:
            raise BackupFault(
                "--until is before the end of the oldest backup",
                "Give a later time: 'sexton backup list' shows them",
            )
        return fitting[0]

    def get(self, backup_id: str) -> Manifest:
        """Read one backup's manifest. Raises BackupFault."""
        if not _ID.fullmatch(backup_id) or not (self.path / backup_id).is_dir():
            raise BackupFault(f"{self.path} has no backup {backup_id}", "'sexton backup list' shows all")
        return read(self.path / backup_id)

    def check(self, manifest: Manifest) -> None:
        """Compare every file of a backup with its hash. Raises BackupFault."""
        check_files(self.path / manifest.id, manifest)

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Be the only one who changes the folder; gives the lock's descriptor. Raises BackupFault."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as fault:
            raise BackupFault(
                f"{self.path} cannot be written to: {fault.strerror}",
                "Give another folder, or its owner's rights",
            ) from fault
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._clear()
            yield descriptor
        except BlockingIOError:
            raise BackupFault(
                f"another backup is being made in {self.path}, or pruned", "Wait until that has ended"
            ) from None
        finally:
            os.close(descriptor)

    def begin(self, backup_id: str) -> Path:
        """Make the folder of a backup, under a name that does not count. The lock must be held."""
        draft = self.path / f".{backup_id}{UNFINISHED}"
        draft.mkdir(mode=0o700)
        return draft

    def finish(self, draft: Path, manifest: Manifest) -> None:
        """Put everything on disk, and then give the folder its name."""
        path = draft / MANIFEST_FILE
        path.write_bytes(encode(manifest))
        for one in (*draft.iterdir(), draft):
            _sync(one)
        draft.rename(self.path / manifest.id)
        _sync(self.path)

    def prune(self, keep: int) -> Sequence[str]:
        """Remove all but the newest whole backups, and the log that only the others needed; gives their ids.

        A damaged one does not count, and goes with those that are older than what is kept. Hold the lock.
        """
        whole = [one for one in self.list_all() if one.manifest is not None]
        if len(whole) <= keep:
            return ()
        oldest = whole[keep - 1].id
        gone = [one.id for one in self.list_all() if one.id < oldest]
        for backup_id in gone:
            removed = self.path / f".{backup_id}{REMOVED}"
            (self.path / backup_id).rename(removed)
            shutil.rmtree(removed)
        self._prune_wal([one.manifest for one in whole[:keep] if one.manifest is not None])
        return gone

    def _prune_wal(self, kept: Sequence[Manifest]) -> None:
        starts = [
            segment_at(one.wal.start, one.wal.timeline)
            for one in kept
            if one.kind is Kind.CLUSTER and one.wal is not None
        ]
        if not starts or not self.wal.is_dir():
            return
        oldest = min(starts, key=lambda name: name[8:])
        for name in older_than((path.name for path in self.wal.iterdir()), oldest):
            (self.wal / name).unlink(missing_ok=True)

    def _clear(self) -> None:
        """Remove what a killed backup or prune left; nobody writes there while the lock is ours."""
        for path in self.path.iterdir():
            if path.name.startswith(".") and path.name.endswith((UNFINISHED, REMOVED)):
                shutil.rmtree(path)

    def _look_at(self, name: str) -> Found:
        try:
            manifest = read(self.path / name)
        except BackupFault as fault:
            return Found(name, None, fault)
        for file, packed in manifest.files.items():
            found = self.path / name / file
            if not found.is_file() or found.stat().st_size != packed.size:
                damage = BackupFault(f"{found} is missing or has another size", "Use another backup")
                return Found(name, None, damage)
        return Found(name, manifest, None)


def pack_all(draft: Path) -> dict[str, PackedFile]:
    """Hash all files of a draft."""
    return {path.name: pack(path) for path in sorted(draft.iterdir())}


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
