"""Two servers on one PostgreSQL: what one of them began the other goes on with, and nothing is done twice."""

from collections import Counter
from pathlib import Path

import trio

from sexton_cli.exits import CONFIG
from tests.patience import PATIENCE_S
from tests.worlds.nodes import USAGE, Node, open_nodes
from tests.worlds.server_process import open_server
from tests.worlds.shell import run_command

AGENTS, MESSAGES = 12, 6
RENEWALS = 25
RACES = 'sexton_lease_races_total{write="renew"}'
NOT_FOUND, SERVICE_UNAVAILABLE = 404, 503


async def seen_from(second: Node, first: Node, zombie_id: str) -> str:
    """Look at an agent's actor on the first node, and have it begin again there, by way of the second."""
    path, admin = "/v1/fleet/actors/zombie", "admin_token"
    place = str((await first.call("GET", "/v1/fleet/tree", None, admin))["node"])
    with trio.fail_after(PATIENCE_S):
        while (await second.get(f"/v1/fleet/tree?node={place}", admin)).status_code == NOT_FOUND:
            await trio.sleep(0.05)
    seen = await second.call("GET", f"{path}?key={zombie_id}&node={place}", None, admin)
    again = await second.call("POST", f"{path}:restart", {"key": zombie_id, "node": place}, admin)
    tree = await first.call("GET", "/v1/fleet/tree?kind=zombie", None, admin)
    assert seen["node"] == again["node"] == place
    assert tree["kinds"][0]["restarts"] == 1
    return place


async def test_a_lease_of_a_node_that_was_killed_is_taken_up_by_the_other(
    tmp_path: Path, postgres_dsn: str
) -> None:
    async with open_nodes(tmp_path, postgres_dsn) as (first, second):
        zombie_id = await first.install("watcher")
        lost, heir = await first.enrol("lost"), await second.enrol("heir")
        event_id = await first.say(zombie_id)
        before = await first.lease(lost)
        assert before is not None

        place = await seen_from(second, first, zombie_id)
        first.server.kill()
        with trio.fail_after(PATIENCE_S):
            while (after := await second.lease(heir)) is None:
                pass
        assert (before["event"]["event_id"], after["event"]["event_id"]) == (event_id, event_id)
        assert after["fencing_token"] > before["fencing_token"]

        # The one runner is late, and is told so by a node that never saw it; the other's report counts.
        late = await second.refusal(f"/v1/runners/me/leases/{before['lease_id']}/renew", USAGE, lost)
        assert late == "UZ-RUN-011"
        assert (await second.report(heir, after))["status"] == "processed"

        [event] = await second.history()
        assert (event["event_id"], event["status"]) == (event_id, "processed")

        # The tree of the one that was killed is not shown as empty: it is silent, and the list says so.
        silent = await second.get(f"/v1/fleet/tree?node={place}", "admin_token")
        listed = (await second.call("GET", "/v1/fleet/tree", None, "admin_token"))["nodes"]
        assert (silent.status_code, silent.json()["error_code"]) == (SERVICE_UNAVAILABLE, "UZ-ACTOR-003")
        assert "is silent: it was last heard" in silent.json()["detail"]
        assert [(node["node"] == place, node["is_silent"]) for node in listed] == [
            (False, False),
            (True, True),
        ]


async def test_two_nodes_give_each_event_to_one_runner_and_take_each_cent_once(
    tmp_path: Path, postgres_dsn: str
) -> None:
    async with open_nodes(tmp_path, postgres_dsn) as nodes:
        first, second = nodes
        before = await first.balance()
        runners = [await nodes[n % 2].enrol(f"runner-{n}") for n in range(4)]
        agents = [await nodes[n % 2].install(f"agent-{n}") for n in range(AGENTS)]
        said = [await nodes[(n + m) % 2].say(a) for n, a in enumerate(agents) for m in range(MESSAGES)]
        leased: Counter[str] = Counter()

        async def work(number: int, runner: str) -> None:
            """Each call goes to the other node than the one before."""
            turn = number
            while sum(leased.values()) < len(said):
                lease = await nodes[turn % 2].lease(runner)
                if lease is not None:
                    leased[lease["event"]["event_id"]] += 1
                    renewed = await nodes[(turn + 1) % 2].renew(runner, lease)
                    assert renewed["state"] == "active"
                    done = await nodes[turn % 2].report(runner, lease)
                    assert (done["status"], done["duplicate"]) == ("processed", False)
                turn += 1

        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                for number, runner in enumerate(runners):
                    nursery.start_soon(work, number, runner)
        assert leased == Counter(said)

        events = await second.history()
        assert {event["event_id"]: event["status"] for event in events} == dict.fromkeys(said, "processed")

        gone = before - await first.balance()
        assert gone == sum(event["charged_nanos"] for event in events) > 0


async def test_a_lease_that_both_nodes_renew_at_once_is_never_told_to_be_lost(
    tmp_path: Path, postgres_dsn: str
) -> None:
    async with open_nodes(tmp_path, postgres_dsn) as nodes:
        await nodes[0].say(await nodes[0].install("watcher"))
        runner = await nodes[0].enrol("runner")
        lease = await nodes[0].lease(runner)
        assert lease is not None

        answers: Counter[tuple[int, str | None]] = Counter()

        async def renew(node: Node) -> None:
            for _ in range(RENEWALS):
                answer = await node.post(f"/v1/runners/me/leases/{lease['lease_id']}/renew", USAGE, runner)
                answers[answer.status_code, answer.json().get("error_code")] += 1
                assert answer.status_code != SERVICE_UNAVAILABLE or int(answer.headers["retry-after"]) > 0

        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                for node in [*nodes] * 3:
                    nursery.start_soon(renew, node)

        assert answers.keys() <= {(200, None), (SERVICE_UNAVAILABLE, "UZ-API-003")}, answers
        assert answers[200, None] > RENEWALS
        assert await nodes[0].metric(RACES) + await nodes[1].metric(RACES) > 0


async def test_a_server_whose_keys_do_not_open_the_database_says_so_and_ends(
    tmp_path: Path, postgres_dsn: str
) -> None:
    options = ("--database-url", postgres_dsn, "--port", "0", "--runners", "0")
    (tmp_path / "first").mkdir()
    async with open_server(tmp_path / "first", *options):
        words = ["up", "--data", str(tmp_path / "other"), *options]
        ended = await trio.to_thread.run_sync(run_command, words, {"PATH": "/usr/bin:/bin"})
    [line] = ended.stderr.splitlines()

    assert ended.returncode == CONFIG
    assert line.startswith("sexton: UZ-STARTUP-002: the master keys of this folder do not open")
    assert "SEXTON_MASTER_KEY" in line
