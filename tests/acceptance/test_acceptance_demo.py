"""The demo is true: it ends with status 0 only if every claim it makes held."""

import hashlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from sexton_cli.demo.main import open_scenario
from sexton_cli.demo.model import find_model
from sexton_cli.demo.narration import Narrator
from tests.fakes.model_servers import KEY, Call, Say, open_model, words_of

PLAN = (
    "import hashlib, json, pathlib\n"
    "path = pathlib.Path('rollback-plan.json')\n"
    "path.write_text(json.dumps({'steps': ['hold', 'deploy', 'revert', 'release']}, sort_keys=True))\n"
    "print('plan', hashlib.sha256(path.read_bytes()).hexdigest())\n"
)
MANIFEST = (
    "import hashlib, json, pathlib\n"
    "plan = pathlib.Path('rollback-plan.json').read_bytes()\n"
    "text = json.dumps({'plan_sha256': hashlib.sha256(plan).hexdigest()})\n"
    "pathlib.Path('rollback-manifest.json').write_text(text)\n"
    "print('manifest', hashlib.sha256(text.encode()).hexdigest())\n"
)
PLANNED = hashlib.sha256(b'{"steps": ["hold", "deploy", "revert", "release"]}').hexdigest()


def without_a_model() -> dict[str, str]:
    """Our environment, without what tells of a model or a database."""
    return {
        name: value
        for name, value in os.environ.items()
        if name != "DATABASE_URL" and find_model({name: value}) is None
    }


def run_demo(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sexton_cli.main", "demo"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=without_a_model() | {"HOME": str(folder)},
    )


def test_the_demo_shows_the_whole_path_and_every_claim_holds(tmp_path: Path) -> None:
    ended = run_demo(tmp_path)
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-2000:]

    summary = re.search(r"(\d+) of (\d+) claims held", ended.stdout)
    assert summary is not None
    assert int(summary[1]) == int(summary[2]) >= 32
    assert "✗" not in ended.stdout

    reached, refused = re.findall(r"it (reached|was refused) +(POST .*|PATCH .*)", ended.stdout)
    assert reached[1].startswith("POST localhost/issues/812/labels, GET localhost/git/ref/heads/main")
    assert refused[1] == "PATCH localhost/issues/812, POST paste.example.net/new"
    assert re.search(r"main is at +deploy-doctor: Revert \"Merge pull request #482", ended.stdout)
    assert "ghp_" not in ended.stdout


async def test_with_a_key_the_demo_has_a_model_carry_deploy_doctor_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The acts in which a key makes a difference; the last one is the same."""

    def ask(question: dict[str, Any]) -> Say:
        assert PLANNED in words_of(question), "the model is shown what its program printed"
        arguments = {
            "action": "deploy.rollback",
            "kind": "deployment",
            "summary": "Roll back the failed deployment",
            "evidence": {"plan_sha256": PLANNED},
            "blast_radius": "production",
        }
        return Say("", (Call("request_approval", arguments),))

    def conclude(question: dict[str, Any]) -> Say:
        manifest = re.findall(r"manifest ([0-9a-f]{64})", words_of(question))
        return Say(f"verdict: persistent deployment failure\nmanifest: {manifest[-1]}")

    said = io.StringIO()
    narrator = Narrator(Console(file=said, highlight=False))
    async with open_model("anthropic") as model:
        model.script = [
            Say("", (Call("python", {"code": PLAN}),)),
            ask,
            Say("", (Call("python", {"code": MANIFEST}),)),
            conclude,
        ]
        for name in set(os.environ) - set(without_a_model()):
            monkeypatch.delenv(name)
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setenv("SEXTON_ANTHROPIC_BASE_URL", model.base_url)
        async with open_scenario(tmp_path, narrator) as scenario:
            await scenario.set_up()
            await scenario.woken_gated_billed()
        assert narrator.summary(), said.getvalue()[-4000:]
        assert len(model.asked) == 4

        first = words_of(model.asked[0])

    assert "You diagnose deployments that failed" in first
    assert "octo-deployer" in first, "the event is shown, whole"
    assert "the workspace has a model of anthropic's" in said.getvalue()
    assert "verdict: persistent deployment failure" in said.getvalue()
    assert KEY not in said.getvalue()
