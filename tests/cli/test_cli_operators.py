"""What operators have beside their server: ``sexton top`` and ``sexton sign-in-link``."""

import re
from pathlib import Path

import httpx2
import orjson
import pytest
from rich.console import Console

from sexton_cli.top import LEASES, Look, screen
from tests.worlds.samples import NOBODY, agent_files, command_body
from tests.worlds.server_process import ServerProcess
from tests.worlds.shell import Shell, said

OURS = {"sec-fetch-site": "same-origin"}
ID = "019363b0-0000-7000-8000-0000000000aa"


@pytest.fixture
def shell(server: ServerProcess, shell: Shell) -> Shell:
    """Signed in as the platform admin."""
    shell.environment["SEXTON_TOKEN"] = server.ready["admin_token"]
    return shell


@pytest.fixture(scope="module")
def waiting(server: ServerProcess) -> str:
    """An agent that needs labels which no runner has, and its event; the agent's id."""
    headers = {"authorization": f"Bearer {server.ready['api_key']}"}
    body = agent_files("picky", "runtime: command", trigger=NOBODY, tags="gpu", body=command_body("true"))
    path = f"/v1/workspaces/{server.ready['workspace_id']}/zombies"
    with httpx2.Client(base_url=server.ready["base_url"], headers=headers, timeout=30) as http:
        made = http.post(path, json=body)
        assert made.status_code == 201, made.text
        agent_id = str(made.json()["zombie_id"])
        sent = http.post(f"{path}/{agent_id}/messages", json={"message": "go"})
        assert sent.status_code == 202, sent.text
    return agent_id


def test_a_script_gets_one_document(shell: Shell, waiting: str) -> None:
    seen = shell.json("top", "--once")

    assert seen.keys() == {
        *("at", "queue", "leases", "runners", "runners_total", "supervisor", "crashes", "handled")
    }
    assert seen["queue"]["depth"] == 1
    assert seen["queue"]["unsatisfiable"] == [{"required_tags": ["gpu"], "events": 1, "ready_agents": 1}]
    assert seen["supervisor"]["name"] == "sexton"
    assert {child["name"] for child in seen["supervisor"]["children"]} >= {"matching", "records", "rounds"}


def test_a_pipe_gets_it_once_and_whole(shell: Shell, waiting: str) -> None:
    ended = shell("top")

    assert ended.returncode == 0, ended.stderr
    assert re.search(r"^gpu +1 +no runner has these labels", ended.stdout, re.MULTILINE)
    assert re.search(r"^    dispatcher +awake", ended.stdout, re.MULTILINE)


def test_it_lives_in_a_terminal_until_ctrl_c(server: ServerProcess, shell: Shell, waiting: str) -> None:
    with shell.terminal("top", "--interval", "0.2", COLUMNS="100", LINES="40", NO_COLOR="1") as terminal:
        terminal.expect("1 event waits")
        terminal.expect("dispatcher")
        terminal.expect("1 event waits")
        terminal.interrupt()

        assert terminal.ends() == 130

    assert "Traceback" not in terminal.screen
    assert "\x1b[?1049l" in terminal.screen, "the shell's own lines are there again"


def test_who_is_no_platform_admin_is_told_so(server: ServerProcess, shell: Shell) -> None:
    ended = shell("top", "--token", server.ready["api_key"])

    assert (ended.returncode, "UZ-AUTH-021" in said(ended)) == (77, True)
    assert "sexton auth link" in said(ended)


def test_a_key_of_a_platform_admin_needs_no_browser(server: ServerProcess, shell: Shell) -> None:
    made = shell.json("keys", "create", "watcher", "--platform-admin", "--role", "user")

    assert "supervisor" in shell.json("top", "--once", "--token", made["key"])
    assert re.search("watcher .* user, platform", shell("keys", "list", COLUMNS="200").stdout)
    assert shell("keys", "revoke", "watcher").returncode == 0
    assert "UZ-APIKEY-004" in said(shell("top", "--token", made["key"]))


# --- a fresh link -------------------------------------------------------------------------------------------


def test_a_fresh_link_signs_the_operator_in_once_and_needs_the_servers_own_folder(
    server: ServerProcess, shell: Shell
) -> None:
    data, base = str(server.folder / "data"), server.ready["base_url"]
    link = shell("sign-in-link", "--data", data, SEXTON_TOKEN="").stdout.strip()
    assert link.startswith(f"{base}/auth/sign-in/")
    assert shell.json("sign-in-link", SEXTON_DATA=data)["sign_in_url"] != link

    with httpx2.Client(base_url=base, timeout=30) as browser:
        assert browser.post(link, headers=OURS).status_code == 303
        assert "local:admin" in browser.get("/").text
        assert browser.post(link, headers=OURS).status_code == 410
    elsewhere = shell("sign-in-link", "--data", data, "--server", "https://sexton.example/x/")
    assert elsewhere.stdout.startswith("https://sexton.example/x/auth/sign-in/")

    wrong = shell("sign-in-link", "--data", data, "--server", "javascript:1")
    assert (wrong.returncode, wrong.stdout) == (2, "")


