"""Keeps an archive in a folder."""

import errno
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import trio

from sexton_storage.archives.place import MOST_BYTES
from sexton_storage.objects.store import ObjectMissing, ObjectStoreFault

R = TypeVar("R")
UNFINISHED: Final = ".unfinished"
CALL_S: Final = 60.0
"""For one object, or one list: a disk that is reached over a network may stand still without an error."""


class FolderPlace:
    """Every write is made under another name, put on disk, and then named.

    What is left under such a name by one that was killed is no object, and is in no list.

    A call that takes too long is given up, and its thread is left to the disk. The next call waits for that
    thread, so that a disk that stands still takes one, however often it is tried.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._one_works = trio.CapacityLimiter(1)
        self.address = str(folder)

    def __repr__(self) -> str:
        return f"<FolderPlace {self.address}>"

    async def put(self, name: str, content: bytes) -> None:
        await self._work(name, lambda path: _write(self._folder, path, content))

    async def read(self, name: str) -> bytes:
        return await self._work(name, _read)

    async def delete(self, name: str) -> None:
        await self._work(name, lambda path: path.unlink(missing_ok=True))

    async def names(self, within: str) -> list[str]:
        folder = within.rpartition("/")[0]
        found = await self._work(folder, lambda path: _files(self._folder, path))
        return sorted(name for name in found if name.startswith(within))

    async def _work(self, name: str, work: Callable[[Path], R]) -> R:
        path = self._folder / name
        if ".." in Path(name).parts or Path(name).is_absolute():
            raise ObjectStoreFault(f"{name!r} is no name in an archive")
        try:
            with trio.fail_after(CALL_S):
                return await trio.to_thread.run_sync(
                    work, path, limiter=self._one_works, abandon_on_cancel=True
                )
        except trio.TooSlowError as fault:
            raise ObjectStoreFault(f"{path}: it took too long") from fault
        except FileNotFoundError as fault:
            raise ObjectMissing(f"{path} is not there") from fault
        except OSError as fault:
            raise ObjectStoreFault(f"{path}: {fault.strerror or fault}") from fault


def _write(root: Path, path: Path, content: bytes) -> None:
    if not root.is_dir():
        # A disk that is not mounted is no empty archive.
        raise OSError(errno.ENOENT, f"the folder {root} is not there")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}{UNFINISHED}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    folder = path.parent
    while folder != root.parent:  # The names of new folders, too, are to be on disk.
        _sync(folder)
        folder = folder.parent


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        found = file.read(MOST_BYTES + 1)
    if len(found) > MOST_BYTES:
        raise OSError(errno.EFBIG, "it is longer than anything an archive has")
    return found


def _files(root: Path, folder: Path) -> list[str]:
    if not root.is_dir():
        raise OSError(errno.ENOENT, f"the folder {root} is not there")
    return [
        str(path.relative_to(root))
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(UNFINISHED)
    ]
