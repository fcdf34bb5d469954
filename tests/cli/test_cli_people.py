"""What people decide about agents, and how they look on: approvals, grants, proposals, watching."""

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx2
import orjson
import pytest
import trio

from tests.worlds.agent_folders import agent_folder
from tests.worlds.samples import command_body, skill_md
from tests.worlds.server_process import ServerProcess
from tests.worlds.shell import Shell, said, wait_until

NOWHERE = "019363b0-0000-7000-8000-00000000ffff"
GATED = "gates:\n  rules:\n    - {tool: '*', action: '*', behavior: approve}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A running server with one runner, which may be stopped and started again at the same address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    process = ServerProcess(tmp_path_factory.mktemp("people"), "--port", port, "--runners", "1")
    trio.run(process.start)
    yield process
    assert trio.run(process.stop) == 0


@pytest.fixture
def shell(server: ServerProcess, shell: Shell) -> Shell:
    """Signed in with the first key, by the environment."""
    shell.environment["SEXTON_TOKEN"] = server.ready["api_key"]
    return shell


@pytest.fixture
def gated(shell: Shell, tmp_path: Path) -> str:
    """An agent that asks a person before everything; its name."""
    name = f"gated-{len(shell.json('agent', 'list')['items'])}"
    assert shell("agent", "install", str(agent_folder(tmp_path, name, config=GATED))).returncode == 0
    return name


# --- approvals ----------------------------------------------------------------------------------------------


def test_what_waits_is_listed_shown_and_approved_and_then_it_runs(shell: Shell, gated: str) -> None:
    with shell.terminal("steer", gated, "please") as asking:
        wait_until(lambda: shell.json("approvals", "list", "--agent", gated)["items"])
        (gate,) = shell.json("approvals", "list", "--agent", gated)["items"]
        table = shell("approvals").stdout
        assert gate["gate_id"] in table
        assert gated in table

        shown = shell("approvals", "show", gate["gate_id"]).stdout
        assert "pending" in shown
        assert re.search(r"^message +please$", shown, re.MULTILINE)
        assert re.search(r"^reach +runs as command; ", shown, re.MULTILINE)

        approved = shell("approvals", "approve", gate["gate_id"], "--reason", "go on")
        assert approved.stdout == f"Approval {gate['gate_id']} is approved.\n"

        asking.expect("Event ")
        assert asking.ends() == 0
    again = shell("approvals", "deny", gate["gate_id"])
    assert (again.returncode, "UZ-APPROVAL-002" in said(again)) == (1, True)
    assert "approvals list --status all" in said(again)

    resolved = shell.json("approvals", "show", gate["gate_id"])
    assert (resolved["status"], resolved["detail"]) == ("approved", "go on")


def test_what_is_denied_ends_the_event_and_the_one_who_asked_is_told(shell: Shell, gated: str) -> None:
    with shell.terminal("steer", gated, "please") as asking:
        wait_until(lambda: shell.json("approvals", "list", "--agent", gated)["items"])
        (gate,) = shell.json("approvals", "list", "--agent", gated)["items"]
        assert shell("approvals", "deny", gate["gate_id"]).returncode == 0

        asking.expect("the event ended gate_blocked: approval_denied")
        assert asking.ends() == 1
    assert shell.json("approvals", "list", "--agent", gated)["items"] == []


def test_an_event_is_cancelled_and_done_again(shell: Shell, gated: str) -> None:
    event_id = shell("steer", gated, "please", "--no-wait").stdout.strip()
    wait_until(lambda: shell.json("approvals", "list", "--agent", gated)["items"])
    assert shell("cancel", event_id).stdout == f"Event {event_id}: cancelled.\n"

    (event,) = shell.json("events", gated)["items"]
    assert (event["event_id"], event["status"]) == (event_id, "cancelled")
    assert shell("cancel", event_id).returncode == 1

    made = shell.json("replay", event_id)
    assert made["resumes_event_id"] == event_id
    assert shell("cancel", made["event_id"]).returncode == 0

    gone = shell("replay", NOWHERE)
    assert (gone.returncode, "UZ-EVENT-001" in said(gone)) == (1, True)


