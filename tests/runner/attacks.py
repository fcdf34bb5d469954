"""Attacks on the sandbox: each a program that tries, in earnest, what it must not be able to do.

``python -m tests.runner.attacks FOLDER`` carries out all of them as the user that it is started by, in
workspaces of the tier ``bubblewrap``, and prints one JSON object: by the name of each attack what came of it.
A program prints ``BROKEN …`` for what it got, and anything else when it was held.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import trio

from sexton_runner.network import Network
from sexton_runner.redact import Redactor
from sexton_runner.sandbox.jobs import Sandbox
from sexton_runner.sandbox.limits import Limits
from sexton_runner.sandbox.probe import make_sandbox
from sexton_runner.sandbox.workspace import Workspace, WorkspaceGone, open_workspace
from sexton_runner.sandbox.workspace_command import run_command
from sexton_runner.settings import SandboxTier

CANARY = "canary-of-the-runner-5c1f"
LIMITS = Limits(wall_s=30, memory_bytes=96 << 20, pids=48)
# Of this process alone: others attack at the same time.
MARKER = f"31337.{os.getpid()}"
BROKEN = "BROKEN"
# A control group's kernel picks those that it kills, a watchdog does not; what counts is what is left.
LEFT = """
left = 20
while True:
    try: pid, _ = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError: break
    if pid == 0: break
    left -= 1
if left * 20 > 192: print("BROKEN", left * 20, "MiB are held")
"""
SYSTEM_CALLS = {"x86_64": 0, "aarch64": 1}

HEAD = """
import ctypes, errno, os, platform, signal, socket, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
HOST = {pid}
PORT = {port}
ABSTRACT = b"\\0" + {abstract!r}
VICTIM = {victim!r}
CANARY = {canary!r}[::-1]  # Backwards, so that this program does not find itself.
COLUMN = {{"x86_64": 0, "aarch64": 1}}[platform.machine()]
def call(numbers, *arguments):
    ctypes.set_errno(0)
    return libc.syscall(numbers[COLUMN], *arguments), ctypes.get_errno()
def refused(what, act):
    try:
        got = act()
    except OSError:
        return
    print("BROKEN", what, got)
def no(what, numbers, *arguments):
    got, fault = call(numbers, *arguments)
    if got >= 0 or fault not in (errno.EPERM, errno.ENOSYS):
        print("BROKEN", what, got, errno.errorcode.get(fault, fault))
"""


@dataclass(frozen=True, slots=True)
class Attack:
    """``seen_outside`` looks, from the host, for traces of a success; None when there are none."""

    code: str
    timeout_s: float = 20.0
    seen_outside: Callable[[], str | None] = lambda: None
    expect: tuple[str, ...] = ("held",)


def survivors() -> str | None:
    """Tell whether a process of an attack is still there."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if MARKER.encode() in (folder / "cmdline").read_bytes():
                return f"process {folder.name} outlived its run"
        except OSError:
            continue
    return None


