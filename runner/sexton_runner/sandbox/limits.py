"""The resource limits of one run, and the ``prlimit`` options for them."""

import math
from dataclasses import dataclass

OPEN_FILES = 256
FILE_BYTES = 256 << 20
WORKSPACE_BYTES = 512 << 20
SHARED_MEMORY_BYTES = 64 << 20
CPU_SLACK_S = 60
CPU_LAST_WORDS_S = 5
"""From the signal that ends a program for its processor time to the one that it cannot catch."""
NICENESS = 10  # A run that spins must not come before the renewal that keeps its lease.


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one run; memory and pids are those of the whole tree where a control group holds it.

    ``cpu`` is in processors, None for all there are. Without a control group that can keep a run to a share,
    it bounds the processor time of each process. ``disk_bytes`` is the size of ``/workspace`` and of
    ``/tmp``; what lies in them counts as memory.
    """

    wall_s: float
    memory_bytes: int
    pids: int
    cpu: float | None = None
    disk_bytes: int = WORKSPACE_BYTES


def cpu_seconds(limits: Limits, *, shared_out: bool) -> int:
    """Give the processor time of one process; ``shared_out``: a control group bounds the run's share.

    >>> cpu_seconds(Limits(wall_s=10, memory_bytes=1 << 30, pids=64), shared_out=False)
    70
    >>> half = Limits(wall_s=10, memory_bytes=1 << 30, pids=64, cpu=0.5)
    >>> cpu_seconds(half, shared_out=False), cpu_seconds(half, shared_out=True)
    (5, 70)
    """
    if limits.cpu is None or (shared_out and limits.cpu <= 1):
        return int(limits.wall_s) + CPU_SLACK_S
    if shared_out:
        return math.ceil(limits.wall_s * limits.cpu) + CPU_SLACK_S
    return max(1, math.ceil(limits.wall_s * limits.cpu))


def prlimit_words(limits: Limits, *, grouped: bool, shared_out: bool = False) -> list[str]:
    """Give the arguments of ``prlimit``.

    Without a control group memory is bounded by process, so that is weaker.

    >>> prlimit_words(Limits(wall_s=10, memory_bytes=1 << 30, pids=64), grouped=True)
    ['--core=0', '--nofile=256', '--fsize=268435456', '--cpu=70:75', '--nproc=64']
    """
    seconds = cpu_seconds(limits, shared_out=shared_out)
    words = [
        "--core=0",
        f"--nofile={OPEN_FILES}",
        f"--fsize={max(FILE_BYTES, limits.disk_bytes // 2)}",
        f"--cpu={seconds}:{seconds + CPU_LAST_WORDS_S}",
    ]
    # Set inside the new user namespace, so it counts this run's processes only; the kernel lets uid 0 of
    # the host exceed it, where root cannot be lowered.
    words.append(f"--nproc={limits.pids}")
    if not grouped:
        words.append(f"--as={limits.memory_bytes}")
    return words
