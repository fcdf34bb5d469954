"""A server that falls behind: runners' calls go on, webhooks and people are told to come again."""

import json
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import httpx2
import pytest
import trio

from sexton_engine import ActorSystem
from sexton_http.gateway.admission import PEOPLE_FLOOR, WEBHOOK_FLOOR, Admission, Door
from sexton_http.gateway.early_refusal import EarlyRefusal
from sexton_http.gateway.load_limit import INTERVAL_S
from sexton_http.wire.gatekeeper import Prepared
from sexton_http.wire.loop_turns import LoopTurns, Turns
from sexton_storage.postgres import PostgresStorage
from sexton_storage.postgres.stores.events import PostgresEvents
from tests.worlds.asgi_server import Reader
from tests.worlds.http import HttpWorld, open_http_world, open_http_world_on
from tests.worlds.http_agents import USAGE

BUSY_AT_S = 0.01
CROWD = 200
"""More than the doors let in and their lines hold, while the server is behind."""
AT_ONCE = 64
FEW = 8
SERVED_S = 0.1
"""What each that is let in takes at least."""


class SlowLoop(LoopTurns):
    """A loop that says how late it is."""

    lag_s = 0.0

    def read(self) -> Turns:
        return Turns(INTERVAL_S, self.lag_s)


def value(world: HttpWorld, name: str, **labels: str) -> float:
    return world.registry.get_sample_value(name, labels) or 0.0


async def crowd(ask: Callable[[], Awaitable[httpx2.Response]], count: int) -> list[httpx2.Response]:
    """That many requests by as many callers as fit."""
    answers: list[httpx2.Response] = []

    async def caller(number: int) -> None:
        answers.extend([await ask() for _ in range(number, count, AT_ONCE)])

    async with trio.open_nursery() as nursery:
        for number in range(AT_ONCE):
            nursery.start_soon(caller, number)
    return answers


async def let_it_be_noticed(world: HttpWorld) -> None:
    """Some requests, each after an interval: the limit is cut by half at most in each."""
    for _ in range(10):
        await trio.sleep(INTERVAL_S)
        await world.get("/v1/whoami")


