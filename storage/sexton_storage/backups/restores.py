"""Restores a cluster into an empty folder, wholly or not at all."""

import os
import shutil
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

import trio

from sexton_storage.backups.after_restore import finish_restore
from sexton_storage.backups.archives import unpack
from sexton_storage.backups.copies import BASE_FILE, KEYS_FILE, WAL_FILE
from sexton_storage.backups.faults import BackupFault
from sexton_storage.backups.manifest import Kind, Manifest, shown_time
from sexton_storage.backups.repository import Repository
from sexton_storage.backups.sealed_keys import read_key, unseal
from sexton_storage.embedded import EmbeddedSettings, open_embedded_server
from sexton_storage.embedded.ownership import owned
from sexton_storage.embedded.server import RESTORING
from sexton_storage.embedded.wal_archive import SYSTEM_FILE, restore_command
from sexton_storage.startup import AlreadyOwned, StartupFailed

MARK: Final = "backup-id"
RECOVERY_S: Final = 7 * 86_400.0
"""Days of log may have to be read."""
_LOG_TAIL: Final = 1500
_OTHERS: Final = frozenset({"", ".", "..", "postgres", "run", "log", "lock", RESTORING})
"""Names in a data folder that no file of keys has."""


class Wanted(NamedTuple):
    """What is to be restored."""

    manifest: Manifest
    until: int | None = None
    """Unix ms; None: as far as the log goes."""
    timeline: int | None = None
    """The history to follow; None: the newest."""
    key: Path | None = None
    """The private key that the keys of the data folder are sealed to."""
    without_keys: bool = False
    """Restore the database alone."""


def check_wanted(repository: Repository, wanted: Wanted, schema: int, release: str) -> Mapping[str, bytes]:
    """Look at everything that can be looked at before anything is written; gives the opened keys.

    Raises BackupFault.
    """
    manifest = wanted.manifest
    if manifest.schema > schema:
        raise BackupFault(
            f"the backup was made by release {manifest.release} with schema {manifest.schema}, and this is "
            f"release {release} with schema {schema}",
            f"Restore with release {manifest.release} or a newer one",
        )
    if wanted.until is not None:
        _check_until(repository, manifest, wanted.until)
    repository.check(manifest)
    if manifest.recipient is None or wanted.without_keys:
        return {}
    if wanted.key is None:
        raise BackupFault(
            f"the backup's keys are sealed to {manifest.recipient}",
            "Give its private key with --key, or --without-keys to restore the database alone",
        )
    sealed = (repository.path / manifest.id / KEYS_FILE).read_bytes()
    return unseal(sealed, read_key(wanted.key), manifest.id, manifest.recipient)


def _check_until(repository: Repository, manifest: Manifest, until: int) -> None:
    shown = shown_time(manifest.ended_at)
    if manifest.kind is Kind.DUMP:
        raise BackupFault(
            f"the backup is a dump, which holds the rows of {shown} alone",
            "Leave --until out, or choose another",
        )
    if until < manifest.ended_at:
        raise BackupFault(
            f"--until is before the end of the backup ({shown})", "Give a later time, or an older backup"
        )
    if until > datetime.now(UTC).timestamp() * 1000:
        raise BackupFault("--until is in the future", "Leave it out to restore all that there is")
    mark = repository.wal / SYSTEM_FILE
    if not mark.is_file():
        raise BackupFault(
            f"there is no archive in {repository.wal}, and --until needs one",
            "Leave --until out; from now on start the server with --wal-archive",
        )
    if manifest.wal is not None and mark.read_text(encoding="ascii").strip() != manifest.wal.system:
        raise BackupFault(
            f"the archive {repository.wal} is that of another database", "Give the folder of this one"
        )


