"""Finds out, before any work is taken, whether this host can give the chosen tier."""

import enum
import functools
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import orjson
import structlog
import trio

from sexton_runner.errors import SandboxUnavailable
from sexton_runner.sandbox.cgroup import Layout, find_layout, remove_leftovers
from sexton_runner.sandbox.jobs import INSIDE_PATH, Sandbox, python_folders
from sexton_runner.sandbox.landlock import kernel_abi, refusal
from sexton_runner.sandbox.limits import Limits
from sexton_runner.sandbox.podman import Podman, remove_containers
from sexton_runner.sandbox.privilege_drop import PrivilegeDrop, is_root
from sexton_runner.sandbox.process import Child
from sexton_runner.sandbox.programs import find_program
from sexton_runner.sandbox.registry import TIERS
from sexton_runner.sandbox.seccomp import this_machine
from sexton_runner.sandbox.tiers import Job, Tier
from sexton_runner.sandbox.walls import WALLS
from sexton_runner.sandbox.watchdog import Watchdog
from sexton_runner.settings import SandboxTier

PROBE_S = 20.0
WATCH_S = 3.0
ROOTS_NUMBER = (
    "behind the walls of its sandbox a command has root's number on this host: let the runner make mount and"
    " user namespaces, keep its Python where others may read it, or run it as an ordinary user"
)
UNBOUNDED = (
    "a run can use up this host's memory: let the runner make control groups (Delegate=yes in its systemd"
    " unit), and see 'sexton runner doctor'"
)
OUTPUT_BYTES = 65536
log = structlog.get_logger()

# Run by the very interpreter, in the very sandbox, that commands will get; each line names what is wrong.
SELF_TEST = r"""
import ctypes, json, os, resource, socket, sys
wrong = []
expected = {"PATH", "HOME", "TMPDIR", "LANG", "PWD", "SEXTON_RUN", "LC_CTYPE", "SHLVL", "_", "OLDPWD"}
def refused(what, act):
    try:
        act()
    except OSError:
        return
    wrong.append(what)
def connect():
    with socket.socket() as s:
        s.settimeout(0.2)
        s.connect(("192.0.2.1", 80))
libc = ctypes.CDLL(None, use_errno=True)
capabilities = (ctypes.c_uint32 * 6)()
libc.capget((ctypes.c_uint32 * 2)(0x20080522, 0), capabilities)
if capabilities[0] or capabilities[3]: wrong.append("capabilities are left")
if libc.prctl(39, 0, 0, 0, 0) != 1: wrong.append("privileges can be gained")
if FILTERED and libc.prctl(21, 0, 0, 0, 0) != 2: wrong.append("system calls are not filtered")
if FILTERED: refused("a socket past the network namespace can be made", lambda: socket.socket(40, 1).close())
if NAMESPACES:
    if os.getpid() > 20: wrong.append("no pid namespace of its own")
    cards = os.listdir("/sys/class/net") if os.path.isdir("/sys/class/net") else []
    if len(cards) > 1: wrong.append("network interfaces are visible")
else:
    refused("the runner can be signalled", lambda: os.kill(RUNNER, 0))
    refused("the runner's limits can be set", lambda: resource.prlimit(RUNNER, resource.RLIMIT_NOFILE))
    refused("the runner's files can be read", lambda: open(SECRET).read())
    refused("the runner's files can be changed", lambda: os.chmod(SECRET, 0o600))
    refused("the runner's folder can be listed", lambda: os.listdir(os.path.dirname(SECRET)))
    refused("sockets of the host can be reached", lambda: socket.socket(socket.AF_UNIX).close())
refused("network is reachable", connect)
refused("/etc/shadow can be read", lambda: open("/etc/shadow").read())
refused("/usr can be written", lambda: open("/usr/sexton-probe", "w"))
refused("/ can be written", lambda: open("/sexton-probe", "w"))
for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/irq/default_smp_affinity"):
    refused(path + " can be written", lambda: open(path, "r+b"))
try:
    with open("probe", "w") as f: f.write("x")
except OSError:
    wrong.append("the workspace cannot be written")
if set(os.environ) - expected: wrong.append("environment leaks")
sys.stdin.read()  # Until it has been looked at from outside.
print(json.dumps(wrong))
"""


def make_sandbox(tier: SandboxTier, limits: Limits, state_dir: Path) -> Sandbox:
    """Find what the host has for ``tier``; raises ``SandboxUnavailable``."""
    name = group_name(state_dir)
    layout = find_layout(name, limits)
    if layout is not None:
        remove_leftovers(layout, name)
    _refuse_unbounded_root(tier, layout)
    if WALLS[tier].by_landlock and (
        why := refusal(kernel_abi(), is_root=is_root(), has_groups=layout is not None)
    ):
        raise SandboxUnavailable(why)
    given, setpriv = TIERS[tier](), find_program("setpriv", "util-linux")
    lowering = find_lowering(given, state_dir)
    if isinstance(given, Podman):
        remove_containers(given.client, name)
    return Sandbox(tier=given, layout=layout, name=name, limits=limits, setpriv=setpriv, lowering=lowering)


def find_lowering(tier: Tier, state_dir: Path) -> PrivilegeDrop | None:
    """Give the way to run commands as nobody; None where it does not work, or the runner is not root."""
    if not tier.walls.own_root or tier.walls.in_container or not is_root():
        return None
    try:
        lowering = PrivilegeDrop(find_program("unshare", "util-linux"))
    except SandboxUnavailable:
        return None
    parent = state_dir if state_dir.is_dir() else Path(tempfile.gettempdir())
    return lowering if _lowers(lowering, tier, parent, os.environ.get("PATH", INSIDE_PATH)) else None


