"""Versions by the command line: on trial, promoted, rolled back, pinned, and what ``apply`` makes of it."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sexton_cli.main import cli
from tests.cli.test_cli_apply import Crew, agents_of, crew
from tests.worlds.samples import skill_md, trigger_md

__all__ = ("crew",)
PINNED = "format: 1\nfolder: crew\nworkspace: {workspace}\nagents:\n  herald: {{pin: 1}}\n"


def said(crew: Crew, *words: str, status: int = 0) -> str:
    environment = {**crew.environment, "SEXTON_WORKSPACE": crew.workspace}
    ended = CliRunner().invoke(cli, [*words], env=environment)
    assert ended.exit_code == status, ended.output
    return ended.output


def herald(crew: Crew) -> Any:
    return crew.api("GET", crew.at("herald"))


def draft(crew: Crew, body: str) -> None:
    files = {"source_markdown": skill_md("herald", body=body), "trigger_markdown": trigger_md("herald")}
    made = crew.api("PUT", "/harness/source", {"agent_id": herald(crew)["zombie_id"], **files})
    crew.api("POST", "/harness/compile", {"config_version_id": made["config_version_id"]})


def files_in(crew: Crew, body: str) -> None:
    (crew.root / "agents" / "herald" / "SKILL.md").write_text(skill_md("herald", body=body))


@pytest.fixture
def applied(crew: Crew) -> Crew:
    crew.declare()
    agents_of(crew.root, "herald")
    crew.apply()
    return crew


def test_a_version_is_tried_out_watched_promoted_and_rolled_back(applied: Crew) -> None:
    draft(applied, "Look twice.\n")
    started = said(applied, "agent", "canary", "start", "herald", "2", "--share", "20", "--max-failures", "5")
    event = said(applied, "steer", "herald", "look", "--no-wait", "--version", "1").strip()
    asked = applied.api("GET", f"/events/{event}")
    watched = json.loads(said(applied, "agent", "canary", "status", "herald", "--json"))
    promoted = said(applied, "agent", "canary", "promote", "herald", "--yes")
    active = herald(applied)["config_revision"]
    back = said(applied, "agent", "roll-back", "herald", "1", "--yes")
    draft(applied, "Look three times.\n")
    said(applied, "agent", "canary", "start", "herald", "3", "--share", "20")
    withdrawn = said(applied, "agent", "canary", "withdraw", "herald", "--reason", "too slow")

    assert "on trial" in started
    assert (asked["asked_version"], asked["canary_id"]) == (1, None)
    assert watched["canary"]["status"] == "on_trial"
    assert "promoted" in promoted
    assert active == 2
    assert "works by version 1" in back
    assert "too slow" in withdrawn
    assert herald(applied)["config_revision"] == 1


def test_files_wait_while_an_agent_is_pinned_and_a_folder_can_say_so(applied: Crew, tmp_path: Path) -> None:
    files_in(applied, "Look twice.\n")
    applied.declare(PINNED)
    seen = applied.apply("--diff", status=2)
    applied.apply()
    pinned = herald(applied)
    shown = said(applied, "agent", "show", "herald")
    exported = tmp_path / "exported"
    said(applied, "export", str(exported), "--name", "crew")

    assert "+pin: 1" in seen
    assert (pinned["config_revision"], pinned["pin"]["held_version"]) == (1, 2)
    assert applied.apply() == "Nothing to do.\n", "the files that wait are those of the folder"
    assert "to version 1" in shown
    assert "pin: 1" in (exported / "sexton.yaml").read_text()
    assert "Look twice." in (exported / "agents" / "herald" / "SKILL.md").read_text()

    applied.declare()
    assert "pin 1 -> nothing" in applied.apply()
    assert herald(applied)["pin"] is None
    assert "Look twice." in herald(applied)["source_markdown"]
    assert applied.apply() == "Nothing to do.\n"


def test_a_person_pins_an_agent_and_lets_it_go(applied: Crew) -> None:
    files_in(applied, "Look twice.\n")
    applied.apply()
    pinned = said(applied, "agent", "pin", "herald", "1", "--reason", "the fair", "--yes")
    updated = said(applied, "agent", "update", str(applied.root / "agents" / "herald"))
    stays = herald(applied)
    free = said(applied, "agent", "unpin", "herald")
    held = herald(applied)
    said(applied, "agent", "pin", "herald")
    files_in(applied, "Look three times.\n")
    said(applied, "agent", "update", str(applied.root / "agents" / "herald"))
    said(applied, "agent", "unpin", "herald", "--stay")

    assert "stays at version 1" in pinned
    assert "unpin herald" in updated
    assert (stays["config_revision"], stays["pin"]["held_version"]) == (1, 3)
    assert "works by version 3" in free
    assert "Look twice." in held["source_markdown"]
    assert herald(applied)["config_revision"] == 3


def test_apply_leaves_a_version_on_trial_alone_and_says_so(applied: Crew) -> None:
    draft(applied, "Look twice.\n")
    said(applied, "agent", "canary", "start", "herald", "2", "--share", "20")
    files_in(applied, "Look three times.\n")
    told = applied.apply("--diff")
    done = applied.apply()
    still = herald(applied)
    said(applied, "agent", "canary", "withdraw", "herald")
    after = applied.apply()

    assert "? agent/herald: version 2 is on trial on 20 percent of its events" in told
    assert "Nothing to do." in done
    assert (still["config_revision"], still["on_trial"]["version"]) == (1, 2)
    assert "~ agent/herald: SKILL.md" in after
    assert herald(applied)["on_trial"] is None


def test_a_draft_is_run_as_a_shadow_of_saved_events(applied: Crew, tmp_path: Path) -> None:
    folder = tmp_path / "herald"
    folder.mkdir()
    (folder / "SKILL.md").write_text(skill_md("herald", body="Look twice.\n"))
    (folder / "TRIGGER.md").write_text(trigger_md("herald"))
    counted = said(applied, "agent", "shadow", "start", "herald", str(folder), "--dry-run")
    begun = said(applied, "agent", "shadow", "start", "herald", str(folder), "--limit", "3").splitlines()[-1]
    said(applied, "jobs", "wait", begun)
    told = said(applied, "agent", "shadow", "report", begun)
    whole = json.loads(said(applied, "agent", "shadow", "report", begun, "--json"))
    (folder / "SKILL.md").write_text("no front matter")
    wrong = said(applied, "agent", "shadow", "start", "herald", str(folder), status=1)
    neither = said(applied, "agent", "shadow", "start", "herald", status=2)

    assert counted == "0 events.\n"
    assert "done: 0 events, 0 with the same answer" in told
    assert (whole["job"]["agent_version"], whole["items"]) == (2, [])
    assert "SKILL.md:1" in wrong
    assert "give either DIR or --version" in neither
    assert herald(applied)["config_revision"] == 1, "the draft was never active"
