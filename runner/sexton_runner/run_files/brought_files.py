"""Fetches the files that the event of a run brings, before the run begins."""

import hashlib
import os
from functools import partial
from pathlib import Path
from typing import Final

from sexton_runner.errors import Refused, RunnerError, TokenRejected
from sexton_runner.retries import until_available
from sexton_runner.run import Run
from sexton_runner.wire import EventFile

LOST: Final = "files_lost"
"""Why a run did not begin whose event brings what cannot be had."""
FOLDER: Final = "in"
FOLDER_MODE: Final = 0o755
FILE_MODE: Final = 0o444


class FilesLost(RunnerError):
    """What the event brings is not there any more, is damaged, or is too large for the run."""


async def fetch_files(run: Run) -> Path | None:
    """Write the files of the event into a folder of the runner's own; None where it brings none.

    The folder holds nothing that a run has made, so no name in it leads elsewhere. Each file is verified by
    its SHA-256. Raises ``FilesLost``.
    """
    files = run.live.lease.event.files
    if not files:
        return None
    if sum(file.size for file in files) > run.sandbox.limits.disk_bytes:
        raise FilesLost(f"the files of the event take more than the run's disk {_bound(run)}")
    folder = run.folder / FOLDER
    try:
        _make(folder)
        for number, file in enumerate(files):
            await _fetch(run, number, file, _place(folder, file.name))
    except TokenRejected:
        raise
    except Refused as refusal:
        raise FilesLost(f"{refusal.code}: {refusal.detail}") from refusal
    except OSError as fault:
        raise FilesLost(f"they cannot be written: {fault.strerror}") from fault
    return folder


async def _fetch(run: Run, number: int, file: EventFile, place: Path) -> None:
    digest, offset, lease = hashlib.sha256(), 0, run.live.lease
    with place.open("xb") as out:
        while offset < file.size:
            ask = partial(run.plane.read_event_file, lease, number, offset)
            part = await until_available(ask, rng=run.rng, timing=run.timing)
            if not part:
                break
            digest.update(part)
            out.write(part)
            offset += len(part)
        os.fchmod(out.fileno(), FILE_MODE)
    if offset != file.size or digest.hexdigest() != file.sha256:
        raise FilesLost(f"{file.name} is damaged: its bytes have another SHA-256")


def _place(folder: Path, name: str) -> Path:
    """Make the folders above a file; a name that leads elsewhere is no file's."""
    parts = name.split("/")
    if any(part in {"", ".", ".."} or "\0" in part for part in parts):
        raise FilesLost(f"{name!r} is no name of a file")
    for part in parts[:-1]:
        folder = folder / part
        _make(folder)
    return folder / parts[-1]


def _make(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    folder.chmod(FOLDER_MODE)  # Whatever the umask: a sandbox may run as another user.


def _bound(run: Run) -> str:
    return f"({run.sandbox.limits.disk_bytes} bytes)"