ATTACKS: Mapping[str, Attack] = {
    "read /etc/shadow": Attack("""
for path in ("/etc/shadow", "/etc/passwd", "/proc/1/root/etc/shadow", "/proc/self/root/etc/shadow"):
    refused(path, lambda: open(path).read())
"""),
    "read the runner's environment": Attack("""
import glob
for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
    try:
        text = open(path, "rb").read().decode("utf-8", "replace")
    except OSError:
        continue
    if CANARY in text: print("BROKEN", path)
if CANARY in str(dict(os.environ)): print("BROKEN own environment")
"""),
    "read /proc of the runner by its number": Attack("""
for name in ("environ", "mem", "maps", "fd", "root", "cwd"):
    refused(name, lambda: os.stat(f"/proc/{HOST}/{name}"))
"""),
    "reach the host's loopback": Attack("""
def connect():
    with socket.socket() as s:
        s.settimeout(1); s.connect(("127.0.0.1", PORT)); return s.recv(9)
refused("loopback of the host", connect)
"""),
    "reach the network": Attack("""
def tcp(address):
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as s:
        s.settimeout(1); s.connect((address, 80))
def udp(address):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(b"x", (address, 53))
for address in ("192.0.2.1", "8.8.8.8", "10.0.0.1", "2606:4700:4700::1111"):
    refused(address, lambda: tcp(address))
refused("dns", lambda: udp("8.8.8.8"))
refused("a name", lambda: socket.getaddrinfo("example.com", 80))
"""),
    "reach the metadata address": Attack("""
def tcp(address, port):
    with socket.socket() as s:
        s.settimeout(1); s.connect((address, port))
for address, port in (("169.254.169.254", 80), ("169.254.170.2", 80), ("100.100.100.200", 80)):
    refused(address, lambda: tcp(address, port))
"""),
    "open sockets that no network namespace holds": Attack("""
for family, kind in ((40, 1), (17, 3), (38, 5), (31, 1), (2, 3), (29, 3), (44, 3)):
    refused(f"socket family {family}", lambda: socket.socket(family, kind).fileno())
"""),
    "reach sockets of the host": Attack("""
def unix(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(1); s.connect(path); return s.recv(9)
refused("an abstract socket", lambda: unix(ABSTRACT))
for path in ("/var/run/docker.sock", "/run/docker.sock", "/run/dbus/system_bus_socket", VICTIM + ".sock"):
    refused(path, lambda: unix(path))
"""),
    "fork bomb": Attack("""
children = []
try:
    while len(children) < 5000:
        pid = os.fork()
        if pid == 0: signal.pause()
        children.append(pid)
except OSError: pass
if len(children) >= 48: print("BROKEN", len(children), "children")
"""),
    "fork bomb that does not stop": Attack(
        # A shell that cannot fork ends: what is waited for is Python, which has forked before.
        "import subprocess\n"
        f"for bomb in (':(){{ :|:& }};:', 'b() {{ b | b & }}; b; sleep {MARKER}'):\n"
        "    subprocess.run(['/bin/sh', '-c', bomb], stderr=subprocess.DEVNULL)\n"
        "signal.pause()",
        timeout_s=0.5,
        seen_outside=survivors,
        expect=("timed out", "held", "gone"),
    ),
    "memory bomb": Attack(
        "held = []\nwhile True: held.append(bytearray(os.urandom(1 << 16)) * 64)",
        expect=("killed", "exception", "gone"),
    ),
    "memory bomb of many processes": Attack(
        """
for _ in range(20):
    if os.fork() == 0:
        held = []
        while True: held.append(bytearray(b"x" * (1 << 20)) * 8)
ended = [os.wait()[1] for _ in range(20)]
print("BROKEN nobody was stopped" if not any(ended) else "stopped")
""",
        expect=("held", "killed", "exception", "gone"),
    ),
    "hold memory in many processes that do nothing more": Attack(
        """
for _ in range(20):
    if os.fork() == 0:
        held = bytearray(os.urandom(1 << 20)) * 20
        signal.pause()
time.sleep(4)
"""
        + LEFT,
        expect=("held", "killed", "gone"),
    ),
    "hold memory in files without a name": Attack(
        """
held = []
for _ in range(60):
    got, _fault = call((319, 279), b"x", 0)
    if got < 0: break
    os.write(got, bytes(8 << 20)); held.append(got)
else:
    time.sleep(10); print("BROKEN 480 MiB in memfd")
""",
        expect=("held", "killed", "gone"),
    ),
    "hold memory of System V": Attack(
        """
libc.shmat.restype = ctypes.c_void_p
libc.shmdt.argtypes = [ctypes.c_void_p]
for _ in range(60):
    got, _fault = call((29, 194), 0, 8 << 20, 0o1600)
    if got < 0: break
    place = libc.shmat(got, None, 0)
    ctypes.memset(place, 1, 8 << 20); libc.shmdt(place)
else:
    time.sleep(10); print("BROKEN 480 MiB in shared memory")
for numbers in ((68, 186), (64, 190)):
    made = 0
    while made < 4000 and call(numbers, 0, 0o1600 if numbers[0] == 68 else 250, 0o1600)[0] >= 0: made += 1
    if made == 4000: time.sleep(10); print("BROKEN", made, numbers)
""",
        expect=("held", "killed", "gone"),
    ),
    "hold memory that is mapped no more": Attack(
        """
import mmap
held = []
def take(descriptor, flags):
    for _ in range(60):
        area = mmap.mmap(descriptor, 8 << 20, flags)
        for at in range(0, 8 << 20, 4096): area[at] = 1
        area.madvise(mmap.MADV_DONTNEED)
        begin = ctypes.addressof(ctypes.c_char.from_buffer(area))
        libc.munmap(begin + 4096, (8 << 20) - 4096)
        held.append(area)
    time.sleep(10); print("BROKEN 480 MiB")
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
for descriptor, flags in ((-1, 0x21), (os.open("/dev/zero", os.O_RDWR), 1)):
    try: take(descriptor, flags)
    except OSError: pass
os._exit(0)
""",
        expect=("held", "killed", "gone"),
    ),
    "hold memory behind a first thread that has ended": Attack(
        """
import threading
def child():
    def hold():
        held = bytearray(os.urandom(1 << 20)) * 20
        time.sleep(60)
    threading.Thread(target=hold).start()
    libc.syscall(60 if COLUMN == 0 else 93, 0)
for _ in range(20):
    if os.fork() == 0: child()
time.sleep(4)
"""
        + LEFT,
        expect=("held", "killed", "gone"),
    ),
    "hold memory in sockets": Attack(
        """
pairs = []
try:
    for _ in range(8):
        if os.fork() == 0:
            while True:
                pairs.append(socket.socketpair())
                pairs[-1][0].setblocking(False)
                try:
                    while True: pairs[-1][0].send(bytes(65536))
                except BlockingIOError: pass
except OSError: pass
time.sleep(10)
print("BROKEN hundreds of sockets are full")
""",
        expect=("killed", "gone"),
    ),
    "learn of the host by /proc": Attack(
        """
for name in ("keys", "key-users", "timer_list", "interrupts", "sched_debug", "slabinfo", "kmsg", "kcore",
             "vmallocinfo", "latency_stats"):
    try:
        text = open("/proc/" + name, "rb").read(64)
    except OSError: continue
    if text: print("BROKEN", name, text)
for name in ("acpi", "asound", "scsi", "bus", "fs", "irq"):
    try:
        seen = os.listdir("/proc/" + name)
    except OSError: continue
    if seen: print("BROKEN", name, seen)
"""
    ),
    "fill the disk": Attack(
        """
total = 0
for folder in ("/workspace", "/tmp", "/dev/shm"):
    try:
        for number in range(64):
            with open(f"{folder}/fill{number}", "wb") as file:
                for _ in range(64):
                    file.write(bytes(1 << 20)); total += 1 << 20
    except OSError: pass
if total > (1 << 31): print("BROKEN", total)
""",
        expect=("held", "killed", "exception", "gone"),
    ),
    "use up the inodes": Attack(
        """
made = 0
try:
    for made in range(3_000_000):
        os.close(os.open(f"/workspace/f{made}", os.O_CREAT | os.O_WRONLY))
except OSError: pass
if made >= 2_999_999: print("BROKEN", made)
""",
        timeout_s=1.5,
        expect=("held", "killed", "exception", "gone", "timed out"),
    ),
    "escape by symbolic link": Attack("""
ways = ("", "../../../../../../..", "/proc/1/root", "/proc/self/fd/../root")
for target in ("/etc/shadow", *(way + VICTIM for way in ways)):
    os.path.lexists("link") and os.unlink("link")
    os.symlink(target, "link")
    refused("read " + target, lambda: open("link").read())
    refused("write " + target, lambda: open("link", "r+").write("x"))
os.mkdir("d"); os.symlink("/run/sexton", "d/run")
refused("write through a linked folder", lambda: open("d/run/program", "w"))
refused("hard link", lambda: os.link("/etc/hostname", "hard"))
"""),
    "trace the keeper and the first process": Attack("""
for pid in (1, 2, os.getppid(), HOST):
    no(f"ptrace attach {pid}", (101, 117), 16, pid, 0, 0)
    no(f"ptrace seize {pid}", (101, 117), 0x4206, pid, 0, 0)
    no(f"process_vm_readv {pid}", (310, 270), pid, 0, 0, 0, 0, 0)
    no(f"pidfd_getfd {pid}", (438, 438), 0, 0, 0)
for name in ("mem", "maps", "environ"):
    refused("keeper's " + name, lambda: open(f"/proc/{os.getppid()}/{name}", "rb").read(1))
refused("keeper's descriptors", lambda: os.readlink(f"/proc/{os.getppid()}/fd/1"))
refused("keeper's output", lambda: open(f"/proc/{os.getppid()}/fd/1", "wb"))
"""),
    "outlive the command": Attack(
        f"""
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.closerange(0, 64)
        os.execv("/bin/sleep", ["sleep", "{MARKER}"])
    os._exit(0)
subprocess.Popen(["/bin/sh", "-c", "trap '' HUP TERM INT; exec nohup setsid sleep {MARKER}"])
time.sleep(0.1)
""",
        seen_outside=survivors,
    ),
    "outlive the kill": Attack(
        f"""
for _ in range(4):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv("/bin/sleep", ["sleep", "{MARKER}"])
        signal.pause()
signal.pause()
""",
        timeout_s=0.5,
        seen_outside=survivors,
        expect=("timed out",),
    ),
    "write outside the workspace": Attack("""
for path in ("/etc/cron.d/x", "/usr/x", "/x", "/run/x", "/run/sexton/x", "/run/sexton/bin/keeper.py",
             "/bin/sh", "/var/x", "/mnt/x", "/root/x", "/lib/x", "/dev/x", "/sys/x", VICTIM):
    refused(path, lambda: open(path, "a").write("x"))
"""),
    "change the kernel's settings": Attack("""
for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/vm/overcommit_memory",
             "/proc/sysrq-trigger", "/proc/irq/default_smp_affinity", "/proc/self/oom_score_adj",
             "/proc/1/oom_score_adj", "/sys/kernel/uevent_helper", "/sys/fs/cgroup/memory.max"):
    refused(path, lambda: open(path, "r+b").write(b"1"))
"""),
    "use kernel keys": Attack("""
no("keyctl", (250, 219), 0, -3, 0)
no("add_key", (248, 217), b"user", b"x", b"y", 1, -4)
no("request_key", (249, 218), b"user", b"x", 0, 0)
"""),
    "make namespaces": Attack("""
for flag in (0x10000000, 0x00020000, 0x20000000, 0x40000000, 0x08000000, 0x04000000, 0x02000000, 0x80):
    no(f"unshare {flag:#x}", (272, 97), flag)
    if flag != 0x80: no(f"clone {flag:#x}", (56, 220), flag | 17, 0, 0, 0, 0)
no("clone3", (435, 435), 0, 0)
no("setns", (308, 268), 0, 0)
"""),
    "mount": Attack("""
no("mount", (165, 40), b"tmpfs", b"/tmp", b"tmpfs", 0, 0)
no("remount", (165, 40), 0, b"/", 0, 32, 0)
no("umount", (166, 39), b"/tmp", 2)
no("pivot_root", (155, 41), b".", b".")
no("chroot", (161, 51), b"/tmp")
no("open_tree", (428, 428), -100, b"/", 1)
no("fsopen", (430, 430), b"tmpfs", 0)
no("mount_setattr", (442, 442), -100, b"/", 0, 0, 0)
for program in (["mount", "-t", "tmpfs", "x", "/tmp"], ["su", "-c", "id"], ["sudo", "-n", "id"], ["newgrp"]):
    try:
        done = subprocess.run(program, stdin=subprocess.DEVNULL, capture_output=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        continue
    if done.returncode == 0: print("BROKEN", program, done.stdout)
"""),
    "call the rare parts of the kernel": Attack("""
no("bpf", (321, 280), 0, 0, 0)
no("perf_event_open", (298, 241), 0, 0, -1, -1, 0)
no("userfaultfd", (323, 282), 1)
no("io_uring_setup", (425, 425), 1, 0)
no("init_module", (175, 105), 0, 0, b"")
no("kexec_load", (246, 104), 0, 0, 0, 0)
no("open_by_handle_at", (304, 265), -100, 0, 0)
no("syslog", (103, 116), 3, 0, 0)
no("clock_settime", (227, 112), 0, 0)
no("reboot", (169, 142), 0, 0, 0, 0)
no("swapon", (167, 224), b"/x", 0)
no("sethostname", (170, 161), b"x", 1)
"""),
    "call by another processor's numbers": Attack("""
if COLUMN == 0:
    no("x32 getpid", (0x40000000 + 39, 0))
    no("x32 ptrace", (0x40000000 + 521, 0), 16, 1, 0, 0)
"""),
    "make devices": Attack("""
import stat
refused("a block device", lambda: os.mknod("/workspace/sda", 0o600 | stat.S_IFBLK, os.makedev(8, 0)))
refused("memory", lambda: os.mknod("/workspace/mem", 0o600 | stat.S_IFCHR, os.makedev(1, 1)))
for name in ("mem", "kmsg", "sda", "vda", "fuse", "kvm", "vsock", "net/tun", "loop0", "console"):
    refused(name, lambda: open("/dev/" + name, "rb").read(1))
"""),
    "signal the host": Attack("""
refused("the runner", lambda: os.kill(HOST, 9))
refused("its group", lambda: os.killpg(HOST, 9))
for pid in range(max(1000, HOST - 50), HOST + 50):
    if pid > 200: refused(f"process {pid}", lambda: os.kill(pid, 0))
"""),
    "take more than its limits": Attack("""
import resource
for name in ("RLIMIT_NPROC", "RLIMIT_NOFILE", "RLIMIT_FSIZE", "RLIMIT_CORE"):
    limit = getattr(resource, name)
    try:
        resource.setrlimit(limit, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        print("BROKEN", name)
    except (ValueError, OSError): pass
refused("a better place in the queue", lambda: os.setpriority(os.PRIO_PROCESS, 0, -10))
refused("real time", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
"""),
    "gain privileges": Attack("""
refused("uid 0", lambda: os.setuid(0))
refused("gid 0", lambda: os.setgid(0))
refused("groups", lambda: os.setgroups([0]))
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
for name in ("CapEff", "CapPrm", "CapInh", "CapAmb", "CapBnd"):
    if int(status[name], 16): print("BROKEN", name, status[name])
if status["NoNewPrivs"].strip() != "1": print("BROKEN new privileges")
if status["Seccomp"].strip() != "2": print("BROKEN no filter")
"""),
    "push keys into the terminal": Attack("""
import fcntl
for descriptor in (0, 1, 2):
    refused("TIOCSTI", lambda: fcntl.ioctl(descriptor, 0x5412, b"x"))
refused("the terminal", lambda: open("/dev/tty", "w"))
"""),
    "kill the keeper": Attack(
        "os.kill(os.getppid(), 9)\ntime.sleep(10)", expect=("gone",), seen_outside=survivors
    ),
    "spin for ever": Attack("while True: pass", timeout_s=0.5, expect=("timed out",)),
    "flood the output": Attack("while True: os.write(1, b'x' * 65536)", timeout_s=30.0, expect=("flooded",)),
}


