"""``agent init``, ``agent run``: an agent is written and tried with a real sandbox, and without a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest
import trio
from click.testing import CliRunner

from sexton_actors.manifest.model import Runtime
from sexton_cli.commands import agent_trials
from sexton_cli.commands.agent import agent
from sexton_cli.example_files import folder_of
from sexton_cli.given_secrets import read_credentials
from sexton_cli.manifests import Files
from sexton_cli.model_script import Turn
from sexton_cli.scaffold import files_of, write_files
from sexton_cli.trial.order import Approval, Order, model_for, wake_of, with_signing_secrets
from sexton_cli.trial.report import status_of
from sexton_cli.trial.session import Trial, hold_trial
from sexton_runner.settings import SandboxTier
from tests.worlds.agent_folders import agent_folder
from tests.worlds.shell import Shell
from tests.worlds.toolbox import Seen, open_web

CANARY = "canary-4b7d1e90aa31"
LEAVE = "import os; os.makedirs('out/deep'); open('out/deep/a.html', 'w').write('42'); open('out/none', 'w')"
QUIET = {"HOME": "/nonexistent", "ANTHROPIC_API_KEY": "", "OPENAI_API_KEY": ""}


def test_what_init_writes_passes_check_and_run(bare_shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "greeter"
    init = ["init", "greeter", "--runtime", "command", "--dir", str(folder)]
    written = CliRunner().invoke(agent, init, env=QUIET)
    assert written.exit_code == 0, written.output
    assert f"sexton agent run {folder} --event {folder}/event.json" in written.output.replace("\n", " ")
    assert Files(folder).checked().warnings == ()

    ended = bare_shell("agent", "run", str(folder), "--event", str(folder / "event.json"))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.startswith("1 commit(s) on refs/heads/main\n")
    assert '"branch": "refs/heads/main"' in ended.stdout.partition("Evidence:")[2]
    assert "… read the push" in ended.stderr
    assert "ended    processed" in ended.stdout

    again = CliRunner().invoke(agent, init, env=QUIET)
    assert (again.exit_code, "nothing was written" in again.output) == (1, True)


def test_a_message_brings_files(bare_shell: Shell, tmp_path: Path) -> None:
    """As the page of the recipe says."""
    (tmp_path / "invoices.csv").write_text("number,customer,amount,currency\nR-1,Harbour,0.30,EUR\n")
    (tmp_path / "bank.csv").write_text("date,text,amount,currency\n2026-03-02,R-1,0.20,EUR\n")
    files = [f"--file={tmp_path / name}" for name in ("invoices.csv", "bank.csv")]
    recipe = str(folder_of("invoice-reconciliation"))

    ended = bare_shell("agent", "run", recipe, "--message", "March", *files)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "underpaid | R-1 | Harbour | 0.30 | 0.20 | -0.10" in ended.stdout


def order_for(folder: Path, event: Path, turns: bytes, **changes: Any) -> Order:
    files = Files(folder)
    manifest = files.checked().manifest
    given: dict[str, Any] = {
        "files": files,
        "manifest": manifest,
        "wake": wake_of(manifest, event, None, None),
        "approval": Approval.APPROVE,
        "sandbox": SandboxTier.BUBBLEWRAP,
        "wall_s": 60.0,
        "credentials": with_signing_secrets(manifest, {}),
        "model": model_for(manifest, {}, known=None, scripted=True),
        "script": msgspec.json.decode(turns, type=tuple[Turn, ...]),
    }
    return Order(**given | changes)


async def held(order: Order, *, approved: bool = True) -> tuple[Trial, list[dict[str, Any]]]:
    gates: list[dict[str, Any]] = []

    async def decide(gate: Any) -> tuple[bool, str]:
        gates.append(dict(gate))
        return approved, "the test says so"

    def ignore(_: object) -> None:
        """What is shown is in the trial's frames too."""

    return await hold_trial(order, show=ignore, note=ignore, decide=decide), gates


