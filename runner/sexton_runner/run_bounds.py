"""What one run may have: as an operator allows it, as an agent asks for it, and as the fleet is told."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from decimal import Decimal

from sexton_runner.errors import BadSettings
from sexton_runner.sandbox.limits import Limits
from sexton_runner.wire import Resources

MIB = 1 << 20
SIZES = {"MiB": MIB, "GiB": 1 << 30}
EXAMPLE = "cpu=2,memory=2GiB,pids=256,disk=512MiB,wall=1h"
TIMES = {"s": 1, "m": 60, "h": 3600}
_NUMBER = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([A-Za-z]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Some of the bounds of a run; None: nothing is said of it."""

    cpu: float | None = None
    memory_bytes: int | None = None
    pids: int | None = None
    disk_bytes: int | None = None
    wall_s: float | None = None

    def over(self, limits: Limits) -> Limits:
        """Give the limits with what is said here in place of theirs."""
        said = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(limits, **{name: value for name, value in said.items() if value is not None})


class TooMuch(Exception):
    """A run asks for more than this runner gives one; the text names the bound."""


def read_bounds(text: str, name: str) -> Bounds:
    """Read what an operator has written; raises ``BadSettings``, which says ``name``.

    >>> read_bounds("cpu=0.5, memory=2GiB, wall=2h", "run_most")
    Bounds(cpu=0.5, memory_bytes=2147483648, pids=None, disk_bytes=None, wall_s=7200)
    """
    found = Bounds()
    for part in filter(None, (each.strip() for each in text.split(","))):
        key, _, value = part.partition("=")
        number = _NUMBER.fullmatch(value.strip())
        if number is None:
            raise BadSettings(f"{name}: '{part}' is not like {EXAMPLE}")
        found = _with(found, key.strip(), Decimal(number[1]), number[2], name)
    return found


def _with(found: Bounds, key: str, number: Decimal, unit: str, name: str) -> Bounds:
    if number <= 0:
        raise BadSettings(f"{name}: {key} must be more than 0")
    match key, unit:
        case "cpu", "":
            return replace(found, cpu=float(number))
        case "pids", "":
            return replace(found, pids=int(number))
        case "memory", unit if unit in SIZES:
            return replace(found, memory_bytes=int(number * SIZES[unit]))
        case "disk", unit if unit in SIZES:
            return replace(found, disk_bytes=int(number * SIZES[unit]))
        case "wall", unit if unit in TIMES:
            return replace(found, wall_s=int(number * TIMES[unit]))
        case _:
            raise BadSettings(f"{name}: '{key}={number}{unit}' is not like {EXAMPLE}")


def most_of(default: Limits, allowed: Bounds) -> Limits:
    """Give the most that a run may ask for: what an operator allows, else what every run has.

    Of the processors that is all that this process may use.
    """
    cpu = allowed.cpu or default.cpu or float(len(os.sched_getaffinity(0)))
    return replace(allowed.over(default), cpu=cpu)


def allotted(asked: Resources, default: Limits, most: Limits) -> Limits:
    """Give the limits of a run that asks; raises ``TooMuch``: nothing is quietly made smaller.

    >>> default = Limits(wall_s=60, memory_bytes=1024 * MIB, pids=128)
    >>> allotted(Resources(memory_mib=128), default, default).disk_bytes // MIB
    128
    """
    wanted = Bounds(
        cpu=None if asked.cpu_millis is None else asked.cpu_millis / 1000,
        memory_bytes=None if asked.memory_mib is None else asked.memory_mib * MIB,
        pids=asked.pids,
        disk_bytes=None if asked.disk_mib is None else asked.disk_mib * MIB,
        wall_s=asked.wall_s,
    )
    for field in fields(wanted):
        amount, bound = getattr(wanted, field.name), getattr(most, field.name)
        if amount is not None and bound is not None and amount > bound:
            said = field.name.partition("_")[0]
            raise TooMuch(f"the agent asks for {said} {amount}, and this runner gives a run at most {bound}")
    limits = wanted.over(default)
    # Files lie in memory: what has no room there is better refused by the file system than by a kill.
    return replace(limits, disk_bytes=min(limits.disk_bytes, limits.memory_bytes))


def offered(most: Limits, *, keeps_share: bool) -> Iterator[str]:
    """Say to the fleet what a run may ask for; ``keeps_share``: a group bounds its share of processors.

    >>> list(offered(Limits(wall_s=60, memory_bytes=MIB, pids=8, cpu=0.5), keeps_share=True))[:3]
    ['cpu-quota', 'cpu<=0.5', 'memory<=1MiB']
    """
    if keeps_share:
        yield "cpu-quota"
    if most.cpu is not None:
        yield f"cpu<={most.cpu:.12g}"
    yield f"memory<={most.memory_bytes // MIB}MiB"
    yield f"pids<={most.pids}"
    yield f"disk<={most.disk_bytes // MIB}MiB"
    yield f"wall<={int(most.wall_s)}s"