def test_without_a_server_there_is_nothing_to_sign_in_to(bare_shell: Shell, tmp_path: Path) -> None:
    ended = bare_shell("sign-in-link", "--data", str(tmp_path))

    assert (ended.returncode, ended.stdout) == (69, "")
    assert "UZ-STARTUP-003" in said(ended)
    assert "sexton up" in said(ended)


# --- the screen ---------------------------------------------------------------------------------------------


def lease(number: int, slack_ms: int) -> dict[str, object]:
    return {
        "lease_id": f"lease-{number}",
        "zombie_id": ID,
        "runner_id": ID,
        "attempt": 1,
        "cancelling": False,
        "granted_at": 0,
        "slack_ms": slack_ms,
    }


def spelled(seen: Look, width: int, height: int | None) -> list[str]:
    console = Console(width=width, height=height or 1000, color_system=None, highlight=False)
    with console.capture() as captured:
        console.print(screen(seen, "http://x", height=height))
    return captured.get().splitlines()


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("height", [24, 50])
def test_a_busy_server_fits_every_screen(width: int, height: int) -> None:
    tree = {"name": "sexton", "children": [{"name": f"n{n}", "restarts": n} for n in range(60)]}
    runners = [
        {"id": ID, "host_id": f"h{n}", "liveness": "busy", "admin_state": "active", "labels": ["a"] * 40}
        for n in range(100)
    ]
    tags = [{"required_tags": [f"t{n}"], "agents": n} for n in range(50)]
    queue = {"depth": 9, "by_tags": tags, "unsatisfiable": [], "oldest_age_ms": 61_000}
    seen = Look(queue, [lease(n, 20_000) for n in range(LEASES)], 0, runners, 5000, tree)
    lines = spelled(seen, width, height)

    assert max(map(len, lines)) <= width
    assert len(lines) <= height + 6
    assert "runners, 5000" in "\n".join(lines)


def test_a_lease_that_is_nearly_over_stands_first_and_shows_what_is_left() -> None:
    seen = Look({"depth": 0}, [lease(1, -200), lease(2, 15_000)], 0, [], 0, {"name": "sexton"})
    text = "\n".join(spelled(seen, 200, None))

    assert re.search(r"lease-1 .* -0\.2 s +\.{10}", text)
    assert re.search(r"lease-2 .* 15\.0 s +#{5}\.{5}", text)


def test_a_lease_is_told_by_its_agents_name_and_by_the_id_where_a_server_gives_none() -> None:
    rows = [lease(1, 9_000) | {"zombie_name": "night-watch"}, lease(2, 9_000)]
    text = "\n".join(spelled(Look({"depth": 0}, rows, 0, [], 0, {"name": "sexton"}), 200, None))

    assert re.search(r"^lease-1 +night-watch ", text, re.MULTILINE)
    assert re.search(rf"^lease-2 +{ID} ", text, re.MULTILINE)


def test_an_idle_server_is_told_in_words() -> None:
    idle = Look({"depth": 0, "leases_active": 0, "waiting_offers": 1}, [], 0, [], 0, {"name": "sexton"})
    busy = Look({"depth": 1, "oldest_age_ms": 61_000, "by_tags": [{}]}, [lease(1, 0)], 0, [], 0, {})
    summary, *lines = spelled(idle, 200, None)
    other, *others = spelled(busy, 200, None)

    assert summary.endswith("Z  no event waits  0 leases  1 request for work")
    assert {"queue, empty", "leases, none"} <= set(lines)
    assert "  1 event waits, the oldest for 1 min 1 s  " in other
    assert {"queue", "leases, 1, the least time left first"} <= set(others)


def test_an_outage_is_told_above_what_was_seen_last() -> None:
    seen = Look({"depth": 3}, [], 0, [], 0, {"name": "sexton"})
    console = Console(width=200, color_system=None, highlight=False)
    with console.capture() as captured:
        console.print(screen(seen, "http://x", height=24, trouble="http://x cannot be reached."))
    first, second, *_ = captured.get().splitlines()

    assert "3 events wait" in first
    assert second == "http://x cannot be reached."


