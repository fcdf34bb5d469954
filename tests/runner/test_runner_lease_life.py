"""A whole runner, against a control plane on loopback and in the real sandbox."""

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from sexton_runner.main import run_runner
from sexton_runner.runner import Runner
from sexton_runner.settings import RunnerSettings
from sexton_runner.timing import Timing
from tests.runner.control_plane import TOKEN, Plane, open_plane

HELLO = "Greet.\n```sh\nread -r line\necho hello\necho '{\"ok\": true}'\n```\n"


async def test_a_command_runs_and_is_reported(tmp_path: Path) -> None:
    async with open_plane() as plane:
        settings = RunnerSettings(
            base_url=plane.base_url, state_dir=tmp_path / "state", runner_token=TOKEN, slots=2
        )
        runners: list[Runner] = []
        async with trio.open_nursery() as nursery:
            lease = plane.give(HELLO)

            async def go() -> None:
                await run_runner(settings, announce=runners.append, rng=random.Random(1))

            nursery.start_soon(go)
            await plane.until(plane.reports)
            runners[0].drain("test")
        (report,) = plane.reports()
        assert str(report.event_id) == lease["event"]["event_id"]
        assert (report.outcome, report.failure_reason) == ("processed", None)
        assert report.response_text == 'hello\n{"ok": true}\n'
        assert report.evidence == {"ok": True}
        assert "".join(f["text"] for f in plane.frames("chunk")) == report.response_text