def hold_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many may wait as will have their turn in time: on a quick machine that would be the whole crowd."""
    ask, read = ActorSystem.ask, PostgresEvents.list

    async def ask_later(system: ActorSystem, kind: str, *args: Any, **rest: Any) -> Any:
        if kind == "zombie":
            await trio.sleep(SERVED_S)
        return await ask(system, kind, *args, **rest)

    async def read_later(events: PostgresEvents, *args: Any, **rest: Any) -> Any:
        await trio.sleep(SERVED_S)
        return await read(events, *args, **rest)

    monkeypatch.setattr(ActorSystem, "ask", ask_later)
    monkeypatch.setattr(PostgresEvents, "list", read_later)


async def test_a_server_that_is_behind_goes_on_with_its_runners_and_turns_ingress_away(
    postgres_storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = SlowLoop()
    async with open_http_world_on(
        postgres_storage, turns=loop, busy_at_s=BUSY_AT_S, address_rate=None
    ) as world:
        zombie, token, lease = await world.working()
        url = zombie["webhook_urls"]["github"]
        at_ease = [await world.deliver(url) for _ in range(FEW)]
        assert {answer.status_code for answer in at_ease} == {202}

        loop.lag_s = 100 * BUSY_AT_S
        await let_it_be_noticed(world)
        assert value(world, "sexton_admission_limit", door="webhooks") == WEBHOOK_FLOOR
        assert value(world, "sexton_admission_limit", door="people") == PEOPLE_FLOOR

        hold_up(monkeypatch)
        renew, beside = f"/v1/runners/me/leases/{lease['lease_id']}/renew", list[httpx2.Response]()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(goes_on, world, renew, token, beside)
            webhooks = await crowd(lambda: world.deliver(url), CROWD)
            people = await crowd(lambda: world.get(f"{world.ws}/events?limit=1"), CROWD)
            nursery.cancel_scope.cancel()
        assert beside
        assert {answer.status_code for answer in beside} == {200}

        for answers, allowed, refused in ((webhooks, 202, 503), (people, 200, 429)):
            statuses = Counter(answer.status_code for answer in answers)
            assert set(statuses) == {allowed, refused}, statuses
            away = [answer for answer in answers if answer.status_code == refused]
            assert {answer.json()["error_code"] for answer in away} == {"UZ-API-001"}
            assert len({answer.headers["retry-after"] for answer in away}) > 1
            assert len({tuple(sorted(answer.headers)) for answer in away}) == 1
            documents = [answer.json() for answer in away]
            assert all(
                one.pop("request_id") == answer.headers["x-request-id"]
                for one, answer in zip(documents, away, strict=True)
            )
            assert all(one == documents[0] for one in documents)
        taken = sum(answer.status_code == 202 for answer in webhooks)
        assert await kept(world) == 1 + FEW + taken, "what was refused is not kept, what was not is"
        assert value(world, "sexton_admission_refused_total", door="webhooks") == CROWD - taken

        # Most need not wait to be told, and cannot be told apart from those who did.
        waited = value(world, "sexton_admission_wait_seconds_count", door="webhooks")
        assert waited < CROWD / 2

        route = {"method": "POST", "route": "/v1/webhooks/{zombie_id}/{segment}"}
        code = {**route, "code": "UZ-API-001"}
        assert value(world, "sexton_http_requests_total", status="5xx", **route) == CROWD - taken
        assert value(world, "sexton_http_problems_total", **code) == CROWD - taken

        loop.lag_s = 0.0
        await let_it_be_noticed(world)
        assert value(world, "sexton_admission_limit", door="webhooks") > WEBHOOK_FLOOR


async def goes_on(world: HttpWorld, renew: str, token: str, answers: list[httpx2.Response]) -> None:
    """A runner that renews, and whoever looks after the server, for as long as the crowd is there."""
    while True:
        answers.append(await world.post(renew, USAGE, token))
        answers.append(await world.get("/healthz", None))
        answers.append(await world.get("/metrics", None))


async def kept(world: HttpWorld) -> int:
    count, cursor = 0, ""
    while True:
        page = (await world.get(f"{world.ws}/events?limit=200{cursor}")).json()
        count += len(page["items"])
        if page["next_cursor"] is None:
            return count
        cursor = f"&cursor={page['next_cursor']}"


RAW = {
    "webhook": ("POST {url} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n{more}\r\n{{}}", 503),
    "person": ("GET /v1/whoami HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n{more}\r\n", 429),
}


async def test_what_is_sent_away_unparsed_is_told_what_others_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole: list[Prepared] = []
    answer_whole = EarlyRefusal.answer_whole

    def count(refusal: EarlyRefusal, *request: Any) -> Prepared | None:
        prepared = answer_whole(refusal, *request)
        whole.extend([] if prepared is None else [prepared])
        return prepared

    monkeypatch.setattr(EarlyRefusal, "answer_whole", count)
    async with open_http_world() as world:
        zombie = await world.install()
        monkeypatch.setattr(Door, "refuses", lambda *_: True)
        monkeypatch.setattr(Admission, "is_narrow", True)
        url = zombie["webhook_urls"]["github"].removeprefix(world.base_url)
        for form, status in RAW.values():
            whole.clear()
            # The last one says of its connection what only the parser reads.
            asked = [form.format(url=url, token=world.api_key, more=more) for more in (*[""] * 20, CLOSES)]
            told = [refusal_of(*one) for one in await answers_to(world, asked)]

            assert len(whole) == 20
            assert {got for got, _, _ in told} == {status}
            assert len({lines["x-request-id"] for _, lines, _ in told}) == len(told)
            assert len({lines["retry-after"] for _, lines, _ in told}) > 1
            assert len({frozenset(lines) - {"connection"} for _, lines, _ in told}) == 1
            assert [document for _, _, document in told] == [told[0][2]] * len(told)


CLOSES = "Connection: close\r\n"


async def answers_to(world: HttpWorld, asked: list[str]) -> list[tuple[int, bytes, bytes]]:
    """On one connection, each sent whole once the one before it is answered."""
    async with await trio.open_tcp_stream("127.0.0.1", int(world.base_url.rpartition(":")[2])) as stream:
        reader, answers = Reader(stream), list[tuple[int, bytes, bytes]]()
        for one in asked:
            await stream.send_all(one.encode())
            answers.append(await reader.answer())
    return answers


def refusal_of(status: int, head: bytes, body: bytes) -> tuple[int, dict[str, str], dict[str, Any]]:
    """Status, headers, and the document without its id, which the headers say too."""
    lines = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    document = json.loads(body)
    assert UUID(document.pop("request_id")) == UUID(lines["x-request-id"])
    return status, lines, document
