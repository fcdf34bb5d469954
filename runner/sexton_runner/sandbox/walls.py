"""What the tiers of the sandbox differ in: the one table that everything else asks."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from sexton_runner.settings import SandboxTier


class Loopback(enum.Enum):
    """Where a program of a run can meet the proxy of its run."""

    OWN = "in a network namespace of its own"
    HOST = "on the loopback of the host"
    NONE = "nowhere: it has no sockets"


@dataclass(frozen=True, slots=True, kw_only=True)
class Walls:
    """What stands between a program and its host.

    ``shuts_in``: there is something. ``own_root``: it sees a root of its own, with fixed places, in which an
    image can be shown. ``own_processes``: it has a process namespace, which ends all that it holds, and which
    a watchdog can look into. ``shares_user``: on the host it is the runner's user. ``watches_disk``: what it
    writes is on the host's disk, and is added up there. ``by_landlock``: the kernel has to offer that.
    ``in_container``: podman holds its processes, which are not below the runner's, and gives them a user.
    """

    shuts_in: bool
    own_root: bool
    own_processes: bool
    shares_user: bool
    watches_disk: bool
    by_landlock: bool
    in_container: bool
    loopback: Loopback


WALLS: Mapping[SandboxTier, Walls] = {
    SandboxTier.BUBBLEWRAP: Walls(
        shuts_in=True,
        own_root=True,
        own_processes=True,
        shares_user=False,
        watches_disk=False,
        by_landlock=False,
        in_container=False,
        loopback=Loopback.OWN,
    ),
    SandboxTier.LANDLOCK: Walls(
        shuts_in=True,
        own_root=False,
        own_processes=False,
        shares_user=True,
        watches_disk=True,
        by_landlock=True,
        in_container=False,
        loopback=Loopback.NONE,
    ),
    SandboxTier.PODMAN: Walls(
        shuts_in=True,
        own_root=True,
        own_processes=True,
        shares_user=False,
        watches_disk=False,
        by_landlock=False,
        in_container=True,
        loopback=Loopback.OWN,
    ),
    SandboxTier.NONE: Walls(
        shuts_in=False,
        own_root=False,
        own_processes=False,
        shares_user=True,
        watches_disk=False,
        by_landlock=False,
        in_container=False,
        loopback=Loopback.HOST,
    ),
}
