"""What each kind of sandbox is given and gives; bubblewrap, and none at all."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sexton_runner.sandbox.limits import (
    NICENESS,
    SHARED_MEMORY_BYTES,
    Limits,
    prlimit_words,
)
from sexton_runner.sandbox.walls import WALLS, Walls
from sexton_runner.settings import SandboxTier

RUN_DIR = "/run/sexton"
WORKSPACE = "/workspace"
BROUGHT = f"{WORKSPACE}/in"
"""Where a run finds the files of its event."""
TEMPORARY = "/tmp"  # noqa: S108 - a file system of the sandbox's own
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - the same
OUR_OWN = frozenset({"proc", "sys", "dev", "run", "tmp", "workspace"})
"""Folders of the root that a sandbox has of its own, whatever its image holds there."""
ADDED = "opt"
"""Where an image that is not whole has what it adds."""
SYSTEM_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
# As container runtimes mask it: kernel memory, keys, timers, devices and the machine's state.
MASKED = (
    "acpi",
    "asound",
    "bus",
    "fs",
    "interrupts",
    "irq",
    "kcore",
    "keys",
    "key-users",
    "kmsg",
    "latency_stats",
    "sched_debug",
    "scsi",
    "slabinfo",
    "sysrq-trigger",
    "timer_list",
    "timer_stats",
    "vmallocinfo",
)
# What programs of /usr look up in /etc; nothing here tells of users, hosts or secrets.
ETC = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime")


@dataclass(frozen=True, slots=True)
class Root:
    """An image for one job: its folder, whether it is ``whole``, and where the program finds that folder."""

    folder: Path
    whole: bool
    shown: Path | None = None

    def entries(self) -> Iterator[tuple[str, Path, Path]]:
        """Give what stands at its top, by name: where it is, and where the program finds it."""
        for each in sorted(self.folder.iterdir()):
            yield each.name, each, (self.shown or self.folder) / each.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is to be run: ``argv`` and ``env`` are as seen inside, the paths as seen outside.

    ``read_only`` maps further places inside to what is seen there. ``seccomp`` is a descriptor, with the
    filter of system calls, that the program inherits. ``shared_out``: its group bounds its share of the
    processors. ``python`` is an interpreter inside. Of a container, ``owner`` names the runner, and ``guard``
    is the descriptor of the socket by which it is held.
    """

    argv: Sequence[str]
    env: Mapping[str, str]
    run_dir: Path
    workspace: Path
    read_only: Mapping[Path, Path]
    limits: Limits
    grouped: bool
    shared_out: bool = False
    image: Root | None = None
    seccomp: int | None = None
    python: str = "/usr/bin/python3"
    owner: str = ""
    guard: int = -1


@dataclass(frozen=True, slots=True)
class Inside:
    """The folders of a run as the command sees them: what the runner prepared, and its home and scratch."""

    run_dir: str
    home: str


class Tier(Protocol):
    """One way to shut a command in."""

    name: SandboxTier
    walls: Walls

    def __hash__(self) -> int:
        """Tell it from others, to know again what was found out about it."""
        ...

    def inside(self, run_dir: Path, workspace: Path) -> Inside:
        """Give the paths under which the command sees its folders."""
        ...

    def wrap(self, job: Job) -> list[str]:
        """Give the argument vector that runs the job shut in."""
        ...


