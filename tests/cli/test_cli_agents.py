"""``agent``, ``steer``, ``events`` and what belongs to them, against a real server with a real runner."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.worlds.agent_folders import agent_folder
from tests.worlds.server_process import ServerProcess
from tests.worlds.shell import Shell, said

NOWHERE = "019363b0-0000-7000-8000-00000000ffff"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A running server with one runner."""
    process = ServerProcess(tmp_path_factory.mktemp("working"), "--port", "0", "--runners", "1")
    trio.run(process.start)
    yield process
    assert trio.run(process.stop) == 0


@pytest.fixture
def shell(server: ServerProcess, shell: Shell) -> Shell:
    """Signed in with the first key, by the environment."""
    shell.environment["SEXTON_TOKEN"] = server.ready["api_key"]
    return shell


# --- check, which needs no server ---------------------------------------------------------------------------


def test_a_folder_that_is_well_is_said_to_be(bare_shell: Shell, tmp_path: Path) -> None:
    folder = agent_folder(tmp_path)
    told = bare_shell("agent", "check", str(folder))

    assert (told.returncode, told.stdout) == (0, f"{folder}: agent echo 1.0.0 is well.\n")
    assert bare_shell.json("agent", "check", str(folder)) == {
        "ok": True,
        "name": "echo",
        "errors": [],
        "warnings": [],
    }


def test_what_is_good_but_will_not_work_is_warned_of(bare_shell: Shell, tmp_path: Path) -> None:
    folder = agent_folder(tmp_path, config="tools: [shel, mcp:files]\nprovider: antropic")
    file = folder / "TRIGGER.md"
    file.write_text(file.read_text().replace("runtime: command", "runtime: agent"))
    told = bare_shell("agent", "check", str(folder))
    assert told.returncode == 0

    line = f"{folder}/TRIGGER.md:7: `tools[0]` there is no tool `shel`: did you mean `shell`? (warning)"
    assert line in told.stdout
    assert "MCP server `files` is not known here" in told.stdout

    document = bare_shell.json("agent", "check", str(folder))
    assert (document["ok"], [warned["key"] for warned in document["warnings"]]) == (
        True,
        ["tools[0]", "tools[1]", "provider"],
    )


def test_every_problem_is_told_with_file_line_key_and_the_fix(bare_shell: Shell, tmp_path: Path) -> None:
    folder = agent_folder(tmp_path, config="budget:\n  daily_dollars: 5000\ntrigger: {}\ncolour: red")
    told = bare_shell("agent", "check", str(folder))
    assert told.returncode == 1
    assert f"{folder}/TRIGGER.md:8: `budget.daily_dollars`" in told.stdout
    assert "write `triggers:`" in told.stdout
    assert f"{folder}/TRIGGER.md:10: `colour`" in told.stdout

    ended = bare_shell("agent", "check", str(folder), "--json")
    assert ended.returncode == 1
    assert ended.stdout.count('"UZ-ZMB-008"') == len(told.stdout.splitlines()) == 3


def test_a_folder_without_its_files_or_with_no_text_says_so(bare_shell: Shell, tmp_path: Path) -> None:
    empty = bare_shell("agent", "check", str(tmp_path))
    assert (empty.returncode, "SKILL.md" in said(empty)) == (2, True)

    folder = agent_folder(tmp_path)
    (folder / "SKILL.md").write_bytes(b"---\nname: echo\n\xff\xfe")
    broken = bare_shell("agent", "check", str(folder))
    assert (broken.returncode, "SKILL.md line 3: not UTF-8" in said(broken)) == (1, True)

    (folder / "SKILL.md").write_bytes(b"x" * 10_000_000)
    assert "must have 1 to 65536 bytes" in bare_shell("agent", "check", str(folder)).stdout


# --- an agent's life ----------------------------------------------------------------------------------------


def refused_trials(shell: Shell) -> None:
    """What an agent of one version says to those who would try one out."""
    active = shell("agent", "canary", "start", "echo", "1", "--share", "5", "--max-cost", "0.01")

    assert "was ever on trial" in shell("agent", "canary", "status", "echo").stdout
    assert (active.returncode, "UZ-HARNESS-003" in active.stderr) == (1, True)
    assert "UZ-REQ-009" in shell("agent", "canary", "promote", "echo", "--yes").stderr
    assert shell("agent", "canary", "withdraw", "echo").returncode == 1


def exported_and_told(shell: Shell, event_ids: list[str]) -> None:
    exported = shell("events", "export", "--filter", "status:processed").stdout.splitlines()
    frames = shell("event", "frames", event_ids[0]).stdout.splitlines()
    table = shell("events").stdout

    assert [json.loads(line)["event_id"] for line in exported] == event_ids
    assert [frames[0].split()[3], frames[-1].split()[3]] == ["event_received", "event_complete"]
    assert event_ids[0] in table
    assert "echo" in table


