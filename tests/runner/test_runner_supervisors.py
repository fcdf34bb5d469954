"""Each run has a process of its own, which is bounded, and whose end is the end of that run alone."""

import os
import random
import resource
import signal
import socket
import uuid
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from sexton_runner.lease import Halt, LiveLease, Usage
from sexton_runner.providers.base import Usage as Counts
from sexton_runner.run import Ending, Outcome
from sexton_runner.runtimes.registry import RUNTIMES
from sexton_runner.sandbox.probe import make_sandbox
from sexton_runner.settings import SandboxTier
from sexton_runner.supervisors import supervisor
from sexton_runner.supervisors.launcher import Launcher
from sexton_runner.supervisors.messages import (
    MAX_MESSAGE_BYTES,
    Job,
    Outfit,
    Over,
    Pipe,
    Used,
    decoded,
    encoded,
    used,
)
from sexton_runner.supervisors.process import supervise
from sexton_runner.wire import Lease
from tests.fakes.control_plane import TOKEN, Plane, make_lease, open_plane
from tests.patience import PATIENCE_S
from tests.worlds.runner import (
    LAUNCHER,
    LIMITS,
    PACE,
    WAITING,
    eventually,
    gone,
    groups_left,
    processes_with,
    running,
    settings_for,
)


def children(pid: int) -> list[int]:
    """Give the processes that a process has started and not reaped."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def descriptors(pid: int) -> int:
    """Count the open files of a process."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def fork_server() -> int:
    assert LAUNCHER._server is not None
    return LAUNCHER._server.pid


def marked() -> tuple[str, str]:
    """Give instructions that wait for a decision beside a process with a marker, and the marker."""
    marker = f"{random.randint(10**6, 10**7)}.5"
    return f"Wait.\n```sh\nsleep {marker} &\nsexton-step approve --action wait\n```\n", marker


async def waiting(plane: Plane, count: int) -> list[int]:
    """Wait until this many runs ask, and give their supervisors, oldest first."""
    await plane.until(lambda: len(plane.gates) == count)
    return sorted(children(fork_server()))


async def test_a_supervisor_that_is_killed_ends_its_own_run_and_no_other(tmp_path: Path) -> None:
    instructions, marker = marked()
    async with open_plane() as plane, running(settings_for(plane, tmp_path)):
        killed = plane.give(instructions)
        (pid,) = await waiting(plane, 1)
        neighbour = plane.give(WAITING)
        await waiting(plane, 2)
        os.kill(pid, signal.SIGKILL)
        await plane.until(plane.reports)
        await gone(marker)
        (report,) = plane.reports()
        assert (str(report.lease_id), report.failure_reason) == (killed["lease_id"], "resource_kill")
        assert "was ended" in report.response_text

        name = killed["lease_id"]
        await eventually(lambda: not [one for one in groups_left(tmp_path / "state") if name in one.name])
        for gate in list(plane.gates):
            plane.resolve(gate, "approved")
        await plane.until(lambda: len(plane.reports()) == 2)
        assert not (tmp_path / "state" / "runs" / killed["lease_id"]).exists()

    assert str(plane.reports()[1].lease_id) == neighbour["lease_id"]
    assert plane.reports()[1].outcome == "processed"


async def test_after_the_death_of_the_fork_server_the_next_run_has_another(tmp_path: Path) -> None:
    instructions, marker = marked()
    async with open_plane() as plane, running(settings_for(plane, tmp_path)):
        plane.give(instructions)
        await waiting(plane, 1)
        os.kill(fork_server(), signal.SIGKILL)
        await plane.until(plane.reports)
        await gone(marker)
        plane.give("Greet.\n```sh\necho hello\n```\n")
        await plane.until(lambda: len(plane.reports()) == 2)

    assert [report.failure_reason for report in plane.reports()] == ["resource_kill", None]


