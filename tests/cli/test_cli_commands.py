"""``keys``, ``workspace``, ``doctor``, ``trigger`` and ``mcp`` against a real server."""

import json
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest
from click.testing import CliRunner

from sexton_cli.commands.mcp_server import mcp_server
from sexton_cli.commands.trigger import trigger
from sexton_cli.credentials import CredentialFile, Kept
from sexton_cli.main import cli
from tests.worlds.agent_folders import agent_folder
from tests.worlds.assistant import META
from tests.worlds.samples import skill_md
from tests.worlds.server_process import ServerProcess
from tests.worlds.shell import Shell, said

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}, "clientInfo": {}}
NOWHERE = "019363b0-0000-7000-8000-00000000ffff"


@pytest.fixture
def shell(server: ServerProcess, shell: Shell) -> Shell:
    """Signed in with the first key, by the environment."""
    shell.environment["SEXTON_TOKEN"] = server.ready["api_key"]
    return shell


def make_keys(server: ServerProcess, names: set[str]) -> None:
    """Make keys of these names, faster than the command could."""
    headers = {"authorization": f"Bearer {server.ready['api_key']}"}
    with httpx2.Client(base_url=server.ready["base_url"], headers=headers) as http:
        for name in names:
            assert http.post("/v1/api-keys", json={"key_name": name}).status_code == 201


# --- keys ---------------------------------------------------------------------------------------------------


def test_a_key_lives_from_its_making_to_its_end(shell: Shell) -> None:
    made = shell("keys", "create", "robot", "--role", "user", "--description", "For the robot.")
    assert made.returncode == 0, made.stderr

    value = made.stdout.strip()
    assert re.fullmatch(r"zmb_t_[0-9a-f]{64}", value)

    me = shell.json("whoami", "--token", value)
    assert (me["kind"], me["name"], me["role"]) == ("api_key", "robot", "user")

    (item,) = [key for key in shell.json("keys", "list")["items"] if key["key_name"] == "robot"]
    assert (item["role"], item["description"], item["active"]) == ("user", "For the robot.", True)
    assert value not in shell("keys", "list").stdout

    early = shell("keys", "delete", "robot")
    assert (early.returncode, "UZ-APIKEY-008" in said(early)) == (1, True)
    assert "sexton keys revoke" in said(early)
    assert shell("keys", "revoke", "robot").stdout == "Revoked key robot.\n"

    again = shell("keys", "revoke", item["id"])
    assert (again.returncode, "UZ-APIKEY-006" in said(again)) == (1, True)
    assert shell.json("keys", "delete", item["id"]) == {"id": item["id"], "deleted": True}

    gone = shell("keys", "delete", item["id"])
    assert (gone.returncode, "UZ-APIKEY-003" in said(gone)) == (1, True)


def test_with_json_the_key_is_in_the_document_once(shell: Shell) -> None:
    made = shell.json("keys", "create", "script")
    assert made["key"].startswith("zmb_t_")
    assert made.keys() == {"id", "key_name", "key", "created_at", "request_id"}

    revoked = shell.json("keys", "revoke", "script")
    assert (revoked["active"], revoked["revoked_at"] > 0) == (False, True)


def test_a_key_that_cannot_be_made_says_why(shell: Shell) -> None:
    assert shell("keys", "create", "twice").returncode == 0

    taken = shell("keys", "create", "twice")
    assert (taken.returncode, "UZ-APIKEY-005" in said(taken)) == (1, True)

    misnamed = shell("keys", "create", "two words")
    assert (misnamed.returncode, "UZ-REQ-001" in said(misnamed)) == (1, True)
    assert shell("keys", "create", "x", "--role", "emperor").returncode == 2

    unknown = shell("keys", "revoke", "nobody")
    assert (unknown.returncode, "sexton keys list" in said(unknown)) == (1, True)


def test_a_key_of_a_low_role_may_read_and_not_make(shell: Shell) -> None:
    low = shell.json("keys", "create", "low", "--role", "user")["key"]
    assert shell("keys", "list", "--token", low).returncode == 0

    ended = shell("keys", "create", "mine", "--token", low)
    assert (ended.returncode, "UZ-AUTH-009" in said(ended)) == (77, True)


