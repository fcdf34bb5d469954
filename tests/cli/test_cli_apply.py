"""``sexton apply`` and ``export`` against a real server."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner

from sexton_cli.client import open_client
from sexton_cli.commands.apply import apply
from sexton_cli.commands.export import export
from sexton_cli.declared.folder import read_folder
from sexton_cli.declared.secrets_file import NOT_SHOWN
from sexton_cli.declared.session import Rules, Session
from sexton_cli.declared.steps import Steps
from sexton_cli.declared.three_way import Change
from sexton_cli.exits import Fault
from tests.thorough import THOROUGH
from tests.worlds.samples import GITHUB, NOBODY, skill_md, trigger_md
from tests.worlds.server_process import ServerProcess
from tests.worlds.shell import Shell

CRON = "type: cron\n    schedule: 0 5 * * *"
WHOLE = """\
format: 1
folder: crew
workspace: {workspace}
scoring: {{context_tokens: 1024}}
model_key: {{provider: anthropic, api_key: {{env: MODEL}}}}
credentials:
  hub: {{data: {{token: {{env: HUB}}}}, hosts: [hub.example.com]}}
mcp_servers:
  hub:
    url: https://hub.example.com/mcp
    headers: {{authorization: "Bearer ${{secrets.hub.token}}"}}
    tools: [read]
agents:
  herald:
    paused_schedules: [{{schedule: 0 5 * * *}}]
    grants: [slack]
  scribe: {{status: stopped}}
