"""Writes into a folder as if it were the root of a file system: no name and no link leads out of it."""

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

MAX_LINKS = 40
MAX_PARTS = 64
MAX_NAME_BYTES = 255
READ_BYTES = 1 << 16
KEPT_MODE = 0o777
"""What is kept of a file's mode: never setuid, setgid or sticky."""
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class BadTree(Exception):
    """What is to be written cannot be a part of an image."""


def parts_of(name: str) -> tuple[str, ...]:
    """Give the parts of a name within the root; raises ``BadTree``.

    >>> parts_of("./usr/bin/"), parts_of("/etc/x")
    (('usr', 'bin'), ('etc', 'x'))
    """
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if ".." in parts or "\0" in name:
        raise BadTree(f"the name {name[:200]!r} leads out of the image")
    if len(parts) > MAX_PARTS or any(len(os.fsencode(part)) > MAX_NAME_BYTES for part in parts):
        raise BadTree(f"the name {name[:200]!r} is too long")
    return parts


class Tree:
    """One root that nobody else writes to meanwhile. Links in it are followed within it only."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def resolve(self, parts: Sequence[str]) -> Path | None:
        """Give the real place of a path within the root; None where there is nothing. Raises ``BadTree``."""
        place = self._lead(parts)
        return place if os.path.lexists(place) else None

    def _lead(self, parts: Sequence[str]) -> Path:
        """Give where a path leads within the root, whether or not something is there."""
        place, left, links = self.root, [*parts], 0
        while left:
            part = left.pop(0)
            if part == "..":
                place = place if place == self.root else place.parent
                continue
            place /= part
            if place.is_symlink():
                links += 1
                if links > MAX_LINKS:
                    raise BadTree(f"links go round in a circle at {'/'.join(parts)[:200]}")
                target = str(place.readlink())
                place = self.root if target.startswith("/") else place.parent
                left = [each for each in target.split("/") if each not in ("", ".")] + left
        return place

    def folder(self, parts: Sequence[str]) -> Path:
        """Give the folder at a path, and make it and those above it where they are missing."""
        place = self._lead(parts)
        missing = [each for each in (place, *place.parents) if not os.path.lexists(each)]
        for each in reversed(missing):
            each.mkdir()
            each.chmod(0o755)
        if not place.is_dir():
            raise BadTree(f"{'/'.join(parts)[:200]} is no folder")
        return place

    def make_folder(self, parts: Sequence[str], mode: int) -> None:
        """Make a folder, or give the one that is there its mode."""
        if not parts:
            return
        place = self.folder(parts[:-1]) / parts[-1]
        if place.is_symlink() or (place.exists() and not place.is_dir()):
            place.unlink()
        place.mkdir(exist_ok=True)
        place.chmod(mode & KEPT_MODE | stat.S_IRWXU)

    def clear_place(self, parts: Sequence[str]) -> Path:
        """Give where something new is to stand, after whatever stood there was removed."""
        if not parts:
            raise BadTree("the root itself can only be a folder")
        place = self.folder(parts[:-1]) / parts[-1]
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
        return place

    def write(self, parts: Sequence[str], content: IO[bytes], mode: int) -> None:
        """Write a file, in pieces."""
        place = self.clear_place(parts)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(place, flags, 0o600), "wb") as file:
            while piece := content.read(READ_BYTES):
                file.write(piece)
            os.fchmod(file.fileno(), mode & KEPT_MODE | stat.S_IRUSR)

    def symlink(self, parts: Sequence[str], target: str) -> None:
        """Make a link. Wherever it says that it leads, it is followed within the root, here and in a run."""
        if not target or "\0" in target:
            raise BadTree(f"the link {'/'.join(parts)[:200]} leads nowhere")
        self.clear_place(parts).symlink_to(target)

    def hardlink(self, parts: Sequence[str], source: Sequence[str]) -> None:
        """Give a file of the tree a second name."""
        found = self.resolve(source[:-1])
        held = None if found is None or not source else found / source[-1]
        if held is None or held.is_symlink() or not held.is_file():
            raise BadTree(f"{'/'.join(parts)[:200]} is a second name of what is no file of the image")
        if held != self.folder(parts[:-1]) / parts[-1]:
            os.link(held, self.clear_place(parts), follow_symlinks=False)

    def remove(self, parts: Sequence[str]) -> None:
        """Remove what a lower layer has brought, if it is there."""
        above = self.resolve(parts[:-1])
        if parts and above is not None and above.is_dir():
            self.clear_place(parts)

    def empty(self, parts: Sequence[str]) -> None:
        """Remove all that lower layers have brought into a folder."""
        found = self.resolve(parts)
        if found is not None and found.is_dir():
            for each in found.iterdir():
                if each.is_dir() and not each.is_symlink():
                    shutil.rmtree(each)
                else:
                    each.unlink()


def leave_out_specials(root: Path) -> list[str]:
    """Take devices, pipes, sockets and others' identities out of a root; tells what was taken.

    Sandboxes have devices of their own, and nobody inside can become another user.
    """
    left_out = []
    for path in list(_walk(root)):
        mode = path.lstat().st_mode
        name = path.relative_to(root)
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
            path.unlink()
            left_out.append(f"{name}: a device, pipe or socket")
        elif not stat.S_ISLNK(mode) and mode & (stat.S_ISUID | stat.S_ISGID):
            path.chmod(stat.S_IMODE(mode) & ~(stat.S_ISUID | stat.S_ISGID))
            if stat.S_ISREG(mode):  # Of a folder it only says whose new files are.
                left_out.append(f"{name}: setuid or setgid")
    return left_out


def digest_of(root: Path) -> str:
    """Give the SHA-256 of a tree: its names, kinds, modes, links and contents, in order."""
    whole = hashlib.sha256()
    for path in _walk(root):
        seen = path.lstat()
        name = os.fsencode(path.relative_to(root))
        if stat.S_ISLNK(seen.st_mode):
            kind, content = b"l", os.fsencode(path.readlink())
        elif stat.S_ISDIR(seen.st_mode):
            kind, content = b"d", b""
        elif stat.S_ISREG(seen.st_mode):
            with path.open("rb") as file:
                kind, content = b"f", hashlib.file_digest(file, "sha256").digest()
        else:
            # A device, pipe or socket has no place in an image, and may keep whoever opens it waiting.
            kind, content = b"o", str(seen.st_rdev).encode()
        mode = b"" if kind == b"l" else oct(seen.st_mode & KEPT_MODE).encode()
        for part in (kind, name, mode, content):
            whole.update(len(part).to_bytes(8, "big") + part)
    return f"sha256:{whole.hexdigest()}"


def _walk(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir(), key=lambda each: os.fsencode(each.name)):
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path)
