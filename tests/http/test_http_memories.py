"""What agents remember, over HTTP: written by who holds the agent, read by people and its own key."""

from typing import Any
from uuid import UUID

import httpx2
import pytest
import trio

from sexton_http.bodies.memories import CONTENT_BYTES
from sexton_storage.postgres import PostgresStorage
from sexton_storage.records.memories import Memory
from sexton_storage.records.users import Role
from sexton_storage.terms import DAILY_KEEP_MS, MEMORY_LIMIT
from tests.worlds.bearer_tokens import agent_key
from tests.worlds.http import HttpWorld, open_http_world_on

UNKNOWN = "019363b0-0000-7000-8000-00000000ffff"
RUN = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0}


def code(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json().get("error_code", "")


def plane(zombie: dict[str, Any]) -> str:
    return f"/v1/runners/me/memory/{zombie['zombie_id']}"


def fence(lease: dict[str, Any]) -> dict[str, Any]:
    return {"lease_id": lease["lease_id"], "fencing_token": lease["fencing_token"]}


async def keep(
    world: HttpWorld, zombie: dict[str, Any], token: str, lease: dict[str, Any], key: str, **entry: Any
) -> httpx2.Response:
    body = {**fence(lease), "key": key, **({"content": "x"} if "delete" not in entry else {}), **entry}
    return await world.post(plane(zombie), body, token)


async def memories(world: HttpWorld, zombie: dict[str, Any], **params: str) -> dict[str, Any]:
    path = f"{world.ws}/zombies/{zombie['zombie_id']}/memories"
    answer = await world.get(path, params=params)
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


async def keys(world: HttpWorld, zombie: dict[str, Any], **params: str) -> list[str]:
    return [item["key"] for item in (await memories(world, zombie, **params))["items"]]


def report_of(lease: dict[str, Any], memory: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        **fence(lease),
        "event_id": lease["event"]["event_id"],
        "outcome": "processed",
        "response_text": "",
        "memory": memory,
        **RUN,
    }


def fill(world: HttpWorld, zombie: dict[str, Any], category: str) -> None:
    """As many entries as there may be, put there without the server's knowledge."""
    zombie_id = UUID(zombie["zombie_id"])
    rows = world.memory.tables.memories.setdefault(zombie_id, {})
    for n in range(MEMORY_LIMIT):
        rows[f"k{n:04}"] = Memory(zombie_id, f"k{n:04}", "x", category, n)


# --- written ------------------------------------------------------------------------------------------------


async def test_what_a_run_keeps_is_read_by_people_its_key_and_the_run(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    kept = await keep(world, zombie, token, lease, "deploys", content="never on Friday", category="core")
    assert (kept.status_code, kept.json()["key"]) == (200, "deploys")

    await keep(world, zombie, token, lease, "plain")
    shown = await memories(world, zombie)
    assert [(item["key"], item["category"]) for item in shown["items"]] == [
        ("plain", "conversation"),
        ("deploys", "core"),
    ]
    assert shown["total"] == 2
    assert shown["items"][1]["updated_at"] == kept.json()["updated_at"]

    key = (await agent_key(world, zombie["zombie_id"]))["key"]
    mine = await world.get(f"{world.ws}/zombies/{zombie['zombie_id']}/memories", key)
    assert mine.json()["items"] == shown["items"]

    for params in ({}, {name: str(value) for name, value in fence(lease).items()}):
        read = await world.get(plane(zombie), token, params=params)
        assert (read.status_code, read.json()["items"]) == (200, shown["items"])


async def test_entries_are_replaced_and_forgotten(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    await keep(world, zombie, token, lease, "a", content="one")
    await keep(world, zombie, token, lease, "a", content="two", category="core")
    [item] = (await memories(world, zombie))["items"]
    assert (item["content"], item["category"]) == ("two", "core")

    for _ in range(2):
        assert (await keep(world, zombie, token, lease, "a", delete=True)).status_code == 200
    assert await keys(world, zombie) == []


@pytest.mark.parametrize(
    "entry",
    [
        {"key": "k" * 256},
        {"content": "c" * (CONTENT_BYTES + 1)},
        {"content": "\u00e9" * (CONTENT_BYTES // 2 + 1)},
        {"category": "c" * 65},
    ],
)
async def test_an_entry_over_a_limit_is_refused_and_does_not_cost_a_report(
    world: HttpWorld, entry: dict[str, Any]
) -> None:
    zombie, token, lease = await world.working()
    body = {"key": "k", "content": "c", **entry}
    assert code(await world.post(plane(zombie), {**fence(lease), **body}, token)) == (400, "UZ-REQ-001")

    answer = await world.post("/v1/runners/me/reports", report_of(lease, [body]), token)
    assert answer.status_code == 200, answer.text

    [refused] = answer.json()["refused"]
    assert refused["field"] == f"/memory/0/{next(iter(entry))}"
    assert await keys(world, zombie) == []


@pytest.mark.parametrize(
    "entry",
    [
        {"key": ""},
        {"content": ""},
        {"content": None},
        {"category": ""},
        {"delete": True},
        {"tags": []},
        {"fencing_token": "1"},
    ],
)
async def test_an_entry_that_is_none_is_refused(world: HttpWorld, entry: dict[str, Any]) -> None:
    zombie, token, lease = await world.working()
    body = {**fence(lease), "key": "k", "content": "c", **entry}
    assert code(await world.post(plane(zombie), body, token)) == (400, "UZ-REQ-001")

    item = {name: value for name, value in body.items() if name not in fence(lease) or name in entry}
    answer = await world.post("/v1/runners/me/reports", report_of(lease, [item]), token)
    assert code(answer) == (400, "UZ-REQ-001")
    assert answer.json()["pointer"].startswith("/memory/0")
    assert await keys(world, zombie) == []


@pytest.mark.parametrize("text", ["caf\u00e9 \U0001f9e0\u202e", "\u00e9" * (CONTENT_BYTES // 2), "k" * 255])
async def test_whatever_text_there_is_is_kept(world: HttpWorld, text: str) -> None:
    zombie, token, lease = await world.working()
    kept = await keep(world, zombie, token, lease, text[:255], content=text)
    assert kept.status_code == 200, kept.text

    [item] = (await memories(world, zombie))["items"]
    assert (item["key"], item["content"]) == (text[:255], text)


async def test_the_oldest_makes_room_and_core_does_not(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    fill(world, zombie, "notes")
    assert (await keep(world, zombie, token, lease, "new")).status_code == 200

    shown = await memories(world, zombie, limit="200")
    assert (shown["items"][0]["key"], len(shown["items"]), shown["total"]) == ("new", 200, MEMORY_LIMIT)
    assert await keys(world, zombie, query="k0000") == []

    fill(world, zombie, "core")
    assert (await keep(world, zombie, token, lease, "new", delete=True)).status_code == 200

    full = await keep(world, zombie, token, lease, "more")
    assert (code(full), full.json()["pointer"]) == ((400, "UZ-REQ-001"), "/key")
    assert (await keep(world, zombie, token, lease, "k0000", content="changed")).status_code == 200


async def test_a_daily_entry_is_gone_after_three_days(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    await keep(world, zombie, token, lease, "today", category="daily")
    await keep(world, zombie, token, lease, "always", category="core")
    world.pass_ms(DAILY_KEEP_MS)

    assert await keys(world, zombie) == ["always"]
    assert await world.storage.instance.sweep(world.actors_world.now_ms()) >= 1
    assert len(next(iter(world.memory.tables.memories.values()))) == 1


# --- found --------------------------------------------------------------------------------------------------


async def test_a_query_finds_words_and_a_category_narrows(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    for key, category in (("red", "core"), ("red green", "notes"), ("green", "notes")):
        await keep(world, zombie, token, lease, key, category=category)
    assert await keys(world, zombie, query="RED green") == ["red green", "green", "red"]
    assert await keys(world, zombie, query="red", category="core") == ["red"]
    assert await keys(world, zombie, query="red", limit="1") == ["red green"]
    assert await keys(world, zombie, query="", category="none") == []

    params = {"query": "green", "limit": "1"}
    read = (await world.get(plane(zombie), token, params=params)).json()
    assert ([item["key"] for item in read["items"]], read["total"]) == (["green"], 2)


@pytest.mark.parametrize(
    "params",
    [{"limit": "0"}, {"limit": "201"}, {"query": "q" * 1025}, {"category": "c" * 65}, {"category": "\x00"}],
)
async def test_a_query_that_is_none_is_refused(world: HttpWorld, params: dict[str, str]) -> None:
    zombie, token, _lease = await world.working()
    path = f"{world.ws}/zombies/{zombie['zombie_id']}/memories"

    assert code(await world.get(path, params=params)) == (400, "UZ-REQ-001")
    assert code(await world.get(plane(zombie), token, params=params)) == (400, "UZ-REQ-001")


# --- by whom ------------------------------------------------------------------------------------------------


async def test_an_agent_that_is_not_there_remembers_nothing(world: HttpWorld) -> None:
    _zombie, token, lease = await world.working()
    nobody = {"zombie_id": UNKNOWN}
    path = f"{world.ws}/zombies/{UNKNOWN}/memories"

    assert code(await world.get(path)) == (404, "UZ-MEM-002")
    assert code(await world.get(plane(nobody), token)) == (404, "UZ-MEM-002")
    assert code(await keep(world, nobody, token, lease, "a")) == (404, "UZ-MEM-002")


async def test_a_person_has_an_entry_forgotten_and_the_audit_log_tells(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    path = f"{world.ws}/zombies/{zombie['zombie_id']}/memories"
    for key in ("who/is: on?call=1", "other"):
        assert (await keep(world, zombie, token, lease, key)).status_code == 200
    user = world.user_token(Role.USER)
    assert code(await world.call("DELETE", path, user, params={"key": "other"})) == (403, "UZ-AUTH-009")
    assert code(await world.call("DELETE", path)) == (400, "UZ-REQ-001")

    nowhere = f"{world.ws}/zombies/{UNKNOWN}/memories"
    assert code(await world.call("DELETE", nowhere, params={"key": "other"})) == (404, "UZ-ZMB-009")

    for _ in range(2):
        gone = await world.call("DELETE", path, params={"key": "who/is: on?call=1"})
        assert gone.status_code == 204
    assert await keys(world, zombie) == ["other"]

    told = await world.get("/v1/audit", world.admin_token(), params={"action": "memory.*"})
    assert [(line["target"], line["facts"]) for line in told.json()["items"]] == [
        (zombie["zombie_id"], {"key": "who/is: on?call=1"})
    ]


async def test_a_runner_reaches_only_the_memory_of_agents_that_it_holds(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    other = await world.install("other")
    assert code(await keep(world, other, token, lease, "a")) == (403, "UZ-MEM-001")
    assert code(await world.get(plane(other), token)) == (403, "UZ-MEM-001")

    stranger = await world.enrol("h2")
    assert code(await keep(world, zombie, stranger, lease, "a")) == (404, "UZ-RUN-006")
    assert code(await world.get(plane(zombie), stranger)) == (403, "UZ-MEM-001")

    params = {"lease_id": lease["lease_id"]}
    assert code(await world.get(plane(zombie), stranger, params=params)) == (404, "UZ-RUN-006")
    assert code(await keep(world, zombie, token, {**lease, "lease_id": UNKNOWN}, "a")) == (404, "UZ-RUN-006")


async def test_a_lease_that_is_over_neither_reads_nor_writes(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    stale = {**lease, "fencing_token": lease["fencing_token"] + 1}
    params = {name: str(value) for name, value in fence(stale).items()}
    assert code(await keep(world, zombie, token, stale, "a")) == (409, "UZ-RUN-005")
    assert code(await world.get(plane(zombie), token, params=params)) == (409, "UZ-RUN-005")

    world.pass_ms(30_001)
    assert code(await keep(world, zombie, token, lease, "a")) == (409, "UZ-RUN-005")

    params = {name: str(value) for name, value in fence(lease).items()}
    assert code(await world.get(plane(zombie), token, params=params)) == (409, "UZ-RUN-005")
    assert await keys(world, zombie) == []


async def test_a_lease_that_is_lost_between_look_and_write_writes_nothing(
    world: HttpWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    zombie, token, lease = await world.working()
    real = world.memory.memories.keep

    async def late(*args: Any) -> Any:
        world.pass_ms(30_001)
        return await real(*args)

    monkeypatch.setattr(world.memory.memories, "keep", late)

    assert code(await keep(world, zombie, token, lease, "a")) == (409, "UZ-RUN-005")
    assert await keys(world, zombie) == []


async def test_memory_that_is_away_is_told_by_its_own_code(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    path = f"{world.ws}/zombies/{zombie['zombie_id']}/memories"
    await world.get(path)
    await world.get("/v1/runners/me", token)
    world.memory.faults.away = True
    for answer in (
        await world.get(path),
        await world.get(plane(zombie), token),
        await keep(world, zombie, token, lease, "a"),
    ):
        assert code(answer) == (503, "UZ-MEM-003")
        assert int(answer.headers["retry-after"]) >= 2
    world.memory.faults.away = False

    assert await keys(world, zombie) == []


# --- with reports and leases --------------------------------------------------------------------------------


async def test_a_report_keeps_what_it_brings_once_and_the_next_lease_tells_it(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    assert lease["memory"] == []

    await keep(world, zombie, token, lease, "old")
    memory: list[dict[str, Any]] = [
        {"key": "core", "content": "first", "category": "core"},
        {"key": "new", "content": "second"},
        {"key": "old", "delete": True},
    ]
    report = report_of(lease, memory)
    for duplicate in (False, True):
        done = await world.post("/v1/runners/me/reports", report, token)
        assert (done.status_code, done.json()["duplicate"]) == (200, duplicate)
    other = report_of(lease, [{"key": "late", "content": "x"}])
    assert code(await world.post("/v1/runners/me/reports", other, token)) == (409, "UZ-RUN-005")
    assert sorted(await keys(world, zombie)) == ["core", "new"]

    await world.deliver(zombie["webhook_urls"]["github"])
    following = await world.lease(token)
    told = [(entry["key"], entry["content"], entry["category"]) for entry in following["memory"]]
    assert told == [("core", "first", "core"), ("new", "second", "conversation")]
    assert set(following["memory"][0]) == {"key", "content", "category", "updated_at"}


async def test_a_report_brings_so_many_entries_and_no_more(world: HttpWorld) -> None:
    _zombie, token, lease = await world.working()
    many = [{"key": f"k{n}", "content": "x"} for n in range(257)]
    answer = await world.post("/v1/runners/me/reports", report_of(lease, many), token)

    assert (code(answer), answer.json()["pointer"]) == ((400, "UZ-REQ-001"), "/memory")
    assert (await world.post("/v1/runners/me/reports", report_of(lease, many[1:]), token)).status_code == 200


async def test_a_lease_tells_no_more_than_a_run_can_hold(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    for n in range(6):
        category = "core" if n == 0 else "notes"
        await keep(world, zombie, token, lease, f"k{n}", content="x" * CONTENT_BYTES, category=category)
    await world.post("/v1/runners/me/reports", report_of(lease, []), token)
    await world.deliver(zombie["webhook_urls"]["github"])
    told = (await world.lease(token))["memory"]

    assert [entry["key"] for entry in told] == ["k0", "k5", "k4"]


async def test_the_whole_story_on_a_real_database(postgres_storage: PostgresStorage) -> None:
    """Keys, grants and memories together, and two writers at the bound."""
    async with open_http_world_on(postgres_storage) as world:
        zombie, token, lease = await world.working("integrations: [slack]")
        data = {"name": "slack", "data": {"token": "xoxb"}}
        assert (await world.post(f"{world.ws}/credentials", data)).status_code == 201

        key = (await agent_key(world, zombie["zombie_id"]))["key"]
        at = f"{world.ws}/zombies/{zombie['zombie_id']}"
        asked = await world.post(f"{at}/integration-requests", {"service": "slack", "reason": "r"}, key)
        grant_id = asked.json()["grant_id"]
        word = {"grant_id": grant_id, "decision": "approve"}
        path = f"/v1/webhooks/{zombie['zombie_id']}/grant-approval"
        assert (await world.post(path, word, zombie["approval_token"])).json()["status"] == "approved"

        lent = await world.post(f"/v1/runners/me/leases/{lease['lease_id']}/integrations/slack", {}, token)
        assert lent.json()["data"] == {"token": "xoxb"}

        for start in range(0, MEMORY_LIMIT - 1, 250):
            entries = [
                {"key": f"k{n}", "content": "x", "category": "core"}
                for n in range(start, min(start + 250, MEMORY_LIMIT - 1))
            ]
            done = await world.post("/v1/runners/me/reports", report_of(lease, entries), token)
            assert done.status_code == 200, done.text
            await world.deliver(zombie["webhook_urls"]["github"])
            lease = await world.lease(token)
        assert lease["policy"]["secrets_map"] == {"slack": {"token": "xoxb"}}
        assert (lease["policy"]["integrations"], len(lease["memory"])) == ({"slack": "approved"}, 64)

        answers: list[int] = []

        async def one(name: str) -> None:
            kept = await keep(world, zombie, token, lease, name, category="core")
            answers.append(kept.status_code)

        async with trio.open_nursery() as nursery:
            for name in "abcd":
                nursery.start_soon(one, name)
        assert sorted(answers) == [200, 400, 400, 400]
        assert (await memories(world, zombie, limit="1"))["total"] == MEMORY_LIMIT

        stream = await world.storage.frames.read(UUID(zombie["zombie_id"]), after=0, limit=1000)
        kinds = [frame.kind for frame in stream if frame.kind.startswith("grant_")]
        assert kinds == ["grant_changed", "grant_changed", "grant_used"]