def test_many_events_are_cancelled_and_done_again_and_their_job_is_shown(shell: Shell, gated: str) -> None:
    event_id = shell("steer", gated, "please", "--no-wait").stdout.strip()
    wait_until(lambda: shell.json("approvals", "list", "--agent", gated)["items"])
    mine = f"id:{event_id}"
    counted = shell("events", "cancel", "--filter", mine, "--dry-run").stdout
    assert counted == f"1 events.\n  {event_id}\n"

    job_id = shell("events", "cancel", "--filter", mine).stdout.strip()
    assert re.search(r"^done +1$", shell("jobs", "wait", job_id).stdout, re.MULTILINE)
    assert shell.json("event", "show", event_id)["status"] == "cancelled"
    assert job_id in shell("jobs", "list").stdout
    assert "UZ-REQ-009" in said(shell("jobs", "pause", job_id))

    made = shell.json("events", "replay", "--filter", mine, "--merge", '{"message": "again"}', "--rate", "9")
    assert shell("jobs", "wait", made["job"]["job_id"]).returncode == 0
    assert shell.json("events", gated, "--limit", "1")["items"][0]["resumes_event_id"] == event_id
    assert shell("events", "replay", "--filter", "x:y").returncode == 1
    assert shell("events", "replay", "--filter", mine, "--merge", "[]").returncode == 2
    assert shell("schedule").returncode == 0
    assert "there is no schedule" in said(shell("schedule", "pause", NOWHERE))
    assert shell("webhook").returncode == 0
    assert shell("webhook", "deliveries", "--verdict", "refused").returncode == 0
    assert "UZ-WH-040" in said(shell("webhook", "show", NOWHERE))
    assert "UZ-WH-040" in said(shell("webhook", "replay", NOWHERE))
    assert shell("failures").returncode == 0
    assert sum(minute["came"] for minute in shell.json("throughput")["minutes"]) > 1
    assert "LONGEST WAIT" in shell("throughput").stdout
    assert shell.json("queue", "--minutes", "5")["leases"] == 0
    assert "LONGEST WAIT IN 5 MIN" in shell("queue", "--minutes", "5").stdout
    assert "UZ-FAILURE-001" in said(shell("failures", "mute", NOWHERE))


# --- grants and proposals -----------------------------------------------------------------------------------


def test_a_grant_is_asked_for_decided_and_taken_back(shell: Shell, gated: str) -> None:
    asked = shell.json("grants", "request", gated, "slack", "--reason", "to tell people")
    assert asked["status"] == "pending"

    grant = asked["grant_id"]
    (row,) = shell.json("grants", "list", "--agent", gated)["items"]
    assert (row["grant_id"], row["service"]) == (grant, "slack")
    assert grant in shell("grants", "list", "--status", "pending").stdout
    assert shell("grants", "approve", grant).stdout == "Grant of slack is approved.\n"
    assert shell("grants", "revoke", grant).stdout == "Grant of slack is revoked.\n"

    refused = shell("grants", "deny", grant)
    assert refused.returncode == 1
    assert "(request " in said(refused)

    unknown = shell("grants", "approve", NOWHERE)
    assert (unknown.returncode, "sexton grants list" in said(unknown)) == (1, True)


