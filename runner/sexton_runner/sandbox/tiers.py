"""The ways to shut a command in, by the name under which a runner enrols."""

import functools
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sexton_runner.errors import SandboxUnavailable
from sexton_runner.sandbox.limits import SHARED_MEMORY_BYTES, WORKSPACE_BYTES, Limits, prlimit_words
from sexton_runner.settings import SandboxTier

RUN_DIR = "/run/sexton"
WORKSPACE = "/workspace"
SYSTEM_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
# What programs of /usr look up in /etc; nothing here tells of users, hosts or secrets.
ETC = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is to be run: ``argv`` and ``env`` are as seen inside, the paths as seen outside."""

    argv: Sequence[str]
    env: Mapping[str, str]
    run_dir: Path
    workspace: Path
    read_only: Sequence[Path]
    limits: Limits
    grouped: bool


class Tier(Protocol):
    """One way to shut a command in."""

    name: SandboxTier

    def run_dir(self, outside: Path) -> str:
        """Give the path under which the command sees the folder that the runner prepared."""

    def wrap(self, job: Job) -> list[str]:
        """Give the argument vector that runs the job shut in."""


class Bubblewrap:
    """New user, pid, net, ipc, uts and cgroup namespaces; nothing writable but memory-backed /tmp and /workspace."""

    name = SandboxTier.BUBBLEWRAP

    def __init__(self, program: str, features: str) -> None:
        self._program = program
        self._disable_userns = "--disable-userns" in features
        self._sized = "--size" in features

    def run_dir(self, outside: Path) -> str:  # noqa: ARG002 - the same place for every run
        """Give the fixed place of the run's folder."""
        return RUN_DIR

    def wrap(self, job: Job) -> list[str]:
        """Give the words of ``bwrap``; mounts happen in this order, and the root is sealed last."""
        words = [self._program, *self._namespaces(), "--cap-drop", "ALL", "--clearenv"]
        for name, value in job.env.items():
            words += ["--setenv", name, value]
        words += [
            "--proc",
            "/proc",
            "--dev",
            "/dev",
            *self._tmpfs("/dev/shm", SHARED_MEMORY_BYTES),
            "--remount-ro",
            "/dev",
        ]
        words += _system()
        for folder in job.read_only:
            words += ["--ro-bind", str(folder), str(folder)]
        words += [*self._tmpfs("/tmp", WORKSPACE_BYTES), *self._tmpfs(WORKSPACE, WORKSPACE_BYTES)]  # noqa: S108 - inside the sandbox
        words += ["--ro-bind", str(job.run_dir), RUN_DIR, "--remount-ro", "/", "--chdir", WORKSPACE, "--"]
        return [*words, "/usr/bin/prlimit", *prlimit_words(job.limits, grouped=job.grouped), "--", *job.argv]

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

    def __init__(self, setpriv: str, prlimit: str, env: str) -> None:
        self._setpriv, self._prlimit, self._env = setpriv, prlimit, env

    def run_dir(self, outside: Path) -> str:
        """Give the folder itself."""
        return str(outside)

    def wrap(self, job: Job) -> list[str]:
        """Give the words of ``setpriv`` and ``prlimit``."""
        limits = [
            word for word in prlimit_words(job.limits, grouped=job.grouped) if not word.startswith("--nproc")
        ]
        settings = [f"{name}={value}" for name, value in job.env.items()]
        words = [self._setpriv, "--pdeathsig", "KILL", "--", self._prlimit, *limits, "--"]
        return [*words, self._env, "-i", "-C", str(job.workspace), *settings, *job.argv]


def _system() -> list[str]:
    words = ["--ro-bind", "/usr", "/usr"]
    for name in SYSTEM_LINKS:
        path = f"/{name}"
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            words += ["--ro-bind", path, path]
    for path in ETC:
        words += ["--ro-bind-try", path, path]
    return words


@functools.cache
def _features(program: str) -> str:
    return subprocess.run([program, "--help"], capture_output=True, text=True, check=False, timeout=10).stdout


def _find(name: str, package: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise SandboxUnavailable(f"{name} is not installed (Debian and Ubuntu: apt-get install {package})")
    return found


def _bubblewrap() -> Tier:
    program = _find("bwrap", "bubblewrap")
    return Bubblewrap(program, _features(program))


def _landlock() -> Tier:
    raise SandboxUnavailable("the landlock tier is not part of this release; install bubblewrap")


def _bare() -> Tier:
    return Bare(_find("setpriv", "util-linux"), _find("prlimit", "util-linux"), _find("env", "coreutils"))


TIERS: Mapping[SandboxTier, Callable[[], Tier]] = {
    SandboxTier.BUBBLEWRAP: _bubblewrap,
    SandboxTier.LANDLOCK: _landlock,
    SandboxTier.NONE: _bare,
}