def test_an_agent_is_installed_steered_looked_at_and_deleted(
    server: ServerProcess, shell: Shell, tmp_path: Path
) -> None:
    installed = shell("agent", "install", str(agent_folder(tmp_path)))
    assert installed.returncode == 0, installed.stderr
    assert re.search(r"webhook nobody +http\S+/v1/webhooks/\S+", installed.stdout)
    assert re.search(r"approval token +zap_[0-9a-f]{64}", installed.stdout)

    answered = shell("steer", "echo", "hello")
    assert answered.returncode == 0, answered.stderr
    assert re.match(r"Event [0-9a-f-]{36}\.\n", answered.stderr)

    by_pipe = shell.json("steer", "echo", stdin="hello again", COLUMNS="80")
    assert by_pipe["status"] == "processed"
    assert by_pipe["request_json"]["message"] == "hello again"

    events = shell.json("events", "echo")["items"]
    assert [event["status"] for event in events] == ["processed", "processed"]
    assert shell.json("events", "echo", "--status", "cancelled")["items"] == []
    assert len(shell.json("events", "--actor", "steer:*", "--since", "1h", "--limit", "1")["items"]) == 1

    exported_and_told(shell, [event["event_id"] for event in events])

    looked = shell("agent", "show", "echo")
    assert "For another one take its trigger" in looked.stderr

    shown = looked.stdout
    assert re.search(r"^status +active$", shown, re.MULTILINE)
    assert re.search(r"^woken by +webhook:nobody$", shown, re.MULTILINE)
    assert re.search(r"^webhook nobody +http://\S+/v1/webhooks/\S+/zwh_\*\*\*$", shown, re.MULTILINE)
    assert "# At work" in shell("agent", "show", "echo", "--files").stdout

    [version] = shell.json("agent", "versions", "echo")["items"]
    assert (version["version"], version["status"]) == (1, "ACTIVE")
    assert shell("agent", "diff", "echo", "1").stdout == "The files are the same.\n"
    assert "by version 1 from its next lease" in shell("agent", "roll-back", "echo", "1", "--yes").stdout
    assert shell("agent", "diff", "echo", "7").returncode == 2

    refused_trials(shell)
    assert shell("agent", "forget", "echo", "a/b?c", "--yes").stdout == "Agent echo has forgotten 'a/b?c'.\n"
    assert shell.json("agent", "memories", "echo")["total"] == 0

    admin = server.ready["admin_token"]
    assert re.search(r"^echo +2 ", shell("charges").stdout, re.MULTILINE)
    assert len(shell("charges", "--export").stdout.splitlines()) == 2

    options = {one["name"]: one for one in shell.json("settings", SEXTON_TOKEN=admin)["items"]}
    assert (options["--port"]["value"], options["--port"]["source"]) == ("0", "option")

    assert shell("agent", "stop", "echo").stdout == "Agent echo is stopped.\n"

    refused = shell("steer", "echo", "hello")
    assert refused.returncode == 1
    assert "UZ-ZMB-012" in refused.stderr
    assert "sexton agent resume" in refused.stderr
    assert shell("agent", "resume", "echo").stdout == "Agent echo is active.\n"

    listed = shell.json("agent", "list", "--status", "active")["items"]
    assert [row["name"] for row in listed] == ["echo"]

    unsure = shell("agent", "kill", "echo")
    assert (unsure.returncode, "--yes" in said(unsure)) == (2, True)
    assert shell("agent", "kill", "echo", "--yes").stdout == "Agent echo is killed.\n"

    again = shell("agent", "resume", "echo")
    assert (again.returncode, "UZ-ZMB-010" in said(again)) == (1, True)


def test_what_is_not_there_says_so_and_is_not_searched_for_by_a_pattern(shell: Shell) -> None:
    for name in ("nobody", "*", "a/../b", "x?status=active"):
        ended = shell("agent", "show", name)
        assert (ended.returncode, "sexton agent list" in said(ended)) == (1, True), name
    ended = shell("agent", "show", NOWHERE)

    assert (ended.returncode, "UZ-ZMB-009" in said(ended)) == (1, True)


def test_a_folder_with_faults_is_not_sent(shell: Shell, tmp_path: Path) -> None:
    folder = agent_folder(tmp_path, "faulty", config="colour: red")
    ended = shell("agent", "install", str(folder))

    assert (ended.returncode, "UZ-ZMB-008" in said(ended)) == (1, True)
    assert "sexton agent check" in said(ended)
    assert "faulty" not in [row["name"] for row in shell.json("agent", "list")["items"]]