@functools.lru_cache(maxsize=8)
def _lowers(lowering: PrivilegeDrop, tier: Tier, parent: Path, path: str) -> bool:
    """Run the interpreter so: the host may forbid the mounts, the number, or its having a namespace."""
    with tempfile.TemporaryDirectory(prefix="sexton-lowering-", dir=parent) as folder:
        limits = Limits(wall_s=PROBE_S, memory_bytes=1 << 30, pids=64)
        folders = {each: each for each in python_folders()}
        argv = [str(Path(sys.executable).resolve()), "-I", "-c", "import json, socket"]
        place = Path(folder)
        job = Job(
            argv=argv, env={}, run_dir=place, workspace=place, read_only=folders, limits=limits, grouped=True
        )
        words = lowering.wrap(tier, job, os.getpid())
        try:
            done = subprocess.run(
                words, capture_output=True, check=False, timeout=PROBE_S, env={"PATH": path}
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
    return done.returncode == 0


def group_name(state_dir: Path) -> str:
    """Give the name by which a runner knows its control groups again; no other has its state folder."""
    return hashlib.sha256(os.fsencode(state_dir.resolve())).hexdigest()[:12]


def _refuse_unbounded_root(tier: SandboxTier, layout: Layout | None) -> None:
    if layout is None and os.geteuid() == 0 and WALLS[tier].shuts_in:
        raise SandboxUnavailable(
            "control groups cannot be made here, and the kernel does not count the processes of uid 0: "
            "run the runner as an ordinary user"
        )


class Bound(enum.StrEnum):
    """What keeps the memory of a run within its limit, whole, not process by process."""

    CONTROL_GROUPS = "control_groups"
    WATCHDOG = "watchdog"
    NONE = "none"


async def probe(sandbox: Sandbox) -> Bound:
    """Run the self-test inside; raises ``SandboxUnavailable`` with what was found wrong."""
    if not sandbox.tier.walls.shuts_in:
        log.warning("no_sandbox", advice="tier 'none' shuts nothing in; it is for development only")
        bound = Bound.NONE if sandbox.layout is None else Bound.CONTROL_GROUPS
    else:
        bound = await check(sandbox)
        if is_root() and sandbox.lowering is None and not sandbox.tier.walls.in_container:
            log.warning("command_has_roots_number", advice=ROOTS_NUMBER)
        log.info("sandbox_ready", tier=sandbox.tier.name.value, memory_bound=bound.value)
    if bound is Bound.NONE:
        log.warning("memory_not_bounded", advice=UNBOUNDED)
    return bound


async def check(sandbox: Sandbox) -> Bound:
    """Do the same for a sandbox that shuts in, without a word to the log."""
    with tempfile.TemporaryDirectory(prefix="sexton-probe-") as folder:
        run_dir = Path(folder) / "run"
        run_dir.mkdir()
        secret, workspace = Path(folder) / "secret", Path(folder) / "workspace"
        secret.write_text("of the runner's\n", encoding="ascii")
        workspace.mkdir()
        known = f"FILTERED, RUNNER, SECRET = {this_machine() is not None}, {os.getpid()}, {str(secret)!r}\n"
        known += f"NAMESPACES = {sandbox.tier.walls.own_processes}\n"
        (run_dir / "program").write_text(known + SELF_TEST, encoding="utf-8")
        wrong, seen = await _self_test(sandbox, run_dir, workspace)
    if wrong:
        raise SandboxUnavailable("; ".join(wrong))
    if sandbox.layout is not None:
        return Bound.CONTROL_GROUPS
    # Without the filter there is memory that the watchdog cannot add up.
    return Bound.WATCHDOG if seen and this_machine() is not None else Bound.NONE


async def _self_test(sandbox: Sandbox, run_dir: Path, workspace: Path) -> tuple[list[str], bool]:
    """Give what is wrong inside, and whether the watchdog could look in."""
    inside = sandbox.tier.inside(run_dir, workspace).run_dir
    argv = sandbox.interpreter("python", f"{inside}/program")
    env = {"PATH": "/usr/bin:/bin"}
    output: dict[str, bytes] = {"out": b"", "err": b""}
    seen = False
    with trio.move_on_after(PROBE_S):
        async with sandbox.open(
            argv, run_dir=run_dir, workspace=workspace, env=env, serial="probe"
        ) as running:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_collect, running.child.stdout, output, "out")
                nursery.start_soon(_collect, running.child.stderr, output, "err")
                if running.watchdog is not None:
                    seen = await _has_seen(running.watchdog, running.child)
                await running.child.stdin.aclose()
            await running.child.wait()
    try:
        found = orjson.loads(output["out"])
    except orjson.JSONDecodeError:
        return [output["err"].decode("utf-8", "replace").strip() or "the self-test did not answer"], seen
    return [str(item) for item in found], seen


async def _has_seen(watchdog: Watchdog, child: Child) -> bool:
    """Wait until it has looked in, or cannot."""
    async with trio.open_nursery() as nursery:

        async def give_up() -> None:
            with trio.move_on_after(WATCH_S):
                await child.wait()
            nursery.cancel_scope.cancel()

        nursery.start_soon(give_up)
        await watchdog.has_seen.wait()
        nursery.cancel_scope.cancel()
    return watchdog.has_seen.is_set()


async def _collect(stream: trio.abc.ReceiveStream, output: dict[str, bytes], name: str) -> None:
    while piece := await stream.receive_some(OUTPUT_BYTES):
        output[name] = (output[name] + piece)[:OUTPUT_BYTES]
