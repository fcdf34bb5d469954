"""A kill, or a deletion, reaches a running sandbox: a real runner, real HTTP, a real database."""

import random
from functools import partial
from pathlib import Path

import pytest
import trio

from sexton_runner.main import run_runner
from sexton_runner.settings import RunnerSettings
from sexton_runner.timing import Timing
from sexton_storage.postgres import PostgresStorage
from tests.worlds.http import HttpWorld, open_http_world_on
from tests.worlds.http_agents import at, steer
from tests.worlds.runner import eventually, gone, processes_with

SKILL = """\
---
name: sleeper
description: Sleeps until it is woken.
version: 0.1.0
---
```sh
sleep {marker}
```
"""
TRIGGER = """\
---
name: sleeper
runtime: command
triggers:
  - type: webhook
    source: github
    credential_name: github-hook
---
"""
LONG_S = 25.0
"""Heartbeats and renewals come too late to be how it is told."""
SOON_S = 15.0


async def asleep(world: HttpWorld, marker: str) -> dict[str, str]:
    """An agent whose run sleeps in its sandbox."""
    files = {"source_markdown": SKILL.format(marker=marker), "trigger_markdown": TRIGGER}
    zombie: dict[str, str] = (await world.post(f"{world.ws}/zombies", files)).json()
    await steer(world, zombie)
    await eventually(lambda: processes_with(f"sleep\0{marker}"))
    return zombie


@pytest.mark.parametrize("slots", [1, 2], ids=["no slot free", "a slot free"])
@pytest.mark.parametrize("how", ["kill", "delete"])
async def test_what_ends_an_agent_ends_its_sandbox_at_once(
    postgres_storage: PostgresStorage, tmp_path: Path, how: str, slots: int
) -> None:
    marker = f"{86_000 + slots * 100 + len(how)}.125"
    async with open_http_world_on(postgres_storage) as world:
        settings = RunnerSettings(
            base_url=world.base_url,
            state_dir=tmp_path / "state",
            runner_token=await world.enrol(slots=slots),
            slots=slots,
        )
        pace = Timing(heartbeat_s=LONG_S, renew_s=LONG_S, poll_wait_s=LONG_S)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(run_runner, settings, timing=pace, rng=random.Random(1)))
            zombie = await asleep(world, marker)
            began = trio.current_time()
            if how == "kill":
                answer = await world.call("PATCH", at(world, zombie), json={"status": "killed"})
            else:
                answer = await world.call("DELETE", at(world, zombie))
            assert answer.is_success, answer.text

            with trio.fail_after(SOON_S):
                await gone(f"sleep\0{marker}")
            took = trio.current_time() - began
            print(f"{how}, {slots} slots: {took:.3f} s")  # noqa: T201 - the figure is the evidence
            nursery.cancel_scope.cancel()
