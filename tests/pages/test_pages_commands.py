"""The commands that pages tell people to run are commands that there are."""

import re
from importlib import resources

import click
import pytest

from sexton_cli.main import cli

TOLD = re.compile(r"<code>sexton ([a-z][a-z -]*)")


def told() -> list[str]:
    """Every command that a template names, without its arguments."""
    folder = resources.files("sexton_http.pages.templates") / "html"
    return sorted({words.strip() for page in folder.iterdir() for words in TOLD.findall(page.read_text())})


@pytest.mark.parametrize("words", told())
def test_a_page_names_no_command_that_is_not_there(words: str) -> None:
    command: click.Command | None = cli
    context = click.Context(cli, info_name="sexton")
    for word in words.split():
        if word.startswith("--") or not isinstance(command, click.Group):
            break
        command = command.get_command(context, word)
        assert command is not None, f"there is no `sexton {words}`"


def test_the_pages_do_name_commands() -> None:
    assert "agent install my-agent" in told()