def test_more_keys_than_fit_a_page_are_all_listed(server: ServerProcess, shell: Shell) -> None:
    before = shell.json("keys", "list")["total"]
    names = {f"page-{number}" for number in range(101 - before)}
    make_keys(server, names)
    listed = shell.json("keys", "list")

    assert listed["total"] == len(listed["items"]) == 101
    assert names <= {key["key_name"] for key in listed["items"]}


def test_a_table_fits_the_terminal_and_keeps_its_ids_whole(shell: Shell) -> None:
    shell("keys", "create", "a-name-that-is-as-long-as-a-name-may-be-" + "x" * 24)
    with shell.terminal("keys", "list", COLUMNS="60", NO_COLOR="1") as terminal:
        assert terminal.ends() == 0
    bold = re.compile(r"\x1b\[[0-9;]*m")
    lines = [bold.sub("", line) for line in terminal.screen.splitlines()]
    assert lines[0].split() == ["NAME", "ID", "STATE"]
    assert max(map(len, lines)) <= 60

    items = shell.json("keys", "list")["items"]
    assert all(sum(key["id"] in line for line in lines) == 1 for key in items)

    piped = shell("keys", "list").stdout
    assert all(key["key_name"] in piped for key in items), "a file has no edge"


# --- workspaces ---------------------------------------------------------------------------------------------


def test_a_workspace_is_made_chosen_and_used(server: ServerProcess, shell: Shell) -> None:
    first = server.ready["workspace_id"]
    made = shell.json("workspace", "create", "garden")
    assert made["name"] == "garden"
    assert shell("workspace", "use", "garden").stdout.startswith("Using workspace garden ")

    in_use = [row["name"] for row in shell.json("workspace", "list")["items"] if row["in_use"]]
    assert in_use == ["garden"]
    assert shell.json("whoami")["workspace"] == {"id": made["workspace_id"], "name": "garden"}
    assert shell.json("whoami", "--workspace", first)["workspace"]["id"] == first
    assert shell.json("whoami", SEXTON_WORKSPACE="default")["workspace"]["id"] == first
    assert shell.json("workspace", "use", first)["workspace_id"] == first
    assert shell.json("whoami")["workspace"]["id"] == first


def test_a_workspace_can_be_made_without_a_name_and_used_at_once(shell: Shell) -> None:
    made = shell.json("workspace", "create", "--use")

    assert made["name"].startswith("workspace-")
    assert made["in_use"] is True
    assert shell.json("whoami")["workspace"]["name"] == made["name"]


def test_workspaces_that_are_not_there_or_are_there_already_say_so(shell: Shell) -> None:
    assert shell("workspace", "create", "twice").returncode == 0

    taken = shell("workspace", "create", "twice")
    assert (taken.returncode, "UZ-WORKSPACE-004" in said(taken)) == (1, True)

    foreign = shell("workspace", "use", NOWHERE)
    assert (foreign.returncode, "UZ-WORKSPACE-001" in said(foreign)) == (1, True)
    assert "(request " in said(foreign)

    unknown = shell("workspace", "use", "nowhere")
    assert (unknown.returncode, "sexton workspace list" in said(unknown)) == (1, True)


def test_a_choice_that_is_not_there_any_more_is_forgotten_and_one_that_is_asked_for_is_not(
    server: ServerProcess, shell: Shell
) -> None:
    assert shell("workspace", "use", "default").returncode == 0

    file = CredentialFile(shell.credentials.parent)
    url, gone = server.ready["base_url"], Kept(workspace_id=NOWHERE)
    file.change(lambda credentials: credentials.with_server(url, gone))
    assert shell.json("whoami")["workspace"] is None
    assert not any(row["in_use"] for row in shell.json("workspace", "list")["items"])

    told = {check["name"]: check for check in shell.json("doctor")["checks"]}
    assert told["workspace"]["state"] == "warn"

    asked = shell("whoami", "--workspace", "nowhere")
    assert (asked.returncode, "sexton workspace list" in said(asked)) == (1, True)


