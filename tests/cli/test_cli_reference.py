"""The pages about commands and settings say what there is."""

import platform
import re
from pathlib import Path

import click
import orjson
import pytest
from click.testing import CliRunner

from sexton_cli.commands.migrate import migrate
from sexton_cli.commands.server import serve
from sexton_cli.commands.table import SHORT_FORMS
from sexton_cli.exits import MEANINGS
from sexton_cli.main import cli
from sexton_cli.reference import PAGES, cli_page, page_of_settings
from sexton_cli.settings_page.facts import RUNNER, SERVER
from sexton_cli.settings_page.limits import LIMITS
from sexton_cli.settings_page.page import only_of_up, rows, runner_rows
from sexton_http.identity.context import VERSION

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
WINGS = ("engine", "storage", "actors", "http", "runner", "cli")
TO_RUNS = {"SEXTON_RUN", "SEXTON_EVENT_ID", "SEXTON_ATTEMPT", "SEXTON_SECRET_", "SEXTON_EGRESS_"}
"""What runs are given, and beginnings of names."""
EXAMPLES = {"SEXTON_ANTHROPIC_BASE_URL", "SEXTON_OLLAMA_BASE_URL", "SEXTON_MY_LAB_BASE_URL"}
"""Those of single providers."""


@pytest.mark.parametrize("name", PAGES)
def test_the_reference_is_up_to_date(name: str) -> None:
    kept = (REFERENCE / name).read_text(encoding="utf-8")
    assert kept == PAGES[name](), "run: python -m sexton_cli.reference docs/reference"


def test_each_number_among_the_settings_has_a_unit_and_bounds() -> None:
    unknown = [
        row.option
        for row in (*rows(serve), *only_of_up(), *runner_rows(), *rows(migrate))
        if re.fullmatch(r"[0-9.,]+", row.default) and not (row.bounds and (row.unit or "port" in row.option))
    ]
    assert unknown == [], "sexton_cli.settings_page.facts lacks these"


def test_what_is_said_of_settings_is_said_of_settings_that_there_are() -> None:
    of_server = {row.name for row in (*rows(serve), *only_of_up(), *rows(migrate))}
    of_runner = {row.name for row in runner_rows()}
    known = "".join((REFERENCE / name).read_text() for name in ("metrics.md", "workers.md"))
    seen = {name for fact in (*SERVER.values(), *RUNNER.values()) for name in fact.seen}

    assert SERVER.keys() <= of_server
    assert RUNNER.keys() <= of_runner
    assert {name for name in seen if f"| `{name}` |" not in known} == set()


def test_every_variable_that_the_code_names_is_among_the_settings() -> None:
    named = {
        name
        for wing in WINGS
        for file in (ROOT / wing).rglob("*.py")
        for name in re.findall(r"\bSEXTON_[A-Z0-9_]+", file.read_text(encoding="utf-8"))
    }
    page = page_of_settings()

    assert len(named) > len(TO_RUNS | EXAMPLES)
    assert sorted(name for name in named - TO_RUNS - EXAMPLES if f"`{name}`" not in page) == []


def test_a_limit_that_is_no_setting_is_told_with_the_value_that_the_code_has() -> None:
    page = page_of_settings()

    assert "| `sexton_actors.terms.LEASE_TERM_MS` | 30 s |" in page
    assert "| `sexton_actors.terms.EVENT_CEILING_MS` | 12 h |" in page
    assert len({limit.place for limit in LIMITS}) == len(LIMITS)


def test_every_command_stands_there_with_a_sentence() -> None:
    page = cli_page()
    for path, command in commands(click.Context(cli, info_name="sexton")):
        words = path.removeprefix("sexton ")
        assert (f"| `{path}` | `sexton " if words in SHORT_FORMS else f"### {path}\n") in page
        assert (command.help or "").partition("\n")[0].endswith("."), path


def test_every_exit_status_is_told_once() -> None:
    page = cli_page()
    for status in MEANINGS:
        assert page.count(f"\n| {status} | ") == 1


def test_every_option_says_what_it_is_for() -> None:
    bare = [
        f"{path} {option.name}"
        for path, command in commands(click.Context(cli, info_name="sexton"))
        for option in command.params
        if isinstance(option, click.Option) and not option.help
    ]
    assert bare == []


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


def test_the_version_names_release_python_and_the_newest_migration() -> None:
    newest = max(path.name for path in (ROOT / "storage/sexton_storage/migrations").glob("*.sql"))

    ended = CliRunner().invoke(cli, ["version", "--json"])

    assert ended.exit_code == 0, ended.output
    assert orjson.loads(ended.stdout) == {
        "release": VERSION,
        "python": platform.python_version(),
        "schema": int(newest[:4]),
    }