async def restore_cluster(
    repository: Repository,
    wanted: Wanted,
    data: Path,
    keys: Mapping[str, bytes],
    progress: Callable[[str], None],
) -> None:
    """Unpack, recover and make ready apart, then move into place. Raises BackupFault."""
    try:
        with owned(data):
            draft = data / RESTORING
            _make_way(data, draft)
            draft.mkdir(mode=0o700)
            (draft / MARK).write_text(f"{wanted.manifest.id}\n", encoding="ascii")
            try:
                progress("unpacking the backup")
                await trio.to_thread.run_sync(
                    _unpack, repository.path / wanted.manifest.id, draft / "postgres"
                )
                progress("reading the write-ahead log")
                await _recover(repository, wanted, draft, progress)
                write_keys(data, keys)
                (draft / "postgres").rename(data / "postgres")
                os.sync()
                # As long as the folder has its name no server starts here.
                done = data / ".restored"
                draft.rename(done)
                shutil.rmtree(done)
            except BaseException:
                _make_way(data, draft)
                raise
    except AlreadyOwned as fault:
        raise BackupFault(str(fault), "Give --data an empty folder") from fault
    except StartupFailed as fault:
        raise BackupFault(str(fault), "Use another backup, or free some space") from fault
    except OSError as fault:
        raise BackupFault(f"{data}: {fault.strerror}", "See whether the disk is full") from fault


def check_empty(data: Path) -> None:
    """Refuse a folder that holds anything but an unfinished restore. Raises BackupFault."""
    if not data.exists():
        return
    try:
        names = {path.name for path in data.iterdir()} - {"lock"}
    except OSError as fault:
        raise BackupFault(f"{data}: {fault.strerror}", "Give --data an empty folder") from fault
    if names and not (data / RESTORING / MARK).is_file() and names != {RESTORING}:
        raise BackupFault(
            f"{data} is not empty", "Give --data an empty folder; what is in this one is left as it is"
        )


def write_keys(data: Path, keys: Mapping[str, bytes]) -> None:
    """Write the opened keys into the folder, for its owner alone. Raises BackupFault."""
    for name, content in keys.items():
        if "/" in name or name in _OTHERS:
            raise BackupFault(f"the sealed keys hold {name!r}, which no backup has", "Use another backup")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with os.fdopen(os.open(data / name, flags, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())


def _make_way(data: Path, draft: Path) -> None:
    """Remove what a restore of before left, which only ever began in an empty folder."""
    check_empty(data)
    for path in data.iterdir():
        if path.name not in {"lock", draft.name}:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    if draft.exists():
        shutil.rmtree(draft)


def _unpack(backup: Path, into: Path) -> None:
    into.mkdir(mode=0o700)
    unpack(backup / BASE_FILE, into)
    unpack(backup / WAL_FILE, into / "pg_wal")
    (into / "recovery.signal").touch(mode=0o600)


async def _recover(
    repository: Repository, wanted: Wanted, draft: Path, progress: Callable[[str], None]
) -> None:
    archive = repository.wal.resolve() if (repository.wal / SYSTEM_FILE).is_file() else None
    target = {"recovery_target_timeline": str(wanted.timeline or "latest")}
    if wanted.until is not None:
        at = datetime.fromtimestamp(wanted.until / 1000, UTC)
        target |= {"recovery_target_time": at.isoformat(), "recovery_target_action": "promote"}
    server = {
        "restore_command": "false" if archive is None else restore_command(archive),
        "hot_standby": "off",  # Nobody is to read before the end, and the settings of then need not fit.
        "logging_collector": "off",  # What it says is in start.log then, for us to tell.
        "log_min_messages": "log",
        **target,
    }
    settings = EmbeddedSettings(
        draft, server, start_s=RECOVERY_S, start_attempts=1, reads=() if archive is None else (archive,)
    )
    try:
        async with open_embedded_server(settings, progress=progress) as running:
            await finish_restore(running.dsn)
    except StartupFailed as fault:
        said = _log_of(draft)
        if "recovery ended before configured recovery target was reached" in said:
            raise BackupFault(
                f"--until is after the last change in the archive{_last_time(said)}",
                "Give an earlier time, or leave --until out to restore all that there is",
            ) from fault
        raise BackupFault(
            f"the database does not recover: {said[-_LOG_TAIL:]}", "Use another backup"
        ) from fault


def _log_of(draft: Path) -> str:
    try:
        return (draft / "start.log").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "it said nothing"


def _last_time(said: str) -> str:
    """Find the time of the last commit in PostgreSQL's log.

    >>> _last_time("LOG:  last completed transaction was at log time 2026-11-23 23:05:00.5+00")
    ', which was committed at 2026-11-23 23:05:00.5+00'
    """
    _, found, rest = said.partition("last completed transaction was at log time ")
    return f", which was committed at {rest.splitlines()[0]}" if found else ""
