"""Attacks on the tier ``landlock``: those on every sandbox, and those on a user that runner and run share.

``python -m tests.runner.landlock_attacks FOLDER`` carries them out as an ordinary user, after the self-test
that a runner makes at its start. What only control groups bound (memory, processes) is left out: the tier is
not given without them, and they are tested apart.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import orjson
import trio

from sexton_runner.sandbox.jobs import Sandbox
from sexton_runner.sandbox.probe import check
from sexton_runner.sandbox.programs import find_program
from sexton_runner.sandbox.registry import TIERS
from sexton_runner.settings import SandboxTier
from tests.runner.attacks import ATTACKS, CANARY, LIMITS, Attack, carry_out

OF_ANY_SANDBOX = (
    "read /etc/shadow",
    "read the runner's environment",
    "reach the host's loopback",
    "reach the network",
    "reach the metadata address",
    "open sockets that no network namespace holds",
    "reach sockets of the host",
    "learn of the host by /proc",
    "escape by symbolic link",
    "trace the keeper and the first process",
    "outlive the command",
    "outlive the kill",
    "write outside the workspace",
    "change the kernel's settings",
    "use kernel keys",
    "make namespaces",
    "mount",
    "call the rare parts of the kernel",
    "call by another processor's numbers",
    "make devices",
    "signal the host",
    "push keys into the terminal",
    "kill the keeper",
    "spin for ever",
    "flood the output",
)

ON_A_SHARED_USER: Mapping[str, Attack] = {
    "change modes, owners and attributes of the runner's files": Attack("""
refused("chmod", lambda: os.chmod(VICTIM, 0o777))
refused("chmod of a folder", lambda: os.chmod(os.path.dirname(VICTIM), 0o777))
refused("chown", lambda: os.chown(VICTIM, os.getuid(), os.getgid()))
refused("extended attribute", lambda: os.setxattr(VICTIM, "user.x", b"x"))
refused("times", lambda: os.utime(VICTIM, (0, 0)))
refused("truncate", lambda: os.truncate(VICTIM, 0))
refused("rename", lambda: os.rename(VICTIM, "mine"))
refused("link", lambda: os.link(VICTIM, "mine"))
refused("unlink", lambda: os.unlink(VICTIM))
refused("list", lambda: os.listdir(os.path.dirname(VICTIM)))
refused("read", lambda: open(VICTIM).read())
opened = os.open("/usr/bin/env", os.O_RDONLY)
refused("mode of an open file", lambda: os.fchmod(opened, 0o777))
"""),
    "lower the runner's limits": Attack("""
import resource
refused("limits", lambda: resource.prlimit(HOST, resource.RLIMIT_CPU, (1, 1)))
refused("priority", lambda: os.setpriority(os.PRIO_PROCESS, HOST, 19))
refused("priority of the user", lambda: os.setpriority(os.PRIO_USER, os.getuid(), 19))
refused("scheduler", lambda: os.sched_setscheduler(HOST, os.SCHED_IDLE, os.sched_param(0)))
refused("processors", lambda: os.sched_setaffinity(HOST, {0}))
no("ioprio_set", (251, 30), 1, HOST, 3 << 13)
no("move_pages", (279, 239), HOST, 0, 0, 0, 0, 0)
os.setpriority(os.PRIO_PROCESS, 0, 19)  # Its own may be lowered.
"""),
    "reach shared memory and queues of the user": Attack("""
for numbers in ((29, 194), (64, 190)): no("by name", numbers, 0x5E, 4096, 0o1600)
no("shmat", (30, 196), 0, 0, 0)
no("msgget", (68, 186), 0x5E, 0o1600)
no("mq_open", (240, 180), b"x", os.O_CREAT | os.O_RDWR, 0o600, 0)
refused("/dev/shm", lambda: os.listdir("/dev/shm"))
"""),
    "speak out of a pair of sockets": Attack("""
refused("datagrams", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
one, other = socket.socketpair()
refused("connect", lambda: one.connect(VICTIM + ".sock"))
refused("send to a path", lambda: one.sendto(b"x", VICTIM + ".sock"))
refused("any other socket", lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
one.sendall(b"within"); assert other.recv(9) == b"within"
"""),
    "look into the runner by its number": Attack("""
for name in ("environ", "mem", "maps", "cmdline", "status"):
    refused(name, lambda: open(f"/proc/{HOST}/{name}", "rb").read(1))
for name in ("fd", "root", "cwd", "task"):
    refused(name, lambda: os.listdir(f"/proc/{HOST}/{name}"))
for name in ("fd/1", "exe"):
    refused(name, lambda: os.readlink(f"/proc/{HOST}/{name}"))
"""),
    "read what the user keeps": Attack("""
for path in ("~", "/home", "/root", "/tmp", "/var", "/run", "/etc/passwd", "/proc/self/environ", "/sys"):
    path = os.path.expanduser(path)
    if path != os.getcwd():
        refused(path, lambda: os.listdir(path) if os.path.isdir(path) else open(path).read())
"""),
    "end the run's own guard": Attack("""
for pid in range(max(2, os.getpid() - 20), os.getpid()):
    try: name = os.getpgid(pid)
    except OSError: continue
    if pid not in (os.getpid(), os.getppid()): refused(f"process {pid}", lambda: os.kill(pid, 9))
"""),
}
LANDLOCK_ATTACKS: Mapping[str, Attack] = {
    **{name: ATTACKS[name] for name in OF_ANY_SANDBOX},
    **ON_A_SHARED_USER,
}


def ungrouped_sandbox() -> Sandbox:
    """Give the tier as it is without control groups, which an ordinary user seldom has."""
    tier = TIERS[SandboxTier.LANDLOCK]()
    setpriv = find_program("setpriv", "util-linux")
    return Sandbox(tier=tier, layout=None, name="attacks", limits=LIMITS, setpriv=setpriv)


if __name__ == "__main__":
    os.environ["SEXTON_RUNNER_TOKEN"] = CANARY
    folder, sandbox = Path(sys.argv[1]), ungrouped_sandbox()
    trio.run(check, sandbox)
    results = trio.run(carry_out, folder, sys.argv[2:], LANDLOCK_ATTACKS, sandbox)
    sys.stdout.write(orjson.dumps(results).decode())
