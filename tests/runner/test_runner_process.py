"""A runner process: its signals, its exit statuses, and what is left when it dies."""

import os
import signal
import stat
import uuid
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.fakes.control_plane import ENROLMENT, TOKEN, Plane, open_plane
from tests.worlds.ordinary_user import as_ordinary_user, own_folder
from tests.worlds.runner import (
    WAITING,
    Process,
    command_line,
    eventually,
    gone,
    groups_left,
    process,
    processes_with,
)


def words(plane: Plane, folder: Path, *, alert: bool = False, **changes: Any) -> list[str]:
    settings = {"base_url": plane.base_url, "state_dir": folder / "state", "slots": 2} | changes
    return command_line(settings, alert=alert)


def sleeping(marker: str) -> str:
    return f"Sleep.\n```sh\nsexton-step step asleep\nsetsid sleep {marker} & sleep {marker}\n```\n"


def heard(runner: Process, plane: Plane, word: str) -> bool:
    return word in runner.log or bool(plane.of("release"))


def beaten(plane: Plane, times: int) -> bool:
    return len(plane.of("heartbeat")) > times


def new_marker() -> str:
    """Give an argument of sleep(1) by which its process is known among all of the host."""
    return f"31536000.{uuid.uuid4().int % 10**9:09d}"


async def test_sigterm_lets_a_run_finish_takes_nothing_new_and_ends_well(tmp_path: Path) -> None:
    async with open_plane() as plane, process(tmp_path, words(plane, tmp_path)) as runner:
        plane.give(WAITING)
        await plane.until(lambda: plane.gates)
        runner.send(signal.SIGTERM)
        await eventually(lambda: "draining" in runner.log)
        await plane.until(lambda: plane.polls == 0)
        plane.give(WAITING)
        plane.resolve(next(iter(plane.gates)), "approved")
        await plane.until(plane.reports)

        assert await runner.ended() == 0

    assert len(plane.queue) == 1
    assert [report.outcome for report in plane.reports()] == ["processed"]
    assert plane.of("release") == []


async def test_what_does_not_finish_in_the_drain_time_is_killed_and_released(tmp_path: Path) -> None:
    marker = new_marker()
    async with open_plane() as plane, process(tmp_path, words(plane, tmp_path, drain_s=0)) as runner:
        lease = plane.give(sleeping(marker))
        await eventually(lambda: processes_with(marker) and plane.frames())
        runner.send(signal.SIGTERM)

        assert await runner.ended() == 0
        assert processes_with(marker) == []

    assert [(lease_id, body.reason) for lease_id, body in plane.of("release")] == [
        (lease["lease_id"], "drain")
    ]
    assert plane.reports() == []


@pytest.mark.parametrize(
    "signals", [[signal.SIGTERM, signal.SIGTERM], [signal.SIGTERM, signal.SIGINT], [signal.SIGINT]]
)
async def test_a_second_signal_stops_now(tmp_path: Path, signals: list[signal.Signals]) -> None:
    marker = new_marker()
    async with open_plane() as plane, process(tmp_path, words(plane, tmp_path, drain_s=3600)) as runner:
        plane.give(sleeping(marker))
        await eventually(lambda: processes_with(marker) and plane.frames())
        for number, word in zip(signals, ("draining", "stopping"), strict=False):
            runner.send(number)
            if len(signals) > 1:
                await eventually(partial(heard, runner, plane, word))

        assert await runner.ended() == 0
        assert processes_with(marker) == []

    assert len(plane.of("release")) == 1


async def test_a_runner_told_to_stop_by_the_control_plane_drains_and_ends(tmp_path: Path) -> None:
    async with open_plane() as plane, process(tmp_path, words(plane, tmp_path)) as runner:
        plane.heartbeat["status"] = "stop"
        assert await runner.ended() == 0


async def test_killing_the_runner_leaves_no_process_of_its_runs(tmp_path: Path) -> None:
    markers = [new_marker(), new_marker()]
    async with open_plane() as plane, process(tmp_path, words(plane, tmp_path)) as runner:
        for marker in markers:
            plane.give(sleeping(marker))
        await eventually(lambda: all(processes_with(marker) for marker in markers))
        runner.send(signal.SIGKILL)
        assert await runner.ended() == -signal.SIGKILL

        for marker in markers:
            await gone(marker)