def test_what_a_server_says_cannot_steer_the_screen() -> None:
    evil = "\x1b[2J\x07[bold]x[/bold]"
    row = {"id": ID, "host_id": evil, "liveness": evil, "admin_state": evil, "labels": [evil]}
    seen = Look({"depth": 0}, [], 0, [row], 1, {"name": evil, "state": evil})
    text = "\n".join(spelled(seen, 300, None))

    assert "\x1b" not in text
    assert "[bold]x[/bold]" in text


def test_runners_and_actors_are_looked_after_from_a_terminal(
    server: ServerProcess, shell: Shell, waiting: str
) -> None:
    enrol = shell.json("runner", "enrol", "--label", "reserved:lab")
    body = {"host_id": "lab-1", "sandbox_tier": "bubblewrap", "labels": ["reserved:lab"]}
    bearer = {"authorization": f"Bearer {enrol['token']}", "user-agent": "sexton-runner/9"}
    made = httpx2.post(f"{server.ready['base_url']}/v1/runners", json=body, headers=bearer)
    [runner] = [row for row in shell.json("runner", "list")["items"] if row["host_id"] == "lab-1"]
    stands = [
        shell.json("runner", verb, "lab-1")["admin_state"]
        for verb in ("cordon", "activate", "drain", "revoke")
    ]
    unknown = shell("runner", "cordon", "nowhere")
    there = [shell("runner", "enrol", "--server", url) for url in ("https://a.example/", "a.example")]
    here = shell("runner", "enrol")
    help_ = shell("runner", "--help")
    leases = shell("lease")
    tree, seen = shell("tree"), shell.json("tree", "zombie")
    actors, place = seen["actors"], seen["node"]
    one = shell("actor", "show", "zombie", waiting)
    handled = [shell("actor", "messages", "zombie", waiting, "--contents") for _ in range(2)]
    again = shell("actor", "restart", "dispatcher", "--node", place)
    ended = shell("actor", "stop", "zombie", waiting)
    kept = shell("actor", "stop", "dispatcher")

    assert made.status_code == 201, made.text
    assert enrol["command"].startswith(
        f"SEXTON_ENROLMENT_TOKEN={enrol['token']} sexton runner --base-url http"
    )
    assert (runner["release"], stands) == ("sexton-runner/9", ["cordoned", "active", "drained", "revoked"])
    assert (unknown.returncode, "sexton runner list" in said(unknown)) == (1, True)
    assert " sexton runner --base-url https://a.example --state-dir" in there[0].stdout
    assert (there[1].returncode, "--server: an address begins with" in said(there[1])) == (2, True)
    assert ["this machine's own" in ended.stderr for ended in (there[0], here)] == [False, True]
    assert "--state-dir" in help_.stdout
    assert leases.returncode == 0, said(leases)
    assert re.search(r"^    dispatcher +awake", tree.stdout, re.MULTILINE)
    assert waiting in [row["key"] for row in actors]
    assert f"zombie/{waiting}" in one.stdout, said(one)
    assert [look.returncode for look in handled] == [0, 0]
    assert [done.returncode for done in (again, ended)] == [0, 0], said(again) + said(ended)
    assert "UZ-ACTOR-002" in said(kept)


def test_the_audit_log_is_listed_exported_and_verified(shell: Shell, tmp_path: Path) -> None:
    shell.json("keys", "create", "an-earlier-robot", "--role", "viewer")  # A line before the last one.
    made = shell.json("keys", "create", "robot", "--role", "viewer")
    listed = shell.json("audit", "list", "--action", "api_key.*", "--limit", "1")["items"]
    shown = shell("audit", "--here")
    whole = shell("audit", "verify")
    kept = whole.stdout.split()[-1]
    export = tmp_path / "audit.jsonl"
    export.write_text(shell("audit", "export").stdout)
    by_file = shell("audit", "verify", "--file", str(export), "--expect", kept)
    lines = export.read_text().splitlines(keepends=True)
    export.write_text("".join([*lines[:-1], lines[-1].replace("viewer", "admin")]))
    edited = shell("audit", "verify", "--file", str(export))
    export.write_text("".join(lines[1:]))
    gap = shell("audit", "verify", "--file", str(export))
    export.write_text("".join(lines[:-1]))
    cut = shell("audit", "verify", "--file", str(export), "--expect", kept)
    platform = shell("audit", "verify", "--platform")

    assert [(one["action"], one["target"]) for one in listed] == [("api_key.create", made["id"])]
    assert (shown.returncode, platform.returncode) == (0, 0), said(shown)
    assert (whole.returncode, by_file.returncode) == (0, 0), said(whole)
    assert kept == f"{len(lines)}:{orjson.loads(lines[-1])['hash']}"
    assert [wrong.returncode for wrong in (edited, gap, cut)] == [1, 1, 1]
    assert "it was changed" in said(edited)
    assert "a line is missing" in said(gap)
    assert "what was kept of it" in said(cut)
