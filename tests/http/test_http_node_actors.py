"""A platform admin sees and mends the actors of another node; one that does not answer is called silent."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from uuid import UUID

import httpx2
import msgspec
import pytest
import trio

from sexton_actors.tree import tree
from sexton_engine import ActorSystem, Message, open_system
from sexton_http.gateway import node_questions
from sexton_http.gateway.node_questions import ANSWER_BYTES, NodeQuestions
from sexton_http.routes.console import engine_troubles
from sexton_http.routes.shared import actor_asks
from sexton_http.routes.shared.actor_asks import Told, answer_node
from sexton_http.routes.shared.actor_looks import Here
from sexton_storage.background import in_background
from sexton_storage.records.nodes import BEAT_MS, OPEN_MAX, SILENT_MS, NodeQuestion, NodeRecord
from sexton_storage.signals import Signal, Topic
from tests.patience import PATIENCE_S
from tests.worlds.browser import visiting
from tests.worlds.http import HttpWorld
from tests.worlds.samples import START_MS
from tests.worlds.storage import new_id

DISPATCHER = "/v1/fleet/actors/dispatcher"
OTHER = NodeRecord(new_id(), "other", "2.0", START_MS, START_MS)


class Nonsense(msgspec.Struct, Message[None], frozen=True):
    """Nothing that an actor understands."""


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory no node is told that it is asked: it looks."""
    monkeypatch.setattr(node_questions, "LOOK_S", 0.01)
    monkeypatch.setattr(node_questions, "COLLECT_S", 0.01)


@asynccontextmanager
async def other_node(world: HttpWorld) -> AsyncIterator[ActorSystem]:
    """Another server on the same rows: its actors, and what answers for them."""
    async with open_system(tree(world.actors_world)) as system:
        answer = partial(answer_node, system, None, Here(OTHER.id, OTHER.version, None))
        async with in_background(answering(world, answer).run):
            yield system


def answering(world: HttpWorld, answer: Callable[[bytes], Awaitable[bytes]]) -> NodeQuestions:
    return NodeQuestions(world.storage, OTHER, answer, new_id=new_id)


async def looks(world: HttpWorld, node: object) -> list[httpx2.Response]:
    """All that may be asked of the actors of a node."""
    admin, where = world.admin_token(), {"node": str(node)}
    return [
        *[
            await world.get(path, admin, params=where)
            for path in ("/v1/fleet/tree", DISPATCHER, f"{DISPATCHER}/messages")
        ],
        *[await world.post(f"{DISPATCHER}:{verb}", where, admin) for verb in ("restart", "stop")],
    ]


def codes(answers: list[httpx2.Response]) -> set[tuple[int, str]]:
    return {(one.status_code, one.json()["error_code"]) for one in answers}


async def heard(world: HttpWorld) -> None:
    with trio.fail_after(PATIENCE_S):
        while OTHER.id not in {node.id for node in await world.storage.nodes.list()}:
            await trio.sleep(0.01)


async def test_the_actors_of_another_node_are_seen_and_begin_again_there(world: HttpWorld) -> None:
    admin, own = world.admin_token(), world.ctx.nodes.node
    async with other_node(world) as system:
        await heard(world)
        here = (await world.get("/v1/fleet/tree", admin)).json()
        seen, one, messages, again, kept = await looks(world, OTHER.id)
        asked_of_itself = await world.get("/v1/fleet/tree", admin, params={"node": str(own)})
        nobody = await world.get("/v1/fleet/actors/zombie", admin, params={"node": str(OTHER.id), "key": "x"})
        no_worker = await world.get(DISPATCHER, admin, params={"node": str(OTHER.id), "worker": "3"})
        restarts = [s.statistics().kind("dispatcher").restarts for s in (world.system, system)]
        log = (await world.get("/v1/admin/audit", admin, params={"action": "actor.restart"})).json()
    shown: dict[str, Any] = seen.json()

    assert [(n["node"], n["host"], n["is_silent"]) for n in here["nodes"]] == [
        (str(own), "this", False),
        (str(OTHER.id), "other", False),
    ]
    assert here["node"] == asked_of_itself.json()["node"] == str(own)
    assert (shown["node"], shown["version"], shown["tree"]["name"]) == (str(OTHER.id), "2.0", "sexton")
    assert shown["nodes"][0]["node"] == str(OTHER.id)
    assert [answer.json()["node"] for answer in (one, messages, again)] == [str(OTHER.id)] * 3
    assert restarts == [0, 1]
    assert codes([kept]) == {(409, "UZ-ACTOR-002")}
    assert codes([nobody, no_worker]) == {(404, "UZ-ACTOR-001")}
    assert [line["facts"]["node"] for line in log["items"]] == [str(OTHER.id)]


