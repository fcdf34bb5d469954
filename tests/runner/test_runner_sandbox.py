"""What a hostile command tries in the real sandbox, and how it fails."""

import dataclasses
import os
import shutil
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import trio

from sexton_runner.frames import Frame
from sexton_runner.run import Outcome
from sexton_runner.sandbox.jobs import Sandbox
from sexton_runner.sandbox.limits import Limits
from sexton_runner.sandbox.privilege_drop import lowered_uid
from sexton_runner.sandbox.probe import Bound, check, make_sandbox, probe
from sexton_runner.settings import SandboxTier
from tests.worlds.ordinary_user import may_lower
from tests.worlds.runner import eventually, gone, processes_with
from tests.worlds.sandbox import LIMITS, Cage

MARKER = "31536000.4242"  # An argument of sleep(1) that no one else uses.


def ungrouped(*settings: Any) -> Sandbox:
    """Give the sandbox of a host without control groups."""
    return dataclasses.replace(make_sandbox(*settings), layout=None)


ATTEMPT = """
def refused(path, mode):
    try:
        open(path, mode).close()
    except OSError as fault:
        return type(fault).__name__
    return "done"
"""


@pytest.mark.parametrize(
    "path",
    [
        "/etc/shadow",
        "/etc/passwd",
        "/root/.ssh/id_rsa",
        "/home",
        "/var/log",
        "/proc/kcore",
        "/run/docker.sock",
        "/sys/kernel",
    ],
)
async def test_files_of_the_host_are_not_there_to_be_read(cage: Cage, path: str) -> None:
    found = await cage.python(ATTEMPT, f"print(json.dumps({{'got': refused({path!r}, 'rb')}}))")
    assert found["got"] in ("FileNotFoundError", "PermissionError")


@pytest.mark.parametrize(
    "path",
    ["/x", "/usr/x", "/usr/bin/env", "/etc/x", "/dev/x", "/run/x", "/run/sexton/x", "/run/sexton/program",
     "/run/sexton/bin/sexton-step", "/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern",
     "/proc/sys/kernel/modprobe",
     "/proc/irq/default_smp_affinity", "/proc/self/oom_score_adj",
     "/sys/x"],
)  # fmt: skip
async def test_nothing_can_be_written_outside_the_workspace(cage: Cage, path: str) -> None:
    mode = "r+b" if path.startswith("/proc") else "ab"
    found = await cage.python(ATTEMPT, f"print(json.dumps({{'got': refused({path!r}, {mode!r})}}))")

    assert found["got"] in ("FileNotFoundError", "PermissionError", "OSError")


async def test_the_workspace_and_tmp_can_be_written_and_leave_nothing_on_the_host(cage: Cage) -> None:
    found = await cage.python(
        "for place in ('/workspace', '/tmp', '/dev/shm'):",
        "    open(place + '/sexton-left-behind', 'w').write('x')",
        "print(json.dumps({'cwd': os.getcwd()}))",
    )

    assert found == {"cwd": "/workspace"}
    assert list(cage.folder.rglob("sexton-left-behind")) == []
    assert not Path("/tmp/sexton-left-behind").exists()