def test_the_list_for_a_person_marks_the_one_in_use(shell: Shell) -> None:
    assert shell("workspace", "use", "default").returncode == 0

    lines = shell("workspace", "list").stdout.splitlines()
    assert lines[0].split() == ["NAME", "ID", "PLAN", "PAUSED", "CREATED"]
    assert [line.split()[1] for line in lines if line.startswith("*")] == ["default"]


def test_a_locale_without_a_letter_shows_another_and_json_is_utf_8_all_the_same(shell: Shell) -> None:
    poor = {"PYTHONIOENCODING": "ascii"}

    assert shell("workspace", "create", "jardín").returncode == 0
    assert "jard?n" in shell("workspace", "list", **poor).stdout
    assert "jardín" in [row["name"] for row in shell.json("workspace", "list", **poor)["items"]]


# --- the doctor ---------------------------------------------------------------------------------------------

CHECKS = [
    "credentials",
    "address",
    "server",
    "ready",
    "clock",
    "token",
    "workspace",
    "balance",
    "sandbox",
    "database",
]


def test_the_doctor_looks_at_everything(shell: Shell) -> None:
    assert shell("workspace", "use", "default").returncode == 0

    told = shell.json("doctor")
    assert told["ok"] is True
    assert [check["name"] for check in told["checks"]] == CHECKS
    assert {check["state"] for check in told["checks"]} == {"ok"}

    spoken = shell("doctor")
    assert spoken.returncode == 0
    assert len(spoken.stdout.splitlines()) == len(CHECKS)


def test_the_doctor_ends_with_the_status_of_what_failed_first(shell: Shell) -> None:
    away = shell("doctor", SEXTON_BASE_URL="http://127.0.0.1:1")
    assert away.returncode == 69
    assert "sexton up" in away.stdout

    unknown = shell("doctor", SEXTON_TOKEN="zmb_t_" + "0" * 64)
    assert unknown.returncode == 77
    assert "UZ-AUTH-002" in unknown.stdout
    assert "Traceback" not in away.stderr + unknown.stderr


def test_the_doctor_reports_a_file_that_others_can_read(shell: Shell) -> None:
    assert shell("workspace", "use", "default").returncode == 0

    shell.credentials.chmod(0o644)
    ended = shell("doctor", "--json")
    assert ended.returncode == 78
    assert "chmod 600" in ended.stdout


def test_the_doctor_tells_which_database_a_server_here_would_use(shell: Shell) -> None:
    ended = shell("doctor", DATABASE_URL="postgresql://sexton:very-secret@db.internal/sexton")

    assert "the PostgreSQL of DATABASE_URL" in ended.stdout
    assert "very-secret" not in ended.stdout + ended.stderr


def test_the_doctor_says_what_to_install_for_a_sandbox(shell: Shell) -> None:
    ended = shell("doctor", PATH="/nowhere")

    assert ended.returncode == 69
    assert "apt-get install util-linux" in ended.stdout


# --- trigger ------------------------------------------------------------------------------------------------

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NATIVE = ("github", "slack", "linear", "stripe", "sentry", "svix")


def manifest() -> str:
    lines = [f"  - {{type: webhook, source: {source}, signature: {{secret_ref: hook}}}}" for source in NATIVE]
    shop = "{secret_ref: hook, header: x-shop-signature, prefix: 'hmac=', ts_header: x-shop-time}"
    lines.append(f"  - {{type: webhook, source: shop, signature: {shop}}}")
    lines.append("  - {type: webhook, source: plain, events: [order.paid]}")
    return "\n".join(["---", "name: hooked", "triggers:", *lines, "---", ""])


