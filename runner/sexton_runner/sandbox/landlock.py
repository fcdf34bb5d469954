"""The tier for hosts without user namespaces: files by Landlock, calls and sockets by a filter.

Landlock needs no privileges and no namespaces. It knows files, but not their modes and owners, and it knows
TCP by its ports only; so the filter of system calls refuses those and all sockets. A run has no network here.
"""

import ctypes
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from sexton_runner.errors import SandboxUnavailable
from sexton_runner.sandbox import landlock_start
from sexton_runner.sandbox.limits import NICENESS
from sexton_runner.sandbox.tiers import ETC, SYSTEM_LINKS, Inside, Job, bounds
from sexton_runner.sandbox.walls import WALLS
from sexton_runner.settings import SandboxTier

PROGRAM: Final = Path(landlock_start.__file__).resolve()
LEAST_ABI: Final = 6
"""The first that confines signals, of Linux 6.12: without it a run could end its keeper."""
ASK_VERSION: Final = 1
# By the bits of the kernel's interface, include/uapi/linux/landlock.h.
EXECUTE, WRITE, READ, LIST, TRUNCATE, CONTROL = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14, 1 << 15
MAKE_DEVICES: Final = 1 << 6 | 1 << 11
ALL_OF_FILES: Final = (1 << 16) - 1
ALL_OF_NETWORK: Final = 0b11
SHOWN: Final = EXECUTE | READ | LIST
OWN: Final = ALL_OF_FILES & ~MAKE_DEVICES & ~CONTROL
DEVICES: Final = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom"))


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What the program that starts a job is told: rights by path, the filter's descriptor, the folder."""

    files: int = ALL_OF_FILES
    network: int = ALL_OF_NETWORK
    paths: tuple[tuple[str, int], ...]
    seccomp: int | None
    folder: str
    env: dict[str, str]


def kernel_abi() -> int:
    """Give the version of Landlock that the kernel speaks; 0 where there is none, or it is switched off."""
    libc = ctypes.CDLL(None, use_errno=True)
    answer = int(libc.syscall(landlock_start.CREATE_RULESET, None, ctypes.c_size_t(0), ASK_VERSION))
    return max(0, answer)


class Landlock:
    """Files by Landlock, everything else by the filter; the folders of a run are seen where they are."""

    name = SandboxTier.LANDLOCK
    walls = WALLS[name]

    def __init__(self, prlimit: str, nice: str) -> None:
        self._prlimit, self._nice = prlimit, nice

    def inside(self, run_dir: Path, workspace: Path) -> Inside:
        """Give the folders themselves; home and temporary files are in the workspace."""
        return Inside(str(run_dir), str(workspace))

    def wrap(self, job: Job) -> list[str]:
        """Give the words that run the job; raises ``SandboxUnavailable`` for a folder shown elsewhere."""
        if moved := [place for place, source in job.read_only.items() if place != source]:
            raise SandboxUnavailable(f"the landlock tier cannot show {moved[0]} elsewhere than where it is")
        rules = Rules(
            paths=tuple(_paths(job)), seccomp=job.seccomp, folder=str(job.workspace), env=dict(job.env)
        )
        # Not the number of processes: the kernel counts those of the user, who is the runner's as well.
        limits = [word for word in bounds(job) if not word.startswith("--nproc")]
        words = [self._nice, "-n", str(NICENESS), self._prlimit, *limits, "--"]
        words += [str(Path(sys.executable).resolve()), "-I", "-S", "-B", str(PROGRAM)]
        return [*words, msgspec.json.encode(rules).decode(), *job.argv]


def _paths(job: Job) -> Iterator[tuple[str, int]]:
    for path in ("/usr", *(f"/{name}" for name in SYSTEM_LINKS), *ETC, *map(str, job.read_only)):
        yield path, SHOWN
    for device in DEVICES:
        yield device, READ | WRITE
    yield str(job.run_dir), SHOWN
    for entry in os.scandir(job.run_dir):
        # The way to the runner; all else in that folder is to be read only.
        if stat.S_ISFIFO(entry.stat(follow_symlinks=False).st_mode):
            yield entry.path, READ | WRITE
    yield str(job.workspace), OWN


def refusal(abi: int, *, is_root: bool, has_groups: bool) -> str | None:
    """Say why this host cannot give the tier; None when it can.

    >>> refusal(7, is_root=False, has_groups=True)
    >>> refusal(4, is_root=False, has_groups=True)
    "the landlock tier needs version 6 of the kernel's Landlock (Linux 6.12 or newer); this kernel has 4"
    """
    if abi < LEAST_ABI:
        had = f"this kernel has {abi}" if abi else "this kernel has none, or it is not in its list lsm="
        needed = f"version {LEAST_ABI} of the kernel's Landlock (Linux 6.12 or newer)"
        return f"the landlock tier needs {needed}; {had}"
    if is_root:
        return "the landlock tier is for a runner that is not root: start it as an ordinary user"
    if not has_groups:
        return (
            "the landlock tier needs control groups, for nothing else counts what a run takes without"
            " namespaces: set Delegate=yes in the runner's systemd unit"
        )
    return None