"""
KILLED = """
import os, signal, sys
from sexton_cli.declared.steps import Steps
from sexton_cli.main import main
Steps.take = lambda self, change: os.kill(os.getpid(), signal.SIGKILL)
main()
"""
SECRETS = {"MODEL": "k-1", "HUB": "t0p"}


def agents_of(root: Path, *names: str, config: str = "", trigger: str = NOBODY) -> None:
    for name in names:
        folder = root / "agents" / name
        folder.mkdir(exist_ok=True, parents=True)
        (folder / "SKILL.md").write_text(skill_md(name, body="Look.\n"))
        (folder / "TRIGGER.md").write_text(trigger_md(name, config, trigger=trigger))


class Crew:
    """A folder, a workspace of its own on the server, and the commands run in this process."""

    def __init__(self, root: Path, server: ServerProcess, workspace: str) -> None:
        self.root = root
        self.workspace = workspace
        self.environment = {
            "HOME": str(root.parent),
            "SEXTON_BASE_URL": server.ready["base_url"],
            "SEXTON_TOKEN": server.ready["api_key"],
        }
        headers = {"authorization": f"Bearer {server.ready['api_key']}"}
        self.http = httpx2.Client(base_url=server.ready["base_url"], headers=headers)

    def declare(self, text: str = "format: 1\nfolder: crew\nworkspace: {workspace}\n") -> None:
        self.root.mkdir(exist_ok=True)
        (self.root / "sexton.yaml").write_text(text.format(workspace=self.workspace))

    def agent(self, name: str, config: str = "", *, trigger: str = NOBODY) -> None:
        agents_of(self.root, name, config=config, trigger=trigger)

    def whole(self) -> None:
        self.declare(WHOLE)
        config = "tools: [hub.read]\nmcp_servers: [hub]\nintegrations: [slack]\ncredentials: [hub]"
        self.agent("herald", config, trigger=CRON)
        self.agent("scribe")

    def apply(
        self, *words: str, status: int = 0, root: Path | None = None, given: Mapping[str, str] | None = None
    ) -> str:
        ended = CliRunner().invoke(
            apply,
            ["-f", str(root or self.root), *words],
            env={**self.environment, **SECRETS, **(given or {})},
        )
        assert ended.exit_code == status, ended.output
        assert not {*SECRETS.values()} & {*ended.output.split()}, ended.output
        return ended.output

    def path(self) -> str:
        items = self.http.get("/v1/tenants/me/workspaces").json()["items"]
        [found] = [row["workspace_id"] for row in items if row["name"] == self.workspace]
        return f"/v1/workspaces/{found}"

    def api(self, method: str, path: str = "", body: Any = None) -> Any:
        answer = self.http.request(method, f"{self.path()}{path}", json=body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else {}

    def agents(self) -> dict[str, Any]:
        return {row["name"]: row for row in self.api("GET", "/zombies")["items"]}

    def at(self, name: str) -> str:
        return f"/zombies/{self.agents()[name]['zombie_id']}"


@pytest.fixture
def crew(server: ServerProcess, tmp_path: Path) -> Iterator[Crew]:
    crew = Crew(tmp_path / "crew", server, f"ws-{tmp_path.name[-20:]}")
    with crew.http:
        yield crew


def test_a_folder_makes_a_workspace_and_the_second_time_there_is_nothing_to_do(crew: Crew) -> None:
    crew.whole()
    seen = json.loads(crew.apply("--dry-run", "--json", status=2))
    first = crew.apply("--secrets-file", str(crew.root.parent / "secrets"))
    second = crew.apply()

    assert [one["makes_workspace"] for one in seen["folders"]] == [True]
    assert seen["applied"] is False
    assert "6 to make, 0 to change, 0 to remove" in first
    assert second == "Nothing to do.\n"
    assert crew.apply("--diff") == "Nothing to do.\n"
    assert crew.api("GET", "/scoring")["context_tokens"] == 1024
    assert crew.api("GET", "/credentials/llm")["provider"] == "anthropic"
    assert crew.api("GET", "/credentials")["items"][0]["hosts"] == ["hub.example.com"]
    assert crew.api("GET", "/mcp-servers")["items"][0]["tools"] == ["read"]
    assert {name: row["status"] for name, row in crew.agents().items()} == {
        "herald": "active",
        "scribe": "stopped",
    }
    assert crew.api("GET", "/schedules")["items"][0]["status"] == "paused"
    assert crew.api("GET", "/integration-grants")["items"][0]["status"] == "approved"

    lines = (crew.root.parent / "secrets").read_text().splitlines()
    assert sorted(json.loads(line)["agent"] for line in lines) == ["herald", "scribe"]

    turned = crew.apply("--dry-run", status=2, given={"HUB": "new"})
    assert "~ credential/hub: data differs" in turned
    assert "new" not in turned.split()


def test_only_addresses_that_are_new_are_said_to_be_shown_once(crew: Crew) -> None:
    crew.declare()
    crew.agent("herald", trigger=GITHUB)
    made = crew.apply()
    (crew.root / "agents/herald/SKILL.md").write_text(skill_md("herald", body="Look again.\n"))
    changed = crew.apply()
    crew.agent("herald", trigger=f"{GITHUB}\n  - type: webhook\n    source: alarms")
    more = crew.apply("--secrets-file", str(crew.root.parent / "secrets"))
    [line] = (crew.root.parent / "secrets").read_text().splitlines()

    assert NOT_SHOWN in made
    assert NOT_SHOWN not in changed
    assert "1 to change" in changed
    assert "The secrets of 1 agents" in more
    assert list(json.loads(line)["webhook_urls"]) == ["alarms"]


def test_what_people_change_stays_where_the_folder_says_nothing_of_it(crew: Crew) -> None:
    crew.whole()
    crew.apply()
    crew.api("PUT", "/mcp-servers/hub", {"url": "https://hub.example.com/mcp", "headers": {"x-team": "a"}})
    crew.api("PATCH", crew.at("herald"), {"status": "stopped"})
    crew.api("PATCH", crew.at("scribe"), {"source_markdown": skill_md("scribe", body="By hand.\n")})

    seen = crew.apply("--diff", status=2)
    assert crew.apply("--diff", status=2) == seen
    assert "agent/scribe/SKILL.md on the server (changed since it was applied)" in seen
    assert "-By hand." in seen
    assert "+Look." in seen
    assert "status" not in seen
    assert "x-team" not in seen

    crew.apply()
    [hub] = crew.api("GET", "/mcp-servers")["items"]
    assert hub["headers"] == {"x-team": "a", "authorization": "Bearer ${secrets.hub.token}"}
    assert hub["tools"] == ["read"]
    assert {row["status"] for row in crew.agents().values()} == {"stopped"}
    assert crew.api("GET", crew.at("scribe"))["source_markdown"].endswith("Look.\n")

    text = WHOLE.replace("    tools: [read]\n", "").replace("  scribe: {{status: stopped}}\n", "")
    crew.declare(text.replace("    grants: [slack]\n", ""))
    told = crew.apply()
    assert 'mcp_server/hub: tools ["read"] -> []' in told
    assert "grants.slack true -> nothing" in told
    assert crew.agents()["scribe"]["status"] == "active"
    assert crew.agents()["herald"]["status"] == "stopped", "the folder has never said anything of it"
    assert crew.api("GET", "/integration-grants")["items"][0]["status"] == "revoked"
    assert crew.apply() == "Nothing to do.\n"


def test_only_what_the_folder_has_applied_is_removed_and_only_when_asked(crew: Crew) -> None:
    crew.whole()
    crew.apply()
    crew.api(
        "POST",
        "/zombies",
        {"source_markdown": skill_md("hand"), "trigger_markdown": trigger_md("hand", trigger=NOBODY)},
    )
    other = crew.root.parent / "other"
    crew.root.rename(other)
    crew.declare()
    crew.agent("scribe")
    crew.declare("format: 1\nfolder: second\nworkspace: {workspace}\n")

    assert "was applied by the folder 'crew'" in crew.apply(status=1)
    assert crew.apply("--take-over", status=0).endswith("Nothing to do.\n")

    crew.declare()
    left = crew.apply("--dry-run", "--take-over", status=2)
    assert left.count("is in the folder no more, and stays") == 4, left
    assert "there is nobody to ask" in crew.apply("--prune", "--take-over", status=1)
    assert crew.agents().keys() == {"herald", "scribe", "hand"}

    assert "- agent/herald" in crew.apply("--prune", "--yes", "--take-over")
    assert crew.agents().keys() == {"scribe", "hand"}
    assert crew.api("GET", "/credentials")["items"] == []
    assert crew.api("GET", "/mcp-servers")["items"] == []
    assert crew.apply("--prune", "--yes") == "Nothing to do.\n"


def test_what_is_exported_is_there_already_and_makes_the_same_elsewhere(crew: Crew, tmp_path: Path) -> None:
    crew.whole()
    crew.apply()
    crew.api("PATCH", "", {"paused": True})
    here = {**crew.environment, "SEXTON_WORKSPACE": crew.workspace}
    kept, moved, again = (tmp_path / name for name in ("kept", "moved", "again"))

    for target, words in ((kept, ["--name", "kept"]), (moved, ["--from-environment", "--name", "crew"])):
        ended = CliRunner().invoke(export, [str(target), *words], env=here)
        assert ended.exit_code == 0, ended.output
    taken = CliRunner().invoke(export, [str(kept)], env=here)
    assert (taken.exit_code, "nothing was written" in taken.output) == (1, True)

    assert crew.apply("--take-over", root=kept) == "Nothing to do.\n"

    there = f"{crew.workspace}-b"
    assert "the variable CREDENTIAL_HUB is not set" in crew.apply(root=moved, status=1)

    given = {"CREDENTIAL_HUB": '{"token": "t0p"}', "MODEL_API_KEY": "k-1", "SEXTON_WORKSPACE": there}
    crew.apply(root=moved, given=given)
    assert crew.apply(root=moved, given=given) == "Nothing to do.\n"
    assert "the vault has no credential hub" in crew.apply(
        root=kept, status=1, given={"SEXTON_WORKSPACE": f"{there}-c"}
    )

    ended = CliRunner().invoke(
        export, [str(again), "--name", "kept"], env={**here, "SEXTON_WORKSPACE": there}
    )
    assert ended.exit_code == 0, ended.output

    files = [path for path in sorted(kept.rglob("*")) if path.is_file()]
    assert len(files) == 5

    for path in files:
        text = (again / path.relative_to(kept)).read_text().replace(there, crew.workspace)
        assert text == path.read_text(), path


def test_what_was_broken_off_goes_on(crew: Crew, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    crew.whole()
    taken = Steps.take

    def breaking(after: int, fault: type[BaseException]) -> Callable[[Steps, Change], None]:
        left = iter(range(after))

        def take(steps: Steps, change: Change) -> None:
            if next(left, None) is None:
                raise fault
            taken(steps, change)

        return take

    for after in (1, 3):
        monkeypatch.setattr(Steps, "take", breaking(after, KeyboardInterrupt))
        crew.apply(status=1)
    monkeypatch.setattr(Steps, "take", taken)
    if THOROUGH:
        # Killed: its turn is over only when it has said nothing for 20 s.
        killed = Shell(tmp_path, **crew.environment, **SECRETS)
        ended = subprocess.run(
            [sys.executable, "-c", KILLED, "apply", "-f", str(crew.root)],
            env=killed.environment,
            capture_output=True,
            check=False,
        )
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        assert crew.api("GET", "/applied")["applying"] is True
        assert "is applying a folder" in crew.apply("--wait", "0", status=1)
        crew.apply("--wait", "60")
        assert crew.apply() == "Nothing to do.\n"
        return
    record = crew.api("GET", "/applied")
    assert record["applying"] is False
    assert len(record["items"]) == 4

    rest = crew.apply()
    assert "1 to make, 1 to change, 0 to remove" in rest
    assert crew.apply() == "Nothing to do.\n"


def test_two_at_once_lose_nothing_and_one_who_is_slow_is_waited_for(crew: Crew, tmp_path: Path) -> None:
    crew.declare()
    crew.apply()
    together = Barrier(2)

    def one(name: str) -> None:
        root = tmp_path / name
        agents_of(root, f"{name}-one", f"{name}-two")
        (root / "sexton.yaml").write_text(f"format: 1\nfolder: {name}\n")
        with open_client(crew.environment["SEXTON_BASE_URL"], crew.environment["SEXTON_TOKEN"]) as client:
            session = Session(client, read_folder(root, root, {}), crew.path(), Rules())
            seen = session.look()
            together.wait()
            session.do(seen)

    with ThreadPoolExecutor() as pool:
        list(pool.map(one, ("east", "west")))

    assert crew.agents().keys() == {"east-one", "east-two", "west-one", "west-two"}

    record = crew.api("GET", "/applied")
    assert sorted(record["items"]) == [f"agent/{name}" for name in sorted(crew.agents())]

    wish = {"phase": "begin", "revision": record["revision"], "holder": "slow"}
    crew.api("PUT", "/applied", wish)
    crew.agent("late")
    assert "is applying a folder to this workspace" in crew.apply("--wait", "0", status=1)
    assert "late" not in crew.agents()

    crew.api("PUT", "/applied", {**wish, "phase": "end", "revision": record["revision"] + 1})
    crew.apply()
    assert "late" in crew.agents()


def test_a_wrong_word_ends_with_one_and_the_schema_is_printed(crew: Crew) -> None:
    assert CliRunner().invoke(apply, ["--dif"]).exit_code == 1
    assert CliRunner().invoke(apply, [], env=crew.environment).exit_code == 1
    assert json.loads(CliRunner().invoke(apply, ["--schema"]).output)["title"] == "sexton.yaml"

    crew.declare("format: 1\nfolder: crew\npasued: true\n")
    assert "sexton.yaml:3: `pasued` unknown key; did you mean `paused`?" in crew.apply(status=1)


def test_what_changes_between_the_look_and_the_step_is_not_overwritten(crew: Crew) -> None:
    crew.declare()
    crew.agent("herald")
    crew.apply()
    (crew.root / "agents" / "herald" / "SKILL.md").write_text(skill_md("herald", body="Look again.\n"))
    crew.api("PUT", "/mcp-servers/hub", {"url": "https://a.example", "headers": {"x-token": "l1teral"}})
    with open_client(crew.environment["SEXTON_BASE_URL"], crew.environment["SEXTON_TOKEN"]) as client:
        session = Session(client, read_folder(crew.root, crew.root, {}), crew.path(), Rules())
        seen = session.look()
        crew.api("PATCH", crew.at("herald"), {"source_markdown": skill_md("herald", body="By hand.\n")})
        with pytest.raises(Fault, match="somebody has changed the agent herald at this moment"):
            session.do(seen)

    assert crew.api("GET", crew.at("herald"))["source_markdown"].endswith("By hand.\n")
    assert crew.api("GET", "/applied")["applying"] is False

    hub = (
        "format: 1\nfolder: crew\nworkspace: {workspace}\nmcp_servers:\n  hub:\n    url: https://b.example\n"
    )
    crew.declare(hub)
    crew.apply()
    crew.declare(f"{hub}    headers: {{{{x-token: x}}}}\n")
    assert "a secret belongs in a credential" in crew.apply(status=1)

    ended = CliRunner().invoke(
        export, [str(crew.root)], env={**crew.environment, "SEXTON_WORKSPACE": crew.workspace}
    )
    assert (ended.exit_code, "has what looks like a secret in headers.x-token" in ended.output) == (1, True)
    assert "l1teral" not in ended.output


def test_a_paused_workspace_is_told_before_anything_is_changed(crew: Crew) -> None:
    crew.declare()
    crew.apply()
    crew.api("PATCH", "", {"paused": True})
    crew.agent("late")
    assert "the workspace is paused, and takes no new agents" in crew.apply(status=1)

    crew.declare("format: 1\nfolder: crew\nworkspace: {workspace}\npaused: false\n")
    crew.apply()
    assert "late" in crew.agents()