async def test_the_runner_s_environment_is_out_of_sight(cage: Cage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEXTON_RUNNER_TOKEN", "zrn_of_the_runner")
    ending = await cage.run(
        "sh", "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; true"
    )
    assert ending.outcome is Outcome.PROCESSED
    assert "zrn_" not in ending.response_text

    names = {
        line.partition("=")[0]
        for line in ending.response_text.splitlines()
        if "=" in line and line[0].isupper()
    }
    assert names <= {
        "PATH",
        "HOME",
        "TMPDIR",
        "LANG",
        "PWD",
        "OLDPWD",
        "SHLVL",
        "_",
        "SEXTON_RUN",
        "SEXTON_EVENT_ID",
        "SEXTON_ATTEMPT",
        "TRACEPARENT",
    }


async def test_no_process_of_the_host_can_be_seen_or_signalled(cage: Cage) -> None:
    found = await cage.python(
        f"host = {os.getpid()}",
        "def signalled(pid):",
        "    try: os.kill(pid, 0)",
        "    except OSError as fault: return type(fault).__name__",
        "    return 'done'",
        "print(json.dumps({'host': signalled(host), 'seen': sum(n.isdigit() for n in os.listdir('/proc'))}))",
    )

    assert found["host"] == "ProcessLookupError"
    assert found["seen"] < 10


async def test_there_is_no_network_not_even_the_host_s_loopback(cage: Cage) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind("\0sexton-test-abstract")
        abstract.listen()
        found = await cage.python(
            "def reached(family, kind, address):",
            "    try:",
            "        with socket.socket(family, kind) as s:",
            "            s.settimeout(1); s.connect(address); s.send(b'x')",
            "    except OSError as fault: return type(fault).__name__",
            "    return 'done'",
            f"loop = reached(socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', {server.getsockname()[1]}))",
            "far = reached(socket.AF_INET, socket.SOCK_STREAM, ('192.0.2.1', 80))",
            "meta = reached(socket.AF_INET, socket.SOCK_DGRAM, ('169.254.169.254', 80))",
            "abstract = reached(socket.AF_UNIX, socket.SOCK_STREAM, b'\\0sexton-test-abstract')",
            "print(json.dumps({'got': [loop, far, meta, abstract]}))",
        )
    assert "done" not in found["got"]


async def test_there_are_no_capabilities_and_none_can_be_gained(cage: Cage) -> None:
    found = await cage.python(
        "status = dict(l.split(':', 1) for l in open('/proc/self/status') if ':' in l)",
        "print(json.dumps({k: status[k].strip() for k in ('CapEff', 'CapPrm', 'CapBnd', 'NoNewPrivs')}))",
    )
    assert found == {"CapEff": "0" * 16, "CapPrm": "0" * 16, "CapBnd": "0" * 16, "NoNewPrivs": "1"}


async def test_a_command_is_less_urgent_than_its_runner(cage: Cage) -> None:
    found = await cage.python("print(json.dumps({'nice': os.getpriority(os.PRIO_PROCESS, 0)}))")
    assert found["nice"] == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)


async def test_no_further_namespaces_can_be_made(cage: Cage) -> None:
    ending = await cage.run("sh", "unshare --user --map-root-user true")
    assert ending.outcome is Outcome.AGENT_ERROR


async def test_devices_of_the_host_are_absent(cage: Cage) -> None:
    found = await cage.python("print(json.dumps({'dev': sorted(os.listdir('/dev'))}))")
    assert set(found["dev"]) <= {
        "console", "core", "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout",
        "tty", "urandom", "zero",
    }  # fmt: skip


async def test_a_fork_bomb_is_bounded(cage: Cage) -> None:
    found = await cage.python(
        "import signal",
        "children = []",
        "try:",
        "    while len(children) < 1000:",
        "        pid = os.fork()",
        "        if pid == 0: signal.pause()",
        "        children.append(pid)",
        "except OSError: pass",
        "print(json.dumps({'children': len(children)}))",
    )
    assert 0 < found["children"] < LIMITS.pids


async def test_a_command_that_eats_memory_is_stopped_and_the_runner_is_not(cage: Cage) -> None:
    ending = await cage.run("python", "b = []\nwhile True: b.append(bytes(range(256)) * 65536)")
    assert ending.failure_reason in ("oom_kill", "agent_run")

    if make_sandbox(cage.tier, cage.limits, cage.folder).layout is not None:
        assert ending.failure_reason == "oom_kill"
    else:
        assert "MemoryError" in ending.response_text


