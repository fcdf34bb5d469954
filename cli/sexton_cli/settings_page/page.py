"""Writes ``docs/reference/settings.md``."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import click

from sexton_cli.commands.migrate import migrate
from sexton_cli.commands.server import serve, up
from sexton_cli.settings_page.facts import FILES, RUNNER, SERVER, VARIABLES
from sexton_cli.settings_page.limits import LIMITS
from sexton_cli.settings_page.options import HEAD, Row, rows_of_click, rows_of_parser
from sexton_runner.__main__ import (
    RUN_DEFAULT_VARIABLE,
    RUN_MOST_VARIABLE,
    VARIABLES as RUNNER_VARIABLES,
    make_parser,
)
from sexton_runner.images.store import IMAGES_VARIABLE
from sexton_runner.logs import FORMAT_VARIABLE, LEVEL_VARIABLE

OF_RUNNER_OPTIONS: Final = {
    "run_default": RUN_DEFAULT_VARIABLE,
    "run_most": RUN_MOST_VARIABLE,
    "images": IMAGES_VARIABLE,
    "log_format": FORMAT_VARIABLE,
    "log_level": LEVEL_VARIABLE,
}
"""Variables that say what an option of a runner says."""


def settings_page(made: str, commands: Sequence[tuple[str, str]]) -> str:
    """The page; ``commands`` are the variables that commands read which call a server."""
    return "\n".join(
        [
            "# Settings",
            "",
            made,
            "",
            "Everything that can be chosen about a server and a runner, and the limits that cannot. An",
            "option wins over the environment, and the environment over the default.",
            "`sexton server settings` shows what a server runs with, and where each value comes from. A",
            "change counts from the next start on, unless the tables say otherwise.",
            "",
            "*Seen in* names the [metrics](metrics.md) that show what a setting does.",
            "",
            "## Server",
            "",
            "Of `sexton serve` and `sexton up`.",
            "",
            *_table(rows(serve)),
            "",
            "## Server with runners",
            "",
            "Of `sexton up` alone. Its runners read the environment of the command, too.",
            "",
            *_table(only_of_up()),
            "",
            "## Runner",
            "",
            "Of `sexton runner`. [Runner](runner.md) says more about each.",
            "",
            *_table(runner_rows()),
            "",
            "## Migrations",
            "",
            "Of `sexton migrate`.",
            "",
            *_table(rows(migrate)),
            "",
            "## Variables without an option",
            "",
            "| Variable | Read by | Meaning |",
            "| --- | --- | --- |",
            *_variables(commands),
            "",
            "## Files",
            "",
            "Names are those in the data folder (`--data`). A mistake in one ends the start, and the message",
            "says where it is.",
            "",
            "| File | Elsewhere by | Read | Holds |",
            "| --- | --- | --- | --- |",
            *(f"| {' | '.join(row)} |" for row in FILES),
            "",
            "What plans limit (requests a second, events a day, agents, workspaces, credentials, days that",
            "events are kept) stands in `billing.toml`. What one run may have stands in the agent's",
            "[manifest](manifests.md), up to `--run-most`.",
            "",
            "## Fixed limits",
            "",
            "They are the same on all servers and runners of a database, so they are no settings: two",
            "servers that did not agree about the term of a lease would give one event to two runners. To",
            "change one, change the code at the place that the table names, and restart all servers and",
            "runners with it. [Storage](storage.md#sessions) lists the bounds on sessions of the database.",
            "",
            "| Limit | Value | What it bounds | What can be chosen |",
            "| --- | --- | --- | --- |",
            *(f"| `{one.place}` | {one.value} | {one.meaning} | {one.instead} |" for one in LIMITS),
            "",
        ]
    )


def rows(command: click.Command) -> list[Row]:
    """The options of a command that starts or prepares a server."""
    return [*rows_of_click(command, SERVER)]


def only_of_up() -> list[Row]:
    """What ``sexton up`` has beyond ``sexton serve``."""
    known = {row.name for row in rows(serve)}
    return [row for row in rows(up) if row.name not in known]


def runner_rows() -> list[Row]:
    """The options of a runner, with the defaults that an empty environment leaves."""
    return [*rows_of_parser(make_parser({}), RUNNER, OF_RUNNER_OPTIONS)]


def _table(lines: Sequence[Row]) -> Iterator[str]:
    yield from HEAD
    yield from (row.line() for row in lines)


def _variables(commands: Sequence[tuple[str, str]]) -> Iterator[str]:
    of_runner: Mapping[str, str] = {
        name: words
        for name, words in RUNNER_VARIABLES.items()
        if name not in {*OF_RUNNER_OPTIONS.values(), *VARIABLES}
    }
    for name, (reader, meaning) in VARIABLES.items():
        yield f"| {_names(name)} | {reader} | {meaning} |"
    for name, words in of_runner.items():
        yield f"| `{name}` | runner | {words[:1].upper()}{words[1:]}. |"
    for name, meaning in commands:
        yield f"| `{name}` | command | {meaning} |"


def _names(text: str) -> str:
    return ", ".join(f"`{name}`" for name in text.split(", "))
