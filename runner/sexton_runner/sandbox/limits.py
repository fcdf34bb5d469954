"""The resource limits of one run, and the ``prlimit`` options for them."""

from dataclasses import dataclass

OPEN_FILES = 256
FILE_BYTES = 256 << 20
WORKSPACE_BYTES = 512 << 20
SHARED_MEMORY_BYTES = 64 << 20
CPU_SLACK_S = 60
NICENESS = 10  # A run that spins must not come before the renewal that keeps its lease.


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one run; memory and pids are those of the whole tree where a control group holds it."""

    wall_s: float
    memory_bytes: int
    pids: int


def prlimit_words(limits: Limits, *, grouped: bool) -> list[str]:
    """Give the arguments of ``prlimit``.

    Without a control group memory is bounded by process, so that is weaker.

    >>> prlimit_words(Limits(wall_s=10, memory_bytes=1 << 30, pids=64), grouped=True)
    ['--core=0', '--nofile=256', '--fsize=268435456', '--cpu=70', '--nproc=64']
    """
    words = [
        "--core=0",
        f"--nofile={OPEN_FILES}",
        f"--fsize={FILE_BYTES}",
        f"--cpu={int(limits.wall_s) + CPU_SLACK_S}",
    ]
    # Set inside the new user namespace, so it counts this run's processes only; the kernel lets uid 0 of
    # the host exceed it, where root cannot be lowered.
    words.append(f"--nproc={limits.pids}")
    if not grouped:
        words.append(f"--as={limits.memory_bytes}")
    return words