async def test_a_node_that_does_not_answer_is_silent_since_it_was_heard(
    world: HttpWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin, store = world.admin_token(), world.storage.nodes
    for name in ("LOOK_S", "ACT_S"):
        monkeypatch.setattr(actor_asks, name, 0.02)
    unknown = await looks(world, new_id())
    await store.beat(OTHER)
    frozen = await looks(world, OTHER.id)
    put = dict(world.memory.tables.node_questions)
    world.pass_ms(SILENT_MS + BEAT_MS)
    silent = await looks(world, OTHER.id)
    here = await world.get("/v1/fleet/tree", admin)
    home, where = f"/console/{world.installation.workspace_id}/tree", {"node": str(OTHER.id)}
    async with visiting(world) as browser:
        await browser.sign_in()
        listed = await browser.get(home)
        pages = [await browser.get(path, params=where) for path in (home, f"{home}/dispatcher")]
        pages.append(await browser.post(f"{home}/dispatcher", data={"verb": "restart", **where}))
    taken = await store.take(OTHER.id, limit=99)

    assert codes(unknown) == {(404, "UZ-ACTOR-001")}
    assert codes(frozen) == codes(silent) == {(503, "UZ-ACTOR-003")}
    assert "does not answer in time: it was last heard" in frozen[0].json()["detail"]
    assert "at other is silent: it was last heard" in silent[0].json()["detail"]
    assert [node["is_silent"] for node in here.json()["nodes"]] == [False, True]
    assert (listed.status_code, ">silent<" in listed.text) == (200, True)
    assert [page.status_code for page in pages] == [200, 200, 409]
    assert all("is silent: it was last heard" in page.text for page in pages)
    assert (len(put), world.memory.tables.node_questions, taken) == (5, put, [])


async def test_the_first_page_shows_what_crashed_at_any_node_and_never_waits_for_a_frozen_one(
    world: HttpWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_troubles, "ELSEWHERE_S", 5.0)
    agent = await world.install()
    home = f"/console/{world.installation.workspace_id}/now"
    async with visiting(world) as browser:
        await browser.sign_in()
        async with other_node(world) as system:
            await heard(world)
            system.tell("zombie", UUID(agent["zombie_id"]), Nonsense())
            with trio.fail_after(PATIENCE_S):
                while system.statistics().kind("zombie").crashes == 0:
                    await trio.sleep(0.01)
            crashed = await browser.get(home)
        monkeypatch.setattr(engine_troubles, "ELSEWHERE_S", 0.05)
        frozen = await browser.get(home)
        world.pass_ms(SILENT_MS + BEAT_MS)
        silent = await browser.get(home)

    assert "Actor zombie crashed on Nonsense at " in crashed.text
    assert f"node={OTHER.id}" in crashed.text
    assert "is silent" not in crashed.text
    assert "All is well: nothing is stuck, nothing fails." in frozen.text
    assert "Server other is silent" in silent.text


async def test_what_is_asked_in_bad_faith_or_too_often_comes_to_nothing(
    world: HttpWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin, store = world.admin_token(), world.storage.nodes
    monkeypatch.setattr(actor_asks, "LOOK_S", 0.3)
    number = msgspec.msgpack.encode(Told(msgspec.Raw(b"\x07"), []))
    said: list[bytes] = [b"", bytes(ANSWER_BYTES + 1), b"\xc1", number]

    async def answer(_: bytes) -> bytes:
        await trio.lowlevel.checkpoint()
        if not (words := said.pop(0)):
            raise ValueError(words)
        return words

    nodes = answering(world, answer)
    async with in_background(nodes.run):
        await heard(world)
        told: list[tuple[int, str, str]] = []
        while said:
            world.memory.signals.hear([Signal(Topic.ASKED, new_id()), Signal(Topic.ANSWERED, OTHER.id)])
            seen = await world.get("/v1/fleet/tree", admin, params={"node": str(OTHER.id)})
            told.append((seen.status_code, seen.json()["error_code"], seen.json()["detail"][-30:]))
    for _ in range(OPEN_MAX):
        await store.ask(NodeQuestion(new_id(), new_id(), OTHER.id, b"?", 0, 60_000))
    full = await world.get("/v1/fleet/tree", admin, params={"node": str(OTHER.id)})

    assert {(status, code) for status, code, _ in told} == {(503, "UZ-ACTOR-003")}
    assert [detail.endswith("ask at its own address") for *_, detail in told] == [False, False, True, True]
    assert codes([full]) == {(503, "UZ-API-003")}


async def test_a_long_answer_is_cut_and_says_so(world: HttpWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    query = {"node": str(OTHER.id), "kind": "dispatcher"}
    async with other_node(world):
        await heard(world)
        whole = await world.get("/v1/fleet/tree", world.admin_token(), params=query)
        monkeypatch.setattr(actor_asks, "FIT_BYTES", 500)
        cut = await world.get("/v1/fleet/tree", world.admin_token(), params=query)

    assert [(one.json()["is_cut"], len(one.json()["actors"])) for one in (whole, cut)] == [
        (False, 1),
        (True, 0),
    ]