def test_a_sample_of_each_source_wakes_an_agent_of_a_real_server(
    server: ServerProcess, tmp_path: Path
) -> None:
    headers = {"authorization": f"Bearer {server.ready['api_key']}"}
    with httpx2.Client(base_url=server.ready["base_url"], headers=headers) as http:
        workspace = f"/v1/workspaces/{server.ready['workspace_id']}"
        hook = {"name": "hook", "data": {"webhook_secret": SECRET}}
        assert http.post(f"{workspace}/credentials", json=hook).status_code == 201

        files = {"source_markdown": skill_md("hooked"), "trigger_markdown": manifest()}
        made = http.post(f"{workspace}/zombies", json=files)
        assert made.status_code == 201, made.text
    environment = {
        "HOME": str(tmp_path),
        "SEXTON_BASE_URL": server.ready["base_url"],
        "SEXTON_TOKEN": server.ready["api_key"],
        "SEXTON_WORKSPACE": server.ready["workspace_id"],
        "SEXTON_DATA": str(server.folder / "data"),
    }

    def send(*words: str, **changes: str) -> tuple[int, str]:
        ended = CliRunner().invoke(trigger, [*words, "--agent", "hooked"], env=environment | changes)
        return ended.exit_code, ended.output

    for source in (*NATIVE, "shop"):
        status, said = send(source)  # With the secret of the vault.
        assert (status, "accepted" in said) == (0, True), (source, said)

    given = tmp_path / "secret"
    given.write_text(SECRET)
    elsewhere = {"SEXTON_DATA": str(tmp_path / "no server here")}

    assert send("github:issues.opened", "--secret", f"@{given}", **elsewhere)[0] == 0

    status, said = send("github", **elsewhere)
    assert (status, "Give the secret with --secret @FILE" in said) == (78, True), said

    given.write_text(SECRET.lower())
    status, said = send("github", "--secret", f"@{given}")
    assert (status, "UZ-WH-010" in said) == (77, True), said

    address = made.json()["webhook_urls"]["plain"]
    assert send("plain")[0] == 2
    assert send("plain", "--url", address)[0] == 0

    status, said = send("plain:order.lost", "--url", address)
    assert (status, "order.lost woke nobody" in said) == (1, True), said
    assert send("gitlab")[0] == 2
    assert SECRET not in said


# --- MCP servers --------------------------------------------------------------------------------------------


def test_a_server_is_declared_listed_and_removed(server: ServerProcess, tmp_path: Path) -> None:
    environment = {
        "HOME": str(tmp_path),
        "SEXTON_WORKSPACE": server.ready["workspace_id"],
        "SEXTON_BASE_URL": server.ready["base_url"],
        "SEXTON_TOKEN": server.ready["api_key"],
    }

    def said_by(*words: str, status: int = 0) -> str:
        ended = CliRunner().invoke(mcp_server, words, env=environment)
        assert ended.exit_code == status, ended.output
        return ended.output

    header = "authorization=Bearer ${secrets.hub.token}"
    url = "https://mcp.example.com/mcp"
    made = said_by("set", "hub", "--url", url, "--header", header, "--tool", "read", "--json")
    shown = said_by("list")
    wrong = said_by("set", "hub", "--url", f"{url}?key=1", status=1)
    said_by("set", "hub", "--url", url, "--header", "no-value", status=2)

    assert json.loads(made)["headers"] == {"authorization": "Bearer ${secrets.hub.token}"}
    assert "mcp_servers: [local]" in said_by(
        "set", "local", "--runner-server", "files", "--env", "LEVEL=debug"
    )
    assert [line.split()[:2] for line in shown.splitlines()] == [["NAME", "AT"], ["hub", url]]
    assert "/url: must be https://HOST/PATH" in wrong

    for name in ("hub", "local"):
        assert said_by("remove", name) == f"Removed MCP server {name}.\n"
    assert json.loads(said_by("list", "--json")) == {"items": [], "total": 0}


def mcp_line(rpc_id: int | None, method: str, params: Mapping[str, object] | None = None) -> str:
    named = {} if rpc_id is None else {"id": rpc_id}
    return orjson.dumps({"jsonrpc": "2.0", **named, "method": method, "params": params or {}}).decode()


