"""Adds up the memory that everything in a sandbox takes, as seen through the sandbox's own /proc.

What has no owner there (memfd, System V's shared memory, anonymous shared mappings) cannot be added up, so a
sandbox that is watched cannot make any: see ``seccomp`` and ``tiers``.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sexton_runner.sandbox.process import Child, only_child

MEMORY_FOLDERS = ("tmp", "workspace", "dev/shm", "dev")
"""Where the sandbox may write: all of it lies in memory."""
INODE_BYTES = 1024
"""What the kernel keeps of an empty file."""
SOCKET_BYTES = 512 << 10
"""What may wait in one socket; the kernel does not say how much does."""
KIB = 1024
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Taken:
    """What one process takes, in bytes: pages of its own and page tables."""

    private: int
    tables: int


class Sight:
    """Looks into one sandbox for as long as it is open.

    The sandbox's own /proc lists its process namespace whole, however often its processes fork and whoever
    their parents are. Descriptors are kept, so what is looked at cannot become another's by its number.
    """

    def __init__(self, proc: int, folders: tuple[int, ...]) -> None:
        self._proc = proc
        self._folders = folders

    def close(self) -> None:
        """Let go of the sandbox's file systems; they would be kept otherwise."""
        for descriptor in (self._proc, *self._folders):
            os.close(descriptor)

    def used(self, enough: int) -> int:
        """Give the bytes in use; exact only from ``enough`` on, because what is exact costs more.

        Pages that processes share since a fork are counted for each of them first, and by share then.
        """
        pids = [name for name in os.listdir(self._proc) if name.isdigit()]  # noqa: PTH208 - of a descriptor
        taken = [(name, self._taken(name)) for pid in pids for name in self._with_memory(pid)]
        fixed = self._files() + self._sockets(pids) + sum(each.tables for _, each in taken)
        at_most = fixed + sum(each.private for _, each in taken)
        if at_most <= enough:
            return at_most
        return fixed + sum(self._share(name, each) for name, each in taken)

    def _files(self) -> int:
        total = 0
        for folder in self._folders:
            told = os.fstatvfs(folder)
            total += (told.f_blocks - told.f_bfree) * told.f_frsize
            total += (told.f_files - told.f_ffree) * INODE_BYTES
        return total

    def _sockets(self, pids: list[str]) -> int:
        # One network namespace: the first process that is still there tells for all.
        for pid in pids:
            for line in self._lines(f"{pid}/net/sockstat"):
                if line.startswith("sockets: used "):
                    return int(line.split()[2]) * SOCKET_BYTES
        return 0

    def _with_memory(self, pid: str) -> Iterator[str]:
        if any(line.startswith("VmSize") for line in self._lines(f"{pid}/status")):
            yield pid
            return
        # A process whose first thread has ended shows no memory there, and has it all the same.
        with suppress(OSError):
            descriptor = os.open(f"{pid}/task", FOLDER_FLAGS, dir_fd=self._proc)
            try:
                yield from [name for name in os.listdir(descriptor) if name != pid][:1]  # noqa: PTH208
            finally:
                os.close(descriptor)

    def _taken(self, name: str) -> Taken:
        found = self._numbers(f"{name}/status", "RssAnon", "VmSwap", "VmPTE")
        return Taken(found["RssAnon"] + found["VmSwap"], found["VmPTE"])

    def _share(self, name: str, taken: Taken) -> int:
        try:
            found = self._numbers(f"{name}/smaps_rollup", "Pss_Anon", "SwapPss")
        except PermissionError:
            # One that lets nobody look is believed to share nothing.
            return taken.private
        # One that has ended meanwhile has nothing any more.
        return sum(found.values())

    def _numbers(self, file: str, *keys: str) -> dict[str, int]:
        found = dict.fromkeys(keys, 0)
        for line in self._lines(file):
            key, _, value = line.partition(":")
            if key in found:
                found[key] = int(value.split()[0]) * KIB
        return found

    def _lines(self, name: str) -> list[str]:
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._proc)
            with os.fdopen(descriptor, encoding="utf-8", errors="replace") as file:
                return file.readlines()
        except PermissionError:
            raise
        except OSError:
            return []  # It has ended.


def look_into(child: Child) -> Sight | None:
    """Give the sight of the sandbox that this child made; None while it does not stand yet."""
    opened: list[int] = []
    try:
        # Below the first process of the namespace there is the command. It has begun inside, so it may be
        # looked at by whoever owns the namespace.
        command = Path(f"/proc/{only_child(child.first_inside())}")
        root = command / "root"
        if _namespace(command) == _namespace(Path("/proc/self")) or root.samefile("/"):
            return None
        for name in ("proc", *MEMORY_FOLDERS):
            opened.append(os.open(root / name, FOLDER_FLAGS))  # noqa: PERF401 - those before a fault are closed
    except (OSError, ValueError, IndexError):
        for descriptor in opened:
            os.close(descriptor)
        return None
    return Sight(opened[0], tuple(opened[1:]))


def _namespace(process: Path) -> str:
    return str((process / "ns" / "pid").readlink())
