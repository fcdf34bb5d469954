"""A version on trial: its share of events, its guard, and how the trial ends."""

from typing import Any
from uuid import UUID

import pytest
import trio
from msgspec.structs import replace

from sexton_actors.periodic.canary_rounds import Judge
from sexton_actors.protocol.canary import JudgeCanary
from sexton_actors.tree import tree
from sexton_engine import ActorSystem, open_system
from sexton_http.gateway.replays import FRAMES_A_READ
from sexton_storage.records.tenants import PlanTier
from tests.http.test_http_plans import cut_off, free
from tests.worlds.http import HttpWorld, open_http_world
from tests.worlds.http_agents import (
    activate,
    at,
    code,
    compiled,
    open_trigger,
    patch,
    report,
    skill,
    source,
    steer,
    trigger,
)
from tests.worlds.samples import trigger_md

SECOND = "The second one."
CRONS = "".join(f'  - {{type: cron, schedule: "0 {hour} * * *"}}\n' for hour in (1, 2, 3))


async def begin(world: HttpWorld, zombie: dict[str, Any], version: int = 2, **wish: Any) -> dict[str, Any]:
    body = {"agent_version": version, "share": 50, **wish}
    answer = await world.post(f"{at(world, zombie)}/canary", body)
    assert answer.status_code == 201, answer.text
    canary: dict[str, Any] = answer.json()
    return canary