@dataclass
class Target:
    """What stands on the host to be attacked."""

    folder: Path
    closers: list[Any] = field(default_factory=list)

    def head(self) -> str:
        """Set the targets up and give the beginning of every attack."""
        server = socket.create_server(("127.0.0.1", 0))
        abstract = socket.socket(socket.AF_UNIX)
        name = f"sexton-attack-{os.urandom(8).hex()}".encode()
        abstract.bind(b"\0" + name)
        abstract.listen()
        path = socket.socket(socket.AF_UNIX)
        victim = self.folder / "victim"
        victim.write_text("as it was")
        path.bind(f"{victim}.sock")
        path.listen()
        self.closers += [server, abstract, path]
        for one in (server, abstract, path):
            threading.Thread(target=_greet, args=(one,), daemon=True).start()
        port = server.getsockname()[1]
        return HEAD.format(pid=os.getpid(), port=port, abstract=name, victim=str(victim), canary=CANARY[::-1])

    def changed(self) -> str | None:
        """Tell whether the victim is as it was."""
        return None if (self.folder / "victim").read_text() == "as it was" else "the victim was changed"


def _greet(server: socket.socket) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        connection.sendall(b"welcome")
        connection.close()


async def attempt(workspace: Workspace, python: list[str], head: str, attack: Attack) -> str:
    """Carry out one attack and name what came of it; what broke is told at length."""
    try:
        done = await run_command(
            workspace,
            [*python, head + attack.code],
            redactor=Redactor({}),
            timeout_s=attack.timeout_s,
        )
    except WorkspaceGone:
        return "gone"
    if BROKEN in done.out.text():
        return done.out.text()
    if done.timed_out or done.flooded:
        return "timed out" if done.timed_out else "flooded"
    if done.status == 0:
        return "held"
    errors = done.err.text()
    if done.status is not None and done.status in (-9, 137):
        return "killed"
    return "exception" if "MemoryError" in errors or "OSError" in errors else f"failed: {errors[-400:]}"