async def test_a_runner_started_after_a_kill_clears_away_what_the_dead_one_left(tmp_path: Path) -> None:
    marker = new_marker()
    async with open_plane() as plane:
        async with process(tmp_path, words(plane, tmp_path), clear=False) as runner:
            plane.give(sleeping(marker))
            await eventually(lambda: processes_with(marker))
            runner.send(signal.SIGKILL)
            await runner.ended()
        # A supervisor that sees its runner go before that death's signal reaches it may have cleared its own
        # folder away. This one had no time.
        (tmp_path / "state" / "runs" / "left" / "workspace").mkdir(parents=True, exist_ok=True)
        async with process(tmp_path, words(plane, tmp_path)) as runner:
            await eventually(lambda: "runner_up" in runner.log)

            assert not (tmp_path / "state" / "runs").exists()
            assert groups_left(tmp_path / "state") == []


async def test_a_revoked_runner_kills_its_runs_and_says_so(tmp_path: Path) -> None:
    marker = new_marker()
    async with open_plane() as plane, process(tmp_path, words(plane, tmp_path, alert=True)) as runner:
        plane.give(sleeping(marker))
        await eventually(lambda: processes_with(marker))
        plane.token_code = "UZ-RUN-009"
        plane.changed()

        assert await runner.ended() == 77
        assert processes_with(marker) == []
        assert "UZ-RUN-009" in runner.log.splitlines()[-1]
        assert "Traceback" not in runner.log


async def test_an_unknown_token_is_one_clear_line(tmp_path: Path) -> None:
    async with open_plane() as plane:
        plane.token = "zrn_another"
        async with process(tmp_path, words(plane, tmp_path)) as runner:
            assert await runner.ended() == 77
            assert "UZ-RUN-001" in runner.log.splitlines()[-1]


async def test_the_first_start_enrols_and_the_second_remembers(tmp_path: Path) -> None:
    env = {"SEXTON_ENROLMENT_TOKEN": ENROLMENT}
    async with open_plane() as plane:
        for _ in range(2):
            argv = [
                "env",
                "-u",
                "SEXTON_RUNNER_TOKEN",
                *words(plane, tmp_path, label="gpu", host_id="depot-1"),
            ]
            async with process(tmp_path, argv, env) as runner:
                beats = len(plane.of("heartbeat"))
                await plane.until(partial(beaten, plane, beats))
                runner.send(signal.SIGTERM)
                assert await runner.ended() == 0
                assert TOKEN not in runner.log
    (enrolment,) = plane.of("enrol")
    assert (enrolment.host_id, enrolment.labels, enrolment.slots) == ("depot-1", ["gpu"], 2)
    assert enrolment.sandbox_tier == "bubblewrap"

    kept = tmp_path / "state" / "runner.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert orjson.loads(kept.read_bytes())["runner_token"] == TOKEN


async def test_a_label_without_leave_ends_the_runner_with_one_clear_line(tmp_path: Path) -> None:
    async with open_plane() as plane:
        argv = ["env", "-u", "SEXTON_RUNNER_TOKEN", *words(plane, tmp_path, label="reserved:pci")]
        async with process(tmp_path, argv, {"SEXTON_ENROLMENT_TOKEN": ENROLMENT}) as runner:
            assert await runner.ended() == 78
            assert "UZ-RUN-017: the control plane does not enrol" in runner.log.splitlines()[-1]
    assert not (tmp_path / "state" / "runner.json").exists()


async def test_a_spent_enrolment_token_is_one_clear_line(tmp_path: Path) -> None:
    async with open_plane() as plane:
        plane.calls.append(("enrol", None))
        argv = ["env", "-u", "SEXTON_RUNNER_TOKEN", *words(plane, tmp_path)]
        async with process(tmp_path, argv, {"SEXTON_ENROLMENT_TOKEN": ENROLMENT}) as runner:
            assert await runner.ended() == 77
            assert "UZ-RUN-015" in runner.log.splitlines()[-1]


@pytest.mark.parametrize(
    ("changes", "status", "told"),
    [
        ({"slots": 0}, 78, "slots must be 1 to 256"),
        ({"base_url": "ftp://x"}, 78, "base_url must be"),
        ({"sandbox": "landlock"}, 69, "UZ-RUN-007"),
    ],
)
async def test_a_runner_that_cannot_start_says_why_in_one_line(
    tmp_path: Path, changes: dict[str, Any], status: int, told: str
) -> None:
    async with open_plane() as plane, process(tmp_path, words(plane, tmp_path, **changes)) as runner:
        assert await runner.ended() == status
        assert told in runner.log.splitlines()[-1]
        assert "Traceback" not in runner.log
    assert plane.calls == []


