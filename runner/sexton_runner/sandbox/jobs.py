"""Runs one job in the chosen tier and control group, and cleans up after it."""

import os
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from sexton_runner.background_tasks import run_in_background
from sexton_runner.errors import SandboxUnavailable
from sexton_runner.images.store import Image
from sexton_runner.network import Network
from sexton_runner.sandbox.cgroup import Group, Layout
from sexton_runner.sandbox.container_child import order_of, start_in_container
from sexton_runner.sandbox.disk_use import DiskWatch
from sexton_runner.sandbox.limits import Limits
from sexton_runner.sandbox.network_door import connected
from sexton_runner.sandbox.podman import argv_inside
from sexton_runner.sandbox.privilege_drop import PrivilegeDrop
from sexton_runner.sandbox.process import Child, start
from sexton_runner.sandbox.seccomp import open_filter, program, this_machine
from sexton_runner.sandbox.tiers import BROUGHT, WORKSPACE, Job, Root, Tier
from sexton_runner.sandbox.watchdog import Watchdog

# The death signal was set a moment after the fork. A runner that died in that moment is not this shell's
# parent any more, so nothing is started that nobody would end. Then the child enters its group before it
# becomes the sandbox: whatever it forks is counted from the first.
ENTER = """
[ "$PPID" = "$1" ] || exit 125
ulimit -S -d "$(ulimit -H -d)"  # The soft bound was for our parent, which watches over this one run.
n=$2
shift 2
while [ "$n" -gt 0 ]; do
    echo $$ >"$1" || exit 125
    shift
    n=$((n - 1))
done
exec "$@"
"""
INSIDE_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, slots=True)
class Running:
    """A job that has been started."""

    child: Child
    group: Group | None
    watchdog: Watchdog | None = None
    disk: DiskWatch | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    """What programs inside need to know of the network."""

    def out_of_disk(self) -> bool:
        """Tell whether it was ended because its files took more than they may."""
        return self.disk is not None and self.disk.has_bitten

    def out_of_memory(self) -> bool:
        """Tell whether something of it was killed because memory ran out, by the kernel or the watchdog."""
        if self.watchdog is not None:
            return self.watchdog.has_bitten
        return self.group is not None and self.group.out_of_memory()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """What this host can give, found out once at the start.

    ``name`` tells its groups from those of other runners. With a ``lowering`` commands are not this user.
    """

    tier: Tier
    layout: Layout | None
    name: str
    limits: Limits
    setpriv: str
    lowering: PrivilegeDrop | None = None
    image: Image | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    """What the agent's ``env`` says, for programs that no network tells of it."""

    @property
    def is_watched(self) -> bool:
        """Tell whether a watchdog bounds the memory of a run, because no control group does.

        Without walls there is no process namespace to look into.
        """
        return self.layout is None and self.tier.walls.own_processes

    @property
    def keeps_share(self) -> bool:
        """Tell whether a run can be kept to a share of the processors, by its control group."""
        return self.layout is not None and self.layout.shares

    @property
    def _whole(self) -> Image | None:
        """The image that takes the place of the host's programs, if there is one."""
        return self.image if self.image is not None and self.image.facts.whole else None

    @property
    def _python(self) -> str:
        return str(_python()) if self._whole is None else self._whole.facts.python

    def interpreter(self, language: str, program: str, *, isolated: bool = False) -> list[str]:
        """Give the words that run ``program`` (a path inside).

        Python is the image's, or this process's own, isolated from its packages. With an image it finds what
        the image adds, unless it is ``isolated``.
        """
        if language == "sh":
            return ["/bin/sh", program]
        return [self._python, "-I" if isolated or self.image is None else "-s", "-u", "-X", "utf8", program]

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """Give the variables of a command: the agent's own, and how it finds what its image adds."""
        both = {**self.variables, **given}
        if self.image is None:
            return both
        path = both["PATH"].replace(INSIDE_PATH, f"{self.image.path}:{INSIDE_PATH}")
        return {**both, **self.image.environment, "PATH": path}

    @asynccontextmanager
    async def open(
        self,
        argv: Sequence[str],
        *,
        run_dir: Path,
        workspace: Path,
        env: Mapping[str, str],
        serial: str,
        network: Network | None = None,
        brought: Path | None = None,
    ) -> AsyncIterator[Running]:
        """Start a job; on the way out its whole tree is dead, reaped, and its group gone.

        ``brought`` is shown as ``in`` of the workspace, to be read only where the tier has walls. Without a
        ``network`` it reaches nothing; with one, the run's proxy and nothing else.
        """
        async with connected(network, self.tier, argv, run_dir, workspace, python=self._python) as (
            words,
            variables,
        ):
            job = Job(
                argv=[*words],
                env={**variables, **env},
                run_dir=run_dir,
                workspace=workspace,
                read_only={
                    **({} if self._whole else {folder: folder for folder in python_folders()}),
                    **self._shown(brought, workspace),
                },
                image=None if self.image is None else Root(self.image.root, whole=self.image.facts.whole),
                limits=self.limits,
                grouped=self.layout is not None,
                python=self._python,
                owner=self.name,
                shared_out=self.keeps_share,
            )
            async with self._running(job, serial, variables) as running:
                yield running

    def _shown(self, brought: Path | None, workspace: Path) -> Mapping[Path, Path]:
        """Say where a folder with files is seen; where folders stand where they are, a link leads there."""
        if brought is None:
            return {}
        if self.tier.walls.own_root:
            return {Path(BROUGHT): brought}
        (workspace / Path(BROUGHT).name).symlink_to(brought)
        return {brought: brought}

    @asynccontextmanager
    async def _running(self, job: Job, serial: str, variables: Mapping[str, str]) -> AsyncIterator[Running]:
        group = self._group(serial)
        try:
            async with self._begun(job, group) as child:
                if self.is_watched:
                    watchdog = Watchdog(child, self.limits.memory_bytes)
                    async with run_in_background(watchdog.run):
                        yield Running(child, group, watchdog, variables=variables)
                elif self.tier.walls.watches_disk:
                    disk = DiskWatch(child, job.workspace, self.limits.disk_bytes)
                    async with run_in_background(disk.run):
                        yield Running(child, group, disk=disk)
                else:
                    yield Running(child, group, variables=variables)
        finally:
            if group is not None:
                await group.empty()

    @asynccontextmanager
    async def _begun(self, job: Job, group: Group | None) -> AsyncIterator[Child]:
        if self.tier.walls.in_container:
            async with self._in_container(job, group) as child:
                yield child
            return
        child = self._start(job, group)
        try:
            yield child
        finally:
            await child.finish()

    @asynccontextmanager
    async def _in_container(self, job: Job, group: Group | None) -> AsyncIterator[Child]:
        machine = this_machine()
        steps = None if machine is None else program(machine, grouped=job.grouped)
        ends = socket.socketpair()
        words = self.tier.wrap(replace(job, guard=ends[1].fileno()))
        # Only the container joins the group: what podman takes is not the run's.
        words = entered(words, runner=os.getpid(), setpriv=self.setpriv, group=None)
        child = start_in_container(words, {"PATH": os.environ.get("PATH", INSIDE_PATH)}, ends)
        try:
            await child.begin(order_of(argv_inside(job), job.env, WORKSPACE, steps), group)
            async with run_in_background(child.watch):
                yield child
        finally:
            await child.finish()

    def _start(self, job: Job, group: Group | None) -> Child:
        descriptor = open_filter(grouped=job.grouped, shares_user=self.tier.walls.shares_user)
        try:
            job = replace(job, seccomp=descriptor)
            runner = os.getpid()
            wrapped = (
                self.tier.wrap(job) if self.lowering is None else self.lowering.wrap(self.tier, job, runner)
            )
            words = entered(wrapped, runner=runner, setpriv=self.setpriv, group=group)
            passed = () if descriptor is None else (descriptor,)
            return start(words, {"PATH": os.environ.get("PATH", INSIDE_PATH)}, passed)
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _group(self, serial: str) -> Group | None:
        try:
            return None if self.layout is None else self.layout.make(f"{self.name}-{serial}", self.limits)
        except OSError as fault:
            raise SandboxUnavailable(f"control group: {fault}") from fault


def entered(words: Sequence[str], *, runner: int, setpriv: str, group: Group | None) -> list[str]:
    """Give the words that run ``words`` in ``group`` and no longer than the process ``runner`` lives."""
    joins = () if group is None else group.joins
    guard = [setpriv, "--pdeathsig", "KILL", "--", "/bin/sh", "-c", ENTER, "sh"]
    return [*guard, str(runner), str(len(joins)), *joins, *words]


def _python() -> Path:
    return Path(sys.executable).resolve()


def python_folders() -> tuple[Path, ...]:
    """Give what ``python`` blocks need beside /usr: the prefix that this interpreter was installed to."""
    prefix = Path(sys.base_prefix).resolve()
    return () if prefix == Path("/usr") or prefix.is_relative_to("/usr") else (prefix,)
