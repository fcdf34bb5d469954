"""Writes one file into the folder of a run, from inside the sandbox.

This file is copied into the sandbox and run there by itself: it uses the standard library only. It writes as
the run's own user, so it can change nothing that the run could not. Its words are the file to copy and the
path below the folder that it runs in. Folders on the way are made, no link is followed, and the file appears
whole or not at all. What goes wrong is told on standard error, with status 3.
"""

import contextlib
import os
import sys
from pathlib import Path

PART = ".sexton.part"
"""The file while it is not whole, in the same folder; one that a killed receiver left is removed first."""
READ_BYTES = 1 << 20
OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
REFUSED = 3


def receive(source: str, path: str) -> None:
    """Copy ``source`` to ``path``, in place of a file that was there. Raises ``OSError``."""
    *folders, name = path.split("/")
    folder = os.open(".", OPEN_FOLDER)
    try:
        for inner in folders:
            with contextlib.suppress(FileExistsError):
                os.mkdir(inner, dir_fd=folder)
            outer, folder = folder, os.open(inner, OPEN_FOLDER, dir_fd=folder)
            os.close(outer)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(PART, dir_fd=folder)
        try:
            copy(source, folder)
            os.replace(PART, name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(PART, dir_fd=folder)
            raise
    finally:
        os.close(folder)


def copy(source: str, folder: int) -> None:
    """Write the bytes of ``source`` to a new file of the folder."""
    descriptor = os.open(PART, NEW_FILE, 0o666, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as out, Path(source).open("rb") as content:
        while piece := content.read(READ_BYTES):
            out.write(piece)


def main(words: list[str]) -> int:
    """Do what the words say."""
    source, path = words
    try:
        receive(source, path)
    except OSError as fault:
        sys.stderr.write(os.strerror(fault.errno or 0) + "\n")
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
