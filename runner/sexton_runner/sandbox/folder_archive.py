"""Packs the folder of a run into a tar, and unpacks one into an empty folder.

This file is copied into the sandbox and run there by itself: it uses the standard library only.
``pack FOLDER BYTES`` writes the tar to standard output, ``unpack FILE FOLDER BYTES`` reads it. Only files,
folders and links that stay within the folder are taken, each way; what is beyond a bound ends it with
status 3 and a word on standard error. A tar is unpacked as if whoever made it meant harm: nothing is
followed, and links come last.
"""

import contextlib
import errno
import os
import posixpath
import stat
import sys
import tarfile
from pathlib import Path

MAX_ENTRIES = 50_000
MAX_DEPTH = 64
MAX_NAME_BYTES = 4_096
MODES = 0o777
USAGE = 2
LEFT_OUT = frozenset({"in", "out"})
"""At the top of the folder: what the event brought, and what is kept as files."""
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
READ_BYTES = 1 << 20


class Refused(Exception):
    """It is not packed or unpacked, and why."""


def is_within(folder: str, target: str) -> bool:
    """Tell whether a link in ``folder`` (relative, empty at the top) leads to a place below the top.

    >>> is_within("a/b", "../c"), is_within("a", "../../c"), is_within("", "/etc"), is_within("", "a/../..")
    (True, False, False, False)
    """
    if not target or target.startswith("/"):
        return False
    place = posixpath.normpath(posixpath.join(folder, target))
    return place != ".." and not place.startswith("../")


def fault_of(name: str) -> str | None:
    """Say why a name may not be unpacked; None: it may.

    >>> fault_of("a/b"), fault_of("a/../b"), fault_of("/a"), fault_of("a//b")
    (None, 'it leads elsewhere', 'it leads elsewhere', 'it leads elsewhere')
    """
    parts = name.split("/")
    if any(part in {"", ".", ".."} for part in parts) or "\0" in name:
        return "it leads elsewhere"
    if len(parts) > MAX_DEPTH:
        return f"it is deeper than {MAX_DEPTH} folders"
    return "it is too long" if len(os.fsencode(name)) > MAX_NAME_BYTES else None


class Bounds:
    """How many entries and bytes there may still be."""

    def __init__(self, max_bytes: int) -> None:
        self._entries, self._bytes = MAX_ENTRIES, max_bytes

    def take(self, size: int) -> None:
        """Take one entry; raises ``Refused``."""
        self._entries -= 1
        self._bytes -= size
        if self._entries < 0:
            raise Refused(f"it holds more than {MAX_ENTRIES} files and folders")
        if size < 0 or self._bytes < 0:
            raise Refused("it is larger than a workspace may be")


def pack(folder: str, max_bytes: int) -> None:
    """Write the tar of a folder to standard output."""
    bounds = Bounds(max_bytes)
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for path, folders, files, descriptor in os.fwalk(folder, follow_symlinks=False):
            place = os.path.relpath(path, folder)
            place = "" if place == "." else place
            left_out = LEFT_OUT if not place else frozenset[str]()
            folders[:] = sorted(name for name in folders if name not in left_out)
            for name in (*folders, *sorted(name for name in files if name not in left_out)):
                # What goes on running may take away what was just there.
                with contextlib.suppress(FileNotFoundError):
                    _pack_one(tar, bounds, posixpath.join(place, name), descriptor, name)


def _pack_one(tar: tarfile.TarFile, bounds: Bounds, path: str, folder: int, name: str) -> None:
    if fault := fault_of(path):
        raise Refused(f"{path}: {fault}")
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    entry = tarfile.TarInfo(path)
    entry.mode, entry.mtime = stat.S_IMODE(status.st_mode) & MODES, int(status.st_mtime)
    if stat.S_ISDIR(status.st_mode):
        entry.type = tarfile.DIRTYPE
        bounds.take(0)
        tar.addfile(entry)
    elif stat.S_ISLNK(status.st_mode):
        entry.type, entry.linkname = tarfile.SYMTYPE, os.readlink(name, dir_fd=folder)
        if is_within(posixpath.dirname(path), entry.linkname):
            bounds.take(0)
            tar.addfile(entry)
    elif stat.S_ISREG(status.st_mode):
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        with os.fdopen(descriptor, "rb") as file:
            entry.size = os.fstat(descriptor).st_size
            bounds.take(entry.size)
            tar.addfile(entry, file)


def unpack(file: str, folder: str, max_bytes: int) -> None:
    """Unpack a tar into a folder that holds nothing else."""
    bounds, links = Bounds(max_bytes), []
    top = Path(folder)
    with tarfile.open(file, mode="r:") as tar:
        for entry in tar:
            if fault := fault_of(entry.name):
                raise Refused(f"{entry.name[:200]!r}: {fault}")
            bounds.take(entry.size if entry.isreg() else 0)
            if entry.isdir():
                # Only folders that are there, or are made here, lie on the way: links come last.
                (top / entry.name).mkdir(mode=0o700 | entry.mode & MODES, exist_ok=True)
            elif entry.isreg():
                _unpack_file(tar, entry, top)
            elif entry.issym() and is_within(posixpath.dirname(entry.name), entry.linkname):
                links.append(entry)
            else:
                raise Refused(f"{entry.name[:200]!r}: it is no file, folder or link within the workspace")
    for entry in links:
        (top / entry.name).symlink_to(entry.linkname)


def _unpack_file(tar: tarfile.TarFile, entry: tarfile.TarInfo, top: Path) -> None:
    content = tar.extractfile(entry)
    descriptor = os.open(top / entry.name, NEW_FILE, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        left = entry.size
        while content is not None and left:
            piece = content.read(min(left, READ_BYTES))
            if not piece:
                raise Refused("it ends in the middle of a file")
            file.write(piece)
            left -= len(piece)
        os.fchmod(descriptor, 0o600 | entry.mode & MODES)


def main(words: list[str]) -> int:
    """Do what the words say; 3 with a word on standard error where it is refused."""
    try:
        match words:
            case ["pack", folder, most]:
                pack(folder, int(most))
            case ["unpack", file, folder, most]:
                unpack(file, folder, int(most))
            case _:
                return USAGE
    except (Refused, tarfile.TarError) as fault:
        why = str(fault)
    except OSError as fault:
        why = os.strerror(fault.errno or errno.EIO)
    except RecursionError:
        why = f"it is deeper than {MAX_DEPTH} folders"
    else:
        return 0
    sys.stderr.write(why.encode("utf-8", "replace").decode() + "\n")
    return 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
