"""Sends the files that a run left, from inside the sandbox to the runner outside.

This file is copied into the sandbox and run there by itself: it uses the standard library only. It reads as
the run's own user, so it can give away nothing that the run could not. The runner believes none of it.

What it writes to standard output are frames: a letter, the length in four bytes, the content. ``F`` is a
file, as JSON, and as many bytes as its ``size`` says follow. ``N`` says of what was left out why. ``E`` is
the end. With a third word it sends that one file, a path below the folder that it runs in.
"""

import errno
import hashlib
import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

FOLDER = "out"
MAX_FILES = 1_000
MAX_ENTRIES = 10_000
MAX_DEPTH = 32
MAX_NOTES = 32
MAX_NAME_BYTES = 1_024
READ_BYTES = 1 << 18
OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
OPEN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Sender:
    """Walks the folder and sends what it finds, within its bounds."""

    def __init__(self, total: int, *, walled: bool) -> None:
        self._left = total
        # Without walls a second name of a file may be one of outside.
        self._walled = walled
        self._files = self._entries = self._notes = 0
        self._full = ""

    def run(self) -> None:
        """Send everything, and the end."""
        try:
            top = os.open(FOLDER, OPEN_FOLDER)
        except OSError as fault:
            # A plain file of that name is a program's own affair, and leaves nothing.
            if fault.errno != errno.ENOENT and not Path(FOLDER).is_file():
                self._note(FOLDER, "it is no folder")
        else:
            self._walk(top, "", 0)
        if self._full:
            self._note("", self._full)
        send(b"E")

    def run_one(self, path: str) -> None:
        """Send one file, and the end; no link on the way is followed."""
        *folders, name = path.split("/")
        try:
            folder = os.open(".", OPEN_FOLDER)
            try:
                for inner in folders:
                    outer, folder = folder, os.open(inner, OPEN_FOLDER, dir_fd=folder)
                    os.close(outer)
                self._send_file(folder, name, path)
            finally:
                os.close(folder)
        except OSError as fault:
            self._note(path, os.strerror(fault.errno or 0))
        if self._full:
            self._note(path, "it is larger than a file may be")
        send(b"E")

    def _walk(self, folder: int, path: str, depth: int) -> None:
        try:
            for name in self._names(folder):
                inner = f"{path}{name}"
                mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
                if stat.S_ISDIR(mode) and depth < MAX_DEPTH:
                    self._walk(os.open(name, OPEN_FOLDER, dir_fd=folder), f"{inner}/", depth + 1)
                elif stat.S_ISREG(mode):
                    self._send_file(folder, name, inner)
                else:
                    self._note(inner, "it is no file" if depth < MAX_DEPTH else "it lies too deep")
                if self._full:
                    return
        except OSError as fault:
            self._note(path, os.strerror(fault.errno or 0))
        finally:
            os.close(folder)

    def _names(self, folder: int) -> list[str]:
        """Give the names of a folder in order; no more of them than may be looked at."""
        found = []
        with os.scandir(folder) as entries:
            for entry in entries:
                self._entries += 1
                if self._entries > MAX_ENTRIES:
                    self._full = f"there are more than {MAX_ENTRIES} entries, and the others were left out"
                    break
                found.append(entry.name)
        return sorted(found)

    def _send_file(self, folder: int, name: str, path: str) -> None:
        try:
            encoded = path.encode()
        except UnicodeEncodeError:
            self._note(path, "its name is no UTF-8")
            return
        if len(encoded) > MAX_NAME_BYTES:
            self._note(path, f"its name is longer than {MAX_NAME_BYTES} bytes")
            return
        try:
            file = os.open(name, OPEN_FILE, dir_fd=folder)
        except OSError as fault:
            self._note(path, os.strerror(fault.errno or 0))
            return
        try:
            self._send_content(file, path)
        finally:
            os.close(file)

    def _send_content(self, file: int, path: str) -> None:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or (status.st_nlink > 1 and not self._walled):
            self._note(path, "it is no file of its own")
            return
        if self._files >= MAX_FILES:
            self._full = f"there are more than {MAX_FILES} files, and the others were left out"
            return
        if status.st_size > self._left:
            self._full = "the files are larger together than they may be, and the others were left out"
            return
        # What it is now: a file that grows meanwhile is sent as far as it went.
        size, digest = 0, hashlib.sha256()
        for piece in pieces(file, status.st_size):
            digest.update(piece)
            size += len(piece)
        self._files += 1
        self._left -= size
        head = {"name": path, "size": size, "sha256": digest.hexdigest()}
        send(b"F", json.dumps(head).encode())
        os.lseek(file, 0, os.SEEK_SET)
        for piece in pieces(file, size):
            write(piece)
            size -= len(piece)
        while size:  # It became shorter; the hash will tell.
            piece = bytes(min(size, READ_BYTES))
            write(piece)
            size -= len(piece)

    def _note(self, path: str, why: str) -> None:
        self._notes += 1
        if self._notes <= MAX_NOTES:
            shown = path.encode("utf-8", "replace").decode()[:MAX_NAME_BYTES]
            send(b"N", json.dumps({"name": shown, "why": why}).encode())


def pieces(file: int, size: int) -> Iterator[bytes]:
    """Give the first ``size`` bytes, or as many as there are."""
    while size and (piece := os.read(file, min(size, READ_BYTES))):
        size -= len(piece)
        yield piece


def send(kind: bytes, content: bytes = b"") -> None:
    """Write one frame."""
    write(kind + len(content).to_bytes(4, "big") + content)


def write(content: bytes) -> None:
    """Write all of it."""
    view = memoryview(content)
    while view:
        view = view[os.write(1, view) :]


if __name__ == "__main__":
    sender = Sender(int(sys.argv[1]), walled=sys.argv[2] == "walled")
    if sys.argv[3:]:
        sender.run_one(sys.argv[3])
    else:
        sender.run()
