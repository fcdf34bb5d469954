"""Control groups, where the host lets us make them: version 2 as delegated or as root, version 1 as root."""

import contextlib
import os
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path

import trio

from sexton_runner.sandbox.limits import Limits

ROOT = Path("/sys/fs/cgroup")
PREFIX = "sexton-"
REMOVE_PATIENCE_S = 5.0
REMOVE_TICK_S = 0.01
ABANDONED_S = 600.0
CPU_PERIOD_US = 100_000
LEAF = "runners"
"""Where the processes of a group that was left to us go."""
SETTLE_ROUNDS = 10
"""They may fork while they are moved."""


@dataclass(frozen=True, slots=True)
class Group:
    """One run's group: a folder in version 2, one a controller in version 1 (memory, pids, perhaps cpu)."""

    folders: tuple[Path, ...]

    @property
    def joins(self) -> tuple[str, ...]:
        """Give the files that a process writes its id to."""
        return tuple(str(folder / "cgroup.procs") for folder in self.folders)

    def out_of_memory(self) -> bool:
        """Tell whether the kernel killed something here because memory ran out."""
        for name in ("memory.events", "memory.oom_control"):
            with contextlib.suppress(OSError):
                for line in (self.folders[0] / name).read_text().splitlines():
                    if line.startswith("oom_kill ") and line.split()[1] != "0":
                        return True
        return False

    def kill(self) -> None:
        """Kill all that is in the group."""
        for folder in self.folders:
            with contextlib.suppress(OSError):
                (folder / "cgroup.kill").write_text("1")
            with contextlib.suppress(OSError):
                for pid in (folder / "cgroup.procs").read_text().split():
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(int(pid), signal.SIGKILL)

    def remove(self) -> bool:
        """Remove the group if it is empty."""
        for folder in self.folders:
            with contextlib.suppress(FileNotFoundError):
                try:
                    folder.rmdir()
                except OSError:
                    return False
        return True

    async def empty(self) -> None:
        """Kill what is left and remove the group; bounded, and not cancellable."""
        with trio.CancelScope(shield=True), trio.move_on_after(REMOVE_PATIENCE_S):
            while not self.remove():
                self.kill()
                await trio.sleep(REMOVE_TICK_S)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where groups can be made: one parent in version 2, the memory and the pids parent in version 1.

    ``shares``: the share of processors can be bounded too; version 1 then has the cpu parent last.
    """

    parents: tuple[Path, ...]
    shares: bool = False

    @property
    def unified(self) -> bool:
        """Tell version 2 from version 1."""
        return len(self.parents) == 1

    def make(self, name: str, limits: Limits) -> Group:
        """Make a limited group; ``OSError`` when the host does not let us, with nothing left behind."""
        group = Group(tuple(parent / f"{PREFIX}{name}" for parent in self.parents))
        try:
            for folder in group.folders:
                folder.mkdir()
            self._limit(group, limits)
        except OSError:
            group.remove()
            raise
        return group

    def _limit(self, group: Group, limits: Limits) -> None:
        memory, pids = group.folders[0], group.folders[min(1, len(group.folders) - 1)]
        (pids / "pids.max").write_text(str(limits.pids))
        name = "memory.max" if self.unified else "memory.limit_in_bytes"
        (memory / name).write_text(str(limits.memory_bytes))
        swap = "memory.swap.max" if self.unified else "memory.memsw.limit_in_bytes"
        with contextlib.suppress(OSError):  # Absent where the kernel does not account swap.
            (memory / swap).write_text("0" if self.unified else str(limits.memory_bytes))
        if self.shares and limits.cpu is not None:
            _bound_share(group.folders[-1], limits.cpu, unified=self.unified)


def _bound_share(folder: Path, cpu: float, *, unified: bool) -> None:
    quota = int(cpu * CPU_PERIOD_US)
    if unified:
        (folder / "cpu.max").write_text(f"{quota} {CPU_PERIOD_US}")
    else:
        (folder / "cpu.cfs_period_us").write_text(str(CPU_PERIOD_US))
        (folder / "cpu.cfs_quota_us").write_text(str(quota))


def find_layout(
    name: str, limits: Limits, root: Path = ROOT, membership: Path = Path("/proc/self/cgroup")
) -> Layout | None:
    """Give the first place where a group with its limits can really be made; None where there is none."""
    found = _bounding_layout(name, limits, root, membership)
    if found is None:
        return None
    shared = replace(limits, cpu=limits.cpu or 1.0)
    for layout in _sharing(found, root, membership):
        if _works(layout, f"{name}-share", shared):
            return layout
    return found


def _sharing(found: Layout, root: Path, membership: Path) -> list[Layout]:
    """Give the same place with the cpu controller, where there may be one."""
    if found.unified:
        return [Layout(found.parents, shares=True)] if _hands_down_cpu(found.parents[0]) else []
    own = _memberships(membership).get("cpu", "")
    places = dict.fromkeys((root / "cpu" / own, root / "cpu"))
    return [Layout((*found.parents, place), shares=True) for place in places if place.is_dir()]


def _hands_down_cpu(parent: Path) -> bool:
    with contextlib.suppress(OSError):
        if "cpu" in (parent / "cgroup.controllers").read_text().split():
            (parent / "cgroup.subtree_control").write_text("+cpu")
            return True
    return False


def _bounding_layout(name: str, limits: Limits, root: Path, membership: Path) -> Layout | None:
    own = _own_group(root, membership)
    if (
        own is not None
        and _is_delegated(own)
        and _settle_within(own)
        and _works(Layout((own,)), name, limits)
    ):
        return Layout((own,))
    candidates = _candidates(root, membership)
    for layout in candidates:
        if _works(layout, name, limits):
            return layout
    for layout in candidates:
        if layout.unified and _hand_down(layout.parents[0]) and _works(layout, name, limits):
            return layout
    return None


def _own_group(root: Path, membership: Path) -> Path | None:
    """Give the folder of the group of version 2 that this process is in; None at the top, or without one."""
    with contextlib.suppress(OSError):
        for line in membership.read_text().splitlines():
            number, _, path = line.split(":", 2)
            if number == "0" and path.strip("/") and (root / "cgroup.controllers").exists():
                return root / path.lstrip("/")
    return None


def _is_delegated(group: Path) -> bool:
    """Tell whether whoever made the group has left it to us: systemd marks those with Delegate=yes."""
    with contextlib.suppress(OSError):
        return os.getxattr(group, "user.delegate") == b"1"
    return False


def _settle_within(own: Path) -> bool:
    """Move all that runs in our group into one below it, so that it may hand its controllers down.

    A group cannot do both: hold processes, and bound those of groups below it.
    """
    try:
        (own / LEAF).mkdir(exist_ok=True)
        for _ in range(SETTLE_ROUNDS):
            pids = (own / "cgroup.procs").read_text().split()
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    (own / LEAF / "cgroup.procs").write_text(pid)
            if not pids:
                break
        return _hand_down(own)
    except OSError:
        return False


def _works(layout: Layout, name: str, limits: Limits) -> bool:
    with contextlib.suppress(OSError):
        layout.make(f"{name}-trial", limits).remove()
        return True
    return False


def _hand_down(parent: Path) -> bool:
    """Let groups below one bound memory and processes, where nobody has done so yet."""
    try:
        (parent / "cgroup.subtree_control").write_text("+memory +pids")
    except OSError:
        return False
    return True


def _memberships(membership: Path) -> dict[str, str]:
    try:
        lines = [line.split(":", 2) for line in membership.read_text().splitlines()]
    except OSError:
        return {}
    return {controller: path.lstrip("/") for _, names, path in lines for controller in names.split(",")}


def _candidates(root: Path, membership: Path) -> list[Layout]:
    own = _memberships(membership)
    if not own:
        return []
    if (root / "cgroup.controllers").exists():
        # A group that holds processes cannot hand controllers down, so ours are made beside our own, or at
        # the top.
        beside = (root / own.get("", "")).parent if own.get("") else root
        return [Layout((beside,)), Layout((root,))]
    within = tuple(root / controller / own.get(controller, "") for controller in ("memory", "pids"))
    return [Layout(within), Layout((root / "memory", root / "pids"))]


def remove_leftovers(layout: Layout, name: str) -> None:
    """Kill and remove the groups that an earlier runner of this name left, and old empty ones."""
    patience = time.monotonic() + REMOVE_PATIENCE_S
    for parent in layout.parents:
        for folder in parent.glob(f"{PREFIX}*"):
            group = Group((folder,))
            if folder.name.startswith(f"{PREFIX}{name}-"):
                group.kill()
                # On a busy machine the dead take a moment to go: what ran in a sandbox is nicest of all.
                while not group.remove() and time.monotonic() < patience:
                    time.sleep(REMOVE_TICK_S)
            elif _abandoned(folder):
                group.remove()


def _abandoned(folder: Path) -> bool:
    # Of a runner that will not come back under its name. One that holds processes cannot be removed anyway,
    # and a living runner's group is empty for some milliseconds only.
    with contextlib.suppress(OSError):
        return time.time() - folder.stat().st_mtime > ABANDONED_S
    return False
