"""A guard that ends a trial: the people of the workspace's channel are told once, with what to do next."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

from sexton_actors.protocol.chat import Work
from tests.http.test_http_canaries import SECOND, begin, judge, on_both_sides, work
from tests.http.test_http_chat import Scene, open_scene
from tests.patience import PATIENCE_S
from tests.worlds.http import HttpWorld
from tests.worlds.http_agents import at, compiled, skill

FAILED = {"outcome": "agent_error", "failure_reason": "agent_run"}
NEXT = (
    "Version 1 does all of the agent's work again. See how both did with `sexton agent canary status doctor`."
    " Then mend the files, and start a trial of the new version."
)
STRICT = {"min_runs": 2, "max_failure_percent": 10}


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    async with open_scene() as opened:
        yield opened


async def tried(world: HttpWorld, guard: dict[str, Any], **reported: Any) -> dict[str, Any]:
    """An agent whose second version has ended some runs in this way, before its guard has looked."""
    zombie = await world.install()
    await compiled(world, zombie, skill(body=SECOND))
    await begin(world, zombie, **guard)
    sides = await on_both_sides(world, zombie, 2)
    await work(world, await world.enrol(), sum(map(len, sides.values())), **reported)
    return zombie


async def all_told(scene: Scene) -> None:
    """Until nothing is left to be told."""
    with trio.fail_after(PATIENCE_S):
        while scene.world.memory.tables.chat_notices:
            await trio.lowlevel.checkpoint()


async def test_a_candidate_that_its_guard_takes_back_is_told_of_once(scene: Scene) -> None:
    await scene.connected()
    zombie = await tried(scene.world, {"guard": STRICT}, **FAILED)
    await judge(scene.world, zombie)
    [message] = await scene.posted()
    await all_told(scene)
    await judge(scene.world, zombie)
    trial = (await scene.world.get(f"{at(scene.world, zombie)}/canary")).json()["canary"]

    assert trial["detail"] == "2 of 2 runs failed; at most 10 percent may."
    assert message.text.splitlines() == [
        "*doctor*: version 2 was on trial, and its guard has taken it back.",
        ">2 of 2 runs failed; at most 10 percent may.",
        NEXT,
    ]
    assert message.values == []
    assert message.body["metadata"] == {
        "event_type": "sexton_canary",
        "event_payload": {"canary_id": trial["canary_id"]},
    }
    assert scene.slack.calls.count("chat.postMessage") == 1


async def test_a_candidate_that_its_guard_promotes_is_told_of_with_the_way_back(scene: Scene) -> None:
    await scene.connected()
    zombie = await tried(scene.world, {"guard": {"min_runs": 2}, "promote_after": 2})
    await judge(scene.world, zombie)
    [message] = await scene.posted()
    await all_told(scene)

    assert message.text.startswith(
        "*doctor*: version 2 was on trial, and its guard has made it the active one.\n"
        ">2 runs were processed, as were asked for."
    )
    assert message.text.endswith("To go back: `sexton agent roll-back doctor 1`.")


async def test_a_notice_whose_answer_was_lost_is_told_again_as_the_same_message(scene: Scene) -> None:
    await scene.connected()
    scene.slack.unheard.append("chat.postMessage")
    await judge(scene.world, await tried(scene.world, {"guard": STRICT}, **FAILED))
    await scene.slack.until(lambda: scene.slack.calls.count("chat.postMessage") == 1)
    await scene.later(lambda: scene.slack.calls.count("chat.postMessage") == 2)
    await all_told(scene)

    assert len(scene.slack.messages) == 1


async def test_a_notice_that_could_not_be_told_for_a_day_is_let_be(scene: Scene) -> None:
    await scene.connected()
    scene.slack.errors["chat.postMessage"] = ["channel_not_found"]
    await judge(scene.world, await tried(scene.world, {"guard": STRICT}, **FAILED))
    await scene.slack.until(lambda: scene.slack.calls.count("chat.postMessage") == 1)
    await scene.later(lambda: not scene.world.memory.tables.chat_notices, step_ms=24 * 3_600_000)

    assert not scene.slack.messages
    assert scene.slack.calls.count("chat.postMessage") == 1


async def test_nobody_is_told_of_what_a_person_ends_or_where_no_channel_is_connected(scene: Scene) -> None:
    zombie = await tried(scene.world, {"guard": STRICT}, **FAILED)
    await judge(scene.world, zombie)
    await scene.connected()
    await compiled(scene.world, zombie, skill(body="The third one."))
    await begin(scene.world, zombie, 3)
    answer = await scene.world.post(f"{at(scene.world, zombie)}/canary/withdraw", {"reason": "enough"})
    await scene.world.system.ask("chat", scene.world.installation.workspace_id, Work())

    assert answer.status_code == 200
    assert scene.slack.calls.count("chat.postMessage") == 0