def test_a_proposal_is_shown_line_by_line_and_decided(
    server: ServerProcess, shell: Shell, gated: str
) -> None:
    agent_id = shell.json("agent", "show", gated)["zombie_id"]
    better = skill_md(gated, body=command_body("echo better"))
    made = [propose(server, agent_id, better) for _ in range(2)]
    listed = shell("proposals", "list", gated).stdout
    assert all(proposal in listed for proposal in made)

    shown = shell("proposals", "show", gated, made[0]).stdout
    assert "+echo better" in shown
    assert "-cat > event.json" in shown

    applied = shell("proposals", "approve", gated, made[0])
    assert (applied.returncode, applied.stdout) == (0, f"Proposal {made[0]} is applied.\n")
    assert "echo better" in shell("agent", "show", gated, "--files").stdout

    late = shell("proposals", "approve", gated, made[1])
    assert late.returncode == 1
    assert "changed after this was proposed" in said(late)

    again = shell("proposals", "reject", gated, made[0], "--reason", "no")
    assert (again.returncode, "UZ-AGENT-002" in said(again)) == (1, True)

    third = propose(server, agent_id, better + "\nAnd more.\n")
    assert shell("proposals", "reject", gated, third, "--reason", "no").returncode == 0
    assert shell.json("proposals", "show", gated, third)["rejection_reason"] == "no"


def propose(server: ServerProcess, agent_id: str, skill: str) -> str:
    headers = {"authorization": f"Bearer {server.ready['api_key']}"}
    body = {"title": "Be better", "rationale": "It failed.", "source_markdown": skill}
    answer = httpx2.post(
        f"{server.ready['base_url']}/v1/agents/{agent_id}/proposals", json=body, headers=headers
    )
    assert answer.status_code == 201, answer.text
    return str(answer.json()["proposal_id"])


# --- an agent's files and its standing ----------------------------------------------------------------------


def test_an_agent_is_given_new_files_and_tells_how_it_does(shell: Shell, gated: str, tmp_path: Path) -> None:
    folder = agent_folder(tmp_path, gated, script="printf '{}\\n'")
    updated = shell("agent", "update", str(folder))
    assert updated.returncode == 0, updated.stderr
    assert f"Agent {gated} is now at revision 2." in updated.stdout
    assert shell("steer", gated, "go").returncode == 0

    told = shell("agent", "status", gated).stdout
    assert "processed" in told
    assert "1 good runs in a row" in told

    document = shell.json("agent", "status", gated)
    assert (document["profile"]["status"], document["pending_approvals"]) == ("ACTIVE", 0)
    assert shell.json("agent", "delete", gated, "--yes")["deleted"] is True

    gone = shell("agent", "show", gated)
    assert (gone.returncode, "sexton agent list" in said(gone)) == (1, True)


# --- watching -----------------------------------------------------------------------------------------------


def test_watching_goes_on_over_a_restart_without_a_gap_or_a_repeat(
    server: ServerProcess, shell: Shell, tmp_path: Path
) -> None:
    shell("agent", "install", str(agent_folder(tmp_path, "watched")))
    with shell.terminal("watch", "watched", "--json", "--from", "0") as watching:
        assert shell("steer", "watched", "one").returncode == 0

        watching.expect('"kind":"event_complete"')
        assert trio.run(server.stop) == 0

        trio.run(server.start)
        assert shell("steer", "watched", "two").returncode == 0

        watching.expect('"kind":"event_complete"')
        watching.interrupt()
        assert watching.ends() == 130
    frames = [orjson.loads(line) for line in watching.screen.splitlines() if line.startswith("{")]
    ids = [int(frame["id"]) for frame in frames]

    assert ids == list(range(1, len(ids) + 1))
    assert [frame["kind"] for frame in frames].count("event_complete") == 2


def test_watching_for_a_person_is_one_line_a_frame_and_can_be_counted(shell: Shell) -> None:
    told = shell("watch", "watched", "--from", "0", "--count", "2")
    assert told.returncode == 0, told.stderr

    first, second = told.stdout.splitlines()
    assert "event_received" in first
    assert "event_leased" in second

    bad = shell("watch", "watched", "--from", "nonsense")
    assert (bad.returncode, "UZ-REQ-001" in said(bad)) == (1, True)


def test_an_agent_that_is_not_there_cannot_be_watched(shell: Shell) -> None:
    ended = shell("watch", NOWHERE)
    assert (ended.returncode, "UZ-ZMB-009" in said(ended)) == (1, True)
