"""The page about the command line says what the command line does."""

from pathlib import Path

import click

from sexton_cli.commands.table import SHORT_FORMS
from sexton_cli.exits import MEANINGS
from sexton_cli.main import cli
from sexton_cli.reference import cli_page

ROOT = Path(__file__).parents[2]


def test_the_reference_is_up_to_date() -> None:
    kept = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    assert kept == cli_page(), "run: python -m sexton_cli.reference docs/reference"


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