async def canary_of(world: HttpWorld, zombie: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = (await world.get(f"{at(world, zombie)}/canary")).json()["canary"]
    return shown


async def event_of(world: HttpWorld, event_id: str) -> dict[str, Any]:
    event: dict[str, Any] = (await world.get(f"{world.ws}/events/{event_id}")).json()
    return event


async def on_both_sides(world: HttpWorld, zombie: dict[str, Any], count: int) -> dict[str, list[str]]:
    """Messages until each side has as many that wait; the sides' events, as they came."""
    sides: dict[str, list[str]] = {"candidate": [], "stable": []}
    while min(map(len, sides.values())) < count:
        assert sum(map(len, sides.values())) < 100, "a side comes up more often than that"
        event_id = await steer(world, zombie)
        sides[(await event_of(world, event_id))["canary_side"]].append(event_id)
    return sides


async def on_the_candidate(world: HttpWorld, zombie: dict[str, Any], count: int) -> dict[str, list[str]]:
    """Messages until the candidate has as many that wait; the sides' events, as they came."""
    sides: dict[str, list[str]] = {"candidate": [], "stable": []}
    while len(sides["candidate"]) < count:
        event_id = await steer(world, zombie)
        sides[(await event_of(world, event_id))["canary_side"]].append(event_id)
    return sides


async def work(world: HttpWorld, token: str, count: int, **of_candidate: Any) -> list[dict[str, Any]]:
    """As many runs; those under the second version report what is given, the others that all is well."""
    leases = []
    for _ in range(count):
        lease = await world.lease(token)
        await report(world, token, lease, **(of_candidate if SECOND in lease["instructions"] else {}))
        leases.append(lease)
    return leases


async def judge(world: HttpWorld, zombie: dict[str, Any]) -> None:
    """Have the round come now, and the agent do what it is told."""
    await world.system.ask("canary_rounds", "", Judge())
    await code(world, "POST", f"{at(world, zombie)}/messages", json={"message": "x", "agent_version": 99})


async def test_a_candidate_that_fails_goes_back_by_itself_and_says_why(world: HttpWorld) -> None:
    zombie = await world.install()
    await compiled(world, zombie, skill(body=SECOND))
    begun = await begin(world, zombie, guard={"min_runs": 3, "max_failure_percent": 50})
    sides = await on_both_sides(world, zombie, 4)
    token, count = await world.enrol(), sum(map(len, sides.values()))
    failed = {"outcome": "agent_error", "failure_reason": "agent_run"}
    leases: list[dict[str, Any]] = []
    while sum(SECOND in lease["instructions"] for lease in leases) < 3:
        leases += await work(world, token, 1, **failed)
    await judge(world, zombie)
    over = await canary_of(world, zombie)
    leases += await work(world, token, count - len(leases))
    shown = [await event_of(world, lease["event"]["event_id"]) for lease in leases]
    ran = [event["agent_version"] for event in shown]
    wanted = [2 if event["canary_side"] == "candidate" else 1 for event in shown]
    last = len(ran) - ran[::-1].index(2)
    lines = (await world.get("/v1/audit", params={"action": "canary.*"}, token=world.admin_token())).json()

    assert begun["status"] == "on_trial"
    assert (over["status"], over["ended_by"], over["why"]) == ("withdrawn", "system:guard", "failures")
    assert over["detail"] == "3 of 3 runs failed; at most 50 percent may."
    assert (over["candidate"]["runs"], over["candidate"]["failed"]) == (3, 3)
    assert ran.count(2) == 3
    assert ran[:last] == wanted[:last], "each side has its own version"
    assert set(ran[last:]) == {1}, "those that waited for the candidate too"
    assert [(line["action"], line["actor"]) for line in lines["items"]] == [
        ("canary.withdraw", "system:guard"),
        ("canary.start", lines["items"][1]["actor"]),
    ]


async def test_two_nodes_that_both_see_that_it_fails_take_it_back_once_and_tell_so_once(
    world: HttpWorld,
) -> None:
    zombie = await world.install()
    zombie_id = UUID(zombie["zombie_id"])
    await compiled(world, zombie, skill(body=SECOND))
    begun = await begin(world, zombie, share=99, guard={"min_runs": 2, "max_failure_percent": 50})
    count = sum(map(len, (await on_the_candidate(world, zombie, 2)).values()))
    await work(world, await world.enrol(), count, outcome="agent_error", failure_reason="agent_run")
    before = await world.storage.zombies.load(zombie_id)

    async def judge_on(node: ActorSystem) -> None:
        await node.ask("zombie", zombie_id, JudgeCanary(UUID(begun["canary_id"])))

    async with open_system(tree(world.actors_world)) as other, trio.open_nursery() as nursery:
        for node in (world.system, other) * 2:
            nursery.start_soon(judge_on, node)
    after = await world.storage.zombies.load(zombie_id)
    lines = await world.get("/v1/audit", params={"action": "canary.withdraw"}, token=world.admin_token())
    kept = await world.storage.frames.read(zombie_id, after=0, limit=FRAMES_A_READ)
    said = [frame.data["status"] for frame in kept if frame.kind == "canary_changed"]
    over = await canary_of(world, zombie)

    assert (over["status"], over["ended_by"], over["why"]) == ("withdrawn", "system:guard", "failures")
    assert before is not None
    assert after is not None
    assert after.version == before.version + 1
    assert len(lines.json()["items"]) == 1
    assert said == ["on_trial", "withdrawn"]


async def test_counts_of_both_sides_are_exact_and_a_good_candidate_is_promoted(world: HttpWorld) -> None:
    zombie = await world.install()
    await compiled(world, zombie, skill(body=SECOND))
    await begin(world, zombie, guard={"min_runs": 2, "min_score": 0.5}, promote_after=3)
    sides = await on_both_sides(world, zombie, 3)
    count = sum(map(len, sides.values()))
    await work(world, await world.enrol(), count)
    running = await canary_of(world, zombie)
    spent = {
        side: sum([(await event_of(world, event_id))["charged_nanos"] for event_id in ids])
        for side, ids in sides.items()
    }
    await judge(world, zombie)
    over = await canary_of(world, zombie)
    after = await event_of(world, await steer(world, zombie))
    agent = (await world.get(at(world, zombie))).json()

    for side, ids in sides.items():
        assert (running[side]["runs"], running[side]["failed"]) == (len(ids), 0)
        assert running[side]["charged_nanos"] == spent[side]
        assert running[side]["mean_score"] == 1.0

    assert (over["status"], over["ended_by"], over["why"]) == ("promoted", "system:guard", "runs")
    assert (agent["config_revision"], agent["source_markdown"]) == (2, skill(body=SECOND))
    assert (after["canary_id"], after["canary_side"]) == (None, None)


async def test_an_event_of_the_candidate_that_comes_back_after_its_end_is_done_by_the_active_version(
    world: HttpWorld,
) -> None:
    zombie = await world.install()
    await compiled(world, zombie, skill(body=SECOND))
    await begin(world, zombie, share=99)
    sides, token = await on_both_sides_of_one(world, zombie), await world.enrol()
    lease = await world.lease(token)
    withdrawn = await world.post(f"{at(world, zombie)}/canary/withdraw", {"reason": "it is too slow"})
    released = {"fencing_token": lease["fencing_token"]}
    await world.post(f"/v1/runners/me/leases/{lease['lease_id']}/release", released, token)
    again = await world.lease(token)
    await report(world, token, again)
    shown, over = await event_of(world, sides), await canary_of(world, zombie)

    assert SECOND in lease["instructions"]
    assert (again["event"]["event_id"], SECOND in again["instructions"]) == (sides, False)
    assert withdrawn.json()["status"] == "withdrawn"
    assert (over["why"], over["detail"]) == ("person", "it is too slow")
    assert over["candidate"]["runs"] == 0, "it is counted on neither side"
    assert (shown["agent_version"], shown["canary_side"]) == (1, "candidate")


async def on_both_sides_of_one(world: HttpWorld, zombie: dict[str, Any]) -> str:
    """The one event that waits, on the candidate's side."""
    while True:
        event_id = await steer(world, zombie)
        if (await event_of(world, event_id))["canary_side"] == "candidate":
            return event_id
        await world.post(f"{world.ws}/events/{event_id}/cancel")


async def test_a_replay_is_on_the_side_of_what_it_repeats(world: HttpWorld) -> None:
    zombie = await world.install()
    await compiled(world, zombie, skill(body=SECOND))
    await begin(world, zombie)
    sides = await on_both_sides(world, zombie, 1)
    token = await world.enrol()
    await work(world, token, sum(map(len, sides.values())))
    found = []
    for _ in range(4):
        for side, ids in sides.items():
            replayed = await world.post(f"{world.ws}/events/{ids[0]}/replay")
            found.append((side, (await event_of(world, replayed.json()["event_id"]))["canary_side"]))

    assert all(side == again for side, again in found)


@pytest.mark.parametrize(("version", "ends"), [(2, "promoted"), (3, "withdrawn")])
async def test_an_activation_ends_the_trial(world: HttpWorld, version: int, ends: str) -> None:
    zombie = await world.install()
    second = await compiled(world, zombie, skill(body=SECOND))
    await begin(world, zombie)
    if version == 2:
        await activate(world, second)
    else:
        await patch(world, zombie, source_markdown=skill(body="The third one.\n"))
    over = await canary_of(world, zombie)

    assert (over["status"], over["why"]) == (ends, "person" if version == 2 else "other_version")


async def test_what_a_candidate_names_beside_is_granted_while_it_is_on_trial(world: HttpWorld) -> None:
    zombie = await world.install()
    await world.post(f"{world.ws}/credentials", {"name": "pager", "data": {"token": "t"}})
    beside = trigger(config="credentials: [pager]\nnetwork: {allow: [api.pagerduty.com]}")
    await compiled(world, zombie, skill(body=SECOND), beside)
    await begin(world, zombie, share=99)
    event_id = await on_both_sides_of_one(world, zombie)
    lease = await world.lease(await world.enrol())
    record = await world.actors_world.storage.zombies.load(UUID(zombie["zombie_id"]))
    await world.post(f"{at(world, zombie)}/canary/withdraw")
    alone = await world.actors_world.storage.zombies.load(UUID(zombie["zombie_id"]))

    assert lease["event"]["event_id"] == event_id
    assert lease["policy"]["secrets_map"] == {"pager": {"token": "t"}}
    assert record is not None
    assert alone is not None
    assert (list(record.lending), list(alone.lending)) == (["pager"], [])


async def test_what_cannot_be_tried_out_is_refused(world: HttpWorld) -> None:
    zombie, other = await world.install(), await world.install("scribe")
    path = f"{at(world, zombie)}/canary"
    await source(world, zombie, skill(body="A draft.\n"))
    await compiled(world, zombie, skill(tags="gpu"))
    await compiled(world, zombie, skill("scribe", body=SECOND), trigger("scribe"))

    def wish(version: int) -> dict[str, Any]:
        return {"json": {"agent_version": version, "share": 10}}

    none = await world.get(path)
    before = [await code(world, "POST", path, **wish(version)) for version in (9, 2, 3, 1)]
    nothing = [await code(world, "POST", f"{path}/{verb}") for verb in ("promote", "withdraw")]
    await begin(world, zombie, 4)
    taken = await code(world, "POST", f"{path}/promote")
    twice = await code(world, "POST", path, **wish(4))
    damaged = world.memory.tables.configs
    candidate = next(
        c for c in damaged.values() if c.revision == 4 and str(c.zombie_id) == zombie["zombie_id"]
    )
    damaged[candidate.id] = replace(candidate, source_markdown="no front matter")
    broken = await code(world, "POST", f"{path}/promote")
    await world.call("PATCH", at(world, zombie), json={"status": "killed"})
    killed = [await code(world, "POST", f"{path}/promote"), await code(world, "POST", path, **wish(3))]
    unknown = f"{world.ws}/zombies/{world.installation.workspace_id}/canary"
    gone = [
        await code(world, "GET", unknown),
        await code(world, "POST", unknown, **wish(1)),
        await code(world, "POST", f"{unknown}/promote"),
        await code(world, "POST", f"{unknown}/withdraw"),
    ]

    assert none.json()["canary"] is None
    assert before == [
        (404, "UZ-HARNESS-001"),
        (409, "UZ-HARNESS-002"),
        (409, "UZ-HARNESS-003"),
        (409, "UZ-HARNESS-003"),
    ]
    assert nothing == [(409, "UZ-REQ-009")] * 2
    assert (taken, twice, broken) == ((409, "UZ-ZMB-006"), (409, "UZ-REQ-009"), (409, "UZ-HARNESS-002"))
    assert killed == [(409, "UZ-ZMB-010")] * 2
    assert gone == [(404, "UZ-ZMB-009")] * 4
    assert other["name"] == "scribe"


async def test_a_plan_bounds_what_is_promoted(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_http_world(terms=free(tools=("http_*",), crons=1)) as world:
        agents = [await world.install(name) for name in ("doctor", "scribe")]
        crons = trigger_md("scribe", CRONS)
        await compiled(world, agents[0], skill(body=SECOND), trigger(config="tools: [shell]"))
        await compiled(world, agents[1], skill("scribe", body=SECOND), crons)
        for agent in agents:
            await begin(world, agent)
        world.set_plan(PlanTier.FREE)
        paths = [f"{at(world, agent)}/canary/promote" for agent in agents]
        found = [await code(world, "POST", path) for path in paths]
        cut_off(world, monkeypatch)
        away = await code(world, "POST", paths[0])

    assert found == [(403, "UZ-ENTL-004"), (402, "UZ-ENTL-005")]
    assert away == (503, "UZ-ENTL-001")


async def test_a_person_promotes_what_is_on_trial(world: HttpWorld) -> None:
    zombie = await world.install()
    await compiled(world, zombie, skill(body=SECOND), open_trigger("pager"))
    await begin(world, zombie)
    promoted = (await world.post(f"{at(world, zombie)}/canary/promote")).json()
    agent = (await world.get(at(world, zombie))).json()

    assert (promoted["status"], promoted["why"]) == ("promoted", "person")
    assert promoted["webhook_urls"]["pager"].rpartition("/")[2].startswith("zwh_")
    assert agent["config_revision"] == 2
