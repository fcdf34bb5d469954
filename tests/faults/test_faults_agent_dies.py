"""A runner dies at any step of a run of a model: the event ends in exactly one result all the same."""

from __future__ import annotations

import signal
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

import trio
from hypothesis import HealthCheck, given, settings, strategies as st

from sexton_actors.catalogue import Catalogue, Model
from sexton_runner.providers.settings import ModelSettings
from sexton_runner.settings import RunnerSettings
from tests.fakes.model_servers import KEY, Call, ModelServer, Say, open_model
from tests.thorough import amount
from tests.worlds.http import HttpWorld, open_http_world
from tests.worlds.runner import command_line, process
from tests.worlds.runner_agents import HASTE
from tests.worlds.runner_death import TERM_MS, Tap, a_runner, until_it_ends, until_it_ends_or

MOMENTS = 48  # More passages than a whole run has: the last ones let the first runner live.
EXAMPLES = amount(3, 6, variable="SEXTON_DEATHS")
CATALOGUE = Catalogue("2026-11-20", [Model("m-1", "openai", 100_000, 1_000_000, 1_000_000, 1_000_000)])
CONFIG = "provider: openai\nmodel: m-1\ntools: [memory_store]\n"
VERDICT = "It was the disk."


def answer(question: dict[str, Any]) -> Say:
    """What the model does, told by the conversation alone: it does not know who asks again."""
    if any(turn["role"] == "tool" for turn in question["messages"]):
        return Say(VERDICT, input_tokens=20, output_tokens=7)
    entry = {"key": "disk", "content": "fills up"}
    return Say("I note it.", (Call("memory_store", entry),), input_tokens=10, output_tokens=3)


def runner_settings(base_url: str, token: str, folder: Path, model: ModelServer) -> RunnerSettings:
    return RunnerSettings(
        base_url=base_url,
        state_dir=folder,
        runner_token=token,
        slots=1,
        models=ModelSettings(addresses={"openai": model.base_url}, patience=HASTE),
    )


async def live_through(moment: int, *, swallowed: bool, folder: Path) -> None:
    """Let the first runner die at that moment, and another one take over when its term has passed."""
    async with (
        open_model("openai", otherwise=answer) as model,
        open_http_world(catalogue=CATALOGUE) as world,
        trio.open_nursery() as nursery,
    ):
        await world.keep_secret()
        zombie = await world.install(config=CONFIG)
        key = {"name": "openai_api_key", "data": {"api_key": KEY}}
        assert (await world.post(f"{world.ws}/credentials", key)).status_code == 201
        before = (await world.get("/v1/tenants/me/billing")).json()["balance_nanos"]
        assert (await world.deliver(zombie["webhook_urls"]["github"])).status_code == 202
        tap = Tap(world.base_url, moment, swallowed=swallowed)
        await nursery.start(tap.serve)
        first = runner_settings(tap.base_url, await world.enrol("h1"), folder / "1", model)
        async with a_runner(first):
            await until_it_ends_or(tap.now, world, zombie["zombie_id"])
        world.pass_ms(TERM_MS)
        async with a_runner(runner_settings(world.base_url, await world.enrol("h2"), folder / "2", model)):
            event = await until_it_ends(world, zombie["zombie_id"])
        await check(world, zombie["zombie_id"], event, before)
        nursery.cancel_scope.cancel()


async def check(world: HttpWorld, zombie_id: str, event: dict[str, Any], before: int) -> None:
    """There is one result, told once, and the money that is gone is what its rows say."""
    assert (event["status"], event["response_text"]) == ("processed", VERDICT)
    kinds = Counter(frame.kind for frame in world.memory.tables.frames[UUID(zombie_id)])
    assert kinds["event_complete"] == 1
    leases = [lease for lease in world.memory.tables.leases.values() if str(lease.zombie_id) == zombie_id]
    assert sum(str(lease.status) == "reported" for lease in leases) == 1
    assert all(lease.ended_at is not None for lease in leases)
    path = f"/v1/tenants/me/billing/charges/{event['event_id']}/metering-periods"
    rows = (await world.get(path)).json()["items"]
    after = (await world.get("/v1/tenants/me/billing")).json()["balance_nanos"]
    assert sum(row["charged_nanos"] for row in rows) == event["charged_nanos"] == before - after
    memories = (await world.get(f"{world.ws}/zombies/{zombie_id}/memories")).json()
    assert [entry["key"] for entry in memories["items"]] == ["disk"]


@settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(moment=st.integers(0, MOMENTS), swallowed=st.booleans())
def test_a_run_that_dies_at_any_step_ends_in_exactly_one_result(moment: int, swallowed: bool) -> None:
    with TemporaryDirectory() as folder:
        trio.run(partial(live_through, moment, swallowed=swallowed, folder=Path(folder)))


async def test_a_runner_process_killed_while_its_model_speaks_is_succeeded_by_another(tmp_path: Path) -> None:
    def slowly(question: dict[str, Any]) -> Say:
        said = answer(question)
        return replace(said, hang_after=2) if len(model.asked) <= 2 and said.text == VERDICT else said

    async with open_model("openai", otherwise=slowly) as model, open_http_world(catalogue=CATALOGUE) as world:
        await world.keep_secret()
        zombie = await world.install(config=CONFIG)
        key = {"name": "openai_api_key", "data": {"api_key": KEY}}
        assert (await world.post(f"{world.ws}/credentials", key)).status_code == 201

        before = (await world.get("/v1/tenants/me/billing")).json()["balance_nanos"]
        await world.deliver(zombie["webhook_urls"]["github"])
        words = command_line({"base-url": world.base_url, "state-dir": tmp_path / "state"})
        secrets = {
            "SEXTON_RUNNER_TOKEN": await world.enrol("h1"),
            "SEXTON_OPENAI_BASE_URL": model.base_url,
        }
        async with process(tmp_path, words, secrets) as doomed:
            await model.until(lambda: len(model.asked) == 2)
            doomed.send(signal.SIGKILL)
            await model.until(lambda: model.left == 1)
        world.pass_ms(TERM_MS)
        async with a_runner(runner_settings(world.base_url, await world.enrol("h2"), tmp_path / "2", model)):
            event = await until_it_ends(world, zombie["zombie_id"])
        assert event["attempts"] == 2

        await check(world, zombie["zombie_id"], event, before)
