"""A platform admin sees the actors down to one, why one crashed, and has one begin again."""

from typing import Any
from uuid import UUID

import httpx2
import msgspec
import trio

from sexton_engine import Message
from tests.patience import PATIENCE_S
from tests.worlds.http import HttpWorld

TEXT = "<b>\u202ehello"


class Nonsense(msgspec.Struct, Message[None], frozen=True):
    """Nothing that an actor understands."""

    word: str
    password: str


async def seen(world: HttpWorld, path: str, **query: str) -> dict[str, Any]:
    answer = await world.get(path, world.admin_token(), params=query)
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


async def test_a_crash_is_shown_with_its_traceback_and_where_the_message_ended(world: HttpWorld) -> None:
    zombie = await world.install()
    agent = zombie["zombie_id"]
    await seen(world, "/v1/fleet/actors/zombie/messages", key=agent)
    world.system.tell("zombie", UUID(agent), Nonsense(TEXT, "s3cret"))
    with trio.fail_after(PATIENCE_S):
        while not (tree := await seen(world, "/v1/fleet/tree", kind="zombie"))["dead_letters"]:
            await trio.sleep(0.05)
    one = await seen(world, "/v1/fleet/actors/zombie", key=agent)
    other = await seen(world, "/v1/fleet/actors/dispatcher")
    messages = await seen(world, "/v1/fleet/actors/zombie/messages", key=agent)
    contents = await seen(world, "/v1/fleet/actors/zombie/messages", key=agent, contents="true")
    [kind] = tree["kinds"]
    again, first = contents["items"][:2]

    assert (tree["tree"]["name"], tree["worker"], tree["workers"]) == ("sexton", None, [])
    assert (kind["kind"], kind["crashes"], kind["dead_letters"]) == ("zombie", 2, {"crashed": 1})
    assert [actor["key"] for actor in tree["actors"]] == [agent]
    assert [crash["key"] for crash in tree["crashes"]] == [agent, agent]
    assert one["crashes"][0]["message"] == "Nonsense"
    assert "in on_receive" in one["crashes"][0]["traceback"]
    assert (one["dead_letters"][0]["message"], one["dead_letters"][0]["reason"]) == ("Nonsense", "crashed")
    assert (other["actor"]["key"], other["actor"]["state"], other["crashes"]) == ("", "awake", [])
    assert (other["actor"]["can_stop"], one["actor"]["can_stop"]) == (False, True)
    assert [(item["message"], item["has_failed"], item["contents"]) for item in messages["items"][:2]] == [
        ("Nonsense", True, None),
        ("Nonsense", True, None),
    ]
    assert again["contents"] == first["contents"] == f"Nonsense(word={TEXT!r}, password=(hidden))"
    assert again["took_s"] is not None


async def test_an_actor_begins_again_and_who_asked_for_it_is_told(world: HttpWorld) -> None:
    zombie = await world.install()
    agent, admin = zombie["zombie_id"], world.admin_token()
    path = "/v1/fleet/actors/zombie"
    before = await seen(world, "/v1/fleet/tree", kind="zombie")
    again = await world.post(f"{path}:restart", {"key": agent}, admin)
    steered = await world.post(f"{world.ws}/zombies/{agent}/messages", {"message": "hello"})
    after = await seen(world, "/v1/fleet/tree", kind="zombie")
    ended = await world.post(f"{path}:stop", {"key": agent}, admin)
    gone = await world.get(path, admin, params={"key": agent})
    woken = await world.post(f"{world.ws}/zombies/{agent}/messages", {"message": "again"})
    kept = await world.post("/v1/fleet/actors/dispatcher:stop", {}, admin)
    log = await seen(world, "/v1/admin/audit", action="actor.*")

    assert (again.status_code, ended.status_code) == (200, 200)
    assert (steered.status_code, woken.status_code) == (202, 202)
    assert after["kinds"][0]["activations"] == before["kinds"][0]["activations"] + 1
    assert (after["kinds"][0]["restarts"], after["kinds"][0]["crashes"]) == (1, 0)
    assert (gone.status_code, gone.json()["error_code"]) == (404, "UZ-ACTOR-001")
    assert (kept.status_code, kept.json()["error_code"]) == (409, "UZ-ACTOR-002")
    assert [(line["action"], line["target"]) for line in log["items"]] == [
        ("actor.stop", f"zombie/{agent}"),
        ("actor.restart", f"zombie/{agent}"),
    ]


async def test_a_poll_that_waits_comes_again_when_the_dispatcher_begins_again(world: HttpWorld) -> None:
    await world.keep_secret()
    zombie, token = await world.install(), await world.enrol()
    answers: list[httpx2.Response] = []

    async def poll() -> None:
        answers.append(await world.post("/v1/runners/me/leases", {"wait_ms": 20_000}, token))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(poll)
        with trio.fail_after(PATIENCE_S):
            while not (await seen(world, "/v1/fleet/queue"))["waiting_offers"]:
                await trio.sleep(0.01)
            again = await world.post("/v1/fleet/actors/dispatcher:restart", {}, world.admin_token())
    await world.deliver(zombie["webhook_urls"]["github"])
    lease = await world.lease(token)

    assert again.status_code == 200, again.text
    assert (answers[0].status_code, answers[0].json()["error_code"]) == (503, "UZ-API-003")
    assert lease["attempt"] == 1


async def test_who_is_not_there_is_not_found(world: HttpWorld) -> None:
    admin = world.admin_token()
    unknown = [
        await world.get("/v1/fleet/tree", admin, params={"kind": "nobody"}),
        await world.get("/v1/fleet/tree", admin, params={"worker": "1"}),
        await world.get("/v1/fleet/actors/nobody", admin),
        await world.get("/v1/fleet/actors/zombie/messages", admin, params={"key": "nobody"}),
        await world.post("/v1/fleet/actors/zombie:restart", {"key": "nobody"}, admin),
        await world.post("/v1/fleet/actors/nobody:stop", {}, admin),
    ]

    assert {(one.status_code, one.json()["error_code"]) for one in unknown} == {(404, "UZ-ACTOR-001")}
