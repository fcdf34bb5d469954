"""Bulk jobs over HTTP: each event once, in order, past its agent's rules; paused and stopped."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
import trio

from sexton_actors.backlog import QueueBounds
from sexton_actors.jobs import actor, transitions
from sexton_actors.periodic.failure_rounds import Sort
from sexton_actors.protocol.zombie import Accepted, ReplayMany
from sexton_actors.zombie.record import HeldZombie
from sexton_storage.postgres import PostgresStorage
from sexton_storage.records.events import Event
from sexton_storage.records.zombies import SeenAgent
from tests.patience import PATIENCE_S
from tests.worlds.http import HttpWorld, open_http_world_on
from tests.worlds.http_agents import report

UNKNOWN = "019363b0-0000-7000-8000-00000000ffff"
OVER = {"done", "stopped", "failed"}
EVENTS = 5


async def send(world: HttpWorld, zombie: dict[str, Any], count: int = EVENTS) -> list[str]:
    path = f"{world.ws}/zombies/{zombie['zombie_id']}/messages"
    return [(await world.post(path, {"message": f"number {n}"})).json()["event_id"] for n in range(count)]


async def run_all(world: HttpWorld, token: str, count: int, text: str = "run {n} broke", **more: Any) -> None:
    for n in range(count):
        lease = await world.lease(token)
        said = {"outcome": "agent_error", "failure_reason": "agent_run", "response_text": text.format(n=n)}
        await report(world, token, lease, **{**said, **more})


async def begin(world: HttpWorld, verb: str, **body: Any) -> dict[str, Any]:
    answer = await world.post(f"{world.ws}/events:{verb}", body)
    assert answer.status_code == 202, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def job(world: HttpWorld, job_id: str) -> dict[str, Any]:
    found: dict[str, Any] = (await world.get(f"{world.ws}/jobs/{job_id}")).json()
    return found


async def until(
    world: HttpWorld, job_id: str, statuses: set[str], waits_for: str | None = None
) -> dict[str, Any]:
    with trio.fail_after(PATIENCE_S):
        while True:
            found = await job(world, job_id)
            if found["status"] in statuses and waits_for in {None, found["waits_for"]}:
                return found
            await trio.sleep(0.02)


async def over(world: HttpWorld, made: dict[str, Any]) -> dict[str, Any]:
    return await until(world, made["job"]["job_id"], OVER)


async def events(world: HttpWorld, status: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = (await world.get(f"{world.ws}/events?limit=200&status={status}")).json()[
        "items"
    ]
    return items[::-1]


async def test_failed_events_are_replayed_once_and_in_order(postgres_storage: PostgresStorage) -> None:
    async with open_http_world_on(postgres_storage) as world:
        zombie, token = await world.install(), await world.enrol()
        sent = await send(world, zombie)
        await run_all(world, token, EVENTS)
        failed = "agent:doctor status:agent_error"
        counted = await begin(world, "replay", filter=failed, dry_run=True)
        assert (counted["total"], counted["sample"], counted["job"]) == (EVENTS, sent, None)
        assert await events(world, "received") == []

        body = {"filter": failed, "merge": {"message": None, "again": {"n": 1}}}
        key = {"idempotency-key": "once"}
        made = (await world.post(f"{world.ws}/events:replay", body, headers=key)).json()
        done = await over(world, made)
        assert (done["status"], done["total"], done["done"], done["failed"]) == ("done", EVENTS, EVENTS, 0)

        again = await events(world, "received")
        assert [event["resumes_event_id"] for event in again] == sent
        assert {str(event["request_json"]) for event in again} == {str({"again": {"n": 1}})}

        repeated = (await world.post(f"{world.ws}/events:replay", body, headers=key)).json()
        assert repeated["job"]["job_id"] == done["job_id"]

        # An agent that is awake is given them.
        lease = await world.lease(token)
        assert lease["event"]["event_id"] == again[0]["event_id"]

        cancelled = await over(world, await begin(world, "cancel", filter="status:received,running"))
        assert (cancelled["done"], cancelled["skipped"], cancelled["failed"]) == (EVENTS, 0, 0)
        assert [event["event_id"] for event in await events(world, "cancelled")] == [
            event["event_id"] for event in again[1:]
        ]

        beaten = await world.post(
            "/v1/runners/me/heartbeats", {"active_lease_ids": [lease["lease_id"]]}, token
        )
        assert beaten.json()["cancelled_lease_ids"] == [lease["lease_id"]]

        listed = (await world.get(f"{world.ws}/jobs?limit=1")).json()
        assert [item["job_id"] for item in listed["items"]] == [cancelled["job_id"]]

        older = (await world.get(f"{world.ws}/jobs?cursor={listed['next_cursor']}")).json()
        assert [item["job_id"] for item in older["items"]] == [done["job_id"]]
        assert world.registry.get_sample_value("sexton_bulk_events_total", {"outcome": "done"}) == 2 * EVENTS


async def test_the_events_of_a_page_are_read_at_once_for_all_agents(
    postgres_storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_http_world_on(postgres_storage) as world:
        agents, token = [await world.install(name) for name in ("one", "two", "three")], await world.enrol()
        for agent in agents:
            await send(world, agent, 2)
        await run_all(world, token, 6)
        reads: list[int] = []
        load = postgres_storage.events.load_requests

        async def counted(event_ids: Sequence[UUID]) -> Sequence[Event]:
            reads.append(len(event_ids))
            return await load(event_ids)

        monkeypatch.setattr(postgres_storage.events, "load_requests", counted)
        done = await over(world, await begin(world, "replay", filter="status:agent_error"))

        assert (done["done"], reads) == (6, [6])
        assert len(await events(world, "received")) == 6


async def test_what_a_bound_holds_up_waits_and_what_an_agent_refuses_is_counted(
    postgres_storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actor, "AGAIN_S", 0.05)
    monkeypatch.setattr(transitions, "PAGE_EVENTS", 4)
    async with open_http_world_on(postgres_storage) as world:
        zombie, token = await world.install(), await world.enrol()
        await send(world, zombie)
        await run_all(world, token, EVENTS)
        backlog = world.actors_world.backlog
        backlog.bounds = QueueBounds(agent=3)
        made = await begin(world, "replay", filter="status:agent_error")
        job_id = made["job"]["job_id"]
        held_up = await until(world, job_id, {"running"}, "queue_full")
        assert (held_up["done"], held_up["failed"]) == (3, 0)

        for verb, status in (("pause", "paused"), ("pause", "paused"), ("resume", "waiting")):
            changed = await world.post(f"{world.ws}/jobs/{job_id}:{verb}")
            assert (changed.status_code, changed.json()["status"]) == (200, status)
        await until(world, job_id, {"running"}, "queue_full")

        backlog.bounds = QueueBounds()
        assert (await until(world, job_id, OVER))["done"] == EVENTS
        assert len(await events(world, "received")) == EVENTS

        for verb in ("pause", "resume", "stop"):
            refused = await world.post(f"{world.ws}/jobs/{job_id}:{verb}")
            assert (refused.json()["error_code"], refused.json()["current_state"]) == ("UZ-REQ-009", "done")

        backlog.bounds = QueueBounds(agent=1)
        stopping = (await begin(world, "replay", filter="status:agent_error"))["job"]["job_id"]
        await until(world, stopping, {"running"}, "queue_full")
        assert (await world.post(f"{world.ws}/jobs/{stopping}:stop")).json()["status"] == "stopping"

        stopped = await until(world, stopping, OVER)
        assert (stopped["status"], stopped["done"], stopped["failed"]) == ("stopped", 0, 0)

        backlog.bounds = QueueBounds()

        await world.call("PATCH", f"{world.ws}/zombies/{zombie['zombie_id']}", json={"status": "stopped"})
        refused_all = await over(world, await begin(world, "replay", filter="status:agent_error"))
        assert (refused_all["done"], refused_all["refused"]) == (0, {"UZ-ZMB-012": EVENTS})


async def test_failures_are_grouped_known_muted_and_replayed(
    postgres_storage: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_http_world_on(postgres_storage) as world:
        zombie, token = await world.install(), await world.enrol()
        sent = await send(world, zombie)
        await run_all(world, token, 3)
        await run_all(world, token, 2, "disk full\nOSError: /tmp/{n}/x")
        await world.system.ask("failure_rounds", "", Sort())
        disk, broke = (await world.get(f"{world.ws}/failures")).json()["items"]
        assert (broke["message"], broke["count"], sum(broke["trend"])) == ("run <n> broke", 3, 3)
        assert (disk["message"], disk["count"]) == ("disk full … OSError: <path>", 2)
        assert (disk["error_code"], disk["sample_event_id"], disk["status"]) == (
            "UZ-EXEC-013",
            sent[4],
            "open",
        )

        minutes = (await world.get(f"{world.ws}/throughput?minutes=2")).json()["minutes"]
        assert [sum(minute[of] for minute in minutes) for of in ("came", "failed")] == [EVENTS, 5]

        one = f"{world.ws}/failures/{broke['failure_id']}"
        known = (await world.post(f"{one}:acknowledge")).json()
        assert (known["status"], known["acknowledged_by"][:4]) == ("acknowledged", "api:")

        other = f"{world.ws}/failures/{disk['failure_id']}"
        until_then = world.actors_world.now_ms() + 3_600_000
        muted = (await world.post(f"{other}:mute", {"until": until_then})).json()
        assert (muted["status"], muted["muted_until"]) == ("muted", until_then)
        assert await statuses(world) == {"open": [], "acknowledged": [3], "muted": [2]}

        counted = (await world.post(f"{one}:replay", {"dry_run": True})).json()
        assert (counted["total"], counted["sample"], counted["job"]) == (3, sent[:3], None)

        made = (await world.post(f"{one}:replay")).json()
        assert (await over(world, made))["done"] == 3
        assert [event["resumes_event_id"] for event in await events(world, "received")] == sent[:3]

        await run_all(world, token, 1, "run 77 broke")
        await world.system.ask("failure_rounds", "", Sort())
        assert (await world.post(f"{other}:mute", {"until": None})).json()["status"] == "open"
        assert await statuses(world) == {"open": [4, 2], "acknowledged": [], "muted": []}
        assert (await world.get(one)).json()["count"] == 4

        monkeypatch.setattr(actor, "JOBS_LIMIT", 0)
        full = await world.post(f"{one}:replay")
        assert (full.status_code, full.json()["error_code"]) == (409, "UZ-JOB-002")


async def statuses(world: HttpWorld) -> dict[str, Sequence[int]]:
    """The counts of the groups, by status."""
    return {
        status: [
            item["count"]
            for item in (await world.get(f"{world.ws}/failures?status={status}")).json()["items"]
        ]
        for status in ("open", "acknowledged", "muted")
    }


async def test_what_is_malformed_or_not_there_is_refused(
    world: HttpWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = await world.post(f"{world.ws}/events:replay", {"filter": "status:runing"})
    assert (bad.status_code, bad.json()["error_code"], bad.json()["position"]) == (400, "UZ-REQ-001", 7)

    for body in ({}, {"filter": ""}, {"filter": "after:0", "rate": 0}, {"filter": "after:0", "request": []}):
        assert (await world.post(f"{world.ws}/events:replay", body)).status_code == 400
    both = await world.post(f"{world.ws}/events:replay", {"filter": "after:0", "request": {}, "merge": {}})
    assert both.json()["pointer"] == "/merge"

    for path, code in (("jobs", "UZ-JOB-001"), ("failures", "UZ-FAILURE-001")):
        assert (await world.get(f"{world.ws}/{path}/{UNKNOWN}")).json()["error_code"] == code
    for verb in ("pause", "resume", "stop"):
        assert (await world.post(f"{world.ws}/jobs/{UNKNOWN}:{verb}")).json()["error_code"] == "UZ-JOB-001"
    for verb in ("acknowledge", "mute", "replay"):
        refused = await world.post(f"{world.ws}/failures/{UNKNOWN}:{verb}")
        assert refused.json()["error_code"] == "UZ-FAILURE-001"

    monkeypatch.setattr(actor, "JOBS_LIMIT", 0)
    for verb in ("cancel", "replay"):
        full = await world.post(f"{world.ws}/events:{verb}", {"filter": "after:0"})
        assert (full.status_code, full.json()["error_code"]) == (409, "UZ-JOB-002")
    zombie = await world.install()
    wish = {"agent_version": 1, "budget_nanos": 1}
    shadow = await world.post(f"{world.ws}/zombies/{zombie['zombie_id']}/shadow", wish)
    assert (shadow.status_code, shadow.json()["error_code"]) == (409, "UZ-JOB-002")


async def test_anothers_jobs_and_failures_are_not_there(world: HttpWorld) -> None:
    made = (await world.post(f"{world.ws}/events:cancel", {"filter": "after:0"})).json()["job"]
    other = (await world.post("/v1/workspaces", {})).json()["workspace_id"]

    for method, tail in (("GET", ""), ("POST", ":pause"), ("POST", ":resume"), ("POST", ":stop")):
        answer = await world.call(method, f"/v1/workspaces/{other}/jobs/{made['job_id']}{tail}")
        assert (answer.status_code, answer.json()["error_code"]) == (404, "UZ-JOB-001")

    assert (await world.get(f"/v1/workspaces/{other}/jobs")).json()["items"] == []


async def test_an_agent_that_a_job_has_seen_as_it_knows_itself_is_not_read_again(
    world: HttpWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    zombie, token = await world.install(), await world.enrol()
    [sent] = await send(world, zombie, 1)
    await run_all(world, token, 1)
    agent_id, reads = UUID(zombie["zombie_id"]), list[UUID]()
    event, agent = world.memory.tables.events[UUID(sent)], world.memory.tables.zombies[agent_id]
    read = HeldZombie._read

    async def counted(held: HeldZombie) -> Any:
        reads.append(held.id)
        return await read(held)

    async def replayed(seen: SeenAgent | None) -> tuple[Any, int]:
        """What came of it, and how often the agent was read for it, all that was known being old."""
        world.pass_ms(60_000)
        reads.clear()
        now, new_id = world.actors_world.now_ms(), world.actors_world.new_id()
        message = ReplayMany((event,), (new_id,), "ann", seen=seen, seen_at=now)
        [reply] = await world.system.ask("zombie", agent_id, message)
        return reply, len(reads)

    await replayed(None)
    monkeypatch.setattr(HeldZombie, "_read", counted)

    unseen = await replayed(None)
    same = await replayed(SeenAgent(agent.version, workspace_paused=False))
    other = await replayed(SeenAgent(agent.version + 1, workspace_paused=False))
    paused = await replayed(SeenAgent(agent.version, workspace_paused=True))

    assert [isinstance(one, Accepted) for one, _ in (unseen, same, other)] == [True, True, True]
    assert [count for _, count in (unseen, same, other, paused)] == [1, 0, 1, 0]
    assert paused[0].code == "UZ-WORKSPACE-002"
