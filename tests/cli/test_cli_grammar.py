"""One grammar: nouns and verbs, how an agent is named, parts of ids, and what a misspelled word meant."""

import shutil
import subprocess
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from sexton_cli.commands.table import COMMANDS, NOUNS, SHORT_FORMS, VERBS
from sexton_cli.main import cli
from sexton_cli.man_pages import man_pages
from sexton_http.describe.examples import EXAMPLES
from tests.fakes.example_server import ExampleServer

ROOT = click.Context(cli, info_name="sexton")
AGENT = EXAMPLES["list_zombies"].answers["200"]["items"][0]
MACROS = frozenset({".TH", ".SH", ".TP", ".PP"})
MADE = "019346de-6400-7000-8000-"
"""How the ids of one minute begin."""


def call(*words: str) -> Result:
    return CliRunner().invoke(cli, words)


def command_at(*words: str) -> click.Command:
    command: click.Command | None = cli
    for word in words:
        assert isinstance(command, click.Group)
        command = command.get_command(ROOT, word)
    assert command is not None, words
    return command


# --- nouns and verbs ----------------------------------------------------------------------------------------


def test_every_short_form_is_a_noun_and_its_verb() -> None:
    for word, path in SHORT_FORMS.items():
        assert command_at(word) is command_at(*path)

    assert set(COMMANDS) == {*NOUNS, *SHORT_FORMS}
    assert set(VERBS) <= set(NOUNS)


@pytest.mark.parametrize(
    ("said", "noun"),
    [("agents", "agent"), ("key", "keys"), ("memories", "memory"), ("follow-ups", "follow-up")],
)
def test_a_noun_is_understood_in_singular_and_plural(said: str, noun: str) -> None:
    assert command_at(said) is command_at(noun)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("agnet", "list"), "'agent'"),
        (("agent", "lsit"), "'list'"),
        (("credentials", "grants", "aprove"), "'approve'"),
        (("webhook", "deliverys"), "'deliveries'"),
        (("agent", "list", "--statsu", "active"), "'--status'"),
        (("agent", "list", "--ouput", "json"), "'--output'"),
    ],
)
def test_what_a_misspelled_word_meant_is_asked(words: tuple[str, ...], meant: str) -> None:
    ended = call(*words)
    assert (ended.exit_code, "Did you mean" in ended.stderr, meant in ended.stderr) == (2, True, True), (
        ended.stderr
    )


# --- the agent ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("agent", "show", AGENT["name"]),
        ("agent", "show", "--agent", AGENT["name"]),
        ("agent", "show", f"--agent={AGENT['name']}", "-o", "json"),
        ("agents", "show", AGENT["zombie_id"]),
        ("agent", "show", AGENT["zombie_id"][-8:].upper()),
        ("grants", "request", "--reason", "--agent", "--agent", AGENT["name"], "mail"),
        ("memory", "forget", "a-key", "--yes", "--agent", AGENT["name"]),
    ],
)
def test_an_agent_is_named_in_one_way_everywhere(examples: ExampleServer, words: tuple[str, ...]) -> None:
    ended = call(*words)
    assert ended.exit_code == 0, ended.output


def test_every_command_that_is_about_an_agent_takes_the_option() -> None:
    without = [
        path
        for path, command in commands(ROOT)
        for param in command.params
        if (isinstance(param, click.Argument) and param.metavar == "AGENT") or param.name == "agent"
        if not any("--agent" in option.opts for option in command.params)
    ]
    assert without == []


def test_an_agent_that_is_misspelled_is_guessed(examples: ExampleServer) -> None:
    del examples
    ended = call("agent", "show", f"{AGENT['name'][:-1]}x")

    assert (ended.exit_code, f"Did you mean '{AGENT['name']}'" in ended.stderr) == (1, True), ended.stderr


# --- parts of ids -------------------------------------------------------------------------------------------


def events(*ends: str) -> dict[str, object]:
    shared = {"zombie_id": AGENT["zombie_id"], "status": "processed"}
    return {"items": [{"event_id": f"{MADE}{end}", **shared} for end in ends], "next_cursor": None}


@pytest.mark.parametrize(
    ("part", "status", "said"),
    [
        ("00000000ab12", 0, f"{MADE}00000000ab12"),
        ("00CD34", 0, f"{MADE}00000000cd34"),
        ("8000-00000000ab12", 0, f"{MADE}00000000ab12"),
        ("019346de", 2, f"{MADE}00000000ab12, {MADE}00000000cd34"),
        ("ffffff", 1, "there is no event whose id begins or ends with 'ffffff'"),
    ],
)
def test_a_part_of_an_id_is_enough_where_one_fits(
    examples: ExampleServer, part: str, status: int, said: str
) -> None:
    examples.answers["list_workspace_events"] = events("00000000ab12", "00000000cd34")
    ended = call("event", "cancel", part)

    assert ended.exit_code == status, ended.output
    assert said in (examples.paths[-1] if status == 0 else ended.stderr)
    assert ("cancel_workspace_event" in examples.asked) is (status == 0)


def test_what_is_too_short_for_a_part_is_for_the_server_to_judge(examples: ExampleServer) -> None:
    call("event", "cancel", "0ab12")
    assert examples.asked == ["cancel_workspace_event"]


# --- completion and manual pages ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bash", "zsh", "fish"])
def test_the_script_of_a_completion_is_printed_and_can_be_read(tmp_path: Path, kind: str) -> None:
    made = call("completion", kind)
    assert (made.exit_code, "_SEXTON_COMPLETE" in made.stdout) == (0, True)

    program = shutil.which(kind)
    if program is not None:
        script = tmp_path / f"completion.{kind}"
        script.write_text(made.stdout)
        read = subprocess.run([program, "-n", str(script)], capture_output=True, text=True, check=False)
        assert (read.returncode, read.stderr) == (0, "")


def test_there_is_a_manual_page_for_each_noun(tmp_path: Path) -> None:
    written = call("man", "--to", str(tmp_path / "man1"))
    assert written.exit_code == 0, written.output

    names = {file.name for file in (tmp_path / "man1").iterdir()}
    assert names == {"sexton.1", *(f"sexton-{noun}.1" for noun in NOUNS)}

    for name, page in man_pages(cli).items():
        assert {line.split()[0] for line in page.splitlines() if line.startswith(".")} <= MACROS, name
        assert not any(line.startswith("'") for line in page.splitlines()), name
    assert call("man", "agent").stdout == (tmp_path / "man1" / "sexton-agent.1").read_text()
    assert "\\fBsexton agent show\\fR [OPTIONS] AGENT" in call("man", "agent").stdout
    assert call("man", "agnet").exit_code == 2


def commands(parent: click.Context) -> list[tuple[str, click.Command]]:
    group = parent.command
    assert isinstance(group, click.Group)
    found: list[tuple[str, click.Command]] = []
    for name in group.list_commands(parent):
        command = group.get_command(parent, name)
        assert command is not None
        ctx = click.Context(command, info_name=name, parent=parent)
        found += commands(ctx) if isinstance(command, click.Group) else [(ctx.command_path, command)]
    return found
