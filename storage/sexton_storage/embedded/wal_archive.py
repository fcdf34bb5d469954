"""Keeps the write-ahead log of an embedded cluster in a folder apart, so that any moment can be restored."""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sexton_storage.embedded.accounts import Account, give
from sexton_storage.startup import ConnectFailed

ARCHIVE_TIMEOUT: Final = "60s"
"""What was committed is in the archive after this time, even if little is written."""
SYSTEM_FILE: Final = "system"
IDENTIFIER_BYTES: Final = 8


def archive_settings(archive: Path) -> Mapping[str, str]:
    """Give PostgreSQL's settings that copy each segment there, whole or not at all.

    A segment that is there already must be the same: PostgreSQL asks again after a crash. One that differs
    is of another history, and is never overwritten.
    """
    place = f"{_quoted(archive)}/%f"
    draft = f"{place}.new"
    keep = f"cp %p {draft} && sync {draft} && mv {draft} {place}"
    command = f"if test -f {place}; then cmp -s %p {place}; else {keep}; fi"
    return {"archive_mode": "on", "archive_command": command, "archive_timeout": ARCHIVE_TIMEOUT}


def restore_command(archive: Path) -> str:
    """Give the command with which PostgreSQL fetches a segment from there."""
    return f"cp {_quoted(archive)}/%f %p"


def prepare_archive(archive: Path, data: Path, account: Account | None) -> None:
    """See that the folder is there, and is this cluster's. Raises ConnectFailed."""
    identifier = system_identifier(data)
    try:
        archive.mkdir(mode=0o700, parents=True, exist_ok=True)
        mark = archive / SYSTEM_FILE
        if not mark.exists():
            mark.write_text(f"{identifier}\n", encoding="ascii")
        owner = mark.read_text(encoding="ascii").strip()
        give(archive, account)
        if owner == identifier:
            _keep_histories(archive, data, account)
    except OSError as fault:
        raise ConnectFailed(f"the archive {archive} cannot be used: {fault.strerror}") from fault
    if owner != identifier:
        raise ConnectFailed(
            f"the archive {archive} is that of another database ({owner}, and this one is {identifier}): "
            "give --wal-archive a folder of this database's own"
        )


def system_identifier(data: Path) -> str:
    """Read what tells a cluster, and all copies of it, from others."""
    with (data / "global" / "pg_control").open("rb") as file:
        return str(int.from_bytes(file.read(IDENTIFIER_BYTES), sys.byteorder))


def _keep_histories(archive: Path, data: Path, account: Account | None) -> None:
    """Copy the files that say where timelines part.

    A restore makes one while nothing is archived. Without it, a later restore would take the number of its
    timeline again.
    """
    for history in (data / "pg_wal").glob("*.history"):
        place = archive / history.name
        if not place.exists():
            draft = archive / f"{history.name}.new"
            shutil.copyfile(history, draft)
            give(draft, account)
            draft.replace(place)


def _quoted(folder: Path) -> str:
    # PostgreSQL replaces what stands behind a percent sign.
    return shlex.quote(os.fspath(folder)).replace("%", "%%")