def test_an_assistant_talks_to_the_server_through_the_command(server: ServerProcess, shell: Shell) -> None:
    shell.environment["SEXTON_WORKSPACE"] = server.ready["workspace_id"]
    lines = [
        mcp_line(1, "initialize", HELLO),
        mcp_line(None, "notifications/initialized"),
        "nonsense",
        mcp_line(2, "tools/call", {"name": "agents_list", "arguments": {}}),
        mcp_line(3, "tools/list"),
        mcp_line(4, "tools/list", {"_meta": META}),
        mcp_line(
            5, "tools/call", {"name": "event_wait", "arguments": {"event_id": server.ready["workspace_id"]}}
        ),
    ]
    ended = shell("mcp", "--stdio", "--write", stdin="\n".join(lines) + "\n")
    assert (ended.returncode, ended.stderr) == (0, "")

    told = {message["id"]: message for message in map(orjson.loads, ended.stdout.splitlines())}
    assert told.keys() == {1, 2, 3, 4, 5, None}
    assert told[1]["result"]["protocolVersion"] == "2025-06-18"
    assert told[2]["result"]["isError"] is False
    assert "event_send" in {tool["name"] for tool in told[3]["result"]["tools"]}
    assert told[4]["result"]["resultType"] == "complete"
    assert told[5]["result"]["isError"]
    assert told[None]["error"]["code"] == -32700

    wrong = shell("mcp", "--stdio", "--token", "zmb_t_" + "3" * 64, stdin=lines[0] + "\n")
    assert "UZ-AUTH-002" in orjson.loads(wrong.stdout)["error"]["message"]


def test_the_settings_name_the_address_and_never_a_token(shell: Shell) -> None:
    shell.environment["SEXTON_TOKEN"] = "zmb_t_" + "3" * 64
    document = shell.json("mcp", "--write", "--all-tools")
    printed = shell("mcp").stdout

    assert document["url"].endswith("/mcp?write=1&tools=all")
    assert document["vscode"]["servers"]["sexton"]["url"] == document["url"]
    assert document["stdio"]["args"][:2] == ["mcp", "--stdio"]
    assert "claude mcp add sexton -- sexton mcp --stdio --base-url" in printed
    assert "333" not in printed + str(document)


# --- what the product does ----------------------------------------------------------------------------------