async def test_without_control_groups_a_watchdog_ends_what_eats_memory(
    cage: Cage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.worlds.sandbox.make_sandbox", ungrouped)
    program = (
        "import os, time\n"
        "for _ in range(4): os.fork() or (held := os.urandom(1 << 20) * 90) and time.sleep(60)\n"
        "time.sleep(60)\nprint('never')"
    )
    ending = await cage.run("python", program)

    assert ending.failure_reason == "oom_kill"
    assert "never" not in ending.response_text


async def test_what_lies_in_files_counts_as_memory(cage: Cage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.worlds.sandbox.make_sandbox", ungrouped)
    ending = await cage.run(
        "sh", "for d in /tmp /workspace; do head -c 200000000 /dev/zero >$d/f; done; sleep 9"
    )

    assert ending.failure_reason == "oom_kill"


async def test_a_watchdog_lets_be_what_keeps_within_its_bound(
    cage: Cage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.worlds.sandbox.make_sandbox", ungrouped)
    # Each of four processes has 100 MiB, but it is the same 100 MiB.
    program = (
        "import os, time\nheld = bytearray(os.urandom(1 << 20)) * 100\n"
        "pids = [pid for _ in range(3) if (pid := os.fork()) or time.sleep(1) or os._exit(0)]\n"
        "for pid in pids: assert os.waitpid(pid, 0)[1] == 0\nprint('{\"whole\": true}')"
    )
    ending = await cage.run("python", program)

    assert ending.evidence == {"whole": True}, ending.response_text


async def test_a_sandbox_that_can_neither_be_grouped_nor_watched_is_not_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = ungrouped(SandboxTier.BUBBLEWRAP, LIMITS, tmp_path)
    assert await check(sandbox) is Bound.WATCHDOG

    monkeypatch.setattr("sexton_runner.sandbox.watchdog.look_into", lambda _: None)
    monkeypatch.setattr("sexton_runner.sandbox.probe.WATCH_S", 0.1)
    assert await check(sandbox) is Bound.NONE


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("sh", "head -c 300000000 /dev/zero > big"),
        ("python", "with open('big', 'wb') as f:\n    for _ in range(300): f.write(bytes(1 << 20))"),
        ("sh", "sh -c 'kill -9 $$'; exit $?"),
        ("python", "import os\nos.kill(os.getpid(), 9)"),
        ("python", "import os\nheld = [os.open('/dev/null', 0) for _ in range(999)]"),
    ],
    ids=["file size, by signal", "file size, by errno", "a killed child", "killed", "open files"],
)
async def test_whoever_meets_a_limit_ends_as_resource_kill(
    tmp_path: Path, language: str, source: str
) -> None:
    cage = Cage(tmp_path, limits=Limits(wall_s=20, memory_bytes=1 << 30, pids=32))
    ending = await cage.run(language, source)

    assert ending.failure_reason == "resource_kill", ending.response_text


async def test_the_workspace_cannot_be_filled_without_bound(cage: Cage) -> None:
    ending = await cage.run(
        "sh", "for n in 1 2 3 4 5 6 7 8; do head -c 250000000 /dev/zero > f$n || exit 9; done"
    )
    assert ending.outcome is Outcome.AGENT_ERROR


async def test_a_flood_of_output_is_stopped_and_what_is_kept_is_small(cage: Cage) -> None:
    ending = await cage.run("sh", "yes 'a line that never ends'")

    assert ending.failure_reason == "resource_kill"
    assert len(ending.response_text) < 100_000


async def test_a_flood_of_errors_is_stopped_as_well(cage: Cage) -> None:
    assert (await cage.run("sh", "yes >&2")).failure_reason == "resource_kill"


async def test_a_flood_of_steps_is_stopped(cage: Cage) -> None:
    ending = await cage.run(
        "python",
        "with open('/run/sexton/requests', 'w') as f:\n    while True: f.write('progress\\n' * 9999)",
    )
    assert ending.failure_reason == "resource_kill"


async def test_garbage_in_the_channel_does_no_harm(cage: Cage) -> None:
    pipe = "/run/sexton/requests"
    source = f"head -c 100000 /dev/urandom > {pipe}\nprintf '\\nask ../.. - - - - -\\n' > {pipe}\n"
    ending = await cage.run("sh", source + "echo '{\"alive\": true}'")

    assert ending.evidence == {"alive": True}


async def test_a_command_that_takes_too_long_is_killed_with_all_it_started(tmp_path: Path) -> None:
    cage = Cage(tmp_path, limits=Limits(wall_s=0.7, memory_bytes=256 << 20, pids=32))
    ending = await cage.run("sh", f"setsid sleep {MARKER} & trap '' TERM; echo begun; sleep {MARKER}")
    assert (ending.failure_reason, ending.response_text) == (
        "timeout_kill",
        "begun\n[the command was stopped: timeout_kill, since it may take 0.7 s (resources.wall)]",
    )

    await gone(MARKER)


async def test_nothing_outlives_a_command_that_ends_well(cage: Cage) -> None:
    ending = await cage.run("sh", f"setsid sleep {MARKER} >/dev/null 2>&1 & nohup sleep {MARKER} & echo done")
    assert ending.response_text == "done\n"

    await gone(MARKER)


async def test_a_child_that_keeps_the_output_open_does_not_hold_up_the_end(cage: Cage) -> None:
    ending = await cage.run("sh", f"sleep {MARKER} & echo done")
    assert ending.response_text == "done\n"

    await gone(MARKER)


async def test_cancelling_a_run_leaves_no_process(cage: Cage) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cage.run, "sh", f"sleep {MARKER}")
        await eventually(lambda: processes_with(MARKER))
        nursery.cancel_scope.cancel()
    await gone(MARKER)


async def test_a_command_that_does_not_read_its_event_is_no_fault(cage: Cage) -> None:
    ending = await cage.run("sh", "exec 0<&-; echo fine")
    assert ending.response_text == "fine\n"


