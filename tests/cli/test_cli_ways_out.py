"""Commands that messages tell people to run: each is one that this command line has."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from sexton_cli.commands.table import SHORT_FORMS
from sexton_cli.main import cli

ROOT = Path(__file__).parents[2]
SOURCES = ("actors", "cli", "http", "runner", "storage")
CONTEXT = click.Context(cli, info_name="sexton")
TOLD = re.compile(r"(?:(?<!`)[`']|<code>|: )sexton ([a-z][^`'<;,)|…\n]*)")
EVERYDAY = frozenset(
    {"up", "serve", "migrate", "login", "logout", "whoami", "apply", "demo", "doctor", "trigger"}
)
"""Short forms that messages use, as the tutorials do; for all others they name the noun and the verb."""
OF_RUNNERS = frozenset({"runner doctor"})
"""The runner's own parser reads it."""
VALUE = "VALUE"


def commands_in(text: str) -> list[str]:
    """Give the commands that a text names, without the word ``sexton``."""
    return [found.strip().rstrip(".") for found in TOLD.findall(text)]


def texts_in(source: str) -> Iterator[str]:
    """Give all texts of a module; what is put into one while it runs stands there as a word."""
    tree = ast.parse(source)
    joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    parts = {id(part) for whole in joined for part in ast.walk(whole)}
    for whole in joined:
        yield "".join(str(one.value) if isinstance(one, ast.Constant) else VALUE for one in whole.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value


@cache
def all_told() -> list[tuple[str, str]]:
    """Give every command that some module tells, with the module."""
    found = {
        (str(path.relative_to(ROOT)), told)
        for source in SOURCES
        for path in (ROOT / source).rglob("*.py")
        if "sexton " in (text := path.read_text(encoding="utf-8"))
        for one in texts_in(text)
        for told in commands_in(one)
    }
    return sorted(found)


def fault_of(told: str) -> str | None:
    """Say what is wrong with a command; None: the command line takes it.

    >>> fault_of("agent show NAME"), fault_of("agent shwo"), fault_of("agent list --coloured")
    (None, "no such command: 'shwo'", "no such option: '--coloured'")
    >>> fault_of("credit 5")
    "say 'sexton billing credit' for 'sexton credit'"
    """
    if told in OF_RUNNERS:
        return None
    first, *_ = words = told.split()
    if first in SHORT_FORMS and first not in EVERYDAY:
        return f"say 'sexton {' '.join(SHORT_FORMS[first])}' for 'sexton {first}'"
    command: click.Command = cli
    while words and isinstance(command, click.Group) and not words[0].startswith("-"):
        word = words.pop(0)
        found = command.get_command(CONTEXT, word)
        if found is None:
            return f"no such command: {word!r}"
        command = found
    known = {name: one for one in command.get_params(CONTEXT) for name in (*one.opts, *one.secondary_opts)}
    places = sum(max(one.nargs, 1) for one in command.params if isinstance(one, click.Argument))
    takes_rest = any(one.nargs < 0 for one in command.params if isinstance(one, click.Argument))
    while words:
        word = words.pop(0)
        if not word.startswith("-"):
            places -= 1
        elif word not in known | {"--help": None}:
            return f"no such option: {word!r}"
        elif words and isinstance(one := known[word], click.Option) and not one.is_flag:
            words.pop(0)
    return None if places >= 0 or takes_rest else "more words than it takes"


@pytest.mark.parametrize("source", SOURCES)
def test_every_command_that_a_message_names_is_one_that_can_be_given(source: str) -> None:
    told = [(path, said) for path, said in all_told() if path.startswith(f"{source}/")]
    wrong = {said: (path, why) for path, said in told if (why := fault_of(said)) is not None}

    assert not wrong
    assert source == "runner" or told, "the pattern no longer finds what messages name"