class Bubblewrap:
    """New user, pid, net, ipc, uts, cgroup namespaces; only memory-backed /tmp and /workspace to write to."""

    name = SandboxTier.BUBBLEWRAP
    walls = WALLS[name]

    def __init__(self, program: str, features: str) -> None:
        self._program = program
        self._disable_userns = "--disable-userns" in features
        self._sized = "--size" in features

    def inside(self, run_dir: Path, workspace: Path) -> Inside:
        """Give the fixed places, the same for every run."""
        del run_dir, workspace
        return Inside(RUN_DIR, TEMPORARY)

    def wrap(self, job: Job) -> list[str]:
        """Give the words of ``bwrap``; mounts happen in this order, and the root is sealed last."""
        words = [self._program, *self._namespaces(), "--cap-drop", "ALL", "--clearenv"]
        for name, value in job.env.items():
            words += ["--setenv", name, value]
        words += [
            "--proc",
            "/proc",
            # A command of the host's uid 0, where root cannot be lowered, owns what is under /proc/sys and
            # /proc/irq, capabilities or not.
            "--remount-ro",
            "/proc",
            *_masks(Path("/proc")),
            "--dev",
            "/dev",
            # To map /dev/zero is to make memory that nobody can count. /dev/full gives zeros too, and cannot
            # be mapped.
            *(() if job.grouped else ("--dev-bind", "/dev/full", "/dev/zero")),
            *self._tmpfs(SHARED_MEMORY, SHARED_MEMORY_BYTES),
            "--remount-ro",
            "/dev",
        ]
        if job.image is None or not job.image.whole:
            words += _system()
        if job.image is not None:
            words += _image(job.image)
        in_workspace = [place for place in job.read_only if place.is_relative_to(WORKSPACE)]
        for place, source in job.read_only.items():
            if place not in in_workspace:
                words += ["--ro-bind", str(source), str(place)]
        for scratch in (TEMPORARY, WORKSPACE):
            words += self._tmpfs(scratch, job.limits.disk_bytes)
        for place in in_workspace:
            words += ["--ro-bind", str(job.read_only[place]), str(place)]
        if job.seccomp is not None:
            words += ["--seccomp", str(job.seccomp)]
        words += ["--ro-bind", str(job.run_dir), RUN_DIR, "--remount-ro", "/", "--chdir", WORKSPACE, "--"]
        words += ["/usr/bin/nice", "-n", str(NICENESS), "/usr/bin/prlimit"]
        return [
            *words,
            *bounds(job),
            "--",
            *job.argv,
        ]

    def _namespaces(self) -> list[str]:
        words = [
            "--unshare-user",
            "--unshare-pid",
            "--unshare-net",
            "--unshare-ipc",
            "--unshare-uts",
            "--unshare-cgroup-try",
        ]
        words += [
            "--uid",
            "1000",
            "--gid",
            "1000",
            "--hostname",
            "sandbox",
            "--die-with-parent",
            "--new-session",
        ]
        return [*words, "--disable-userns"] if self._disable_userns else words

    def _tmpfs(self, place: str, size: int) -> list[str]:
        return ["--size", str(size), "--tmpfs", place] if self._sized else ["--tmpfs", place]


class Bare:
    """No sandbox: limits and a parent-death signal only. For development, by explicit choice."""

    name = SandboxTier.NONE
    walls = WALLS[name]

    def __init__(self, prlimit: str, env: str) -> None:
        self._prlimit, self._env = prlimit, env

    def inside(self, run_dir: Path, workspace: Path) -> Inside:
        """Give the folders themselves."""
        return Inside(str(run_dir), str(workspace))

    def wrap(self, job: Job) -> list[str]:
        """Give the words of ``prlimit`` and ``env``."""
        limits = [word for word in bounds(job) if not word.startswith("--nproc")]
        settings = [f"{name}={value}" for name, value in job.env.items()]
        words = [self._prlimit, *limits, "--"]
        return [*words, self._env, "-i", "-C", str(job.workspace), *settings, *job.argv]


def bounds(job: Job) -> list[str]:
    """Give the options of ``prlimit`` for a job."""
    return prlimit_words(job.limits, grouped=job.grouped, shared_out=job.shared_out)


def _masks(proc: Path) -> list[str]:
    """Hide what tells of the host and its kernel; the rest of /proc is the namespace's own, and read-only."""
    words = []
    for name in MASKED:
        path = proc / name
        if path.is_dir():
            words += ["--tmpfs", str(path), "--remount-ro", str(path)]
        elif path.exists():
            words += ["--ro-bind", "/dev/null", str(path)]
    return words


def _image(image: Root) -> list[str]:
    """Show an image at the root: what is a link there is a link inside, and leads nowhere but inside."""
    words = []
    for name, place, shown in image.entries():
        if name in OUR_OWN or (not image.whole and name != ADDED):
            continue
        if place.is_symlink():
            words += ["--symlink", str(place.readlink()), f"/{name}"]
        elif place.is_dir():
            words += ["--ro-bind", str(shown), f"/{name}"]
    return words


def _system() -> list[str]:
    words = ["--ro-bind", "/usr", "/usr"]
    for name in SYSTEM_LINKS:
        path = Path("/") / name
        if path.is_symlink():
            words += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            words += ["--ro-bind", str(path), str(path)]
    for file in ETC:
        words += ["--ro-bind-try", file, file]
    return words