async def test_bytes_that_are_no_text_are_shown_as_replacements(cage: Cage) -> None:
    ending = await cage.run("sh", "printf 'a\\377b\\000c'")
    assert ending.response_text == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c"


async def test_output_is_shown_while_the_command_still_runs(cage: Cage) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cage.run, "sh", f"echo early; sleep {MARKER}")
        await eventually(lambda: cage.shown)
        assert cage.shown[0] == {"kind": "chunk", "text": "early\n"}

        nursery.cancel_scope.cancel()


HOLD = f"""
import subprocess
open("/run/sexton/requests", "w").write("step aGVsZA==\\n")
open("/workspace/mine", "w").close()
subprocess.run(["sleep", "{MARKER}"])
"""


def names(frames: Sequence[Frame]) -> list[object]:
    """Give the steps that were shown."""
    return [frame.get("name") for frame in frames]


def ids_on_the_host(pid: int) -> tuple[set[str], set[str], str, str]:
    """Give a process's users, groups, further groups and permitted capabilities as the host sees them."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    told = dict(line.split(":", 1) for line in lines)
    return set(told["Uid"].split()), set(told["Gid"].split()), told["Groups"].strip(), told["CapPrm"].strip()


def enclosing(pid: int) -> int:
    """Give the outermost process of the sandbox that a process is in: the child of this one."""
    while (parent := int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])) != os.getpid():
        pid = parent
    return pid


@pytest.mark.skipif(not may_lower(), reason="only root can become another user, where the host lets it")
async def test_as_root_a_command_is_nobody_on_the_host(tmp_path: Path) -> None:
    before = os.umask(0o077)  # As strict as a service may have it; a state folder is closed anyway.
    cages = [Cage(tmp_path / name) for name in ("one", "two")]
    try:
        async with trio.open_nursery() as nursery:
            for cage in cages:
                cage.folder.mkdir()
                nursery.start_soon(cage.run, "python", HOLD)
            await eventually(lambda: len(processes_with(MARKER)) == 2)
            held = [ids_on_the_host(pid) for pid in processes_with(MARKER)]
            outer = {str(lowered_uid(enclosing(pid))) for pid in processes_with(MARKER)}
            await eventually(lambda: all("held" in names(cage.shown) for cage in cages))
            nursery.cancel_scope.cancel()
    finally:
        os.umask(before)
    assert {user for users, *_ in held for user in users} == outer
    assert len(outer) == 2
    assert all(users == groups for users, groups, *_ in held)
    assert {further for *_, further, _ in held} == {""}
    assert {int(capabilities, 16) for *_, capabilities in held} == {0}

    await gone(MARKER)
    for cage in cages:
        shutil.rmtree(cage.folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's runner has no privileges to take away")
async def test_where_root_cannot_be_lowered_the_sandbox_stands_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("setpriv", "prlimit", "env", "mount", "chown", "mkdir"):
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    unshare = tmp_path / "bin" / "unshare"
    unshare.write_text("#!/bin/sh\nexit 1\n")
    unshare.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    sandbox = make_sandbox(SandboxTier.BUBBLEWRAP, LIMITS, tmp_path)
    assert sandbox.lowering is None

    await probe(sandbox)


async def test_descriptors_are_given_back_after_every_run(cage: Cage) -> None:
    await cage.run("sh", "true")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        await cage.run("sh", "true")

    assert len(list(Path("/proc/self/fd").iterdir())) == before


async def test_control_groups_are_given_back_after_every_run(cage: Cage) -> None:
    layout = make_sandbox(cage.tier, cage.limits, cage.folder).layout
    ending = await cage.run("sh", "cat /proc/self/cgroup")
    assert ending.outcome is Outcome.PROCESSED

    left = (
        [] if layout is None else [folder for parent in layout.parents for folder in parent.glob("sexton-*")]
    )
    mine = make_sandbox(cage.tier, cage.limits, cage.folder).name
    assert [folder for folder in left if mine in folder.name] == []


async def test_the_bare_tier_runs_commands_and_leaves_nothing_running(tmp_path: Path) -> None:
    cage = Cage(tmp_path, tier=SandboxTier.NONE)
    ending = await cage.run(
        "sh", f'sleep {MARKER} & sexton-step step one; read -r event; echo \'{{"tier": "none"}}\''
    )
    assert ending.evidence == {"tier": "none"}
    assert {frame["kind"] for frame in cage.shown} == {"chunk", "tool_call_started", "tool_call_completed"}

    await gone(MARKER)
