"""Gates while their store is away, and chat messages over every step at which a node can fail."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import trio

from sexton_actors.chat.posts import CLAIM_MS
from sexton_storage.errors import StorageUnavailable
from tests.http.test_http_chat import Scene, open_scene
from tests.worlds.http import HttpWorld


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    async with open_scene() as opened:
        yield opened


async def test_while_the_gates_are_away_the_answer_is_no(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    at = f"/v1/runners/me/leases/{lease['lease_id']}/gates"
    ask = {"action_id": "a1", "tool_name": "http", "action_name": "POST"}
    gate_id = (await world.post(at, ask, token)).json()["gate_id"]
    inbox = f"{world.ws}/approvals/{gate_id}"
    decision = {"approval_id": gate_id, "decision": "approve"}
    webhook = f"/v1/webhooks/{zombie['zombie_id']}/approval"
    calls: list[Callable[[], Awaitable[Any]]] = [
        lambda: world.post(at, {**ask, "action_id": "a2"}, token),
        lambda: world.get(f"{at}/{gate_id}", token),
        lambda: world.get(f"{at}/{gate_id}", token, params={"wait_ms": 10}),
        lambda: world.post(f"{inbox}:approve"),
        lambda: world.post(f"{inbox}:deny"),
    ]
    await world.get(inbox)
    await world.get(f"{at}/{gate_id}", token)
    world.memory.faults.away = True
    for call in calls:
        answer = await call()
        assert (answer.status_code, answer.json()["error_code"]) == (503, "UZ-APPROVAL-004"), answer.url
        assert int(answer.headers["retry-after"]) >= 1
    # Whose token it is cannot be known either.
    refused = await world.post(webhook, decision, zombie["approval_token"])
    assert (refused.status_code, refused.json()["error_code"]) == (503, "UZ-INTERNAL-001")

    world.memory.faults.away = False
    assert (await world.get(inbox)).json()["status"] == "pending"
    assert (await world.post(webhook, decision, zombie["approval_token"])).status_code == 200


def failing_once(store: Any, name: str, *, done: bool) -> None:
    """The call fails, and has been committed or not: as it is for a node that dies there."""
    real = getattr(store, name)
    failed: list[str] = []

    async def sabotaged(*args: Any) -> Any:
        if failed:
            return await real(*args)
        result = await real(*args) if done else None
        if done and name == "claim" and result is None:
            return None
        failed.append(name)
        raise StorageUnavailable(f"the node died at {name}")

    setattr(store, name, sabotaged)


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", ["claim", "keep", "forget"])
async def test_a_node_that_dies_at_any_step_leaves_one_message_and_it_is_closed(
    scene: Scene, step: str, done: bool
) -> None:
    await scene.connected()
    failing_once(scene.world.storage.chats, step, done=done)
    gate_id = await scene.ask()
    await scene.later(lambda: len(scene.slack.messages) == 1 and _is_kept(scene))
    assert (await scene.press(f"deny:{gate_id}")).status_code == 200

    await scene.later(lambda: not scene.world.memory.tables.chat_posts)
    [message] = scene.slack.messages.values()
    assert message.values == []
    assert "*Denied*" in message.text


def _is_kept(scene: Scene) -> bool:
    return any(post.message_id for post in scene.world.memory.tables.chat_posts.values())


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
async def test_a_gate_decided_while_its_post_hangs_is_closed_all_the_same(scene: Scene, done: bool) -> None:
    await scene.connected()
    failing_once(scene.world.storage.chats, "keep", done=done)
    gate_id = await scene.ask()
    await scene.posted()
    assert (await scene.world.post(f"{scene.world.ws}/approvals/{gate_id}:approve")).status_code == 200

    scene.world.pass_ms(CLAIM_MS)
    await scene.later(lambda: not scene.world.memory.tables.chat_posts)
    [message] = scene.slack.messages.values()
    assert "*Approved*" in message.text


async def test_a_dozen_gates_at_once_are_the_work_of_one_actor_in_their_order(scene: Scene) -> None:
    await scene.connected()
    gates = [await scene.ask() for _ in range(12)]
    messages = await scene.posted(len(gates))
    assert [message.values[0].partition(":")[2] for message in messages] == gates

    async with trio.open_nursery() as nursery:
        for gate_id in gates:
            nursery.start_soon(scene.press, f"approve:{gate_id}")
    await scene.settled()
    kinds = {kind.kind: kind.live for kind in scene.world.system.statistics().kinds}
    assert kinds["chat"] == 1