async def test_without_the_system_s_programs_a_runner_refuses_to_start(tmp_path: Path) -> None:
    async with (
        open_plane() as plane,
        process(tmp_path, words(plane, tmp_path), {"PATH": str(tmp_path)}) as runner,
    ):
        assert await runner.ended() == 69
        assert "setpriv is not installed" in runner.log.splitlines()[-1]


async def test_two_runners_cannot_share_a_state_folder(tmp_path: Path) -> None:
    async with open_plane() as plane, process(tmp_path, words(plane, tmp_path)) as first:
        await plane.until(lambda: plane.of("heartbeat"))
        async with process(tmp_path / "..", words(plane, tmp_path)) as second:
            assert await second.ended() == 78
            assert "in use" in second.log
        first.send(signal.SIGTERM)

        assert await first.ended() == 0


GREEDY = """Try.
```python
import json, os, signal
children, blocks = [], []
try:
    while len(children) < 1000:
        pid = os.fork()
        if pid == 0:
            signal.pause()
        children.append(pid)
except OSError:
    pass
for pid in children:
    os.kill(pid, 9)
try:
    while len(blocks) < 64:
        blocks.append(bytes(range(256)) * 2**17)
    memory = "without bound"
except MemoryError:
    memory = "bounded"
def refused(path, mode):
    try:
        open(path, mode).close()
    except OSError:
        return True
    return False
print(json.dumps({"children": len(children), "memory": memory, "shadow": refused("/etc/shadow", "rb"),
                  "home": refused("/home", "rb"), "usr": refused("/usr/x", "wb"),
                  "sysctl": refused("/proc/sys/kernel/core_pattern", "r+b")}))
```
"""


async def test_a_runner_of_an_ordinary_user_gives_the_same_sandbox(tmp_path: Path) -> None:
    with own_folder() as folder:
        (stage := tmp_path / "stage").mkdir()
        async with open_plane() as plane:
            argv = as_ordinary_user(words(plane, folder), stage)
            async with process(tmp_path, argv) as runner:
                plane.give(GREEDY)
                await eventually(lambda: plane.reports() or "cannot" in runner.log)
                runner.send(signal.SIGTERM)

                assert await runner.ended() == 0
    (report,) = plane.reports()
    if report.evidence:
        assert 0 < report.evidence.pop("children") < 128
        assert report.evidence == {
            "memory": "bounded",
            "shadow": True,
            "home": True,
            "usr": True,
            "sysctl": True,
        }
    else:
        assert report.failure_reason == "oom_kill"


HOARD = """Take much, a little each.
```python
import os, time
for _ in range(12):
    if os.fork() == 0:
        held = bytearray(os.urandom(1 << 20)) * 160
        time.sleep(60)
time.sleep(60)
```
"""


async def test_a_run_of_many_processes_is_bounded_as_a_whole_without_control_groups(tmp_path: Path) -> None:
    with own_folder() as folder:
        (stage := tmp_path / "stage").mkdir()
        async with open_plane() as plane:
            argv = as_ordinary_user(words(plane, folder), stage)
            async with process(tmp_path, argv) as runner:
                plane.give(HOARD)
                await eventually(lambda: plane.reports() or "cannot" in runner.log)
                runner.send(signal.SIGTERM)

                assert await runner.ended() == 0
    (report,) = plane.reports()

    assert (report.outcome, report.failure_reason) == ("agent_error", "oom_kill"), report.response_text


async def test_a_strict_runner_that_cannot_bound_memory_refuses_with_status_78(tmp_path: Path) -> None:
    async with (
        open_plane() as plane,
        process(tmp_path, [*words(plane, tmp_path, sandbox="none"), "--strict"]) as runner,
    ):
        assert await runner.ended() == 78
        assert "--strict asks for more than this host gives" in runner.log.splitlines()[-1]
    assert plane.calls == []


async def test_killing_an_ordinary_user_s_runner_leaves_no_process(tmp_path: Path) -> None:
    marker = new_marker()
    with own_folder() as folder:
        (stage := tmp_path / "stage").mkdir()
        async with (
            open_plane() as plane,
            process(tmp_path, as_ordinary_user(words(plane, folder), stage)) as runner,
        ):
            plane.give(sleeping(marker))
            await eventually(lambda: processes_with(marker))
            assert os.geteuid() != 0 or owner(processes_with(marker)[0]) != 0

            runner.send(signal.SIGKILL)
            await runner.ended()
            await gone(marker)


def owner(pid: int) -> int:
    return Path(f"/proc/{pid}").stat().st_uid