async def test_a_frozen_supervisor_does_not_outlive_the_kill_of_its_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "LAST_WORD_S", -1.8)  # Beside the two seconds for frames.
    instructions, marker = marked()
    async with open_plane() as plane, running(settings_for(plane, tmp_path)):
        lease = plane.give(instructions)
        (pid,) = await waiting(plane, 1)
        os.kill(pid, signal.SIGSTOP)
        plane.heartbeat = {"status": "ok", "cancelled_lease_ids": [lease["lease_id"]]}
        await plane.until(plane.reports)
        await gone(marker)

    assert [report.outcome for report in plane.reports()] == ["cancelled"]


async def test_a_frozen_supervisor_is_not_renewed_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "SILENCE_S", 3.0)
    async with open_plane() as plane, running(settings_for(plane, tmp_path)):
        plane.give(WAITING)
        (pid,) = await waiting(plane, 1)
        os.kill(pid, signal.SIGSTOP)
        await plane.until(plane.reports)

    assert [report.failure_reason for report in plane.reports()] == ["resource_kill"]


async def test_a_signal_to_every_process_of_the_service_leaves_runs_to_the_runner(tmp_path: Path) -> None:
    async with open_plane() as plane, running(settings_for(plane, tmp_path)):
        plane.give(WAITING)
        (pid,) = await waiting(plane, 1)
        for process in (pid, fork_server()):
            os.kill(process, signal.SIGTERM)
        plane.resolve(next(iter(plane.gates)), "approved")
        await plane.until(plane.reports)
    assert [report.outcome for report in plane.reports()] == ["processed"]


async def test_a_supervisor_has_less_than_its_runner_and_a_program_has_its_own_bounds(tmp_path: Path) -> None:
    tell = 'echo "{\\"data\\": \\"$(ulimit -S -d)\\", \\"nice\\": $(nice)}"'
    asked = f"Tell.\n```sh\n{tell}\nsexton-step approve --action wait\n```\n"
    async with open_plane() as plane, running(settings_for(plane, tmp_path)):
        plane.give(asked)
        (pid,) = await waiting(plane, 1)
        assert os.getpriority(os.PRIO_PROCESS, pid) > os.getpriority(os.PRIO_PROCESS, 0)
        assert resource.prlimit(pid, resource.RLIMIT_DATA)[0] == 1 << 30
        assert int(Path(f"/proc/{pid}/oom_score_adj").read_text()) > 0
        assert Path(f"/proc/{pid}/fd/0").readlink() == Path(os.devnull)

        plane.resolve(next(iter(plane.gates)), "approved")
        await plane.until(plane.reports)
        niceness = os.getpriority(os.PRIO_PROCESS, 0)
    (report,) = plane.reports()

    assert report.evidence is not None
    assert report.evidence["data"] == "unlimited"
    assert report.evidence["nice"] > niceness + 5


async def test_nothing_of_a_run_that_ended_is_left(tmp_path: Path) -> None:
    async with open_plane() as plane, running(settings_for(plane, tmp_path)):
        plane.give("Greet.\n```sh\necho hello\n```\n")
        await plane.until(plane.reports)
        server = fork_server()
        before = descriptors(os.getpid())
        for _ in range(4):
            plane.give("Greet.\n```sh\necho hello\n```\n")
        await plane.until(lambda: len(plane.reports()) == 5)
        await eventually(lambda: children(server) == [])
        await eventually(lambda: descriptors(server) <= 6)
        await eventually(lambda: descriptors(os.getpid()) <= before + 4)


def job_for(folder: Path, **changes: Any) -> Job:
    lease = msgspec.convert(make_lease("Just talk.", **changes), Lease)
    outfit = Outfit(
        base_url="http://127.0.0.1:1",
        token=TOKEN,
        sandbox=make_sandbox(SandboxTier.NONE, LIMITS, folder),
        most=LIMITS,
        timing=PACE,
    )
    return Job(lease=lease, outfit=outfit, folder=folder / str(uuid.uuid4()), seed=1)