class Caller:
    """Calls commands in this process, as somebody who is signed in to the server."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment

    def __call__(self, line: str, *, status: int = 0) -> str:
        ended = CliRunner().invoke(cli, line.split(), env=self.environment)
        assert ended.exit_code == status, (line, ended.output, ended.exception)
        return ended.output

    def json(self, line: str) -> Any:
        return json.loads(self(f"{line} -o json"))


@pytest.fixture
def caller(server: ServerProcess, tmp_path: Path) -> Caller:
    """Somebody in a workspace that nobody else uses."""
    environment = {
        "HOME": str(tmp_path),
        "SEXTON_BASE_URL": server.ready["base_url"],
        "SEXTON_TOKEN": server.ready["api_key"],
        "SEXTON_WORKSPACE": server.ready["workspace_id"],
    }
    made = Caller(environment).json("workspace create")
    return Caller(environment | {"SEXTON_WORKSPACE": made["workspace_id"]})


def test_an_agent_is_reached_from_the_command_line(caller: Caller, tmp_path: Path) -> None:
    folder = agent_folder(tmp_path)
    installed = caller.json(f"agent install {folder}")
    assert caller("agents list -o name").split() == ["echo"]

    # Versions, step by step.
    agent_folder(tmp_path, script="true")
    assert caller(f"harness draft echo {folder}") == "Version 2 of agent echo is a DRAFT.\n"
    assert "COMPILED" in caller("harness compile --agent echo 2")

    caller("harness activate echo 2 --yes")
    assert [row["version"] for row in caller.json("harness list echo")["items"]] == [2, 1]

    (folder / "TRIGGER.md").write_text("nonsense")
    caller(f"harness draft echo {folder}")
    assert "makes no agent" in caller("harness compile echo 3", status=1)

    # Proposals, follow-ups, memories, scores.
    agent_folder(tmp_path, script="false")
    proposal = caller(f"proposals create echo {folder} --title Less").strip()
    assert "Less" in caller(f"proposals show echo {proposal[-8:]}")
    assert "UZ-FOLLOWUP-001" in caller(f"follow-up cancel echo {NOWHERE}", status=1)

    for noun in ("follow-up", "memory", "score"):
        assert caller.json(f"{noun} list echo")["items"] == []
    assert caller("scoring set 600") == caller("scoring show")
    assert "UZ-SCORING-001" in caller("scoring set 1", status=1)

    # Keys of the agent, and webhooks.
    key = caller.json("agent-key create echo outside")
    assert caller("agent-key list --agent echo -o name") == "outside\n"

    caller(f"agent-key delete {key['agent_id'][-10:]}")
    assert caller.json("agent-key list")["items"] == []

    token = caller("agent approval-token echo --yes").strip()
    assert token != installed["approval_token"]

    body = tmp_path / "body"
    body.write_text("{}")
    assert "it would be refused" in caller(f"webhook verify echo --body {body} --header x-a=b", status=1)


def test_the_tenant_and_its_models_are_reached_from_the_command_line(caller: Caller) -> None:
    assert caller.json("provider show")["mode"] == "platform"
    assert "UZ-PROVIDER" in caller("provider set self_managed --credential none", status=1)
    assert caller.json("provider clear")["model"] is None

    caller("platform-key set anthropic")
    assert caller("platform-key list -o name") == "anthropic\n"
    assert "anthropic" in caller("platform-key show anthropic")

    caller("platform-key delete anthropic")
    assert "UZ-PROVIDER-005" in caller("platform-key show anthropic", status=1)

    # The workspace, the tenant and the platform.
    workspace = caller.environment["SEXTON_WORKSPACE"]
    assert "yes" in caller(f"workspace pause {workspace[-12:]}")
    assert caller.json(f"workspace resume {workspace}")["paused"] is False
    assert "Did you mean 'default'?" in caller("workspace show defualt", status=1)
    assert caller.json("billing plan")["workspace_id"] == workspace
    assert caller.json("billing list")["items"] == []
    assert caller.json(f"billing periods {NOWHERE}")["items"] == []
    assert "UZ-BILLING-001" in caller("billing scale nothing", status=1)
    assert caller.json("server health")["ready"] is True
    assert "UZ-AUTH-021" in caller("fleet queue", status=77)
    assert "UZ-AUTH-021" in caller(f"runner history {NOWHERE}", status=77)
    assert "No chat is installed" in caller("chat show")
    assert caller("chat install").strip().endswith("/chat/slack/install")
    assert "UZ-CHATPLUGIN" in caller("chat test", status=77)

    caller("chat uninstall")
    assert "UZ-" in caller("model preview hello", status=1)


def test_names_are_completed_with_what_the_server_has(shell: Shell, caller: Caller, tmp_path: Path) -> None:
    caller(f"agent install {agent_folder(tmp_path, 'live-one')}")
    shell.environment |= caller.environment
    for line, expected in (
        ("sexton grants request --agent li", "plain,live-one\n"),
        ("sexton event show 0", "\n"),
    ):
        words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
        told = shell(_SEXTON_COMPLETE="bash_complete", **words)
        assert (told.stdout, told.stderr) == (expected, "")


def test_a_server_that_is_away_or_never_answers_completes_nothing_and_says_nothing(tmp_path: Path) -> None:
    shell = Shell(tmp_path, SEXTON_TOKEN="zmb_t_" + "0" * 64, SEXTON_WORKSPACE=NOWHERE)
    words = {"_SEXTON_COMPLETE": "bash_complete", "COMP_WORDS": "sexton agent show e", "COMP_CWORD": "3"}
    with socket.create_server(("127.0.0.1", 0)) as silent:
        never = f"http://127.0.0.1:{silent.getsockname()[1]}"
        for address in ("http://127.0.0.1:1", never):
            told = shell(SEXTON_BASE_URL=address, **words)
            assert (told.returncode, told.stdout, told.stderr) == (0, "\n", ""), address
