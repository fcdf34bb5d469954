"""What a model's tools have started ends with the run: by a kill, a cancel, a drain, a dead runner."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sexton_runner.sandbox.cgroup import find_layout
from sexton_runner.settings import SandboxTier
from tests.fakes.control_plane import Plane, open_plane
from tests.fakes.model_servers import Call, ModelServer, Say, open_model
from tests.worlds.runner import LIMITS, Process, command_line, eventually, gone, process, processes_with
from tests.worlds.runner_agents import give, reported, runner_with
from tests.worlds.toolbox import open_bench

MARKER = "31536000.999"
# One that asks to be left alone, one in a session of its own, and one in a group of its own.
COMMAND = f"setsid sleep {MARKER} & (trap '' TERM HUP INT; sleep {MARKER}) & sleep {MARKER}"
BUSY = Say("", (Call("shell", {"command": COMMAND, "timeout_s": 900}),))


@asynccontextmanager
async def at_its_tool(folder: Path, tier: str) -> AsyncIterator[tuple[Plane, ModelServer, Process]]:
    """Give a runner process whose run is in the middle of a program."""
    async with open_plane() as plane, open_model("openai", BUSY) as model:
        words = command_line(
            {"base_url": plane.base_url, "state_dir": folder / "state", "sandbox": tier, "drain_s": "0"},
            alert=True,
        )
        async with process(folder, words, {"SEXTON_OPENAI_BASE_URL": model.base_url}) as runner:
            give(plane, model, policy={"tools": ["shell"]})
            await eventually(lambda: len(processes_with(f"sleep\0{MARKER}")) >= 3)
            yield plane, model, runner


async def test_a_program_dies_with_the_runner(tmp_path: Path) -> None:
    async with at_its_tool(tmp_path, "bubblewrap") as (_, _, runner):
        runner.send(signal.SIGKILL)
        await runner.ended()
        await gone(MARKER)


async def test_without_walls_the_next_runner_ends_what_left_the_group_of_a_dead_one(tmp_path: Path) -> None:
    if find_layout("test-halted", LIMITS) is None:
        pytest.skip("this host lets nobody make control groups")
    async with at_its_tool(tmp_path, "none") as (_, _, runner):
        runner.send(signal.SIGKILL)
        await runner.ended()
    await gone(MARKER)


async def test_a_program_dies_with_the_drain_and_the_lease_is_given_back(tmp_path: Path) -> None:
    async with at_its_tool(tmp_path, "bubblewrap") as (plane, _, runner):
        runner.send(signal.SIGTERM)

        assert await runner.ended() == 0
        assert processes_with(MARKER) == []
    assert len(plane.of("release")) == 1


async def test_a_program_dies_when_its_run_is_cancelled(tmp_path: Path) -> None:
    async with open_model("openai", BUSY) as model, runner_with(model, tmp_path) as plane:
        lease = give(plane, model, policy={"tools": ["shell"]})
        await eventually(lambda: processes_with(MARKER))
        plane.heartbeat = {"status": "ok", "cancelled_lease_ids": [lease["lease_id"]]}
        report = await reported(plane)
        await gone(MARKER)
    assert (report.outcome, report.failure_reason) == ("cancelled", "cancelled")


async def test_without_walls_a_program_is_ended_with_all_it_started_as_well(tmp_path: Path) -> None:
    async with open_bench(tmp_path, tier=SandboxTier.NONE) as bench:
        result = await bench.box.call("shell", {"command": f"echo begun; {COMMAND}", "timeout_s": 1}, "c1")
        await gone(MARKER)
        assert "took too long" in result.content

        await bench.call("shell", command="echo kept > file")
        assert "kept" in await bench.call("shell", command="cat file; pwd")
