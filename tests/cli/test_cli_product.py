"""What the product does is reached from the command line, on a real server; and shells complete its names."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sexton_cli.main import cli
from tests.worlds.agent_folders import agent_folder
from tests.worlds.server_process import ServerProcess
from tests.worlds.shell import Shell

NOWHERE = "019363b0-0000-7000-8000-00000000ffff"


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
    environment = {
        "HOME": str(tmp_path),
        "SEXTON_BASE_URL": server.ready["base_url"],
        "SEXTON_TOKEN": server.ready["api_key"],
        "SEXTON_WORKSPACE": server.ready["workspace_id"],
    }
    return Caller(environment)


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


def test_the_tenant_and_its_models_are_reached_from_the_command_line(
    server: ServerProcess, caller: Caller
) -> None:
    assert caller.json("provider show")["mode"] == "platform"
    assert "UZ-PROVIDER" in caller("provider set self_managed --credential none", status=1)
    assert caller.json("provider clear")["model"] is None

    caller("platform-key set anthropic")
    assert caller("platform-key list -o name") == "anthropic\n"
    assert "anthropic" in caller("platform-key show anthropic")

    caller("platform-key delete anthropic")
    assert "UZ-PROVIDER-005" in caller("platform-key show anthropic", status=1)

    # The workspace, the tenant and the platform.
    workspace = server.ready["workspace_id"]
    assert "yes" in caller(f"workspace pause {workspace[-12:]}")
    assert caller.json("workspace resume default")["paused"] is False
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


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("sexton agent show li", "live-one"),
        ("sexton grants request --agent li", "live-one"),
        ("sexton whoami --workspace de", "default"),
        ("sexton event show 0", ""),
    ],
)
def test_names_are_completed_with_what_the_server_has(
    shell: Shell, caller: Caller, line: str, expected: str
) -> None:
    if "live-one" not in caller("agent list -o name"):
        caller(f"agent install {agent_folder(shell.home, 'live-one')}")
    shell.environment |= caller.environment

    count = len(line.split()) - 1
    told = shell(_SEXTON_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=str(count))

    assert (told.stdout, told.stderr) == (f"plain,{expected}\n" if expected else "\n", "")


def test_a_server_that_is_away_or_never_answers_completes_nothing_and_says_nothing(tmp_path: Path) -> None:
    shell = Shell(tmp_path, SEXTON_TOKEN="zmb_t_" + "0" * 64, SEXTON_WORKSPACE=NOWHERE)
    words = {"_SEXTON_COMPLETE": "bash_complete", "COMP_WORDS": "sexton agent show e", "COMP_CWORD": "3"}
    with socket.create_server(("127.0.0.1", 0)) as silent:
        never = f"http://127.0.0.1:{silent.getsockname()[1]}"
        for address in ("http://127.0.0.1:1", never, "nonsense"):
            told = shell(SEXTON_BASE_URL=address, **words)
            assert (told.returncode, told.stdout, told.stderr) == (0, "\n", ""), address
