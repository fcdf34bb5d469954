"""A runner dies at any step of a run of a program: the event ends in exactly one result all the same."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

import trio
from hypothesis import HealthCheck, given, settings, strategies as st

from sexton_runner.settings import RunnerSettings
from tests.thorough import amount
from tests.worlds.http import HttpWorld, open_http_world
from tests.worlds.runner_death import TERM_MS, Tap, a_runner, until_it_ends, until_it_ends_or

MOMENTS = 40  # More passages than a whole run has: the last ones let the first runner live.
EXAMPLES = amount(3, 6, variable="SEXTON_DEATHS")
SKILL = """\
---
name: careful
description: Looks, asks, and acts.
version: 0.1.0
---
```sh
sexton-step step look
sexton-step approve --tool deploy --action deploy.go --summary "Go on?" >said || exit 1
sexton-step step act
echo '{"acted": true}'
```
"""
TRIGGER = """\
---
name: careful
runtime: command
triggers:
  - type: webhook
    source: github
    signature:
      secret_ref: github-hook
tools: [deploy]
---
"""


async def say_yes(world: HttpWorld) -> None:
    """Approve whatever is asked, until cancelled."""
    while True:
        for gate in (await world.get(f"{world.ws}/approvals?status=pending")).json()["items"]:
            # A gate that its run has left in the meantime takes no answer.
            await world.post(f"{world.ws}/approvals/{gate['gate_id']}:approve", {"reason": "go"})
        await trio.sleep(0.02)


async def live_through(moment: int, *, swallowed: bool, folder: Path) -> None:
    """Let the first runner die at that moment, and another take over."""
    async with open_http_world() as world, trio.open_nursery() as nursery:
        await world.keep_secret()
        files = {"source_markdown": SKILL, "trigger_markdown": TRIGGER}
        zombie = (await world.post(f"{world.ws}/zombies", files)).json()
        zombie_id = zombie["zombie_id"]
        before = (await world.get("/v1/tenants/me/billing")).json()["balance_nanos"]
        assert (await world.deliver(zombie["webhook_urls"]["github"])).status_code == 202
        nursery.start_soon(say_yes, world)
        tap = Tap(world.base_url, moment, swallowed=swallowed)
        await nursery.start(tap.serve)
        async with a_runner(RunnerSettings(**await place(world, "h1", folder, tap.base_url))):
            await until_it_ends_or(tap.now, world, zombie_id)
        world.pass_ms(TERM_MS)
        async with a_runner(RunnerSettings(**await place(world, "h2", folder, world.base_url))):
            event = await until_it_ends(world, zombie_id)
        await check(world, zombie_id, event, before)
        nursery.cancel_scope.cancel()


async def place(world: HttpWorld, host: str, folder: Path, base_url: str) -> dict[str, Any]:
    return {
        "base_url": base_url,
        "state_dir": folder / host,
        "runner_token": await world.enrol(host),
        "slots": 1,
    }


async def check(world: HttpWorld, zombie_id: str, event: dict[str, Any], before: int) -> None:
    """There is one result, told once, and the money that is gone is what its rows say."""
    assert (event["status"], event["evidence"]) == ("processed", {"acted": True}), event
    kinds = Counter(frame.kind for frame in world.memory.tables.frames[UUID(zombie_id)])
    assert kinds["event_complete"] == 1
    leases = [lease for lease in world.memory.tables.leases.values() if str(lease.zombie_id) == zombie_id]
    # A lease that was given up before its run began is no attempt.
    assert len(leases) >= event["attempts"] >= 1
    assert sum(str(lease.status) == "reported" for lease in leases) == 1
    assert all(lease.ended_at is not None for lease in leases)
    assert len({lease.fencing_token for lease in leases}) == len(leases)
    path = f"/v1/tenants/me/billing/charges/{event['event_id']}/metering-periods"
    rows = (await world.get(path)).json()["items"]
    after = (await world.get("/v1/tenants/me/billing")).json()["balance_nanos"]
    assert sum(row["charged_nanos"] for row in rows) == event["charged_nanos"] == before - after
    left = (await world.get(f"{world.ws}/approvals?status=pending")).json()["items"]
    assert left == [], "nobody is asked about a run that is over"


@settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(moment=st.integers(0, MOMENTS), swallowed=st.booleans())
def test_a_program_whose_runner_dies_at_any_step_ends_in_exactly_one_result(
    moment: int, swallowed: bool
) -> None:
    with TemporaryDirectory() as folder:
        trio.run(partial(live_through, moment, swallowed=swallowed, folder=Path(folder)))