def test_a_message_without_letters_or_with_too_many_is_not_sent(shell: Shell) -> None:
    assert shell("steer", NOWHERE, "").returncode == 2
    assert shell("steer", NOWHERE, stdin="ä" * 5000).returncode == 2


def test_an_event_that_goes_wrong_ends_the_command_with_its_reason(shell: Shell, tmp_path: Path) -> None:
    shell("agent", "install", str(agent_folder(tmp_path, "broken", script="exit 3")))
    ended = shell("steer", "broken", "go")

    assert ended.returncode == 1
    assert "the event ended agent_error: agent_run" in ended.stderr


# --- the terminal -------------------------------------------------------------------------------------------


def test_a_person_is_asked_before_an_agent_is_deleted(shell: Shell, tmp_path: Path) -> None:
    shell("agent", "install", str(agent_folder(tmp_path, "doomed")))
    with shell.terminal("agent", "kill", "doomed") as terminal:
        terminal.expect("Kill agent doomed for good? (yes/no) ")
        terminal.type("no\n")

        assert terminal.ends() == 1
    assert "active" in shell("agent", "show", "doomed").stdout

    with shell.terminal("agent", "kill", "doomed") as terminal:
        terminal.expect("(yes/no) ")
        terminal.type("yes\n")
        terminal.expect("Agent doomed is killed.")

        assert terminal.ends() == 0


# --- credentials --------------------------------------------------------------------------------------------


def test_a_credential_comes_from_a_pipe_or_a_file_and_is_never_shown(shell: Shell, tmp_path: Path) -> None:
    assert shell("credentials", "set", "hook", "--field", "webhook_secret", stdin="s3cret\n").returncode == 0

    file = tmp_path / "two.json"
    file.write_text('{"user": "u", "password": "pass-word"}')
    assert shell("credentials", "set", "two", "--file", str(file)).returncode == 0

    listed = shell("credentials", "list").stdout
    assert {"hook", "two"} <= {row["name"] for row in shell.json("credentials", "list")["items"]}
    assert "s3cret" not in listed
    assert shell("credentials", "delete", "two").stdout == "Forgot credential two.\n"
    assert "two" not in [row["name"] for row in shell.json("credentials", "list")["items"]]


def test_the_grant_of_a_credential_is_listed_revoked_and_approved(shell: Shell, tmp_path: Path) -> None:
    shell("credentials", "set", "hub", "--field", "token", stdin="s3cret\n")
    folder = agent_folder(tmp_path, name="borrower", config="credentials: [hub]")
    file = folder / "TRIGGER.md"
    file.write_text(file.read_text().replace("runtime: command", "runtime: agent"))
    assert shell("agent", "install", str(folder)).returncode == 0

    def statuses() -> list[str]:
        return [
            row["status"]
            for row in shell.json("credentials", "grants", "list", "--agent", "borrower")["items"]
        ]

    assert statuses() == ["approved"]
    assert "borrower" in shell("credentials", "grants", "list").stdout

    revoked = shell("credentials", "grants", "revoke", "borrower", "hub")
    assert revoked.stdout == "Grant of hub to borrower is revoked.\n"
    assert statuses() == ["revoked"]
    assert shell("credentials", "grants", "deny", "borrower", "hub").returncode != 0
    assert shell("credentials", "grants", "approve", "borrower", "hub").returncode == 0
    assert statuses() == ["approved"]


def test_a_credential_typed_in_a_terminal_is_not_on_the_screen(shell: Shell) -> None:
    with shell.terminal("credentials", "set", "typed", "--field", "token") as terminal:
        terminal.expect("token: ")
        terminal.type("hidden-words\n")
        terminal.expect("Keeping credential typed.")

        assert terminal.ends() == 0
    assert "hidden-words" not in terminal.screen


def test_a_credential_that_is_none_is_not_sent(shell: Shell, tmp_path: Path) -> None:
    for words, given in (
        (("set", "x"), "no json"),
        (("set", "x"), "[1]"),
        (("set", "x", "--field", "k"), ""),
    ):
        ended = shell("credentials", *words, stdin=given)
        assert ended.returncode == 2, ended.stderr
        assert given not in ended.stderr or not given
    (tmp_path / "raw").write_bytes(b"\xff secret \xfe")
    raw = shell("credentials", "set", "x", "--field", "k", "--file", str(tmp_path / "raw"))
    assert (raw.returncode, "not UTF-8" in said(raw)) == (2, True)
    assert "secret \\xfe" not in raw.stderr

    gone = shell("credentials", "set", "x", "--file", str(tmp_path / "gone"))
    assert (gone.returncode, "No such file" in said(gone)) == (2, True)

    empty = shell("credentials", "set", "x", stdin="{}")
    assert (empty.returncode, "UZ-VAULT-001" in said(empty)) == (1, True)