async def last_word(job: Job) -> Over:
    """Let a supervisor of this very process carry a job out."""
    ours, theirs = socket.socketpair()
    pipe = Pipe(trio.SocketStream(trio.socket.from_stdlib_socket(ours)))
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(supervise, theirs.detach())
            await pipe.send(job.pack())
            while content := await pipe.receive():
                said = decoded(content)
                if isinstance(said, Over):
                    await pipe.aclose()
                    return said
    raise AssertionError("the supervisor ended without a word")


async def test_a_fault_of_the_runner_s_own_is_the_end_of_that_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("sexton_runner.runtimes.registry.RUNTIMES", {**RUNTIMES, "agent": broken})
    over = await last_word(job_for(tmp_path, runtime="agent"))

    assert over.ending is not None
    assert over.ending.failure_reason == "run_start"


@pytest.mark.parametrize("evidence", [{"long": "x" * (MAX_MESSAGE_BYTES + 1)}, {"no json": {1, 2}}])
async def test_an_ending_that_cannot_be_told_is_told_as_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evidence: dict[str, Any]
) -> None:
    async def strange(_: object) -> Ending:
        return Ending(outcome=Outcome.PROCESSED, evidence=evidence)

    monkeypatch.setattr("sexton_runner.runtimes.registry.RUNTIMES", {"agent": strange})
    over = await last_word(job_for(tmp_path, runtime="agent"))

    assert over.ending is not None
    assert (over.ending.outcome, over.ending.failure_reason) == (Outcome.AGENT_ERROR, "agent_run")


async def test_the_runner_believes_no_message_that_it_cannot_read(tmp_path: Path) -> None:
    job = job_for(tmp_path)
    for nonsense in (b"\xff" * 64, b"\x00\x00\x00\x02{}", b"\x00\x00\x00\x05null!", b""):
        ours, theirs = socket.socketpair()
        live = LiveLease(job.lease, trio.current_time, 30.0)
        pipe = Pipe(trio.SocketStream(trio.socket.from_stdlib_socket(ours)))
        theirs.sendall(nonsense)
        theirs.close()
        over = await supervisor.Supervisor(job, live, pipe, -1).hear()
        await pipe.aclose()
        assert over.ending is not None
        assert over.ending.failure_reason == "resource_kill"


def test_messages_come_out_as_they_went_in() -> None:
    count = Used(Counts(1, 2, 3, 4), (Counts(1), Counts(0, 2)), 4, resting=True)
    ending = Ending(outcome=Outcome.PROCESSED, response_text="ü", evidence={"a": [1]}, checkpoint={"v": 1})
    for said in (count, Over(used=count, ending=ending), Over(used=count, halted=Halt.PARKED, reason="r")):
        assert decoded(encoded(said)) == said


def test_a_job_shows_neither_token_nor_secrets(tmp_path: Path) -> None:
    job = job_for(tmp_path, policy={"secrets_map": {"a": "canary-secret"}})

    assert TOKEN not in repr(job)
    assert "canary-secret" not in repr(job)


def test_counters_of_another_process_never_take_time_back() -> None:
    clock = [100.0]
    usage = Usage(lambda: clock[0])
    usage.adopt(5_000, resting=False, counted=Counts(3, 0, 1), fallbacks=[Counts(2)])
    clock[0] += 2
    assert usage.run_ms == 7_000

    usage.adopt(6_990, resting=True, counted=Counts(2, 0, 1), fallbacks=[Counts(1)])
    clock[0] += 9
    assert used(usage) == Used(Counts(3, 0, 1), (Counts(2),), 7_000, resting=True)


async def test_a_launcher_that_was_closed_leaves_no_process() -> None:
    launcher = Launcher()
    launcher.start()
    assert launcher._server is not None

    pid = launcher._server.pid
    launcher.close()
    assert not processes_with(f"fork_server\0{pid}\0")
    assert repr(launcher) == "<Launcher resting>"
