"""The tier for hosts without user namespaces shuts a run in, ends all of it, and is given whole or not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
import trio

from sexton_runner.errors import SandboxUnavailable
from sexton_runner.run import Outcome
from sexton_runner.sandbox.jobs import INSIDE_PATH
from sexton_runner.sandbox.landlock import LEAST_ABI, Landlock, kernel_abi, refusal
from sexton_runner.sandbox.limits import Limits
from sexton_runner.sandbox.seccomp import ALLOW, MACHINES, OF_A_SHARED_USER, OF_ITSELF_ONLY, Machine
from sexton_runner.sandbox.tiers import Job
from sexton_runner.sandbox.workspace import open_workspace
from tests.patience import PATIENCE_S
from tests.runner.attacks import CANARY, MARKER, survivors
from tests.runner.landlock_attacks import LANDLOCK_ATTACKS, ungrouped_sandbox
from tests.runner.test_runner_seccomp import verdict
from tests.worlds.ordinary_user import as_ordinary_user, own_folder
from tests.worlds.sandbox import Cage

ROOT = Path(__file__).resolve().parents[2]
EPERM, EAFNOSUPPORT = 1, 97
needs_landlock = pytest.mark.skipif(kernel_abi() < LEAST_ABI, reason="the kernel's Landlock is too old")


@pytest.fixture(scope="module")
def results() -> Iterator[Mapping[str, str]]:
    """What came of each attack, carried out by an ordinary user."""
    with own_folder() as folder, tempfile.TemporaryDirectory() as stage:
        words = [sys.executable, "-m", "tests.runner.landlock_attacks", str(folder)]
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}/runner:{ROOT}", "SEXTON_CANARY": CANARY}
        argv = as_ordinary_user(words, Path(stage))
        done = subprocess.run(argv, capture_output=True, cwd=ROOT, env=env, timeout=PATIENCE_S, check=False)
        assert done.returncode == 0, done.stderr.decode()
        yield orjson.loads(done.stdout)


@needs_landlock
@pytest.mark.parametrize("name", list(LANDLOCK_ATTACKS))
def test_the_attack_fails(results: Mapping[str, str], name: str) -> None:
    assert results[name] in LANDLOCK_ATTACKS[name].expect


@needs_landlock
async def test_a_command_works_in_its_folder_and_speaks_to_its_runner(tmp_path: Path) -> None:
    cage = Cage(tmp_path, sandbox=ungrouped_sandbox())
    program = (
        "sexton-step step look; pwd; echo kept >file; mkdir -p a/b; mv file a; cat a/file; wc -c </dev/null"
    )

    ending = await cage.run("sh", program)

    assert ending.outcome is Outcome.PROCESSED, ending.response_text
    assert ending.response_text.split() == [str(tmp_path / "1" / "workspace"), "kept", "0"]
    assert any(frame.get("name") == "look" for frame in cage.shown)


@needs_landlock
async def test_a_program_s_end_is_told_as_it_was(tmp_path: Path) -> None:
    cage = Cage(tmp_path, sandbox=ungrouped_sandbox())

    assert "ended with status 3" in (await cage.run("sh", "exit 3")).response_text
    assert "status -9" in (await cage.run("sh", "kill -9 $$")).response_text


@needs_landlock
async def test_nothing_outlives_its_keeper_whatever_sessions_it_made(tmp_path: Path) -> None:
    program = f"setsid sh -c 'trap \"\" TERM; while :; do sleep {MARKER} & sleep 0.01; done' & sleep {MARKER}"
    (tmp_path / "run").mkdir()
    async with (
        open_workspace(
            ungrouped_sandbox(), run_dir=tmp_path / "run", folder=tmp_path / "workspace", serial="x"
        ) as workspace,
        workspace.work(["/bin/sh", "-c", program]),
    ):
        while survivors() is None:
            await trio.sleep(0.01)
        # As the kernel does it when memory runs out, or an operator by mistake.
        os.kill(workspace.keeper, signal.SIGKILL)
        with trio.fail_after(PATIENCE_S):
            while survivors() is not None:
                await trio.sleep(0.01)


@needs_landlock
@pytest.mark.parametrize(
    "program",
    [
        "mkdir -p a/b; for i in 1 2 3 4 5 6 7 8; do head -c 1000000 /dev/zero >a/b/$i; done; sleep 60",
        "exec 8>one 9>two; rm *; head -c 5000000 /dev/zero >&8; head -c 5000000 /dev/zero >&9; sleep 60",
        "i=0; while :; do : >f$i; i=$((i + 1)); done",
    ],
    ids=["files", "deleted and still open", "empty files"],
)
async def test_a_run_that_fills_the_disk_is_ended(tmp_path: Path, program: str) -> None:
    sandbox = ungrouped_sandbox()
    cage = Cage(tmp_path, sandbox=replace(sandbox, limits=replace(sandbox.limits, disk_bytes=6 << 20)))

    ending = await cage.run("sh", program)

    assert ending.failure_reason == "disk_kill"


def job(folder: Path, read_only: Mapping[Path, Path]) -> Job:
    return Job(
        argv=["/bin/true"],
        env={"PATH": INSIDE_PATH},
        run_dir=folder,
        workspace=folder,
        read_only=read_only,
        limits=Limits(wall_s=10, memory_bytes=1 << 30, pids=64),
        grouped=True,
    )


def test_a_folder_can_only_be_shown_where_it_is(tmp_path: Path) -> None:
    tier = Landlock("/usr/bin/prlimit", "/usr/bin/nice")

    tier.wrap(job(tmp_path, {tmp_path: tmp_path}))
    with pytest.raises(SandboxUnavailable, match="cannot show /opt elsewhere"):
        tier.wrap(job(tmp_path, {Path("/opt"): tmp_path}))


@pytest.mark.parametrize(
    ("abi", "is_root", "has_groups", "why"),
    [
        (0, False, True, "this kernel has none"),
        (5, False, True, "this kernel has 5"),
        (7, True, True, "not root"),
        (7, False, False, "Delegate=yes"),
    ],
)
def test_a_host_that_cannot_give_it_whole_is_told_what_is_missing(
    abi: int, is_root: bool, has_groups: bool, why: str
) -> None:
    assert why in (refusal(abi, is_root=is_root, has_groups=has_groups) or "")
    assert refusal(6, is_root=False, has_groups=True) is None


@pytest.mark.parametrize("machine", list(MACHINES.values()))
def test_the_filter_keeps_from_what_the_user_has_elsewhere(machine: Machine) -> None:
    for numbers in OF_A_SHARED_USER.values():
        if (number := numbers[machine.column]) is not None:
            assert verdict(machine, number, shares_user=True) == EPERM
            assert verdict(machine, number) in (ALLOW, EPERM)
    for argument, numbers in OF_ITSELF_ONLY.values():
        others = [0, 0]
        assert verdict(machine, numbers[machine.column], *others, shares_user=True) == ALLOW
        for named in (4711, 1 << 40):
            others[argument] = named
            assert verdict(machine, numbers[machine.column], *others, shares_user=True) == EPERM

        # Where the run has a user of its own there is nobody to protect.
        assert verdict(machine, numbers[machine.column], *others) == ALLOW


@pytest.mark.parametrize("machine", list(MACHINES.values()))
def test_the_filter_leaves_pairs_of_sockets_that_reach_nobody_else(machine: Machine) -> None:
    kinds = {kind: verdict(machine, machine.socketpair, 1, kind, shares_user=True) for kind in (1, 2, 5)}

    assert kinds == {1: ALLOW, 2: EAFNOSUPPORT, 5: ALLOW}
    assert verdict(machine, machine.socket, 1, shares_user=True) == EAFNOSUPPORT
    assert verdict(machine, machine.socketpair, 1, 1 | 0o2000000, shares_user=True) == ALLOW
