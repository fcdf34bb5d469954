"""Unpacks the archives of pg_basebackup, and nothing that would leave the folder."""

import os
import shutil
import tarfile
import zlib
from pathlib import Path, PurePosixPath

from sexton_storage.backups.faults import BackupFault


def unpack(archive: Path, into: Path) -> None:
    """Unpack folders and files, for the owner alone. Raises BackupFault."""
    way_out = "Use another backup"
    try:
        with tarfile.open(archive, "r:gz") as members:
            for member in members:
                name = PurePosixPath(member.name)
                if name.is_absolute() or ".." in name.parts or not (member.isdir() or member.isreg()):
                    raise BackupFault(f"{archive} holds {member.name!r}, which no backup has", way_out)
                place = into / name
                if member.isdir():
                    place.mkdir(mode=0o700, parents=True, exist_ok=True)
                else:
                    _write(members, member, place)
    except (tarfile.TarError, EOFError, zlib.error) as fault:
        raise BackupFault(f"{archive} is damaged: {fault}", way_out) from fault


def _write(members: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    source = members.extractfile(member)
    with os.fdopen(descriptor, "wb") as file:
        if source is not None:
            shutil.copyfileobj(source, file, 1 << 20)