async def carry_out(
    folder: Path,
    names: list[str],
    attacks: Mapping[str, Attack] = ATTACKS,
    sandbox: Sandbox | None = None,
    network: Network | None = None,
) -> dict[str, str]:
    """Carry out the attacks and give by name what came of each."""
    sandbox = sandbox or make_sandbox(SandboxTier.BUBBLEWRAP, LIMITS, folder)
    target = Target(folder)
    head = target.head()
    python = sandbox.interpreter("python", "-c")
    found: dict[str, str] = {}
    for number, name in enumerate(names or attacks):
        attack = attacks[name]
        async with open_workspace(
            sandbox,
            run_dir=folder / f"run{number}",
            folder=folder / f"ws{number}",
            serial=f"a{number}",
            network=network,
        ) as workspace:
            came = await attempt(workspace, python, head, attack)
            if came != "gone" and workspace.gone is None:
                # The sandbox serves on, and nothing of the attack is left in it.
                after = await run_command(
                    workspace, ["/bin/echo", "alive"], redactor=Redactor({}), timeout_s=5.0
                )
                came = came if after.out.text() == "alive\n" else f"BROKEN afterwards: {after.told()}"
        traces = attack.seen_outside() or target.changed()
        found[name] = traces or came
    for closer in target.closers:
        closer.close()
    return found


if __name__ == "__main__":
    os.environ["SEXTON_RUNNER_TOKEN"] = CANARY
    results = trio.run(carry_out, Path(sys.argv[1]), sys.argv[2:])
    sys.stdout.write(orjson.dumps(results).decode())