async def test_a_scripted_model_is_gated_and_its_secret_is_never_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "poster"
    write_files(folder, files_of("poster", Runtime.AGENT))
    trigger = folder / "TRIGGER.md"
    more = (
        "tools: [python, http_request]\ncredentials: [chat]\nnetwork: {allow: [localhost]}\n"
        'gates: {rules: [{tool: http_request, action: "POST *", behavior: approve}]}\n'
        "resources: {memory: 2GiB, wall: 5m}"
    )
    trigger.write_text(trigger.read_text().replace("tools: [python]", more))
    monkeypatch.setenv("SEXTON_HTTP_ALLOW_LOOPBACK", "1")
    (tmp_path / "token").write_text(f"{CANARY}\n")

    def echo(seen: Seen) -> tuple[int, dict[str, str], bytes]:
        return 200, {}, b"you said " + seen.headers["authorization"].encode()

    async with open_web(echo) as web:
        headers = {"authorization": "Bearer ${secrets.chat.token}"}
        post = {"url": f"{web.url}/post", "method": "POST", "headers": headers, "json": {"text": "hello"}}
        turns: list[dict[str, Any]] = [
            {"calls": [{"tool": "python", "arguments": {"code": LEAVE}}], "input_tokens": 400},
            {"calls": [{"tool": "http_request", "arguments": post}]},
            {"text": "posted", "output_tokens": 30},
        ]
        given = read_credentials([f"chat.token=@{tmp_path / 'token'}"], {})
        manifest = Files(folder).checked().manifest
        order = order_for(
            folder,
            folder / "event.json",
            orjson.dumps(turns),
            credentials=with_signing_secrets(manifest, given),
            out=tmp_path / "kept",
        )
        trial, gates = await held(order)

    assert (trial.event["status"], trial.event["response_text"]) == ("processed", "posted"), trial.event
    assert trial.event["actor"] == "webhook:github"
    assert [gate["action_name"] for gate in gates] == ["POST localhost"]
    assert [seen.headers["authorization"] for seen in web.seen] == [f"Bearer {CANARY}"]
    assert [call["ok"] for call in trial.event["evidence"]["tools"]] == [True, True]
    assert sum(int(row["charged_nanos"]) for row in trial.bill) > 0
    assert CANARY not in str(trial) + repr(order)
    assert [(row["name"], row["size"]) for row in trial.files] == [("deep/a.html", 2), ("none", 0)]

    kept = {str(path.relative_to(tmp_path / "kept")) for path in (tmp_path / "kept").rglob("*")}
    assert kept == {"deep", "deep/a.html", "none"}
    assert (tmp_path / "kept" / "deep" / "a.html").read_text() == "42"


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--event", "{folder}/none.json"], 2, "none.json: No such file or directory"),
        ([], 2, "say what wakes the agent"),
        (["--message", "x", "--event", "y"], 2, "say what wakes the agent"),
        (["--event", "{folder}/event.json", "--source", "slack"], 2, "no trigger of source 'slack'"),
        (["--event", "{folder}/event.json", "--file", "{folder}/SKILL.md"], 2, "a webhook brings no files"),
        (["--message", "x", "--file", "{folder}/none.log"], 2, "none.log is no file"),
        (["--message", "x", "--secret", "chat.token=hunter2"], 2, "does not stand on the command line"),
        (["--message", "x", "--secret", "hunter2"], 2, "a credential has no name"),
        (["--message", "x", "--secret", "chat=env:NOT_SET_HERE"], 2, "NOT_SET_HERE is not set"),
        (["--message", "x", "--model-script", "{folder}/event.json"], 2, "A script is a JSON list of turns"),
        (["--message", "x", "--out", "{folder}"], 2, "greeter is not empty"),
        (["--message", "x"], 78, "Set ANTHROPIC_API_KEY or OPENAI_API_KEY"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_started(
    tmp_path: Path, words: list[str], status: int, said: str
) -> None:
    folder = tmp_path / "greeter"
    write_files(folder, files_of("greeter", Runtime.AGENT))
    given = [word.format(folder=folder) for word in words]
    ended = CliRunner().invoke(agent, ["run", str(folder), *given], env=QUIET)

    assert (ended.exit_code, said in ended.output) == (status, True), ended.output
    assert "hunter2" not in ended.output


@pytest.mark.parametrize(
    ("words", "said"),
    [([], "does not have the image web"), (["--sandbox", "none"], "the tier none can show no image")],
)
def test_an_image_that_is_missing_is_told_at_once(tmp_path: Path, words: list[str], said: str) -> None:
    folder = agent_folder(tmp_path, config="image: web")
    env = {**QUIET, "SEXTON_IMAGES": str(tmp_path)}
    ended = CliRunner().invoke(agent, ["run", str(folder), "--message", "x", *words], env=env)

    assert (ended.exit_code, said in ended.output) == (1, True), ended.output


def test_files_that_a_server_would_refuse_are_refused_in_its_words(tmp_path: Path) -> None:
    folder = agent_folder(tmp_path, config="budget:\n  daily_dollars: 5000")
    ended = CliRunner().invoke(agent, ["run", str(folder), "--message", "x"], env=QUIET)
    rejected = Files(folder).check()

    assert ended.exit_code == 1
    assert rejected.detail in ended.output  # type: ignore[union-attr]  # it is a rejection
    assert "UZ-ZMB-008" in ended.output


def test_an_interrupt_ends_the_command_and_not_its_server_with_a_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def interrupted(*_: object, **__: object) -> Trial:
        async with trio.open_nursery():
            raise KeyboardInterrupt

    monkeypatch.setattr(agent_trials, "hold_trial", interrupted)
    monkeypatch.setattr(agent_trials, "configure_logs", lambda _: None)
    words = ["run", str(agent_folder(tmp_path)), "--message", "x", "--sandbox", "none"]
    ended = CliRunner().invoke(agent, words, env=QUIET)

    assert (ended.exit_code, ended.output) == (
        130,
        "Interrupted; the run was stopped, and nothing is left of it.\n",
    )


def test_the_exit_status_says_what_kind_of_end_it_was() -> None:
    def ended(label: str | None, status: str = "agent_error") -> int:
        return status_of({"status": status, "failure_label": label})

    assert ended(None, "processed") == 0
    assert ended("startup_posture") == 69
    assert ended("secret_missing") == 78
    assert ended("timeout_kill") == 1
    assert ended("a label of a later version") == 1
