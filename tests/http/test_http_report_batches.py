"""Many reports in one request: each is answered just as it would have been alone."""

from typing import Any

import httpx2
import pytest

from sexton_actors import claim_groups
from sexton_http.routes.report_batches import MAX_REPORTS
from sexton_storage.postgres import PostgresStorage
from tests.http.test_http_runner_wire import UNKNOWN, code, finished, report_of
from tests.worlds.http import HttpWorld, open_http_world_on

ONE = "/v1/runners/me/reports"
BATCH = "/v1/runners/me/reports:batch"
ANYWHERE = ("request_id",)
AGENTS = 12


async def held(world: HttpWorld, token: str, count: int) -> list[dict[str, Any]]:
    """As many leases of one runner, each of an agent of its own, by one poll."""
    await world.keep_secret()
    for number in range(count):
        zombie = await world.install(f"agent-{number}")
        assert (await world.deliver(zombie["webhook_urls"]["github"])).status_code == 202
    leases: list[dict[str, Any]] = []
    while len(leases) < count:
        answer = await world.post("/v1/runners/me/leases", {"max": count, "wait_ms": 2000}, token)
        leases += answer.json()["leases"]
    return leases


def without_request(problem: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in problem.items() if name not in ANYWHERE}


def as_alone(answer: httpx2.Response) -> tuple[Any, ...]:
    body = answer.json()
    if answer.is_success:
        return True, 200, None, without_request(body)
    return False, answer.status_code, body["error_code"], without_request(body)


def as_one_of_many(result: dict[str, Any]) -> tuple[Any, ...]:
    said = without_request(result["report"] if result["ok"] else result["problem"])
    return result["ok"], result["status"], result.get("error_code"), said


async def test_each_report_of_a_batch_is_answered_as_it_is_alone(postgres_storage: PostgresStorage) -> None:
    async with open_http_world_on(postgres_storage) as world:
        token, other = await world.enrol(), await world.enrol("h2")
        good, alone, stale, wrong_event = await held(world, token, 4)
        done = report_of(good, memory=[{"key": "k" * 300, "content": "x"}])
        spoilt: list[Any] = [
            report_of(stale, fencing_token=99),
            report_of(wrong_event, event_id=UNKNOWN),
            report_of(stale, lease_id=UNKNOWN),
            report_of(stale, lease_id="nonsense"),
            report_of(stale, outcome="fine"),
            report_of(stale, memory=[{"key": "k"}]),
            report_of(stale, surplus=1),
            "no object",
        ]
        answer = await world.post(BATCH, {"reports": [spoilt[0], done, *spoilt[1:]]}, token)
        assert answer.status_code == 200, answer.text

        results = answer.json()["results"]
        taken = results.pop(1)
        singles = [await world.call("POST", ONE, token, json=item) for item in spoilt]
        first = await world.post(ONE, report_of(alone, memory=[{"key": "k" * 300, "content": "x"}]), token)

        assert [as_one_of_many(result) for result in results] == [as_alone(single) for single in singles]
        assert as_one_of_many(taken)[:3] == as_alone(first)[:3] == (True, 200, None)
        assert taken["report"]["refused"] == first.json()["refused"] != []

        named = [item["lease_id"] if isinstance(item, dict) else None for item in spoilt]
        assert [result["lease_id"] for result in results] == named

        # Known again, whichever way it came first; and nobody else's.
        again = (await world.post(BATCH, {"reports": [done, report_of(alone), done]}, token)).json()[
            "results"
        ]
        assert [(one["ok"], one.get("report", {}).get("duplicate")) for one in again] == [
            (True, True),
            (False, None),
            (True, True),
        ]
        assert again[1]["error_code"] == "UZ-RUN-005"
        assert (await world.post(ONE, done, token)).json()["duplicate"] is True

        [stranger] = (await world.post(BATCH, {"reports": [report_of(stale)]}, other)).json()["results"]
        assert (stranger["status"], stranger["error_code"]) == (404, "UZ-RUN-006")


async def test_a_batch_ends_its_runs_in_one_commit(postgres_storage: PostgresStorage) -> None:
    async with open_http_world_on(postgres_storage) as world:
        token = await world.enrol()
        leases = await held(world, token, 8)
        before = postgres_storage.statistics().journal.hot
        answer = await world.post(BATCH, {"reports": [report_of(lease) for lease in leases]}, token)
        after = postgres_storage.statistics().journal.hot

        results = answer.json()["results"]

        assert [result["lease_id"] for result in results] == [lease["lease_id"] for lease in leases]
        assert all(result["report"]["status"] == "processed" for result in results)
        assert after.writes - before.writes == len(leases)
        assert after.batches - before.batches <= 2


async def test_the_leases_of_one_poll_are_claimed_by_one_statement(
    postgres_storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However slow the machine is: a claim that is late goes alone.
    monkeypatch.setattr(claim_groups, "MOMENT_S", 10.0)
    async with open_http_world_on(postgres_storage) as world:
        token = await world.enrol(slots=AGENTS)
        await world.keep_secret()
        zombies = [await world.install(f"agent-{number}") for number in range(AGENTS)]
        for zombie in zombies:
            assert (await world.deliver(zombie["webhook_urls"]["github"])).status_code == 202

        before = postgres_storage.statistics().journal.hot
        answer = await world.post("/v1/runners/me/leases", {"max": AGENTS, "wait_ms": 2000}, token)
        after = postgres_storage.statistics().journal.hot

        assert len({lease["event"]["zombie_id"] for lease in answer.json()["leases"]}) == AGENTS
        assert (after.writes - before.writes, after.batches - before.batches) == (AGENTS, 1)


async def test_a_large_report_among_small_ones_is_taken_with_them(world: HttpWorld) -> None:
    zombie, token, lease = await world.working()
    text = '"\\' * 200_000 + "\0"
    large = report_of(lease, response_text=text)
    small = report_of(lease, lease_id=UNKNOWN)
    answer = await world.post(BATCH, {"reports": [small, large, small]}, token)
    assert [result["status"] for result in answer.json()["results"]] == [404, 200, 404], answer.text

    kept = (await finished(world, zombie))["response_text"]
    assert kept == text.replace("\0", "\ufffd")


async def test_a_batch_of_no_reports_reports_nothing(world: HttpWorld) -> None:
    answer = await world.post(BATCH, {"reports": []}, await world.enrol())
    assert (answer.status_code, answer.json()["results"]) == (200, [])


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"[]",
        b'{"reports":{}}',
        b'{"reports":[],"x":1}',
        b'{"reports":[],"reports":[]}',
        b'{"reports":[1],"reports":[1]}',
        b'{"reports":[' + b",".join([b"{}"] * (MAX_REPORTS + 1)) + b"]}",
        b'{"reports":[' + b"[" * 70 + b"]" * 70 + b"]}",
        b'{"reports":[1],"reports":[' + b"1," * 20_000 + b"1]}",
    ],
)
async def test_what_is_no_list_of_reports_is_refused_whole(world: HttpWorld, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    answer = await world.call("POST", BATCH, await world.enrol(), content=body, headers=headers)

    assert code(answer) == (400, "UZ-REQ-001")
